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

_OTHER_PWD = re.compile(r"\bPWD\b[^/\"'\s]")
"""A use of PWD that is not the start of a path: the line may change it."""

_NEW_FILE = "/tmp/tmp.goose-like-new"


def fill_variables(line: str) -> str:
    """Replace variables by their values where the line tells them for sure, and others by `UNKNOWN_PART`.

    A variable with several values becomes braces: `{a,b}`.
    """
    return _replace_uses(line, _find_values(line))


def _find_values(line: str) -> dict[str, str]:
    """Find the variables whose values hold wherever the line uses them."""
    values = {"PWD": "."}
    if _OTHER_WAYS.search(line):
        if _OTHER_PWD.search(line):
            values.clear()
        return values
    places = [*_ASSIGNED.finditer(line), *_LOOP.finditer(line)]
    places.sort(key=lambda found: found.start(1))
    for found in places:
        name = found[1]
        if found.re is _LOOP:
            if _is_only_in_loop(line, name, found):
                values[name] = _fill_list(found[2], values)
        elif _is_certain(line, name, found):
            # The third group is `$(mktemp)`.
            values[name] = _NEW_FILE if found[3] else _fill(found[2], values)
    return values


def _fill_list(text: str, values: dict[str, str]) -> str:
    """Return the words of a loop as braces, or the only one of them."""
    words = [_fill(word, values) for word in text.split()]
    if len(words) == 1:
        return words[0]
    return f"{{{','.join(words)}}}"


def _fill(text: str, values: dict[str, str]) -> str:
    unquoted = re.sub("['\"]", "", text)
    return _replace_uses(unquoted, values)


def _replace_uses(text: str, values: dict[str, str]) -> str:
    def get_value(use: re.Match[str]) -> str:
        name = use[1] or use[2]
        return values.get(name, UNKNOWN_PART)

    return _USE.sub(get_value, text)


def _is_certain(line: str, name: str, found: re.Match[str]) -> bool:
    """Check that an assignment holds for every use of the variable."""
    if _CONDITIONAL.search(line[: found.start(1)]):
        return False
    is_used_before = any(use < found.start() for use in _find_uses(line, name))
    return not is_used_before and not _has_other_values(line, name, found)


def _is_only_in_loop(line: str, name: str, found: re.Match[str]) -> bool:
    if _has_other_values(line, name, found):
        return False
    end = line.rfind("done")
    return all(found.end() <= use < end for use in _find_uses(line, name))


def _has_other_values(line: str, name: str, found: re.Match[str]) -> bool:
    """Check whether a name gets a value elsewhere too."""
    for place in re.finditer(rf"(?<![\w$-]){name}\+?=|\bfor\s+{name}\b", line):
        if not found.start() <= place.start() < found.end():
            return True
    return False


def _find_uses(line: str, name: str) -> list[int]:
    uses = []
    for use in _USE.finditer(line):
        if name in (use[1], use[2]):
            uses.append(use.start())
    return uses
