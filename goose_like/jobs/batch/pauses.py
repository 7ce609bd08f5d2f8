"""Pauses that the workers of one machine share by files."""

import asyncio
import hashlib
import random
import time
from pathlib import Path

from typing_extensions import override

from goose_like.core.dataclass import dataclass
from goose_like.providers.shared_pauses import SharedPauses
from goose_like.workspace.files import write_file

SPREAD_S = 1.0
"""Workers go on one after the other, so that they are not refused together again."""


@dataclass(frozen=True, slots=True)
class FilePauses(SharedPauses):
    """A file for each model holds the time, in seconds since 1970, at which requests are allowed again."""

    folder: Path

    @override
    async def wait(self, model: str) -> None:
        while (left_s := self._read_end(model) - time.time()) > 0:  # noqa: ASYNC110 other processes write the file
            await asyncio.sleep(left_s + random.uniform(0, SPREAD_S))

    @override
    async def hold(self, model: str, pause_s: float) -> None:
        end = time.time() + pause_s
        if end > self._read_end(model):
            write_file(self._get_file(model), repr(end).encode())

    def _read_end(self, model: str) -> float:
        try:
            return float(self._get_file(model).read_bytes())
        except (FileNotFoundError, ValueError):
            return 0.0

    def _get_file(self, model: str) -> Path:
        return self.folder / hashlib.sha256(model.encode()).hexdigest()[:16]
