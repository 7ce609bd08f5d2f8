"""The root command: a first message in quotes, and the flags that users of other agents type before any command."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from goose_like.core.spelling import find_nearest_name
from goose_like.launch.command_line import (
    OPTIONAL_VALUES,
    WORKTREE_VALUES,
    OutputFormat,
    complete_options,
    name_follows,
    split_flags,
)

_PRINT = ("-p", "--print")
_OTHER_COMMANDS = {
    **dict.fromkeys(("auth", "config", "configure", "login", "logout"), "setup"),
    **dict.fromkeys(("ask", "exec", "print"), "run"),
    "chat": "session start",
    "continue": "--continue",
    "fork": "--continue --fork",
    "resume": "--resume",
}
"""Commands of other agents, and ours for the same."""
_UNSAFE = "--approval yolo --sandbox full"
_OTHER_OPTIONS = {
    **dict.fromkeys(("--dangerously-skip-permissions", "--yolo"), _UNSAFE),
    "--dangerously-bypass-approvals-and-sandbox": _UNSAFE,
    **dict.fromkeys(("--permission-mode", "--approval-mode", "--ask-for-approval", "-a"), "--approval"),
    "--mode": "--approval, --sandbox or --output-format",
    "--last": "--continue",
    "--fork-session": "--fork",
    "--full-auto": "--approval auto, the default",
    **dict.fromkeys(("-C", "--cd", "--cwd"), "cd DIR && goose-like ..."),
    "--system-prompt": "--append-system-prompt, which adds to it",
    "--append-system-prompt-file": "--append-system-prompt @FILE",
    **dict.fromkeys(("-i", "--image"), "@FILE in the message; `run -i FILE` reads the task from a file"),
    "--max-turns": "--max-steps",
    "--json": "--output-format stream-json",
    "--output-schema": "--json-schema",
    "--output-last-message": "-o",
    "-s": "--sandbox",
    **dict.fromkeys(("-t", "--text"), "the task itself, in quotes"),
    "-v": "--version",
    "-r": "--resume",
    "--oss": "--model local",
    "--search": "web search is on where the provider offers it, see `goose-like toolkit show developer`",
    "--allowedTools": "--allowed-tools",
    **dict.fromkeys(("--disallowedTools", "--disallowed-tools"), "permissions: {deny: [...]} in a profile"),
    "--agents": "files in .goose-like/agents/",
    "--no-session-persistence": "run --no-session",
}
"""Options of other agents, and ours for the same."""


class RootGroup(TyperGroup):
    """The root command. Its words are a command, or the first message of a session, with options anywhere."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command, or options and a first message, which `ctx.meta` keeps."""
        ctx.meta["first"] = ""
        ctx.meta["words"] = args
        with _report_in_format(args):
            return self._parse(ctx, args)

    def _parse(self, ctx: Any, args: list[str]) -> list[str]:
        position = self._find_command(args)
        own = split_flags(args[:position])
        rest = args[position:]
        args = [*own, *rest]
        with _improve_errors():
            if any(word in _PRINT for word in own):
                as_run = [word for word in own if word not in _PRINT]
                return super().parse_args(ctx, ["run", *as_run, *rest])
            if rest:
                return super().parse_args(ctx, args)
            ctx.allow_interspersed_args = True
            if ctx.resilient_parsing:
                return super().parse_args(ctx, args)
            # Not `TyperGroup.parse_args`, which takes the first word for the name of a command.
            words = super(TyperGroup, self).parse_args(ctx, complete_options(args))
        if words and len(words[0].split()) < 2 and "--" not in args:
            ctx.fail(self._describe_unknown(words))
        ctx.args = []
        ctx.meta["first"] = " ".join(words)
        return []

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Messages about wrong options are plain."""
        with _report_in_format(ctx.meta["words"]), _improve_errors():
            return super().invoke(ctx)

    def _find_command(self, words: Sequence[str]) -> int:
        """Return the index of the first command, or the number of words. Values of options are no commands."""
        options = self._list_options_with_values()
        position = 0
        while position < len(words):
            word = words[position]
            if word in self.commands:
                return position
            if word == "--":
                break
            position += 1
            has_value = word in options
            if word in OPTIONAL_VALUES:
                has_value = name_follows(words[position:])
            if has_value:
                position += 1
        return len(words)

    def _list_options_with_values(self) -> set[str]:
        """Return the names of the options that a value follows."""
        names: set[str] = set()
        for parameter in [*self.params, *self.commands["run"].params]:
            if not getattr(parameter, "is_flag", False):
                names.update(name for name in parameter.opts if name.startswith("-"))
        return names

    def _describe_unknown(self, words: Sequence[str]) -> str:
        word = words[0]
        if ours := _OTHER_COMMANDS.get(word):
            return f"no command {word!r}; here it is: goose-like {ours}"
        message = f'"{" ".join(words)}"'
        if len(words) == 1:
            message = f"-- {shlex.quote(word)}"
        if near := find_nearest_name(word, self.commands):
            return f"no command {word!r}; did you mean {near!r}? As a first message: goose-like {message}"
        if len(words) == 1 and os.path.isfile(word):
            return f"no command {word!r}; for a task in a file: goose-like run -i {word}"
        return f"no command {word!r}; as a first message: goose-like {message}"


@contextmanager
def _improve_errors() -> Iterator[None]:
    """Name our option for one of another agent. Remove the words of pydantic from messages about wrong values."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = error.message.removeprefix("Value error, ")
        raise
    except Exception as error:
        option = getattr(error, "option_name", "")  # of click's NoSuchOption, which Typer does not export
        if option in _OTHER_OPTIONS and (context := getattr(error, "ctx", None)):
            context.fail(f"no option {option}; here it is: {_OTHER_OPTIONS[option]}")
        raise


@contextmanager
def _report_in_format(words: Sequence[str]) -> Iterator[None]:
    """Write a wrong command line to standard output too, if the words ask for JSON there."""
    try:
        yield
    except Exception as error:
        format_message = getattr(error, "format_message", None)  # of click's exceptions, which Typer does not export
        if format_message and (output_format := _find_output_format(words)):
            from goose_like.launch.output import write_failure  # imported here: slow

            write_failure(output_format, format_message(), 2)
        raise


def _find_output_format(words: Sequence[str]) -> OutputFormat | None:
    for position, word in enumerate(words):
        if word == "--":
            break
        name, is_joined, value = word.partition("=")
        if name != "--output-format":
            continue
        if not is_joined:
            value = "".join(words[position + 1 : position + 2])
        return _parse_output_format(value)
    return None


def _parse_output_format(text: str) -> OutputFormat | None:
    for known in get_args(OutputFormat):
        if known == text:
            return cast(OutputFormat, known)
    return None


class WorktreeCommand(TyperCommand):
    """A command whose option `--worktree` needs no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options, `--worktree` also without a value."""
        if not ctx.resilient_parsing:
            args = complete_options(args, WORKTREE_VALUES)
        return super().parse_args(ctx, args)


class RunCommand(TyperCommand):
    """The command `run`, whose options `--resume` and `--worktree` need no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options, also joined ones such as `-cr`."""
        if not ctx.resilient_parsing:
            args = complete_options(split_flags(args))
        return super().parse_args(ctx, args)
