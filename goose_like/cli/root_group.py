"""The root command: a first message in quotes, and the flags that users of other agents type before any command."""

import os
from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup
from typing_extensions import override

from goose_like.core.spelling import find_nearest_name

_RESUME = ("-r", "--resume")
_PRINT = ("-p", "--print")


def name_follows(words: Sequence[str], place: int) -> bool:
    """Check whether the word behind an option can be the name of a session: it is no option and has no blank."""
    following = words[place + 1] if place + 1 < len(words) else ""
    return following != "" and not following.startswith("-") and len(following.split()) == 1


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
        rest = super().parse_args(ctx, args if ctx.resilient_parsing else _complete_resume(args))
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


def _complete_resume(words: Sequence[str]) -> list[str]:
    """Give `--resume` an empty value where no name follows, because click knows no optional values."""
    return [
        "--resume=" if word in _RESUME and not name_follows(words, place) else word for place, word in enumerate(words)
    ]


def _convert_to_run(words: Sequence[str]) -> list[str]:
    """Return the options of `goose-like --print` as options of `run`."""
    converted: list[str] = []
    for place, word in enumerate(words):
        if word in _RESUME:
            converted += ["--resume", *(["--session"] if name_follows(words, place) else [])]
        elif word not in _PRINT:
            converted.append(word)
    return converted
