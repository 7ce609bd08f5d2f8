"""Command lines of sessions: one table of options, for Typer and for a reader that needs no import of Typer.

The import of Typer takes longer than everything else before the prompt. So the usual command lines of a session are
read here, and Typer judges all others, with its help and its error messages.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from goose_like.config.entry_points import list_names

_RESUME = ("-r", "--resume")
_WORKTREE = ("-w", "--worktree")
_SHORT_FLAGS = frozenset("cpr")
WORKTREE_VALUES = dict.fromkeys(_WORKTREE, "--worktree")
OPTIONAL_VALUES = {**dict.fromkeys(_RESUME, "--resume"), **WORKTREE_VALUES}
"""Options that need no value, with their long names."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: its names, the help, and what completes its value."""

    names: tuple[str, ...]
    help: str
    metavar: str | None = None
    complete: Callable[[], object] | None = None


def list_session_names() -> Iterator[tuple[str, str]]:
    """Yield printable names of sessions with their titles, for shell completion."""
    from goose_like.sessions.index import list_sessions

    for info in list_sessions():
        if info.name.isprintable():
            title = "".join(filter(str.isprintable, info.summary[:60]))
            yield info.name, re.sub(r"\[[a-z#/@][^\[]*?\]", r"\\\g<0>", title)  # Typer parses Rich markup here


def list_profile_names() -> list[str]:
    """Return the printable names of all profiles, for shell completion."""
    from goose_like.config.profile_loader import list_profile_sources

    return sorted({source.name for source in list_profile_sources() if source.name.isprintable()})


def list_model_prefixes() -> list[str]:
    """Return `PROVIDER:` for each provider, for shell completion."""
    return [f"{name}:" for name in list_names("goose_like.provider")]


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """Options that choose a profile and change it for one run."""

    profile: Annotated[
        str | None,
        Option(
            ("--profile", "-P"),
            "Profile to use [default: default, or local if no API key is set].",
            complete=list_profile_names,
        ),
    ] = None
    model: Annotated[
        str | None,
        Option(
            ("--model", "-m"),
            "Model to use instead of the profile's, as PROVIDER:MODEL.",
            complete=list_model_prefixes,
        ),
    ] = None
    effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
        Option(("--effort",), "How long the model reasons; each model knows some of these levels."),
    ] = None
    sandbox: Annotated[
        Literal["read-only", "workspace", "workspace+network", "full"] | None,
        Option(
            ("--sandbox",),
            "read-only: write nothing. workspace: write in this folder, no network (or +network). full: no sandbox.",
        ),
    ] = None
    approval: Annotated[
        Literal["auto", "ask", "plan", "yolo"] | None,
        Option(
            ("--approval",),
            "auto: ask before leaving the sandbox. ask: ask before every change. plan: only read and plan. "
            "yolo: never ask.",
        ),
    ] = None
    is_trusted: Annotated[bool, Option(("--trust",), "Use the project's .goose-like/profiles.yaml this time.")] = False
    add_dirs: Annotated[
        list[str] | None,
        Option(("--add-dir",), "Also show this folder, read-only, this time; repeatable.", metavar="DIR"),
    ] = None
    allowed_tools: Annotated[
        list[str] | None,
        Option(
            ("--allowed-tools",),
            "Allow 'git push', tool:NAME, path:GLOB ... this time; repeatable.",
            metavar="RULE,...",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options that choose a session.

    `resume` and `worktree` are None if they are not given, and empty if no name follows.
    """

    is_continued: Annotated[bool, Option(("-c", "--continue"), "Resume the newest session here.")] = False
    resume: Annotated[
        str | None,
        Option(
            _RESUME,
            "Resume a session, chosen from a list without NAME; run takes the newest here.",
            metavar="[NAME]",
            complete=list_session_names,
        ),
    ] = None
    is_forked: Annotated[bool, Option(("--fork",), "Resume a copy; the session itself stays unchanged.")] = False
    worktree: Annotated[
        str | None,
        Option(_WORKTREE[::-1], "Work in a new git worktree, on the branch worktree-NAME.", metavar="[NAME]"),
    ] = None

    @property
    def is_resumed(self) -> bool:
        """True if a saved session goes on."""
        return self.is_continued or self.resume is not None


def name_follows(words: Sequence[str]) -> bool:
    """Check whether the first word can be the name for an option: it is no option and has no blank."""
    if not words or words[0].startswith("-"):
        return False
    return len(words[0].split()) == 1


def split_flags(words: Sequence[str]) -> list[str]:
    """Write joined short flags one by one, `-cp` as `-c -p`, and `-r=NAME` as `-r NAME`."""
    split: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*split, *words[place:]]
        name, is_joined, value = word.partition("=")
        if is_joined and name in OPTIONAL_VALUES and value:
            split += [name, value]
        elif _joins_flags(word):
            split += [f"-{flag}" for flag in word[1:]]
        else:
            split.append(word)
    return split


def _joins_flags(word: str) -> bool:
    """Return whether a word is several short flags, as `-cp` is."""
    return len(word) > 2 and word[0] == "-" and set(word[1:]) <= _SHORT_FLAGS


def complete_options(words: Sequence[str], options: Mapping[str, str] = OPTIONAL_VALUES) -> list[str]:
    """Give options an empty value where no name follows, because click knows no optional values."""
    completed: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*completed, *words[place:]]
        if word in options and not name_follows(words[place + 1 :]):
            word = f"{options[word]}="
        completed.append(word)
    return completed


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a dataclass of options: its name, and the values that it takes."""

    name: str
    is_flag: bool
    is_list: bool
    choices: tuple[str, ...]


def _list_fields(kinds: Sequence[type]) -> dict[str, _Field]:
    """List the fields of dataclasses of options by the names of the options."""
    fields: dict[str, _Field] = {}
    for kind in kinds:
        for name, hint in get_type_hints(kind, include_extras=True).items():
            value_type, option = get_args(hint)
            (type_,) = {*(get_args(value_type) or (value_type,))} - {NoneType}
            origin = get_origin(type_)
            choices: tuple[str, ...] = ()
            if origin is Literal:
                choices = get_args(type_)
            field = _Field(name, is_flag=type_ is bool, is_list=origin is list, choices=choices)
            fields |= dict.fromkeys(option.names, field)
    return fields


def read_options(words: Sequence[str], *kinds: type) -> tuple[dict[str, Any], list[str]] | None:
    """Read the options of dataclasses; return the values by field, and the other words.

    Return None for a command line that Typer has to judge.
    """
    fields = _list_fields(kinds)
    values: dict[str, Any] = {}
    others: list[str] = []
    rest = deque(complete_options(split_flags(words)))
    while rest:
        word = rest.popleft()
        if not word.startswith("-"):
            others.append(word)
            continue
        flag, is_joined, value = word.partition("=")
        field = fields.get(flag)
        if field is None or (is_joined and (field.is_flag or not flag.startswith("--"))):
            return None
        if field.is_flag:
            values[field.name] = True
            continue
        if not is_joined and rest:
            value = rest.popleft()
        may_be_empty = bool(is_joined) and flag in OPTIONAL_VALUES
        if not _is_value(value, field, may_be_empty=may_be_empty):
            return None
        if field.is_list:
            values.setdefault(field.name, []).append(value)
        else:
            values[field.name] = value
    return values, others


def _is_value(value: str, field: _Field, *, may_be_empty: bool) -> bool:
    """Check that a word can be the value of an option."""
    if not value:
        return may_be_empty
    return not value.startswith("-") and (not field.choices or value in field.choices)
