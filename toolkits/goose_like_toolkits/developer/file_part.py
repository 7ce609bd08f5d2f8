"""Parts of large text files, read in bounded memory."""

import os
from typing import BinaryIO

from goose_like.core.masking import mask_text
from goose_like.core.text_file import TextFile, find_codec, split_lines, take_fitting
from goose_like.toolkit import ToolError

from .patching import number_lines

_CHUNK_BYTES = 1 << 20
_AROUND_BYTES = 16_384
"""Bytes to read before and after the wanted lines: a part of a key would not be recognized as a secret."""
_MAX_CUT_BYTES = 6
"""Bytes of the characters that may be cut at both ends."""


def read_part(
    file: BinaryIO, path: str, start_line: int, end_line: int | None, limit_bytes: int, encoding: str = ""
) -> str:
    """Return a line of facts, then the wanted lines with numbers as far as they fit. A line that is too long is cut.

    Raises:
        ToolError: the file has fewer lines, or they are no text.
    """
    place = _find_line(file, path, start_line)
    file.seek(max(0, place - _AROUND_BYTES))
    before = file.read(min(place, _AROUND_BYTES))
    whole_lines_before = before[before.find(b"\n") + 1 :]
    data = whole_lines_before + file.read(limit_bytes + _AROUND_BYTES)
    is_end = not file.read(1)
    text = _decode_part(data, encoding)
    size_bytes = os.fstat(file.fileno()).st_size
    size = f"{size_bytes:,} bytes"
    if text is None:
        raise ToolError(f"{path} is binary, {size}; look at it in the shell (file, strings, xxd)")
    line_count_before = whole_lines_before.count(b"\n")
    lines = split_lines(mask_text(text.shown))[line_count_before:]
    is_last_cut = not is_end and not text.shown.endswith("\n")
    if is_last_cut and len(lines) > 1:
        lines.pop()
    line_count = None
    if end_line is not None:
        line_count = end_line - start_line + 1
    wanted = number_lines(lines[:line_count], start_line)
    shown = take_fitting(wanted, limit_bytes)
    last = start_line + len(shown) - 1
    facts = [size, f"here {start_line} to {last}"]
    has_all = is_end and len(shown) == len(lines)
    if last != end_line and not has_all:
        facts.append(f"go on with start_line={last + 1}")
    is_line_cut = shown != wanted[: len(shown)]
    if is_line_cut or (is_last_cut and len(lines) == 1):
        facts.append(f"line {last} is too long and cut")
    if text.encoding_note:
        facts.append(text.encoding_note)
    head = ", ".join(facts)
    return "\n".join([f"[{path}: {head}]", *shown])


def _decode_part(data: bytes, encoding: str) -> TextFile | None:
    """Decode a part, in which the first and the last character may be cut."""
    if encoding:
        codec = find_codec(encoding)
        return TextFile(data.decode(codec, errors="replace"), codec)
    whole = data.decode(errors="ignore").encode()
    if len(data) - len(whole) <= _MAX_CUT_BYTES:
        return TextFile.decode(whole)
    return TextFile.decode(data)


def _find_line(file: BinaryIO, path: str, line: int) -> int:
    """Return the position at which a line starts."""
    number = 1
    start = 0
    end = b""
    while chunk := file.read(_CHUNK_BYTES):
        count = chunk.count(b"\n")
        if number + count >= line:
            place = -1
            for _ in range(line - number):
                place = chunk.index(b"\n", place + 1)
            if start + place + 1 < os.fstat(file.fileno()).st_size:
                return start + place + 1
        number += count
        start += len(chunk)
        end = chunk[-1:]
    count = number - 1 if end == b"\n" else number
    raise ToolError(f"{path} has only {count:,} lines")
