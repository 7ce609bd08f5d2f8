"""Fault: what is wrong with a file that describes something, and in which line."""

from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ConfigDict

from goose_like.core.message import FrozenModel, Utf8Text

T = TypeVar("T")

MAX_FILE_BYTES = 1_000_000
"""A larger file describes nothing that people wrote."""


class Diagnostic(FrozenModel):
    """One sentence. Lines count from 1; a remark is said by commands that check, and stops nothing."""

    file: Path
    line: int | None = None
    text: Utf8Text
    is_warning: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        return f"{place}: {'remark: ' if self.is_warning else ''}{self.text}"

    @property
    def sort_key(self) -> tuple[str, int, str]:
        """What faults are sorted by."""
        return str(self.file), self.line or 0, self.text


class ParseResult(FrozenModel, Generic[T]):
    """What was read of a file, None if nothing could be, and what is wrong with it."""

    model_config = ConfigDict(ser_json_inf_nan="constants")  # else YAML's `.inf` would be None once it was kept

    value: T | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
