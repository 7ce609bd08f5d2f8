"""Diagnostics: problems in files that people write, each with its line."""

from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ConfigDict

from goose_like.core.message import FrozenModel, Utf8Text

T = TypeVar("T")

MAX_FILE_BYTES = 1_000_000
"""The size limit of files that people write. Larger files are not parsed."""


class Diagnostic(FrozenModel):
    """A problem in a file, in one sentence.

    Lines count from 1. A warning is shown by commands that check files, and stops nothing.
    """

    file: Path
    line: int | None = None
    text: Utf8Text
    is_warning: bool = False

    def __str__(self) -> str:
        place = str(self.file)
        if self.line:
            place += f":{self.line}"
        kind = "warning: " if self.is_warning else ""
        return f"{place}: {kind}{self.text}"

    @property
    def sort_key(self) -> tuple[str, int, str]:
        """The key that sorts diagnostics by file and line."""
        return str(self.file), self.line or 0, self.text


class ParseResult(FrozenModel, Generic[T]):
    """A value parsed from a file, or None, and the diagnostics of the file."""

    # Without this setting the cache would turn YAML's `.inf` into None.
    model_config = ConfigDict(ser_json_inf_nan="constants")

    value: T | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
