"""The files that a command changed, for the model: an edit that matches nothing succeeds without a word."""

import os
from collections.abc import Iterator
from contextlib import suppress

from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.toolkit import Workspace

from .seen_files import compute_digest, show_name

MAX_NAMES = 5
MAX_WORDS = 200
MAX_FILE_BYTES = 5_000_000

_ONLY_LOOKS = compile_later(r"\s*(ls|cat|head|tail|rg|grep|wc|pwd|git (status|log|diff|show|blame))\b[^;&|<>`$]*")
_EDITS = compile_later(r"\bsed\b[^|;\n]*\s(-\w*i|--in-place)|\bperl\b[^|;\n]*\s-\w*i|\bawk\b[^|;\n]*\binplace\b")
"""Commands that replace texts in files."""
_REPLACES = compile_later(r"(replace|\bsub)\(")
_WRITES = compile_later(r"\bwrite\w*\(")
_MAX_CHARS = 5_000
"""The part of a command that is searched: the patterns take time that grows with its square."""
_WORD = compile_later(r"[\w./~+-]+")


def only_looks(command: str) -> bool:
    """Check for a simple command that shows something and tells nothing about the work."""
    return _ONLY_LOOKS.fullmatch(command) is not None


def _is_edit(command: str) -> bool:
    """Check for a command that replaces texts in files, also by a script within it."""
    start = command[:_MAX_CHARS]
    if "/tmp" in start:
        return False
    if _EDITS.search(start):
        return True
    return _REPLACES.search(start) is not None and _WRITES.search(start) is not None


class CommandChanges:
    """What one command changes. Create it before the start, and ask it after the end."""

    def __init__(self, workspace: Workspace, command: str, cwd: str) -> None:
        """Remember the contents of the files that an edit names."""
        self._workspace = workspace
        self._only_looks = only_looks(command)
        self._is_edit = _is_edit(command)
        self._named: dict[str, str] = {}
        if self._is_edit:
            words = dict.fromkeys(_WORD.findall(command[:_MAX_CHARS])[:MAX_WORDS])
            paths = [os.path.join(cwd, word) for word in words]
            self._named = {path: self._read_digest(path) for path in paths if os.path.isfile(path)}

    def _read_digest(self, path: str) -> str:
        with suppress(GooseLikeError, OSError, ValueError):
            real = self._workspace.resolve(path)
            return compute_digest(self._workspace.read_bytes(real, MAX_FILE_BYTES))
        return ""

    async def describe(self, *, is_success: bool) -> str:
        """Name the files that the command changed, or say that an edit changed none; empty if there is no news."""
        if self._only_looks:
            return ""
        changed = await self._workspace.ledger.find_changes(is_certain=self._is_edit)
        if changed:
            return f"files changed: {_format_names(changed)}"
        is_certain = bool(self._named) or changed is not None
        if self._is_edit and is_success and is_certain and not any(self._list_changed()):
            return "no file changed: the text to replace is not there as the command has it; look at the file first"
        return ""

    def _list_changed(self) -> Iterator[str]:
        """List the files that the command names and changed. Git may ignore them."""
        for path, digest in self._named.items():
            if self._read_digest(path) != digest:
                yield path


def _format_names(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(show_name, names[:MAX_NAMES]))
    rest_count = len(names) - MAX_NAMES
    return f"{shown} and {rest_count} more" if rest_count > 0 else shown
