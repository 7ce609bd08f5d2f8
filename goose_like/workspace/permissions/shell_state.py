"""The state that earlier commands left in a shell: a question shows it, since it decides what the next command runs."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path

from goose_like.core.pattern import compile_later

shell_state: ContextVar[Callable[[], str]] = ContextVar("shell_state", default=str)
"""Describes the state for the command that is being started; empty if it changes nothing."""

_DECLARED = compile_later(r'^declare -x ([A-Za-z_]\w*)(?:="((?:[^"\\$`]|\\["\\$`])*)")?(?:\n|\Z)', re.M)
"""A declaration as bash prints it. It runs nothing."""

_MARKS = ("GOOSE_LIKE_COMMAND", "TRACEPARENT", "TRACESTATE")
"""Variables that each command has of its own, whatever the one before has exported."""
_MARK_LINE = compile_later(rf'^declare -x ({"|".join(_MARKS)})="[^"\n]*"\n', re.M)
_OWN = compile_later(rf"{'|'.join(_MARKS)}|OLDPWD|PWD|SHLVL|_|PS1|VIRTUAL_ENV|VIRTUAL_ENV_PROMPT|_OLD_VIRTUAL_\w+")
"""Variables of goose_like, bash and virtual environments, which no program looks at to find another one."""


def drop_known(exports: str, variables: Mapping[str, str]) -> str:
    """Drop the declarations at the start of exports, as bash prints them, that repeat these variables.

    The marks of a command are dropped too: the next command has its own.
    """
    kept = []
    start = 0
    while exports.startswith("declare -", start):
        found = _DECLARED.match(exports, start)
        if found:
            end = found.end()
        else:
            end = exports.find("\n", start) + 1 or len(exports)
        if not found or not _is_known(found, variables):
            kept.append(exports[start:end])
        start = end
    kept.append(exports[start:])
    return "".join(kept)


class KnownExports:
    """A filter like `drop_known` that reads exports again only if a command has changed them."""

    def __init__(self) -> None:
        self._exports = ""
        self._variables: Mapping[str, str] = {}
        self._kept = ""

    def drop(self, exports: str, variables: Mapping[str, str]) -> str:
        """Drop the declarations in exports that repeat these variables."""
        unmarked = _MARK_LINE.sub("", exports, count=len(_MARKS))  # each command has other marks
        if unmarked != self._exports or variables != self._variables:
            self._kept = drop_known(exports, variables)
            self._exports = unmarked
            self._variables = variables
        return self._kept


def _is_known(found: re.Match[str], variables: Mapping[str, str]) -> bool:
    name = found[1]
    value = _unescape(found[2] or "\0")  # no variable holds that one
    return name in _MARKS or variables.get(name) == value


def find_changes(exports: str, known: Mapping[str, Iterable[str]]) -> tuple[str, str | None]:
    """Find what exports, as bash prints them, change for commands, and the PATH in them.

    Declarations with one of the `known` values change nothing. Everything else is returned as it is: functions, other
    values, and text that a command wrote in place of exports.
    """
    path = None
    changes = []
    end = 0
    for found in _DECLARED.finditer(exports):
        name = found[1]
        value = _unescape(found[2] or "")
        if name == "PATH":
            path = value
        changes.append(exports[end : found.start()])
        is_known = _OWN.fullmatch(name) or value in known.get(name, ())
        if not is_known:
            changes.append(found[0])
        end = found.end()
    changes.append(exports[end:])
    text = "".join(changes).strip()
    return os.fsencode(text).decode(errors="replace"), path


def _unescape(value: str) -> str:
    if "\\" not in value:
        return value
    return re.sub(r'\\(["\\$`])', r"\1", value)


def find_planted(line: str, path: str, resolve: Callable[[str], Path], writable: Iterable[Path]) -> list[str]:
    """List the programs of a line that come from a folder which commands can write to, as `git is /tmp/bin/git`."""
    from .shell_syntax import parse_line  # only questions need the parser

    planted = []
    places = tuple(writable)
    names = dict.fromkeys(command.words[0] for command in parse_line(line))
    for name in names:
        if not name or "/" in name:
            continue
        for folder in path.split(os.pathsep):
            program = os.path.join(folder, name)
            place = resolve(program)
            if not place.is_file() or not os.access(place, os.X_OK):
                continue
            if any(map(place.is_relative_to, places)):
                planted.append(f"{name} is {program}")
            break
    return planted
