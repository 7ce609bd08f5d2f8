"""Files that a cell leaves in the outputs of the session."""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import detect_media_type, save_image
from goose_like.toolkit import ToolError

FILE_LIMIT_BYTES = 256 << 20
CALL_LIMIT_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20


class CellFiles:
    """The files of one tool call; their names start with the id of the call."""

    def __init__(self, folder: Path, call: str) -> None:
        self.folder = folder
        self._call = call
        self._names: set[str] = set()
        self._left_bytes = CALL_LIMIT_BYTES

    def reserve_path(self, name: str) -> Path:
        """Return a path for a file with this name; no other file of the call gets the same path."""
        stem, dot, suffix = (re.sub(r"[^\w.-]", "_", name) or "file")[-80:].partition(".")
        unique, number = f"{stem}{dot}{suffix}", 1
        while unique in self._names:
            number += 1
            unique = f"{stem}-{number}{dot}{suffix}"
        self._names.add(unique)
        return self.folder / f"{self._call}-{unique}"

    def save_figure(self, data: bytes, source: str) -> Path:
        """Save an image, under the same name that the session uses for images in messages.

        Raises:
            OSError: The disk is full.
        """
        try:
            return self.folder / save_image(data, source, self.folder).name
        except GooseLikeError:  # too large for a model, or an unsupported format
            return self.save(f"figure.{(detect_media_type(data) or 'image/png').removeprefix('image/')}", data)

    def save(self, name: str, data: bytes) -> Path:
        """Save a file.

        Raises:
            OSError: The disk is full.
        """
        path = self.reserve_path(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def copy_artifact(self, folder: int, name: str) -> Path:
        """Copy a regular file (no link) out of a folder: at most 256 MB, and 1 GB for all files of the call.

        Args:
            folder: Descriptor of the folder.
            name: Name of the file.

        Raises:
            ToolError: There is no such file, or it is too large.
            OSError: The disk is full.
        """
        try:
            source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", error)
            raise ToolError(f"artifact {name!r} was announced, but its file can't be read: {reason}") from error
        try:
            status = os.fstat(source)
            if "/" in name or not stat.S_ISREG(status.st_mode):
                raise ToolError(f"artifact {name!r} is not a regular file; write one")
            if status.st_size > FILE_LIMIT_BYTES:
                raise ToolError(f"artifact {name!r} has {status.st_size:,} bytes, more than {FILE_LIMIT_BYTES:,}")
            if status.st_size > self._left_bytes:
                limit = f"the artifacts of one call may have {CALL_LIMIT_BYTES:,} bytes together"
                raise ToolError(f"artifact {name!r} is not saved: {limit}")
            path = self.reserve_path(name)
            self.folder.mkdir(parents=True, exist_ok=True)
            left = status.st_size  # the file may grow meanwhile
            self._left_bytes -= left
            with path.open("wb") as target:
                while left > 0 and (chunk := os.read(source, min(_CHUNK_BYTES, left))):
                    left -= target.write(chunk)
            with suppress(OSError):
                path.chmod(0o600)
            return path
        finally:
            os.close(source)
