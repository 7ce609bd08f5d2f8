"""The server's processes: one listening socket, one or more workers, and an orderly end."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from typing_extensions import override
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from goose_like.agent.profile_choice import ProfileChoice, choose_profile
from goose_like.config.private_folder import PrivateFolder, remove_abandoned_folders
from goose_like.config.profile import Profile
from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.gc_pause import end_gc_delay
from goose_like.launch.start_notifier import StartNotifier
from goose_like.launch.trust import settle_project_trust
from goose_like.providers.registry import choose_models, format_model_label
from goose_like.workspace.processes.process import describe_exit

from .app import build_routes, create_app
from .connection import LimitedConnection
from .service import describe_model_limits, open_services, restrict_profile
from .settings import METRICS_FOLDER_VARIABLE, TOKEN_VARIABLE, Settings, is_loopback

_CLOSE_TIMEOUT_S = 5
_KEEP_ALIVE_S = 75
"""Seconds that an idle connection stays open. Most balancers close theirs after 60 s, so they never find it closed."""


@dataclass(frozen=True, slots=True)
class ServedProfile:
    """A profile as it is served, with the names of the toolkits that are left out."""

    choice: ProfileChoice
    removed: tuple[str, ...]

    @property
    def profile(self) -> Profile:
        """The profile without these toolkits."""
        return self.choice.profile


def run_server(profile_names: Sequence[str], model: str | None, port: int, settings: Settings) -> int:
    """Serve until a signal stops the server, and return the exit code.

    Raises:
        GooseLikeError: the server cannot start.
    """
    remove_abandoned_folders()
    project = asyncio.run(settle_project_trust(Path.cwd(), StartNotifier(), is_trusted_now=False))
    choices = []
    for name in dict.fromkeys(profile_names):
        choice = choose_profile(name, model, project=project)
        choices.append(_keep_name(choice, name))
    served = _restrict_profiles(choices, settings)
    profiles = [each.profile for each in served]
    with _locate_errors(served[0].choice):
        build_routes(profiles)  # an invalid profile is an error here, not a crashed worker
    with _open_listener(settings.host, port, settings.send_timeout_s) as listener:
        host, port = listener.getsockname()[:2]
        settings = settings.model_copy(update={"host": host})
        if not is_loopback(host) and not settings.token:
            raise UsageError(
                f"anyone who reaches {host} could use your models; set a token (--token or the variable "
                f"{TOKEN_VARIABLE}), or serve only this machine: --host 127.0.0.1"
            )
        for each in served:
            with _locate_errors(each.choice):
                asyncio.run(_check_service(settings, each.profile))
        print(_format_startup_screen(served, settings, port), flush=True)
        return _run_workers(settings, profiles, listener)


def _keep_name(choice: ProfileChoice, name: str) -> ProfileChoice:
    """Return the choice under the name that clients know, also if the embedded model got another profile."""
    return replace(choice, profile=choice.profile.model_copy(update={"name": name}))


@contextmanager
def _locate_errors(choice: ProfileChoice) -> Iterator[None]:
    try:
        yield
    except ProfileError as error:
        raise choice.locate_error(error) from None


def _restrict_profiles(choices: Sequence[ProfileChoice], settings: Settings) -> list[ServedProfile]:
    """Restrict each profile to the toolkits that may be served. An allowed toolkit must be in one of the profiles."""
    listed = {toolkit.name for choice in choices for toolkit in choice.profile.toolkits}
    served = []
    for choice in choices:
        own = {toolkit.name for toolkit in choice.profile.toolkits}
        with _locate_errors(choice):
            allowed = [name for name in settings.toolkits if name in own or name not in listed]
            profile, removed = restrict_profile(choice.profile, allowed)
        served.append(ServedProfile(replace(choice, profile=profile), removed))
    return served


def _open_listener(host: str, port: int, send_timeout_s: float) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"the host {host!r} is not known; use 127.0.0.1, or 0.0.0.0 for every network") from error
    family, _, _, _, address = addresses[0]
    is_dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server(address[:2], family=family, backlog=2048, dualstack_ipv6=is_dual)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}; try another, e.g. --port 0") from error
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit it, so clients that stop reading are dropped
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(send_timeout_s * 1000))
    return listener


async def _check_service(settings: Settings, profile: Profile) -> None:
    """Open what a worker opens, so that a missing part is one error message and not a crashed worker."""
    async with open_services(settings, [profile]):
        pass


def _format_startup_screen(served: Sequence[ServedProfile], settings: Settings, port: int) -> str:
    address = f"http://{_name_reachable_host(settings.host)}:{port}"
    first_name = served[0].profile.name
    names = ", ".join(repr(each.profile.name) for each in served)
    has_several = len(served) > 1
    noun = "profiles" if has_several else "profile"
    lines = [f"goose-like serves the {noun} {names} at {address}"]
    lines.append(f"  OpenBB Workspace  add the copilot {address}")
    if settings.token:
        lines.append("                    with the header `Authorization`, value `Bearer ` and your token")
    lines.append(f"  OpenAI's clients  set the base URL {address}/v1 and the model {first_name}")
    for each in served:
        if has_several:
            lines.append(f"  profile           {each.profile.name}")
        lines += _describe_served_profile(each)
    if settings.workers > 1:
        lines.append(f"  workers           {settings.workers}")
    lines.append("  Open that address in a browser to try it; press Ctrl-C to stop.")
    return "\n".join(lines)


def _name_reachable_host(host: str) -> str:
    """Name the host for a URL that works on this machine."""
    if ":" in host:
        host = f"[{host}]"
    return {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)


def _describe_served_profile(served: ServedProfile) -> list[str]:
    model = choose_models(served.profile)[0]
    limits = describe_model_limits(model)
    toolkits = ", ".join(choice.name for choice in served.profile.toolkits)
    lines = [f"  model             {format_model_label(model)}"]
    if limits:
        lines.append(f"                    {limits}")
    lines.append(f"  toolkits          {toolkits or 'none'}")
    if served.removed:
        removed = ", ".join(served.removed)
        flags = " ".join(f"--toolkit {name}" for name in served.removed)
        lines.append(f"  left out          {removed}: accesses this machine; to serve it: {flags}")
    return lines


def _run_workers(settings: Settings, profiles: Sequence[Profile], listener: socket.socket) -> int:
    config = uvicorn.Config(
        partial(create_app, settings, profiles),
        factory=True,
        workers=settings.workers,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=LimitedConnection,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=_CLOSE_TIMEOUT_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    if settings.workers > 1:
        with PrivateFolder("metrics") as folder:
            os.environ.setdefault(METRICS_FOLDER_VARIABLE, str(folder.path))  # the workers inherit it
            supervisor = _Supervisor(config, [listener])
            supervisor.run()
        return int(any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes))
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises the signal again after it has stopped
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(config)
    end_gc_delay()
    server.run([listener])
    return 0 if server.started else 1


class _Supervisor(Multiprocess):
    """A supervisor of workers that a second Ctrl-C stops at once."""

    @override
    def keep_subprocess_alive(self) -> None:
        former = [*self.processes]
        super().keep_subprocess_alive()
        for process in former:
            if process in self.processes:
                continue
            end = "it did not answer"
            if process.exitcode is not None:
                end = describe_exit(process.exitcode)
            print(f"goose-like: worker {process.pid} ended ({end}); a new one starts", file=sys.stderr, flush=True)
            mark_process_dead(process.pid, os.environ[METRICS_FOLDER_VARIABLE])

    @override
    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()  # the workers keep it open until they have finished
        super().terminate_all()

    @override
    def join_all(self) -> None:
        self.signal_queue.clear()
        processes = [worker.process for worker in self.processes]
        while running := [process for process in processes if process.is_alive()]:
            running[0].join(0.1)
            if signal.SIGINT in self.signal_queue:
                for process in running:
                    process.kill()
