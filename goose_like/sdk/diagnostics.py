"""Fault: what is wrong with a file that describes something, and in which line."""

from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ConfigDict

from goose_like.core.message import Value, Words

T = TypeVar("T")

LIMIT_BYTES = 1_000_000
"""A larger file describes nothing that people wrote."""


class Fault(Value):
    """One sentence. Lines count from 1; a remark is said by commands that check, and stops nothing."""

    file: Path
    line: int | None = None
    text: Words
    is_remark: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        return f"{place}: {'remark: ' if self.is_remark else ''}{self.text}"

    @property
    def place(self) -> tuple[str, int, str]:
        """What faults are sorted by."""
        return str(self.file), self.line or 0, self.text


class Reading(Value, Generic[T]):
    """What was read of a file, None if nothing could be, and what is wrong with it."""

    model_config = ConfigDict(ser_json_inf_nan="constants")  # else YAML's `.inf` would be None once it was kept

    value: T | None = None
    faults: tuple[Fault, ...] = ()
