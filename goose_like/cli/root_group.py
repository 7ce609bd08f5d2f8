"""The root command: a first message in quotes, and the flags that users of other agents type before any command."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from goose_like.cli.chat.startup import name_follows
from goose_like.core.spelling import find_nearest_name

_RESUME = ("-r", "--resume")
_PRINT = ("-p", "--print")


_WORKTREE = ("-w", "--worktree")
_OPTIONAL = {**dict.fromkeys(_RESUME, "--resume"), **dict.fromkeys(_WORKTREE, "--worktree")}


class RootGroup(TyperGroup):
    """The root command. Its words are a command, or the first message of a session, with options anywhere."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        count = next((place for place, word in enumerate(args) if word in self.commands), len(args))
        own = args[:count]
        if any(word in _PRINT for word in own):
            return super().parse_args(ctx, ["run", *_convert_to_run(own), *args[count:]])
        if count < len(args):
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        rest = super().parse_args(ctx, args if ctx.resilient_parsing else complete_options(args))
        words = [*ctx._protected_args, *rest]
        if words and not ctx.resilient_parsing:
            if len(words[0].split()) < 2:
                ctx.fail(self._describe_unknown(words))
            rest = ctx._protected_args = ctx.args = []
        ctx.meta["first"] = " ".join(words)
        return rest

    def _describe_unknown(self, words: Sequence[str]) -> str:
        word = words[0]
        if near := find_nearest_name(word, self.commands):
            return f"no command {word!r}; did you mean {near!r}?"
        if len(words) == 1 and os.path.isfile(word):
            return f"no command {word!r}; for a task in a file: goose-like run -i {word}"
        first = " ".join(words) if len(words) > 1 else f"{word} ..."
        return f'no command {word!r}; to start a session with these words, quote them: goose-like "{first}"'


def complete_options(words: Sequence[str], options: Mapping[str, str] = _OPTIONAL) -> list[str]:
    """Give options an empty value where no name follows, because click knows no optional values."""
    return [
        f"{options[word]}=" if word in options and not name_follows(words[place + 1 :]) else word
        for place, word in enumerate(words)
    ]


class WorktreeCommand(TyperCommand):
    """A command whose option `--worktree` needs no value."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
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
