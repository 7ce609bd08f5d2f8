"""The servers that hold in the current folder, and a start of one of them outside a session."""

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from typing_extensions import override

from goose_like.agent.profile_choice import choose_profile
from goose_like.config.bundles import list_roots
from goose_like.config.profile import Profile
from goose_like.config.trust import is_trusted, load_trusted_project, read_project_config
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.launch.start_notifier import StartNotifier
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.interaction import exit_on_signals
from goose_like.workspace.workspace import Workspace

from ..config import expand_server, load_servers
from ..definitions import Definitions
from ..login import build_auth
from ..places import PROJECT_FILE
from ..server import ServerConfig
from ..start import NOT_INSTALLED


@dataclass(frozen=True, slots=True)
class Setting:
    """The servers of a profile, of the person and of the project, as a session in this folder has them.

    With `has_untrusted_file` the project brings servers that nobody trusted.
    """

    folder: Path
    profile: Profile
    servers: tuple[ServerConfig, ...]
    problems: tuple[str, ...]
    has_untrusted_file: bool

    def find(self, name: str) -> ServerConfig:
        """Find a server by its name.

        Raises:
            UsageError: there is none.
        """
        for server in self.servers:
            if server.name == name:
                return server
        for problem in self.problems:
            if repr(name) in problem:
                raise UsageError(problem)
        if self.has_untrusted_file:
            raise UsageError(f"no server {name!r} here; nobody trusts this project's {PROJECT_FILE}: {TRUST_ADVICE}")
        if not self.servers:
            raise UsageError(f"no server {name!r}, as there are none; add it: goose-like mcp add {name} -- COMMAND")
        raise UsageError(f"no server {name!r}; {did_you_mean(name, [server.name for server in self.servers])}")


TRUST_ADVICE = "goose-like trust add ."


def load_setting(profile_name: str | None = None) -> Setting:
    """Load what holds in the current folder. Files of the project count only if the person trusts them."""
    folder = Path.cwd()
    project = load_trusted_project(folder)
    profile = choose_profile(profile_name, project=project).profile
    config: dict[str, Any] = {}
    for choice in profile.toolkits:
        if choice.name == "mcp":
            config = choice.config
    servers, problems = load_servers(config, project)
    return Setting(folder, profile, tuple(servers), tuple(problems), _has_untrusted_file(folder))


def _has_untrusted_file(folder: Path) -> bool:
    found = read_project_config(folder)
    return found is not None and PROJECT_FILE in found.files and not is_trusted(found)


def require_sdk() -> None:
    """Raise UsageError if the package that speaks to servers is not installed."""
    if find_spec("mcp") is None:
        raise UsageError(NOT_INSTALLED)


def ask_server(
    server: ServerConfig, setting: Setting, find_auth: Callable[[ServerConfig], Any] = build_auth
) -> Definitions:
    """Start a server once in the sandbox of the profile, and return what it offers.

    Raises:
        GooseLikeError: it does not start, or cannot be asked.
    """
    require_sdk()
    with exit_on_signals():
        return asyncio.run(ask_connection(server, setting, find_auth))


async def ask_connection(
    server: ServerConfig, setting: Setting, find_auth: Callable[[ServerConfig], Any]
) -> Definitions:
    """Start a server or connect to it, as `ask_server` does, within an event loop."""
    from ..connection import Connection
    from ..surroundings import Surroundings

    notifier = _Notifier()
    session = Session.temporary()
    try:
        workspace = Workspace(
            setting.folder,
            mode=setting.profile.sandbox,
            approval=setting.profile.approval,
            notifier=notifier,
            session_folder=session.folder,
            settings=setting.profile,
        )
        async with workspace:
            workspace.open_folders(list_roots())
            around = Surroundings(workspace, notifier, notifier.log, session.outputs, expand_server, find_auth)
            connection = Connection(server, around)
            try:
                return await connection.list_definitions()
            finally:
                await connection.close()
    finally:
        session.close()


class _Notifier(StartNotifier):
    """A notifier that leaves out what the error of a failed start says again."""

    @override
    def log(self, renderable: object) -> None:
        text = escape_invisible(str(renderable))
        if " failed (" not in text:
            super().log(text)
