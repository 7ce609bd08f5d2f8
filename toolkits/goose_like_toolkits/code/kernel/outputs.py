"""What a cell leaves beside its text, as files in the session's outputs."""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import detect_media_type, save_image
from goose_like.toolkit import ToolError

LIMIT_BYTES = 256 << 20
ALL_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20


class Outputs:
    """The files of one call; `call` stands at the beginning of their names."""

    def __init__(self, folder: Path, call: str) -> None:
        self.folder = folder
        self._call = call
        self._taken: set[str] = set()
        self._room = ALL_BYTES

    def path(self, name: str) -> Path:
        """A place for a file of this name that no other file of this call has."""
        stem, dot, kind = (re.sub(r"[^\w.-]", "_", name) or "file")[-80:].partition(".")
        unique, number = f"{stem}{dot}{kind}", 1
        while unique in self._taken:
            number += 1
            unique = f"{stem}-{number}{dot}{kind}"
        self._taken.add(unique)
        return self.folder / f"{self._call}-{unique}"

    def figure(self, data: bytes, source: str) -> Path:
        """Saves an image, under the name by which the session keeps it if a model is shown it.

        Raises:
            OSError: the disk is full.
        """
        try:
            return self.folder / save_image(data, source, self.folder).name
        except GooseLikeError:  # too large for a model, or of a kind that none takes
            return self.save(f"figure.{(detect_media_type(data) or 'image/png').removeprefix('image/')}", data)

    def save(self, name: str, data: bytes) -> Path:
        """Saves a file.

        Raises:
            OSError: the disk is full.
        """
        path = self.path(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def copy(self, folder: int, name: str) -> Path:
        """Copies a file out of the folder that the descriptor holds: no link, and no more than 256 MB, in all 1 GB.

        Raises:
            ToolError: it is not there, or no such file.
            OSError: the disk is full.
        """
        try:
            source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", error)
            raise ToolError(f"artifact {name!r} was told of, and there is no such file: {why}") from error
        try:
            status = os.fstat(source)
            if "/" in name or not stat.S_ISREG(status.st_mode):
                raise ToolError(f"artifact {name!r} is no plain file; write one")
            if status.st_size > LIMIT_BYTES:
                raise ToolError(f"artifact {name!r} has {status.st_size:,} bytes, more than {LIMIT_BYTES:,}")
            if status.st_size > self._room:
                raise ToolError(f"artifact {name!r} is not saved: those of one call may have {ALL_BYTES:,} bytes")
            path = self.path(name)
            self.folder.mkdir(parents=True, exist_ok=True)
            left = status.st_size  # it may grow meanwhile
            self._room -= left
            with path.open("wb") as target:
                while left > 0 and (chunk := os.read(source, min(_CHUNK_BYTES, left))):
                    left -= target.write(chunk)
            with suppress(OSError):
                path.chmod(0o600)
            return path
        finally:
            os.close(source)
