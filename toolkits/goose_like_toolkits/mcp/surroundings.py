"""The session that a connection to a server works for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from goose_like.core.dataclass import dataclass
from goose_like.core.notifier import Notifier
from goose_like.workspace.workspace import Workspace

from .server import ServerConfig


def _keep(server: ServerConfig) -> ServerConfig:
    return server


def _need_no_login(server: ServerConfig) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of a session that a connection uses.

    `show` takes the progress of the running call. Images, audio and other files of results go to the folder `outputs`.
    `expand` replaces the variables of a server. `find_auth` returns the `httpx2.Auth` of a server, if it has one.
    """

    workspace: Workspace
    notifier: Notifier
    show: Callable[[str], None]
    outputs: Path
    expand: Callable[[ServerConfig], ServerConfig] = _keep
    find_auth: Callable[[ServerConfig], Any] = _need_no_login
