"""Command lines of sessions: one table of options, for Typer and for a reader that needs no import of Typer.

The import of Typer takes longer than everything else before the prompt. So the usual command lines of a session are
read here, and Typer judges all others, with its help and its error messages.
"""

import dataclasses
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from goose_like.config.entry_points import list_names
from goose_like.core.dataclass import dataclass

T = TypeVar("T")
_RESUME = ("-r", "--resume")
_WORKTREE = ("-w", "--worktree")
_SHORT_FLAGS = frozenset("cpr")
WORKTREE_VALUES = dict.fromkeys(_WORKTREE, "--worktree")
OutputFormat = Literal["text", "json", "stream-json"]
"""Formats of the output of `run` on standard output."""
OPTIONAL_VALUES = {**dict.fromkeys(_RESUME, "--resume"), **WORKTREE_VALUES}
"""Options that need no value, with their long names."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: its names, the help, the least number, and what completes its value."""

    names: tuple[str, ...]
    help: str
    metavar: str | None = None
    minimum: float | None = None
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
        Literal["auto", "ask", "plan", "unattended", "yolo"] | None,
        Option(
            ("--approval",),
            "auto: ask before leaving the sandbox. ask: ask before every change. plan: only read and plan. "
            "unattended: like auto, but the answer is always no. yolo: never ask.",
        ),
    ] = None
    is_trusted: Annotated[bool, Option(("--trust",), "Use the project's .goose-like/profiles.yaml this time.")] = False
    add_dirs: Annotated[
        list[str] | None,
        Option(
            ("--add-dir",),
            "Also show this folder, read-only, this time; with :rw it can be changed, and a resume keeps it; "
            "repeatable.",
            metavar="DIR[:rw]",
        ),
    ] = None
    appended_prompt: Annotated[
        str | None,
        Option(
            ("--append-system-prompt",),
            "Add this text, or that of @FILE, to the system prompt. A resume keeps it.",
            metavar="TEXT|@FILE",
        ),
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


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """Options of a task: its output, its limits and its session."""

    output_format: Annotated[OutputFormat, Option(("--output-format",), "Format of standard output.")] = "text"
    answer_file: Annotated[
        str | None, Option(("-o", "--output-file"), "Also write the answer to this file.", metavar="FILE")
    ] = None
    receipt: Annotated[
        str | None,
        Option(("--receipt",), "Write what was done and checked to this file: .json or .md.", metavar="FILE"),
    ] = None
    max_steps: Annotated[
        int | None,
        Option(("--max-steps",), "Stop after this many model requests [default: 256].", metavar="N", minimum=1),
    ] = None
    max_cost: Annotated[
        float | None, Option(("--max-cost",), "Stop at this cost in US dollars.", metavar="USD", minimum=0.0001)
    ] = None
    max_tokens: Annotated[
        int | None,
        Option(("--max-tokens",), "Stop after this many input and output tokens.", metavar="N", minimum=1),
    ] = None
    timeout: Annotated[
        float | None, Option(("--timeout",), "Stop after this many seconds.", metavar="SECONDS", minimum=0.001)
    ] = None
    session: Annotated[
        str | None,
        Option(
            ("--session",),
            "Name of the new session; with --resume, of the old one.",
            complete=list_session_names,
        ),
    ] = None
    is_unsaved: Annotated[bool, Option(("--no-session",), "Do not save a session.")] = False
    is_quiet: Annotated[bool, Option(("--quiet", "-q"), "Show no progress on standard error.")] = False


@dataclass(frozen=True, slots=True)
class InputOptions:
    """Options of `run` alone: its task, and the form of the answer. A recipe has both."""

    file: Annotated[str | None, Option(("-i", "--input"), "Read the task from a file.")] = None
    json_schema: Annotated[
        str | None,
        Option(
            ("--json-schema",),
            "Answer with one JSON value that fits this JSON schema, a file or a text.",
            metavar="FILE|TEXT",
        ),
    ] = None


def find_session_conflict(chosen: SessionOptions) -> str:
    """Return why options about sessions do not fit together, or an empty text."""
    if chosen.is_forked and not chosen.is_resumed:
        return "--fork needs --continue or --resume"
    if chosen.worktree is not None and chosen.is_resumed:
        return "--worktree is for new sessions; a resumed one continues where it was"
    return ""


def find_run_conflict(task: TaskOptions, chosen: SessionOptions) -> str:
    """Return why options of `run` do not fit together, or an empty text."""
    if task.is_unsaved and (chosen.is_resumed or task.session):
        return "--no-session cannot be used with --session or --resume"
    if task.is_unsaved and chosen.worktree is not None:
        return "--worktree is for new sessions that are saved"
    return find_session_conflict(chosen)


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
    type: Any
    choices: tuple[str, ...]
    minimum: float | None

    @property
    def is_flag(self) -> bool:
        """True if the option takes no value."""
        return self.type is bool

    def read(self, text: str) -> Any:
        """Return the value that a text stands for, or None for a text that Typer has to judge."""
        if self.choices and text not in self.choices:
            return None
        if self.minimum is None:
            return text
        has_decimals = self.type is float and re.fullmatch(r"\d+\.\d+", text)
        if not (text.isdecimal() or has_decimals) or float(text) < self.minimum:
            return None
        return self.type(text)


def _list_fields(kinds: Sequence[type]) -> dict[str, _Field]:
    """List the fields of dataclasses of options by the names of the options."""
    fields: dict[str, _Field] = {}
    for kind in kinds:
        for name, hint in get_type_hints(kind, include_extras=True).items():
            value_type, option = get_args(hint)
            type_ = _remove_none(value_type)
            choices: tuple[str, ...] = ()
            if get_origin(type_) is Literal:
                choices = get_args(type_)
            field = _Field(name, type_, choices, option.minimum)
            fields |= dict.fromkeys(option.names, field)
    return fields


def _remove_none(value_type: Any) -> Any:
    """Return the type X of `X | None`, and any other type itself."""
    parts = get_args(value_type)
    if NoneType not in parts:
        return value_type
    (type_,) = set(parts) - {NoneType}
    return type_


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
        flag, is_joined, text = word.partition("=")
        field = fields.get(flag)
        if field is None or (is_joined and (field.is_flag or not flag.startswith("--"))):
            return None
        if field.is_flag:
            values[field.name] = True
            continue
        if not is_joined and rest:
            text = rest.popleft()
        may_be_empty = bool(is_joined) and flag in OPTIONAL_VALUES
        value = None
        if (text or may_be_empty) and not text.startswith("-"):
            value = field.read(text)
        if value is None:
            return None
        if get_origin(field.type) is list:
            values.setdefault(field.name, []).append(value)
        else:
            values[field.name] = value
    return values, others


def take_fields(kind: type[T], values: dict[str, Any]) -> T:
    """Move the values of one dataclass of options out of those of all options."""
    taken = {}
    for field in dataclasses.fields(cast(Any, kind)):
        if field.name in values:
            taken[field.name] = values.pop(field.name)
    return kind(**taken)
