"""`pip install` in a cell: the host asks the person and installs; the kernel makes the packages importable."""

import json
import os
import re
import shlex
import site
import sys
import time
from collections.abc import Callable
from importlib import invalidate_caches
from typing import Any

from IPython.core.error import InputRejected

_POLL_S = 0.05
_PIP = re.compile(r"(\S*/)?pip[\d.]*")
_PYTHON = re.compile(r"(\S*/)?python[\d.]*")
_DISPLAY_ONLY = re.compile(r"\||\d?>")
_WITHOUT_EFFECT = {"--user", "-q", "-qq", "-qqq", "--quiet"}  # the place is fixed, and only the result is shown
_OPERATOR = re.compile(r"&&?|\|\||.*;")
_VERSION = r"(==|>=|<=|!=|~=|<|>)[\w.*]+"
_PACKAGE = re.compile(rf"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?({_VERSION}(,{_VERSION})*)?")
_ARCHIVES = (".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar", ".tbz", ".txz")
_PIP_FLAGS = frozenset({"-q", "-qq", "--quiet", "-U", "--upgrade", "-y", "--yes"})


class InstallFailed(InputRejected):
    """An error of an installation. The user and the model see only its message."""

    __module__ = "builtins"  # Python shows the short name

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def find_install(line: str) -> list[str] | None:
    """Return the words after `pip install` of a shell line, without pipes and redirections; None for other lines.

    Raise InstallFailed if the line contains more commands.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    if len(words) > 2 and _PYTHON.fullmatch(words[0]) and words[1] == "-m":
        del words[:2]
    if words[:1] == ["uv"]:
        del words[:1]
    if len(words) < 2 or not _PIP.fullmatch(words[0]) or words[1] != "install":
        return None
    if any(map(_OPERATOR.fullmatch, words)):
        raise InstallFailed("write `%pip install ...` as a line of its own, without other commands")
    kept = []
    for word in words[2:]:
        if _DISPLAY_ONLY.match(word):
            break
        if word not in _WITHOUT_EFFECT:
            kept.append(word)
    return kept


def quote_install_line(magic: str, line: str) -> str | None:
    """Return the quoted line for `%pip`, or None if the line does more than install packages by name."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    if magic != "pip" or words[:1] != ["install"]:
        return None
    for word in words[1:]:
        if word not in _PIP_FLAGS and not _is_package(word):
            return None
    return shlex.join(words)


def _is_package(word: str) -> bool:
    if word.lower().endswith(_ARCHIVES):
        return False
    return _PACKAGE.fullmatch(word) is not None


class Installer:
    """The kernel's side of installations. `send` takes messages for the host, which answers with a file in `folder`."""

    def __init__(self, folder: str, send: Callable[[dict[str, Any]], None]) -> None:
        self._folder = folder
        self._send = send
        self._count = 0

    def install(self, words: list[str]) -> None:
        """Install packages, and print the result. Raise InstallFailed with the reason if they are not installed."""
        self._count += 1
        reply = os.path.join(self._folder, f"install-{self._count}.json")
        self._send({"type": "install", "words": words, "number": self._count})
        while not os.path.exists(reply):
            time.sleep(_POLL_S)
        with open(reply, encoding="utf-8") as file:
            answer = json.load(file)
        if answer["error"]:
            raise InstallFailed(answer["error"])
        if answer["folder"]:
            add_packages(answer["folder"])
        print(answer["text"])
        loaded = _find_loaded(answer["text"])
        if loaded:
            print(f"{', '.join(loaded)}: already imported in another version; reset the kernel to use the new one")


def _find_loaded(text: str) -> list[str]:
    """Find the modules that are imported already among the installed packages, such as `pandas-2.2.0`."""
    modules = set()
    for package in text.split():
        name, _, _ = package.rpartition("-")
        modules.add(name.replace("-", "_").lower())
    return sorted(modules & sys.modules.keys())


def add_packages(folder: str) -> None:
    """Make the packages in a folder importable, before those of the interpreter and after the standard library."""
    before = list(sys.path)
    site.addsitedir(folder)
    new = [path for path in sys.path if path not in before]
    place = 0
    while place < len(before) and "-packages" not in before[place]:
        place += 1
    sys.path[:] = [*before[:place], *new, *before[place:]]
    invalidate_caches()
