"""Packages: the one magic that a verified cell may use, and nothing but names in it."""

import re
import shlex

from .forbidden import words

_VERSION = r"(==|>=|<=|!=|~=|<|>)[\w.*]+"
_PACKAGE = re.compile(rf"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?({_VERSION}(,{_VERSION})*)?")
_ARCHIVE = (".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar", ".tbz", ".txz")
_FLAGS = words("-q -qq --quiet -U --upgrade -y --yes")


def install_line(magic: str, line: str) -> str | None:
    """The line for `%pip` or `%conda`, quoted as it goes through a shell; None for whatever doesn't install by name."""
    try:
        given = shlex.split(line, comments=True)
    except ValueError:
        return None
    if magic not in ("pip", "conda") or given[:1] != ["install"]:
        return None
    if not all(word in _FLAGS or _is_package(word) for word in given[1:]):
        return None
    return shlex.join(given)


def _is_package(word: str) -> bool:
    return _PACKAGE.fullmatch(word) is not None and not word.lower().endswith(_ARCHIVE)
