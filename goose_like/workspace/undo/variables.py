"""Variables of a shell line: the names of files that the line itself tells."""

import re

UNKNOWN_PART = "\ue000"
"""Stands in a word for a part that is only known while the line runs."""

_PART = r"[^\s'\"$`\\;&|()<>{}]|\$\w+|\$\{\w+\}"
_WORD = rf"(?:'[^'\s]*'|\"(?:{_PART})*\"|{_PART})"
_ASSIGNED = re.compile(
    rf"(?:^|(?<=[;\n]))\s*(?:(?:export|local|readonly)\s+)?([A-Za-z_]\w*)="
    rf"(?:({_WORD}*)|\"?(\$\(mktemp(?:\s+-[dqu]+|\s+-t\s+[\w.-]+)*\))\"?)[ \t]*(?=;|\n|&&|$)"
)
_LOOP = re.compile(rf"\bfor\s+([A-Za-z_]\w*)\s+in((?:\s+{_WORD}+)+)\s*[;\n]")
_USE = re.compile(r"\$(?:(\w+|[@*])|\{(\w+|[@*])\})")
_CONDITIONAL = re.compile(r"[(&|{]|\b(?:if|while|until|for|case|function)\b")
_OTHER_WAYS = re.compile(r"\b(?:read|mapfile|readarray|getopts|select|printf\s+-v|unset|eval|source|let|declare)\b")
"""Commands that give a variable a value which the line does not tell."""

_NEW_FILE = "/tmp/tmp.goose-like-new"


def fill_variables(line: str) -> str:
    """Replace variables by their values where the line tells them for sure, and others by `UNKNOWN_PART`.

    A variable with several values becomes braces: `{a,b}`.
    """
    values: dict[str, str] = {"PWD": "."}
    if not _OTHER_WAYS.search(line):
        for found in sorted([*_ASSIGNED.finditer(line), *_LOOP.finditer(line)], key=lambda found: found.start(1)):
            name = found[1]
            if found.re is _LOOP:
                words = [_fill(word, values) for word in found[2].split()]
                if _is_only_in_loop(line, name, found):
                    values[name] = f"{{{','.join(words)}}}" if words[1:] else words[0]
            elif _is_certain(line, name, found):
                values[name] = _NEW_FILE if found[3] else _fill(found[2], values)
    elif re.search(r"\bPWD\b[^/\"'\s]", line):
        values.clear()
    return _USE.sub(lambda found: values.get(found[1] or found[2], UNKNOWN_PART), line)


def _fill(text: str, values: dict[str, str]) -> str:
    return _USE.sub(lambda found: values.get(found[1] or found[2], UNKNOWN_PART), re.sub("['\"]", "", text))


def _find_others(line: str, name: str, found: re.Match[str]) -> list[int]:
    """Find where else a name gets a value."""
    places = re.finditer(rf"(?<![\w$-]){name}\+?=|\bfor\s+{name}\b", line)
    return [place.start() for place in places if not found.start() <= place.start() < found.end()]


def _find_uses(line: str, name: str) -> list[int]:
    return [use.start() for use in _USE.finditer(line) if name in (use[1], use[2])]


def _is_certain(line: str, name: str, found: re.Match[str]) -> bool:
    """Check that an assignment holds for every use of the variable."""
    is_conditional = _CONDITIONAL.search(line[: found.start(1)])
    is_used_before = any(use < found.start() for use in _find_uses(line, name))
    return not (is_conditional or is_used_before or _find_others(line, name, found))


def _is_only_in_loop(line: str, name: str, found: re.Match[str]) -> bool:
    uses, end = _find_uses(line, name), line.rfind("done")
    return not _find_others(line, name, found) and all(found.end() <= use < end for use in uses)
