"""Installed bundles on disk: copies that only the commands of the person change."""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from goose_like.config.bundles import BUNDLES, FILES, RECORD
from goose_like.config.paths import config_folder, create_private_folder, lock_folder, state_folder
from goose_like.core.errors import GooseLikeError, UsageError

from .contents import Contents, read_contents
from .sources import Place, is_content

_MAX_FILES = 5_000
_MAX_BYTES = 100_000_000
_SKIPPED = (".git", "__pycache__")


@contextmanager
def open_copy(place: Place) -> Iterator[tuple[Path, Contents]]:
    """Copy a bundle into a folder of ours, and give the copy with its contents. Remove it unless `install` takes it.

    What the person sees is read from this copy, and this copy is installed.

    Raises:
        GooseLikeError: it is no bundle, or too large.
    """
    parent = create_private_folder(config_folder() / BUNDLES)
    folder = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    try:
        copy = folder / FILES / ".new"
        copy.mkdir(parents=True)
        left_out = _copy(place.folder, copy)
        contents = read_contents(copy, place.entry)
        contents.problems += left_out
        root = copy.with_name(contents.bundle.name)
        copy.rename(root)
        yield root, contents
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install(root: Path, contents: Contents) -> None:
    """Put a copy in the place of the installed bundle with its name. The data of that bundle stay."""
    bundle = contents.bundle
    folder = root.parents[1]
    parts = {"hooks": contents.hooks, "servers": contents.servers, "skills": bundle.skills}
    for name, part in parts.items():
        if part:
            _write_durably(folder / f"{name}.json", json.dumps(part))
    _write_durably(folder / RECORD, bundle.model_dump_json())
    with lock_folder(folder.parent):
        old = folder.with_name(folder.name.replace(".new-", ".old-"))
        if bundle.folder.exists():
            bundle.folder.rename(old)
        folder.rename(bundle.folder)
        shutil.rmtree(old, ignore_errors=True)


def _write_durably(file: Path, text: str) -> None:
    """Write a file that is whole after a loss of power, too: the folder is renamed next."""
    with file.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def remove(name: str) -> None:
    """Remove an installed bundle and its data."""
    folder = config_folder() / BUNDLES / name
    with lock_folder(folder.parent):
        shutil.rmtree(folder)
        shutil.rmtree(state_folder() / BUNDLES / name, ignore_errors=True)


def read_files(root: Path) -> dict[str, bytes]:
    """Read the files of a copy, by their paths."""
    files = {}
    for top, _, names in os.walk(root):
        for name in names:
            file = Path(top, name)
            files[str(file.relative_to(root))] = file.read_bytes()
    return dict(sorted(files.items()))


def _copy(source: Path, target: Path) -> list[str]:
    """Copy the files of a bundle. Return sentences about links that lead out of it, and other things left out."""
    left_out: list[str] = []
    byte_count = 0
    file_count = 0
    top = os.path.realpath(source)
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(set(folders).difference(_SKIPPED))
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
        for name in sorted([*names, *links]):
            path = os.path.relpath(f"{folder}/{name}", top)
            real = os.path.realpath(f"{folder}/{name}")
            is_file = os.path.isfile(real) and is_content(Path(real), Path(top))
            if not is_file or not path.isprintable():
                left_out.append(f"{path!r} is left out: it is no file of the bundle")
                continue
            data, mode = _read_file(real)
            byte_count += len(data)
            file_count += 1
            if file_count > _MAX_FILES or byte_count > _MAX_BYTES:
                raise UsageError(f"a bundle has at most {_MAX_FILES:,} files and {_MAX_BYTES // 1_000_000} MB")
            copy = target / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            copy.chmod(mode)
    return left_out


def _read_file(path: str) -> tuple[bytes, int]:
    """Read a file by its real path, with the mode of its copy."""
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise GooseLikeError(f"{path} is no file")
        data = stream.read(_MAX_BYTES + 1)
    mode = 0o600
    if status.st_mode & stat.S_IXUSR:
        mode = 0o700
    return data, mode
