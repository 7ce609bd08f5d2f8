"""Parts of large text files, read in bounded memory."""

import os
from typing import BinaryIO

from goose_like.core.masking import mask_text
from goose_like.toolkit import ToolError

from .text import TextFile, split_lines, take_fitting

_CHUNK_BYTES = 1 << 20
_AROUND_BYTES = 16_384
"""Bytes to read before and after the wanted lines: a part of a key would not be recognized as a secret."""
_MAX_CUT_BYTES = 6
"""Bytes of the characters that may be cut at both ends."""


def read_part(file: BinaryIO, path: str, start_line: int, end_line: int | None, limit_bytes: int) -> str:
    """Return a line of facts, then the wanted lines as far as they fit. A line that is too long is cut.

    Raises:
        ToolError: the file has fewer lines, or they are no text.
    """
    place = _find_line(file, path, start_line)
    file.seek(max(0, place - _AROUND_BYTES))
    before = file.read(min(place, _AROUND_BYTES))
    data = before[before.find(b"\n") + 1 :] + file.read(limit_bytes + _AROUND_BYTES)
    is_end = not file.read(1)
    whole = data.decode(errors="ignore").encode()
    text = TextFile.decode(whole if len(data) - len(whole) <= _MAX_CUT_BYTES else data)
    size = f"{os.fstat(file.fileno()).st_size:,} bytes"
    if text is None:
        raise ToolError(f"{path} is binary, {size}; look at it in the shell (file, strings, xxd)")
    lines = split_lines(mask_text(text.shown))[before[before.find(b"\n") + 1 :].count(b"\n") :]
    is_last_cut = not is_end and not text.shown.endswith("\n")
    lines = lines[:-1] if is_last_cut and len(lines) > 1 else lines
    wanted = lines if end_line is None else lines[: end_line - start_line + 1]
    shown = take_fitting(wanted, limit_bytes)
    last = start_line + len(shown) - 1
    facts = [size, f"here {start_line} to {last}"]
    if last != end_line and not (is_end and len(shown) == len(lines)):
        facts.append(f"go on with start_line={last + 1}")
    if shown != wanted[: len(shown)] or (is_last_cut and len(lines) == 1):
        facts.append(f"line {last} is too long and cut")
    return "\n".join([f"[{path}: {', '.join(facts)}]", *shown])


def _find_line(file: BinaryIO, path: str, line: int) -> int:
    """Return the position at which a line starts."""
    number, start, end = 1, 0, b""
    while chunk := file.read(_CHUNK_BYTES):
        count = chunk.count(b"\n")
        if number + count >= line:
            place = -1
            for _ in range(line - number):
                place = chunk.index(b"\n", place + 1)
            if start + place + 1 < os.fstat(file.fileno()).st_size:
                return start + place + 1
        number, start, end = number + count, start + len(chunk), chunk[-1:]
    count = number - 1 if end == b"\n" else number
    raise ToolError(f"{path} has only {count:,} lines")
