"""Check of the only magic that verified cells may use: installing packages by name."""

import re
import shlex

from .known_names import split_names

_VERSION = r"(==|>=|<=|!=|~=|<|>)[\w.*]+"
_PACKAGE = re.compile(rf"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?({_VERSION}(,{_VERSION})*)?")
_ARCHIVES = (".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar", ".tbz", ".txz")
_FLAGS = split_names("-q -qq --quiet -U --upgrade -y --yes")


def quote_install_line(magic: str, line: str) -> str | None:
    """Return the quoted line for `%pip` or `%conda`, or None if the line does more than install packages by name."""
    try:
        arguments = shlex.split(line, comments=True)
    except ValueError:
        return None
    if magic not in ("pip", "conda") or arguments[:1] != ["install"]:
        return None
    if not all(word in _FLAGS or _is_package(word) for word in arguments[1:]):
        return None
    return shlex.join(arguments)


def _is_package(word: str) -> bool:
    return _PACKAGE.fullmatch(word) is not None and not word.lower().endswith(_ARCHIVES)
