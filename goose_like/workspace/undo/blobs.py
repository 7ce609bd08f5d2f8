"""Former file contents, each stored once in one growing file and found by its SHA-256."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

_SIZE_BYTES = 8
_HEAD_BYTES = hashlib.sha256().digest_size + _SIZE_BYTES


class BlobStore:
    """A file of blobs, for one process at a time. One file, because twenty thousand small ones would take seconds.

    Each blob follows its SHA-256 and its length (big-endian). A blob that a dying process left unfinished is cut off.
    Nothing is removed. All methods raise OSError if the disk is full or the file cannot be read or written.
    """

    def __init__(self, file: Path, limit_bytes: int) -> None:
        """Open the file, or create it with mode 0600."""
        self._limit_bytes = limit_bytes
        self._places: dict[str, tuple[int, int]] = {}
        self._file = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b")
        size_bytes, end = os.fstat(self._file.fileno()).st_size, 0
        while len(head := os.pread(self._file.fileno(), _HEAD_BYTES, end)) == _HEAD_BYTES:
            start, length = end + _HEAD_BYTES, int.from_bytes(head[-_SIZE_BYTES:])
            if start + length > size_bytes:
                break
            self._places[head[:-_SIZE_BYTES].hex()] = (start, length)
            end = start + length
        self._file.truncate(end)
        self._end = self._file.seek(end)

    def put(self, data: bytes) -> str:
        """Store a blob and return its SHA-256. The blob is safe once `flush` returns. The limit raises OSError too."""
        digest = hashlib.sha256(data)
        name = digest.hexdigest()
        if name not in self._places:
            if self._end + len(data) > self._limit_bytes:
                raise OSError(f"more than {self._limit_bytes >> 20:,} MB of former contents")
            self._file.write(digest.digest() + len(data).to_bytes(_SIZE_BYTES) + data)
            self._places[name] = (self._end + _HEAD_BYTES, len(data))
            self._end += _HEAD_BYTES + len(data)
        return name

    def flush(self) -> None:
        """Write all blobs to the file, so that they outlive this process."""
        self._file.flush()

    def get(self, name: str) -> bytes:
        """Read the blob with this SHA-256. A missing or damaged blob raises OSError too."""
        start, length = self._places.get(name, (0, 0))
        with suppress(OSError):  # a full disk affects other blobs, not this one
            self._file.flush()
        data = os.pread(self._file.fileno(), length, start)
        if hashlib.sha256(data).hexdigest() != name:
            raise OSError("its former content is damaged")
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()
