"""The private folder of a kernel process."""

import asyncio
import json
import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from goose_like_toolkits.code import worker

from .channels import make_connection_info

WORKER_PACKAGE = "goose_like_kernel"
_WORKER_SOURCE = Path(worker.__file__).parent


class KernelFolder:
    """A folder with the worker's code, its connection file, its sockets and its artifacts.

    File descriptors hold the folder and `artifacts`: commands may write there too, so a name could lead elsewhere.
    """

    def __init__(self, tmp: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kernel-", dir=tmp))
        self.key = secrets.token_hex(32)
        self._descriptor = _open_folder(self.path)
        for source in [_WORKER_SOURCE, *sorted(_WORKER_SOURCE.rglob("*"))]:
            target = self._held_path / WORKER_PACKAGE / source.relative_to(_WORKER_SOURCE)
            if source.suffix == ".py":
                _write_new(target, source.read_bytes())
            elif source.is_dir() and source.name != "__pycache__":
                target.mkdir(mode=0o700)
        _write_new(self._held_path / "connection.json", json.dumps(make_connection_info(self.key)).encode())
        (self._held_path / "artifacts").mkdir(mode=0o700)
        self.artifacts = _open_folder(self._held_path / "artifacts")

    @property
    def _held_path(self) -> Path:
        return Path(f"/proc/self/fd/{self._descriptor}")

    @property
    def sockets(self) -> str:
        """Prefix of the socket paths, short enough for the 108 bytes of a socket path (unix(7))."""
        return f"{self._held_path}/k"

    async def remove(self) -> None:
        """Remove the folder with all files."""
        for descriptor in (self._descriptor, self.artifacts):
            with suppress(OSError):
                os.close(descriptor)
        self._descriptor = self.artifacts = -1
        await asyncio.to_thread(shutil.rmtree, self.path, ignore_errors=True)


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _write_new(file: Path, data: bytes) -> None:
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        new.write(data)
