"""Which hooks an event concerns: matchers of names, and conditions about the arguments of a call."""

import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from goose_like.config.paths import expand_home
from goose_like.config.tool_list import parse_tool
from goose_like.core.spelling import normalize_name

_PLAIN = re.compile(r"[\w\s,|-]*")
"""A matcher that lists names. Any other one is a regular expression."""

_PATH_KEYS = ("file_path", "path", "notebook_path")


def matches(matcher: str, names: Collection[str]) -> bool:
    """Check whether a matcher names one of the names. An empty one and `*` match everything.

    A regular expression that cannot be read matches everything too: it may guard something.
    """
    if matcher.strip() in ("", "*"):
        return True
    if _PLAIN.fullmatch(matcher):
        listed = {normalize_name(name) for name in re.split(r"[,|]", matcher)}
        return not listed.isdisjoint(map(normalize_name, names))
    pattern = _compile(matcher)
    return pattern is None or any(map(pattern.search, names))


@lru_cache
def _compile(matcher: str) -> re.Pattern[str] | None:
    try:
        return re.compile(matcher)
    except re.error:
        return None


def meets(condition: str, names: Collection[str], arguments: Mapping[str, Any], root: Path) -> bool:
    """Check whether a call meets a condition such as `Bash(git push *)` or `Edit(*.ts)`.

    `names` are those of the tool, and `arguments` have the keys of the hook's format. Where nobody can tell, the call
    meets the condition, so that the hook runs and looks itself.
    """
    parsed = parse_tool(condition)
    if parsed is None:
        return True
    name, pattern = parsed
    if not matches(name, names):
        return False
    if not pattern:
        return True
    command = arguments.get("command")
    if isinstance(command, str):
        return _meets_command(pattern, command)
    for key in _PATH_KEYS:
        path = arguments.get(key)
        if isinstance(path, str):
            return _meets_path(pattern, path, root)
    return True


def _meets_command(pattern: str, line: str) -> bool:
    """Check whether one of the commands of a line fits a pattern: `git push *`, or `git push:*` with the same meaning.

    A word that is only known while the line runs fits each word of the pattern.
    """
    from goose_like.workspace.permissions.shell_syntax import parse_line  # its parser slows down a start

    start = re.sub(r":?\s*\*$", "", pattern).split()
    may_be_longer = pattern.endswith("*")
    for command in parse_line(line):
        program, *rest = command.words
        if program is None:
            return True
        for name in (program, command.name):
            words = [name, *rest]
            known = " ".join("*" if word is None else word for word in words)
            if fnmatchcase(known, pattern):
                return True
            if _begins_with(words, start) and (may_be_longer or len(words) == len(start)):
                return True
    return fnmatchcase(line, pattern)


def _begins_with(words: Sequence[str | None], start: Sequence[str]) -> bool:
    if len(words) < len(start):
        return False
    pairs = zip(words, start, strict=False)
    return all(word is None or fnmatchcase(word, wanted) for word, wanted in pairs)


def _meets_path(pattern: str, path: str, root: Path) -> bool:
    """Check whether a file fits a pattern: its name, its path below the root, or the whole path."""
    whole = Path(root, path)
    forms = [whole.name, str(whole)]
    if whole.is_relative_to(root):
        forms.append(str(whole.relative_to(root)))
    wanted = pattern.removeprefix("./").replace("**/", "*")
    if wanted.startswith("~/"):
        wanted = str(expand_home(wanted))
    return any(fnmatchcase(form, wanted) for form in forms)
