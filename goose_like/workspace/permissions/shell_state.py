"""The state that earlier commands left in a shell: a question shows it, since it decides what the next command runs."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path

shell_state: ContextVar[Callable[[], str]] = ContextVar("shell_state", default=str)
"""Describes the state for the command that is being started; empty if it changes nothing."""

_DECLARED = re.compile(r'^declare -x ([A-Za-z_]\w*)(?:="((?:[^"\\$`]|\\["\\$`])*)")?(?:\n|\Z)', re.M)
"""A declaration as bash prints it. It runs nothing."""

_MARK = "GOOSE_LIKE_COMMAND"
_OWN = re.compile(r"GOOSE_LIKE_COMMAND|OLDPWD|PWD|SHLVL|_|PS1|VIRTUAL_ENV|VIRTUAL_ENV_PROMPT|_OLD_VIRTUAL_\w+")
"""Variables of goose_like, bash and virtual environments, which no program looks at to find another one."""


def drop_known(exports: str, variables: Mapping[str, str]) -> str:
    """Drop the declarations at the start of exports, as bash prints them, that repeat these variables.

    The mark of a command is dropped too: the next command has its own.
    """
    kept, start = [], 0
    while exports.startswith("declare -", start):
        found = _DECLARED.match(exports, start)
        end = found.end() if found else exports.find("\n", start) + 1 or len(exports)
        is_known = found and (found[1] == _MARK or variables.get(found[1]) == _unescape(found[2] or "\0"))
        if not is_known:
            kept.append(exports[start:end])
        start = end
    return "".join([*kept, exports[start:]])


def find_changes(exports: str, known: Mapping[str, Iterable[str]]) -> tuple[str, str | None]:
    """Find what exports, as bash prints them, change for commands, and the PATH in them.

    Declarations with one of the `known` values change nothing. Everything else is returned as it is: functions, other
    values, and text that a command wrote in place of exports.
    """
    path = None

    def keep(found: re.Match[str]) -> str:
        nonlocal path
        name, value = found[1], _unescape(found[2] or "")
        path = value if name == "PATH" else path
        return "" if _OWN.fullmatch(name) or value in known.get(name, ()) else found[0]

    changes = _DECLARED.sub(keep, exports).strip()
    return os.fsencode(changes).decode(errors="replace"), path


def _unescape(value: str) -> str:
    return re.sub(r'\\(["\\$`])', r"\1", value) if "\\" in value else value


def find_planted(line: str, path: str, resolve: Callable[[str], Path], writable: Iterable[Path]) -> list[str]:
    """List the programs of a line that come from a folder which commands can write to, as `git is /tmp/bin/git`."""
    from .shell_syntax import parse_line  # only questions need the parser

    planted, places = [], tuple(writable)
    for name in dict.fromkeys(command.words[0] for command in parse_line(line)):
        for folder in path.split(os.pathsep) if name and "/" not in name else ():
            place = resolve(os.path.join(folder, name or ""))
            if place.is_file() and os.access(place, os.X_OK):
                if any(map(place.is_relative_to, places)):
                    planted.append(f"{name} is {os.path.join(folder, name or '')}")
                break
    return planted
