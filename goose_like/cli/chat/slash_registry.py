"""All slash commands of a session: from packages, from the toolkits in use, and from files."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from goose_like.agent.slash_command import SlashCommand, make_command
from goose_like.config.trust import ProjectConfig
from goose_like.core.entry_points import list_entry_points, load_entry_point
from goose_like.core.errors import GooseLikeError

from .command_files import add_command_files


def collect_commands(
    toolkit_commands: Mapping[str, SlashCommand], project: ProjectConfig | None
) -> tuple[dict[str, SlashCommand], list[str]]:
    """Return all commands by name, and a sentence for each command file with an error.

    Of commands with one name a toolkit's wins, then a package's, then a file's. `project` holds the trusted files of
    the project.
    """
    commands = {name: _load_command(name) for name in list_entry_points("goose_like.command")}
    return add_command_files(commands | dict(toolkit_commands), project)


def _load_command(name: str) -> SlashCommand:
    """Load a command; one that cannot be imported raises its error when it is used."""
    try:
        return make_command(cast(Callable[..., Any], load_entry_point("goose_like.command", name)), name)
    except GooseLikeError as error:
        cause = error

        def fail(*_: object) -> NoReturn:
            raise cause

        return SlashCommand(name, f"not available: {cause}", fail)
