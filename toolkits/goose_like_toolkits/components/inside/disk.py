"""Disk: the resource that reads and writes files below one folder."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .plugin import told
from .resource import Resource, expect_kind
from .settings import Settings


class Disk(Resource):
    """Files below `root`. Paths are relative to it, or absolute and below it, links followed."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Its `config.root_directory` is below the working directory, which it is itself if it is not named."""
        super().__init__(config)
        expect_kind(self, "disk")
        self.root = _real(Path(Settings().working_directory, self.config.config.root_directory or "."))

    def read_file(self, path: str, binary: bool = False) -> Any:
        """The text of a file, or its bytes.

        Raises:
            FileNotFoundError: when there is no such file.
            ValueError: when it lies outside the root, or is no UTF-8.
        """
        found = self._file(path)
        if binary:
            return found.read_bytes()
        try:
            return found.read_text(encoding="utf8")
        except UnicodeDecodeError:
            raise ValueError(f"{told(self)}: {path} is no text in UTF-8; read it with binary=True") from None

    def write_file(self, path: str, value: str | bytes) -> int:
        """Writes text or bytes, into new folders if need be; gives their number of characters or bytes.

        Raises:
            IsADirectoryError: when a folder is there.
            ValueError: when the path lies outside the root.
            TypeError: when the value is neither.
        """
        place = self._check_in_root(path)
        if place.is_dir():
            raise IsADirectoryError(f"{told(self)}: {path} is a folder: name a file")
        if not isinstance(value, str | bytes):
            raise TypeError(f"{told(self)}: a file is written from text or bytes, not {type(value).__name__}")
        place.parent.mkdir(exist_ok=True, parents=True)
        return place.write_bytes(value) if isinstance(value, bytes) else place.write_text(value, encoding="utf8")

    def delete_file(self, path: str) -> None:
        """Deletes a file; of a link, only the link.

        Raises:
            FileNotFoundError: when there is no such file.
            ValueError: when it lies outside the root.
        """
        link = self._link(path)
        (link or self._file(path)).unlink()

    def delete_folder(self, path: str) -> None:
        """Deletes a folder with all that is in it; of a link, only the link.

        Raises:
            FileNotFoundError: when there is no such folder.
            ValueError: when it lies outside the root, or is the root.
        """
        if link := self._link(path):
            link.unlink()
            return
        place = self._check_in_root(path)
        if not place.is_dir():
            raise FileNotFoundError(f"{told(self)}: there is no folder {path}")
        shutil.rmtree(place)

    def initialize(self) -> None:
        """Nothing."""

    def finalize(self) -> None:
        """Nothing."""

    def _file(self, path: str) -> Path:
        place = self._check_in_root(path)
        if not place.is_file():
            raise FileNotFoundError(f"{told(self)}: there is no file {path}")
        return place

    def _link(self, path: str) -> Path | None:
        """The link that stands at this path, in a folder below the root."""
        place = self._joined(path)
        place = _real(place.parent) / place.name
        return place if place.is_symlink() and place.is_relative_to(self.root) else None

    def _check_in_root(self, path: str) -> Path:
        place = _real(self._joined(path))
        if place == self.root or not place.is_relative_to(self.root):
            raise ValueError(f"{told(self)}: {path!r} leads to no place below its root {self.root}: name one that does")
        return place

    def _joined(self, path: str | os.PathLike[str]) -> Path:
        if not isinstance(path, str | os.PathLike) or "\0" in str(path):
            raise ValueError(f"{told(self)}: a path is text without zero bytes, not {path!r}")
        return self.root / path


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # as Path.resolve, but links in a circle are no error
