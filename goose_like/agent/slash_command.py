"""Slash commands: what a person can type in a session besides words for the model.

A command is a function that takes the session's `Desk` (see `desk.py`) and the words after its name; one with a single
parameter takes the words alone. A string that it returns is said to the model, as if the person had typed it. The first
line of its docstring is what `/help` shows. It may be `async`.

Packages register theirs in the entry-point group `goose_like.command`; a toolkit marks methods with `@command`.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])
Choices = Callable[[Any], Iterable[str]] | Literal["files"]
"""Gives what may be typed after a command's name; it is called with the `Desk`, in a thread. Or a file's path."""


def _no_choices(desk: object) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command by its name. `run` takes the desk and the words.

    `usage` are the words that it takes, as `/help` shows them; one that runs `anytime` does so beside a turn. `source`
    is the file that it was read from, if it was.
    """

    name: str
    about: str
    run: Callable[[Any, str], Any]
    usage: str = ""
    choices: Choices = _no_choices
    anytime: bool = False
    source: str = ""


@overload
def command(function: _F) -> _F: ...
@overload
def command(*, usage: str = "", choices: Choices = _no_choices, anytime: bool = False) -> Callable[[_F], _F]: ...
def command(function: Any = None, *, usage: str = "", choices: Choices = _no_choices, anytime: bool = False) -> Any:
    """Marks a function or a toolkit's method as a slash command; see `Command` for what is said of it."""

    def mark(marked: Any) -> Any:
        marked.__command__ = {"usage": usage, "choices": choices, "anytime": anytime}
        return marked

    return mark(function) if function else mark


def is_command(function: object) -> bool:
    """Whether it was marked with `@command`."""
    return isinstance(getattr(function, "__command__", None), dict)


def make_command(function: Callable[..., Any], name: str = "") -> Command:
    """The command of a function, marked or not; without a name it is called as the function is."""
    about = (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")
    name = name or getattr(function, "__name__", "command").replace("_", "-")
    takes_desk = len(inspect.signature(function).parameters) > 1
    run = function if takes_desk else lambda desk, words: function(words)
    return Command(name, about, run, **getattr(function, "__command__", {}))
