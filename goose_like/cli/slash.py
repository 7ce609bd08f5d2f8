"""Which slash commands there are: the installed ones, and those of the toolkits in use."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from ..command import Command, make_command
from ..errors import GooseLikeError
from ..plugins import found, load


def slash_commands(of_toolkits: Mapping[str, Command]) -> dict[str, Command]:
    """Every command by its name. A toolkit's counts before an installed one of that name."""
    return {name: _installed(name) for name in found("goose_like.command")} | dict(of_toolkits)


def _installed(name: str) -> Command:
    try:
        return make_command(cast(Callable[..., Any], load("goose_like.command", name)), name)
    except GooseLikeError as error:
        told = error

        def refuse(*_: object) -> NoReturn:
            raise told

        return Command(name, f"can't be used: {told}", refuse)
