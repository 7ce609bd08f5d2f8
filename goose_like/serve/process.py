"""The server's processes: one listening socket, one or more workers, and an orderly end."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from typing_extensions import override
from uvicorn.supervisors import Multiprocess

from goose_like.agent.profile_choice import ProfileChoice, choose_profile
from goose_like.core.errors import ProfileError, UsageError
from goose_like.providers.registry import choose_models, format_model_label

from .app import AppFactory, build_routes
from .service import open_service, restrict_profile
from .settings import METRICS_FOLDER_VARIABLE, TOKEN_VARIABLE, Settings

_CLOSE_TIMEOUT_S = 5
_KEEP_ALIVE_S = 75
"""Seconds that an idle connection stays open. Most balancers close theirs after 60 s, so they never find it closed."""


def run_server(profile_name: str, model: str | None, port: int, settings: Settings) -> int:
    """Serve until a signal stops the server, and return the exit code.

    Raises:
        GooseLikeError: the server cannot start.
    """
    if settings.workers > 1 and METRICS_FOLDER_VARIABLE not in os.environ:
        _restart_with_metrics_folder()
    chosen = choose_profile(profile_name, model)
    try:
        profile, removed = restrict_profile(chosen.profile, settings.toolkits)
        chosen = replace(chosen, profile=profile)
        build_routes(profile)  # an invalid profile is an error here, not a crashed worker
        with _open_listener(settings.host, port, settings.send_timeout_s) as listener:
            host, port = listener.getsockname()[:2]
            settings = settings.model_copy(update={"host": host})
            if not settings.is_local and not settings.token:
                raise UsageError(
                    f"anyone who reaches {host} could use your models; set a token (--token or the variable "
                    f"{TOKEN_VARIABLE}), or serve only this machine: --host 127.0.0.1"
                )
            asyncio.run(_check_service(settings, chosen))
            print(_format_startup_screen(chosen, settings, port, removed), flush=True)
            return _run_workers(settings, chosen, listener)
    except ProfileError as error:
        raise chosen.locate_error(error) from None


def _restart_with_metrics_folder() -> NoReturn:
    """Replace this process by the same command, with a folder in which workers share their metrics.

    The environment variable must be set before a worker imports prometheus_client, and multiprocessing cannot start
    workers with an environment of their own.
    """
    environment = {**os.environ, METRICS_FOLDER_VARIABLE: tempfile.mkdtemp(prefix=_get_metrics_prefix())}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def _get_metrics_prefix() -> str:
    return f"goose-like-metrics-{os.getpid()}-"  # the restarted process has the same id


def _open_listener(host: str, port: int, send_timeout_s: float) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"the host {host!r} is not known; use e.g. --host 127.0.0.1, or 0.0.0.0 for every network"
        ) from error
    family, _, _, _, address = addresses[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit it, so clients that stop reading are dropped
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(send_timeout_s * 1000))
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host}, port {port}: {error.strerror}; try another port, e.g. --port 0"
        ) from error
    listener.set_inheritable(True)
    return listener


async def _check_service(settings: Settings, chosen: ProfileChoice) -> None:
    """Open what a worker opens, so that a missing part is one error message and not a crashed worker."""
    async with open_service(settings, chosen.profile):
        pass


def _format_startup_screen(chosen: ProfileChoice, settings: Settings, port: int, removed: Sequence[str]) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    reachable = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    profile = chosen.profile
    lines = [
        f"goose-like serves the profile {profile.name!r} at http://{reachable}:{port}",
        f"  OpenBB Workspace  add the copilot http://{reachable}:{port}",
        f"  model             {format_model_label(choose_models(profile)[0])}",
        f"  toolkits          {', '.join(choice.name for choice in profile.toolkits) or 'none'}",
    ]
    if settings.token:
        lines.insert(2, "                    with the header `Authorization`, value `Bearer ` and your token")
    if removed:
        flags = " ".join(f"--toolkit {name}" for name in removed)
        lines.append(f"  left out          {', '.join(removed)}: accesses this machine; to serve it: {flags}")
    if settings.workers > 1:
        lines.append(f"  workers           {settings.workers}")
    return "\n".join([*lines, "  Open that address in a browser to try it; press Ctrl-C to stop."])


def _run_workers(settings: Settings, chosen: ProfileChoice, listener: socket.socket) -> int:
    is_single = settings.workers == 1
    config = uvicorn.Config(
        AppFactory(settings, chosen.profile, None if is_single else os.getpid()),
        factory=True,
        workers=settings.workers,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=_CLOSE_TIMEOUT_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    if not is_single:
        supervisor = _Supervisor(config, [listener])
        supervisor.run()
        return 1 if supervisor.has_failed else 0
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises the signal again after it has stopped
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(config)
    server.run([listener])
    return 0 if server.started else 1


class _Supervisor(Multiprocess):
    """A supervisor of workers that a second Ctrl-C stops at once."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.has_failed = False
        self._metrics_folder = Path(os.environ[METRICS_FOLDER_VARIABLE])
        self._pids: set[int | None] = set()

    @override
    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        pids = {process.pid for process in self.processes}
        for pid in self._pids - pids:
            mark_process_dead(pid, self._metrics_folder)
        self._pids = pids

    @override
    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()  # the workers keep it open until they have finished
        self.has_failed = any(process.exitcode for process in self.processes)
        super().terminate_all()

    @override
    def join_all(self) -> None:
        self.signal_queue.clear()
        for process in self.processes:
            while process.process.is_alive():
                process.process.join(0.1)
                if signal.SIGINT in self.signal_queue:
                    for other in self.processes:
                        other.process.kill()
        if self._metrics_folder.name.startswith(_get_metrics_prefix()):
            shutil.rmtree(self._metrics_folder, ignore_errors=True)
