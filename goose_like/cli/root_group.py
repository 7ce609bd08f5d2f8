"""The root command: a first message in quotes, and the flags that users of other agents type before any command."""

import os
import select
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from goose_like.cli.chat.startup import name_follows
from goose_like.core.spelling import find_nearest_name

_RESUME = ("-r", "--resume")
_PRINT = ("-p", "--print")
_SHORT_FLAGS = frozenset("cpr")
_PIPE_WAIT_S = 3.0


_WORKTREE = ("-w", "--worktree")
_OPTIONAL = {**dict.fromkeys(_RESUME, "--resume"), **dict.fromkeys(_WORKTREE, "--worktree")}


_OTHER_COMMANDS = {
    **dict.fromkeys(("auth", "config", "configure", "login", "logout"), "setup"),
    **dict.fromkeys(("ask", "exec", "print"), "run"),
    "chat": "session start",
    "continue": "--continue",
    "resume": "--resume",
}
"""Commands of other agents, and ours for the same."""
_UNSAFE = "--approval yolo --sandbox full"
_OTHER_OPTIONS = {
    **dict.fromkeys(("--dangerously-skip-permissions", "--yolo"), _UNSAFE),
    "--dangerously-bypass-approvals-and-sandbox": _UNSAFE,
    **dict.fromkeys(("--permission-mode", "--approval-mode", "--ask-for-approval", "-a"), "--approval"),
    "--full-auto": "--approval auto, the default",
    **dict.fromkeys(("-C", "--cd", "--cwd"), "cd DIR && goose-like ..."),
    **dict.fromkeys(("--system-prompt", "--append-system-prompt"), "instructions in AGENTS.md or in a profile"),
    **dict.fromkeys(("-i", "--image"), "@FILE in the message; `run -i FILE` reads the task from a file"),
    "--max-turns": "--max-steps",
    "--json": "--output-format stream-json",
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
        count = self._find_command(args)
        own, rest = _split_flags(args[:count]), args[count:]
        args, count = [*own, *rest], len(own)
        with _improve_errors():
            if any(word in _PRINT for word in own):
                return super().parse_args(ctx, ["run", *_convert_to_run(own), *args[count:], *_name_piped_input(args)])
            if count < len(args):
                return super().parse_args(ctx, args)
            ctx.allow_interspersed_args = True
            rest = super().parse_args(ctx, args if ctx.resilient_parsing else complete_options(args))
        words = [*ctx._protected_args, *rest]
        if words and not ctx.resilient_parsing:
            if len(words[0].split()) < 2 and "--" not in args:
                ctx.fail(self._describe_unknown(words))
            rest = ctx._protected_args = ctx.args = []
        ctx.meta["first"] = " ".join(words)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Messages about wrong options are plain."""
        with _improve_errors():
            return super().invoke(ctx)

    def _find_command(self, words: Sequence[str]) -> int:
        """Return the index of the first command, or the number of words. Values of options are no commands."""
        parameters = [*self.params, *self.commands["run"].params]
        flags = {name for each in parameters if getattr(each, "is_flag", False) for name in each.opts}
        options = {name for each in parameters for name in each.opts if name.startswith("-")} - flags
        place = 0
        while place < len(words) and words[place] not in self.commands:
            word = words[place]
            if word == "--":
                return len(words)
            has_value = name_follows(words[place + 1 :]) if word in _OPTIONAL else word in options
            place += 2 if has_value else 1
        return min(place, len(words))

    def _describe_unknown(self, words: Sequence[str]) -> str:
        word = words[0]
        if ours := _OTHER_COMMANDS.get(word):
            return f"no command {word!r}; here it is: goose-like {ours}"
        message = f"-- {shlex.quote(word)}" if len(words) == 1 else f'"{" ".join(words)}"'
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


def _split_flags(words: Sequence[str]) -> list[str]:
    """Write joined short flags one by one, `-cp` as `-c -p`, and `-r=NAME` as `-r NAME`."""
    split: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*split, *words[place:]]
        name, is_joined, value = word.partition("=")
        if is_joined and name in _OPTIONAL and value:
            split += [name, value]
        elif len(word) > 2 and word[0] == "-" and set(word[1:]) <= _SHORT_FLAGS:
            split += [f"-{flag}" for flag in word[1:]]
        else:
            split.append(word)
    return split


def _name_piped_input(words: Sequence[str]) -> list[str]:
    """Return `-` if text comes through a pipe: `git diff | goose-like -p "explain this"`. Other agents read it too."""
    if "-" in words or "-i" in words or "--input" in words or sys.stdin is None:
        return []
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return []
    if select.select([sys.stdin], [], [], _PIPE_WAIT_S)[0]:
        return ["-"]
    print("goose-like: nothing came through standard input, so it is not read", file=sys.stderr)
    return []


def complete_options(words: Sequence[str], options: Mapping[str, str] = _OPTIONAL) -> list[str]:
    """Give options an empty value where no name follows, because click knows no optional values."""
    return [
        f"{options[word]}=" if word in options and not name_follows(words[place + 1 :]) else word
        for place, word in enumerate(words)
    ]


class WorktreeCommand(TyperCommand):
    """A command whose option `--worktree` needs no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options, `--worktree` also without a value."""
        if not ctx.resilient_parsing:
            args = complete_options(args, dict.fromkeys(_WORKTREE, "--worktree"))
        return super().parse_args(ctx, args)


def _convert_to_run(words: Sequence[str]) -> list[str]:
    """Return the options of `goose-like --print` as options of `run`."""
    converted: list[str] = []
    for place, word in enumerate(words):
        if word in _RESUME:
            converted += ["--resume", *(["--session"] if name_follows(words[place + 1 :]) else [])]
        elif word not in _PRINT:
            converted.append(word)
    return converted
