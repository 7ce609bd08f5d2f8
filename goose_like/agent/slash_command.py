"""Slash commands: functions that a user runs as `/name` in an interactive session.

A command takes the `SlashContext` and the text after its name; with a single parameter it takes only the text. A
returned string or `TurnRequest` is sent to the model like a typed message. `/help` shows the first line of the
docstring. A command may be `async`. Packages register commands in the entry-point group `goose_like.command`;
toolkits mark methods with `@command`.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, overload

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError

_F = TypeVar("_F", bound=Callable[..., Any])
Choices = Callable[[Any], Iterable[str | tuple[str, str]]] | Literal["files"]
"""Completions for the text after a command: a function of the `SlashContext`, called in a thread, or file paths.

The function returns texts, or pairs of a text and its description.
"""


def _no_choices(context: object) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command. `run` takes the context and the text after the name.

    `usage` describes that text in `/help`. With `anytime` the command runs while a turn runs. `source` is the file
    that defines the command, if any. With `in_run` the command sends a message, and `run "/name"` knows it too. With
    `gives_way` any other command may have its name. If it `runs_commands`, its text has some whose output it sends.
    """

    name: str
    summary: str
    run: Callable[[Any, str], Any]
    usage: str = ""
    choices: Choices = _no_choices
    anytime: bool = False
    source: str = ""
    in_run: bool = False
    gives_way: bool = False
    runs_commands: bool = False


@overload
def command(function: _F) -> _F: ...
@overload
def command(
    *, usage: str = "", choices: Choices = _no_choices, anytime: bool = False, in_run: bool = False
) -> Callable[[_F], _F]: ...
def command(
    function: Any = None,
    *,
    usage: str = "",
    choices: Choices = _no_choices,
    anytime: bool = False,
    in_run: bool = False,
) -> Any:
    """Mark a function or toolkit method as a slash command. `SlashCommand` explains the options."""

    def mark(marked: Any) -> Any:
        marked.__command__ = {"usage": usage, "choices": choices, "anytime": anytime, "in_run": in_run}
        return marked

    return mark(function) if function else mark


def match_choices(command: SlashCommand, context: Any, words: str) -> list[tuple[str, str]]:
    """Return the choices that contain a text, with their descriptions: those that begin with it first.

    Call this in a thread. Files are not included.
    """
    if command.choices == "files":
        return []
    matching = []
    for choice in command.choices(context):
        text, meta = (choice, "") if isinstance(choice, str) else choice
        if words.casefold() in f"{text} {meta}".casefold():
            matching.append((text, meta))
    matching.sort(key=lambda choice: not choice[0].startswith(words))
    return matching


async def run_command(command: SlashCommand, context: Any, words: str) -> Any:
    """Run a command, and return what it sends: a message, a `TurnRequest`, or nothing.

    Raises:
        GooseLikeError: the command failed, in any way: one of a package must end neither a session nor a run.
    """
    try:
        with context.exchange.journal.expect_questions():
            result = command.run(context, words)
            if inspect.isawaitable(result):
                return await result
            return result
    except GooseLikeError:
        raise
    except Exception as error:
        raise GooseLikeError(f"the command failed: {type(error).__name__}: {error}") from error


def is_command(function: object) -> bool:
    """Return whether a function is marked with `@command`."""
    return isinstance(getattr(function, "__command__", None), dict)


def make_command(function: Callable[..., Any], name: str = "") -> SlashCommand:
    """Create the slash command of a function, marked or not. The default name is the name of the function."""
    docstring = inspect.getdoc(function) or ""
    summary, _, _ = docstring.partition("\n")
    if not name:
        name = getattr(function, "__name__", "command").replace("_", "-")
    takes_context = len(inspect.signature(function).parameters) > 1
    run = function if takes_context else lambda context, text: function(text)
    options = getattr(function, "__command__", {})
    return SlashCommand(name, summary.rstrip("."), run, **options)
