"""Writes files of the workspace: path rule, permission, announcement, then the change itself."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError

from .diff import format_diff
from .files import FileAccess
from .permissions import Permissions
from .rules import Rule

ContentUpdate = Callable[[bytes], bytes | None]
"""Computes the new content of a file from its old one (b"" for a missing file). None leaves the file unchanged."""


class FileWriter:
    """Writes through a `FileAccess`, and asks for permission where the policy says so."""

    def __init__(
        self, files: FileAccess, permissions: Permissions, announce: Callable[[Path], Awaitable[None]]
    ) -> None:
        self._files = files
        self._permissions = permissions
        self._announce = announce

    async def write(self, path: str | Path, data: bytes) -> Path:
        """Create or replace a file; see `Workspace.write_bytes`."""
        place, rule = self._find_target(path)
        await self._require_permission(place, rule, data)
        await self._announce(place)
        self._files.write_bytes(place, data)
        return place

    async def update(self, path: str | Path, update: ContentUpdate, *, at_end: bool) -> bool:
        """Update one of our own files; see `Workspace.update_own_file`."""
        place, rule = self._find_target(path)
        old = self._read_old(place) or b""
        if (data := update(old)) is None:
            return False
        if rule != "write":
            await self._require_permission(place, rule, data)
        await self._announce(place)
        old = self._read_old(place) or b""  # the file may have changed while a question was open
        if (data := update(old)) is None:
            return False
        if at_end:
            self._files.append_bytes(place, data[len(old) :])
        else:
            self._files.write_bytes(place, data)
        return True

    def _find_target(self, path: str | Path) -> tuple[Path, Rule]:
        """Return the real path and its rule.

        Raises:
            DeniedError: nobody may write there.
        """
        place = self._files.resolve(path)
        rule = self._files.get_rule(place)
        if rule in ("hidden", "tmp"):
            raise DeniedError(f"{path} is hidden from you: it may hold secrets; write somewhere else")
        if rule == "protected":
            raise DeniedError(
                f"{path} is protected: git, a shell or goose-like runs it; tell the person what to change"
            )
        return place, rule

    async def _require_permission(self, place: Path, rule: Rule, data: bytes) -> None:
        shown: list[bytes | None] = []

        def detail() -> str:
            shown.append(self._read_old(place))
            return format_diff(shown[0], data)

        if rule == "read" and self._permissions.mode != "read-only":
            await self._permissions.require(
                "outside", str(place), f"write {place}, which is outside the workspace", detail
            )
        else:
            await self._permissions.require("change", str(place), f"change {place}", detail)
        if shown and self._read_old(place) != shown[0]:
            raise GooseLikeError(f"{place} was changed while the question was open; look at it again")

    def _read_old(self, place: Path) -> bytes | None:
        """Return the content of a file before a change, or None if there is no file."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return self._files.read_bytes(place)
        return None
