"""Pictures in terminals that can show them: the protocols of kitty and iTerm2, and sixel."""

import io
import os
import re
import stat
from base64 import b64encode
from collections.abc import Iterator, Mapping
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
_END = "\x1b\\"


def find_protocol(variables: Mapping[str, str]) -> Protocol | None:
    """Find the protocol of the terminal that these variables describe; None if it is not known to show pictures."""
    term, program = variables.get("TERM", ""), variables.get("TERM_PROGRAM", "")
    if variables.get("TMUX") or term.startswith(("screen", "tmux", "dumb")):  # the terminal around it is not reached
        return None
    if variables.get("KITTY_WINDOW_ID") or term in ("xterm-kitty", "xterm-ghostty"):
        return "kitty"
    if program in ("iTerm.app", "WezTerm"):
        return "iterm2"
    return "sixel" if term.startswith(("foot", "mlterm")) or "sixel" in term else None


def read_pictures(result: ToolResult) -> Iterator[bytes]:
    """Read the pictures of a result: the figures that its text names, and its images. Those that are gone are left out.

    The text may come from a command, so other files than images are left out.
    """
    paths = [*_FIGURE.findall(result.output), *(image.source for image in result.images)]
    for path in dict.fromkeys(paths):
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
    is_png = detect_media_type(data) == "image/png"
    columns = min(room, -(-int.from_bytes(data[16:20], "big") // _COLUMN_PIXELS) if is_png else room)
    if protocol == "sixel":
        return _encode_sixel(data)
    text = b64encode(data).decode()
    if protocol == "iterm2":
        return f"\x1b]1337;File=inline=1;size={len(data)};width={columns}:{text}{_END}"
    if not is_png:
        return ""
    chunks = [text[start : start + _KITTY_CHUNK] for start in range(0, len(text), _KITTY_CHUNK)]
    heads = [f"a=T,f=100,q=2,c={columns},m=1", *["m=1"] * (len(chunks) - 1)]
    heads[-1] = heads[-1].replace("m=1", "m=0")
    return "".join(f"\x1b_G{head};{chunk}{_END}" for head, chunk in zip(heads, chunks, strict=True))


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
    pixels, palette = picture.tobytes(), picture.getpalette() or []
    shares = [round(value / 2.55) for value in palette]
    parts = [f'\x1bPq"1;1;{width};{height}']
    parts += [f"#{at};2;{';'.join(map(str, shares[3 * at : 3 * at + 3]))}" for at in range(len(shares) // 3)]
    for top in range(0, height, 6):  # a character holds six rows of one column, one bit each
        rows = [pixels[row * width : (row + 1) * width] for row in range(top, min(top + 6, height))]
        lines = []
        for color in sorted(set().union(*rows)):
            bits = 0
            for number, row in enumerate(rows):
                marks = bytes(color) + bytes([1 << number]) + bytes(255 - color)
                bits |= int.from_bytes(row.translate(marks), "big")
            line = "".join(chr(63 + value) for value in bits.to_bytes(width, "big"))
            lines.append(f"#{color}" + re.sub(r"(.)\1{3,}", lambda run: f"!{len(run[0])}{run[1]}", line))
        parts.append("$".join(lines) + "-")
    return "".join(parts) + _END
