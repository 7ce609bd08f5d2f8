"""Which slash commands there are: the installed ones, those of the toolkits in use, and those written as files."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from goose_like.agent.slash_command import Command, make_command
from goose_like.config.trust import Project
from goose_like.core.entry_points import found, load
from goose_like.core.errors import GooseLikeError

from .command_files import with_files


def slash_commands(of_toolkits: Mapping[str, Command], project: Project | None) -> tuple[dict[str, Command], list[str]]:
    """Every command by its name, and sentences on files that give none. `project` is what of it is trusted.

    A toolkit's counts before an installed one of that name, and both before a file's.
    """
    return with_files({name: _installed(name) for name in found("goose_like.command")} | dict(of_toolkits), project)


def _installed(name: str) -> Command:
    try:
        return make_command(cast(Callable[..., Any], load("goose_like.command", name)), name)
    except GooseLikeError as error:
        told = error

        def refuse(*_: object) -> NoReturn:
            raise told

        return Command(name, f"can't be used: {told}", refuse)
