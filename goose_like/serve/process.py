"""The server as a process or several: one socket, workers that are started anew, and an end in order."""

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

import uvicorn
from uvicorn.supervisors import Multiprocess

from goose_like.cli.options import Chosen, chosen_profile
from goose_like.core.errors import ProfileError, UsageError
from goose_like.providers.registry import choose_models, label_of
from goose_like.serve.openbb.discovery import About

from .app import AppFactory
from .metrics import Board
from .servable import servable
from .service import open_service
from .settings import TOKEN, Settings

_CLOSING_S = 5
_IDLE_S = 75
"""How long a connection without a request stays open: longer than balancers keep theirs (60 s is usual), so that none
sends a request into one that is just being closed."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the command line asks for, beside the settings."""

    profile: str
    model: str | None
    port: int


def serve(asked: Served, settings: Settings) -> int:
    """Serves until it is told to stop; the exit code.

    Raises:
        GooseLikeError: what keeps it from starting.
    """
    chosen = chosen_profile(asked.profile, asked.model)
    try:
        profile, left_out = servable(chosen.profile, settings.toolkits)
        chosen = replace(chosen, profile=profile)
        About.of(profile)
        with bound(settings.host, asked.port, settings.send_s) as listener:
            host, port = listener.getsockname()[:2]
            settings = settings.model_copy(update={"host": host})
            if not settings.is_local and not settings.token:
                raise UsageError(
                    f"whoever reaches {host} could use your models; set a token (--token, or the variable {TOKEN}), "
                    "or serve this machine alone: --host 127.0.0.1"
                )
            asyncio.run(_rehearse(settings, chosen))
            print(first_screen(chosen, settings, port, left_out), flush=True)
            return _run(settings, chosen, listener)
    except ProfileError as error:
        raise chosen.located(error) from None


def bound(host: str, port: int, send_s: float) -> socket.socket:
    """A socket that listens there; at port 0 the system picks one.

    Raises:
        UsageError: the host is unknown or another machine's, or the port is taken or not ours to take.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"the host {host!r} is not known; e.g. --host 127.0.0.1, or 0.0.0.0 for every network"
        ) from error
    family, _, _, _, address = found[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections take it over: who never reads on is left
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(send_s * 1000))
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"can't listen at {host}, port {port}: {error.strerror}; try another, e.g. --port 0"
        ) from error
    listener.set_inheritable(True)
    return listener


async def _rehearse(settings: Settings, chosen: Chosen) -> None:
    """Opens what a worker opens, so that what is missing is one line and not a worker's end."""
    async with open_service(settings, chosen.profile):
        pass


def first_screen(chosen: Chosen, settings: Settings, port: int, left_out: Sequence[str]) -> str:
    """What the person is told at the start."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    reached = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    profile = chosen.profile
    lines = [
        f"goose-like serves the profile {profile.name!r} at http://{reached}:{port}",
        f"  OpenBB Workspace  add the copilot http://{reached}:{port}",
        f"  model             {label_of(choose_models(profile)[0])}",
        f"  toolkits          {', '.join(choice.name for choice in profile.toolkits) or 'none'}",
    ]
    if settings.token:
        lines.insert(2, "                    with the header `Authorization`, value `Bearer ` and your token")
    if left_out:
        which = " ".join(f"--toolkit {name}" for name in left_out)
        lines.append(f"  left out          {', '.join(left_out)}: touches this machine; to serve it: {which}")
    if settings.workers > 1:
        lines.append(f"  workers           {settings.workers}")
    return "\n".join([*lines, "  try it, or see how it is added, on the page at that address; Ctrl-C ends it"])


def _run(settings: Settings, chosen: Chosen, listener: socket.socket) -> int:
    is_alone = settings.workers == 1
    factory = AppFactory(settings, chosen.profile, Board(settings.workers), None if is_alone else os.getpid())
    config = uvicorn.Config(
        factory,
        factory=True,
        workers=settings.workers,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=_CLOSING_S,
        timeout_keep_alive=_IDLE_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    if not is_alone:
        workers = _Workers(config, [listener])
        workers.run()
        return 1 if workers.has_failed else 0
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when all is over: that was it
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(config)
    server.run([listener])
    return 0 if server.started else 1


class _Workers(Multiprocess):
    """uvicorn's workers, with an end that a second Ctrl-C hastens."""

    has_failed = False

    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()  # the workers have it open until they are through
        self.has_failed = any(process.exitcode for process in self.processes)
        super().terminate_all()

    def join_all(self) -> None:
        self.signal_queue.clear()
        for process in self.processes:
            while process.process.is_alive():
                process.process.join(0.1)
                if signal.SIGINT in self.signal_queue:
                    for each in self.processes:
                        each.process.kill()
