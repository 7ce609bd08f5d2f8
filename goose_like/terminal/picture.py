"""Pictures in terminals that can show them: the protocols of kitty and iTerm2, and sixel."""

import io
import math
import os
import re
import stat
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from goose_like.core.images import MAX_IMAGE_BYTES, detect_media_type
from goose_like.core.message import ToolResult

Protocol = Literal["kitty", "iterm2", "sixel"]

_FIGURE = re.compile(r"^\[figure: (.+)\]$", re.MULTILINE)
_KITTY_CHUNK = 4096
_COLUMN_PIXELS = 10
_SIXEL_SIZE = 640, 480
_SIXEL_COLORS = 64
_SIXEL_ROWS = 6
"""The rows of a band: a character holds those of one column, one bit each."""
_RUN = re.compile(r"(.)\1{3,}")
_END = "\x1b\\"


def find_protocol(variables: Mapping[str, str]) -> Protocol | None:
    """Find the protocol of the terminal that these variables describe; None if it is not known to show pictures."""
    term = variables.get("TERM", "")
    program = variables.get("TERM_PROGRAM", "")
    if variables.get("TMUX") or term.startswith(("screen", "tmux", "dumb")):  # the terminal around it is not reached
        return None
    if variables.get("KITTY_WINDOW_ID") or term in ("xterm-kitty", "xterm-ghostty"):
        return "kitty"
    if program in ("iTerm.app", "WezTerm"):
        return "iterm2"
    if term.startswith(("foot", "mlterm")) or "sixel" in term:
        return "sixel"
    return None


def read_pictures(result: ToolResult) -> Iterator[bytes]:
    """Read the pictures of a result: the figures that its text names, and its images. Those that are gone are left out.

    The text may come from a command, so other files than images are left out.
    """
    figures = _FIGURE.findall(result.output)
    images = [image.source for image in result.images]
    for path in dict.fromkeys([*figures, *images]):
        with suppress(OSError, ValueError), open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_IMAGE_BYTES:
                data = file.read()
                if detect_media_type(data):
                    yield data


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe would wait for a writer


def encode_picture(data: bytes, protocol: Protocol, room: int) -> str:
    """Encode an image as control sequences, at most `room` columns wide; empty if the protocol cannot show it."""
    if protocol == "sixel":
        return _encode_sixel(data)
    is_png = detect_media_type(data) == "image/png"
    columns = room
    if is_png:
        width = int.from_bytes(data[16:20], "big")
        columns = min(room, math.ceil(width / _COLUMN_PIXELS))
    if protocol == "iterm2":
        text = b64encode(data).decode()
        return f"\x1b]1337;File=inline=1;size={len(data)};width={columns}:{text}{_END}"
    if not is_png:
        return ""
    return _encode_kitty(data, columns)


def _encode_kitty(data: bytes, columns: int) -> str:
    """Encode in chunks; `m=1` says that another one follows."""
    text = b64encode(data).decode()
    keys = f"a=T,f=100,q=2,c={columns},"
    parts = []
    for start in range(0, len(text), _KITTY_CHUNK):
        chunk = text[start : start + _KITTY_CHUNK]
        has_more = start + _KITTY_CHUNK < len(text)
        parts.append(f"\x1b_G{keys}m={int(has_more)};{chunk}{_END}")
        keys = ""
    return "".join(parts)


def _encode_sixel(data: bytes) -> str:
    """Encode with Pillow, which comes with matplotlib; empty without it, or if it cannot read the image."""
    try:
        from PIL import Image

        picture = Image.open(io.BytesIO(data)).convert("RGB")
        picture.thumbnail(_SIXEL_SIZE)
        picture = picture.quantize(_SIXEL_COLORS)
    except (ImportError, OSError, ValueError):
        return ""
    width, height = picture.size
    pixels = picture.tobytes()
    rows = [pixels[start : start + width] for start in range(0, len(pixels), width)]
    parts = [f'\x1bPq"1;1;{width};{height}', *_encode_palette(picture.getpalette() or [])]
    for top in range(0, height, _SIXEL_ROWS):
        band = rows[top : top + _SIXEL_ROWS]
        lines = [_encode_color(band, color) for color in sorted(set().union(*band))]
        parts.append("$".join(lines) + "-")
    return "".join(parts) + _END


def _encode_palette(palette: Sequence[int]) -> Iterator[str]:
    """Yield the definition of each color. Its red, green and blue are shares in percent."""
    shares = [round(value / 2.55) for value in palette]
    for color in range(len(shares) // 3):
        red, green, blue = shares[3 * color : 3 * color + 3]
        yield f"#{color};2;{red};{green};{blue}"


def _encode_color(band: Sequence[bytes], color: int) -> str:
    """Return the characters that draw the pixels of one color in a band."""
    bits = 0
    for number, row in enumerate(band):
        marks = bytearray(256)
        marks[color] = 1 << number
        bits |= int.from_bytes(row.translate(marks), "big")
    width = len(band[0])
    line = "".join(chr(63 + value) for value in bits.to_bytes(width, "big"))
    return f"#{color}{_RUN.sub(_shorten_run, line)}"


def _shorten_run(run: re.Match[str]) -> str:
    return f"!{len(run[0])}{run[1]}"
