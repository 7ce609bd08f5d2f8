"""How components lie in a repository: marks, what is beside a component's own files, and folders put in place whole."""

import errno
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from goose_like_toolkits.components.described.coordinates import Coordinates

from .sources import CONFIG_FILES

LISTING = "__FILES.yaml"
"""Beside a component's files: `{name: sha256}` of them and their signatures. Written last, so where it is all is."""

COMPLETED = "__COMPLETED"
"""The empty file that marks a component in a local repository as whole."""

ADDED = (".md5", ".sha1", ".sha256", ".sha512", ".asc")
"""Ends of names of files that are no component's, but say something of one."""


def is_added(name: str) -> bool:
    """Whether it is a checksum or a signature or a mark, and no file of the component's own."""
    last = name.rpartition("/")[2]
    return last.lower().endswith(ADDED) or last in (LISTING, COMPLETED)


def config_file_in(folder: Path, coordinates: Coordinates, names: Sequence[str] = CONFIG_FILES) -> Path | None:
    """The first of these files that there is in a component's folder of a repository, with the prefix or without."""
    stored = [f"{prefix}{name}" for name in names for prefix in (coordinates.prefix, "")]
    return next((folder / name for name in stored if (folder / name).is_file()), None)


def put_in_place(made: Path, target: Path) -> None:
    """Renames a whole folder to `target`, in the place of one that is there; another process may do the same.

    Raises:
        OSError: it can't be renamed; what is there stays.
    """
    while True:
        try:
            made.rename(target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        former = Path(tempfile.mkdtemp(prefix=".", dir=target.parent))
        try:
            with suppress(FileNotFoundError):  # another process was first
                target.rename(former)
        finally:
            shutil.rmtree(former, ignore_errors=True)
