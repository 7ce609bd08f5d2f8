"""Text that a terminal shows and never obeys: invisible characters are written out."""

import re
import unicodedata
from typing import TextIO

from goose_like.core.pattern import compile_later

# All but tabs and line ends.
_CONTROLS = (
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
)
_SEPARATORS_AND_DIRECTIONS = (
    *(0x061C, 0x200B, 0x200E, 0x200F),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
# Characters that text may have, that no terminal shows, and that can carry a hidden text: soft hyphens, invisible
# operators, the byte order mark, tags and the variation selectors beyond those of emoji.
_HIDDEN = (
    *(0x00AD, 0x180E, 0xFEFF),
    *range(0x2060, 0x2066),
    *range(0x206A, 0x2070),
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
)
# Characters that look like nothing although they are neither controls nor spaces: fillers, variation selectors and the
# blank of Braille.
_BLANKS = (
    range(0x034F, 0x0350),
    range(0x115F, 0x1161),
    range(0x17B4, 0x17B6),
    range(0x180B, 0x1810),
    range(0x2800, 0x2801),
    range(0x3164, 0x3165),
    range(0xFE00, 0xFE10),
    range(0xFFA0, 0xFFA1),
    range(0xE0000, 0xE1000),
)
_INVISIBLE_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"))
_GAP = compile_later(r"[ \t]{40,}|\n{6,}")


def _escape_code(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


_NON_TEXT_CODES = (*_CONTROLS, *_SEPARATORS_AND_DIRECTIONS)
_ESCAPES = {code: _escape_code(code) for code in (*_NON_TEXT_CODES, *_HIDDEN)}
_ESCAPES[0x00AD] = r"\u00ad"  # as the other hidden characters
# Text has carriage returns and colours. Bytes that are no text were read as U+FFFD.
NON_TEXT = {*map(chr, _NON_TEXT_CODES), "\ufffd"} - {"\r", "\x1b"}
"""Characters that binary output has and text does not."""


def escape_controls(text: str) -> str:
    """Write out control, direction and hidden characters, so that a terminal shows them and does not obey them."""
    return text.replace("\r\n", "\n").translate(_ESCAPES)


def escape_for(stream: TextIO, text: str) -> str:
    """Write out control and direction characters if the stream is a terminal. A pipe gets the text as it is."""
    return escape_controls(text) if stream.isatty() else text


def escape_invisible(text: str) -> str:
    r"""Write out every character that is invisible or looks like another one.

    Use it for text that a person is asked to allow: no zero-width character, no unusual space and no long gap can hide
    anything. The only line end is \\n.
    """
    visible = "".join(map(_make_visible, text))
    return _GAP.sub(_describe_gap, visible)


def _make_visible(character: str) -> str:
    return character if _is_plain(character) else _escape_code(ord(character))


def _is_plain(character: str) -> bool:
    """Return whether a character is visible, or a plain space or line end."""
    if character in " \n\t":
        return True
    if unicodedata.category(character) in _INVISIBLE_CATEGORIES:
        return False
    return not any(ord(character) in blank for blank in _BLANKS)


def _describe_gap(gap: re.Match[str]) -> str:
    text = gap[0]
    if text.startswith("\n"):
        return f"\n[{len(text):,} line ends]\n"
    return f" [{len(text):,} blanks] "


def measure_width(line: str) -> int:
    """Return the columns of a line without controls."""
    if line.isascii():
        return len(line)
    from rich.cells import cell_len  # imported here: most lines do not need its table of widths

    return cell_len(line)


def to_one_line(text: str, width: int = 100) -> str:
    """Return the text as one line of at most `width` columns."""
    words = escape_controls(text[: 20 * width]).split()
    return cut_line(" ".join(words), width)


def cut_line(line: str, width: int) -> str:
    """Cut a line without controls to at most `width` columns. Blanks stay, and tabs become blanks."""
    line = line.expandtabs()
    width = max(width, 1)
    if measure_width(line) <= width:
        return line
    if line.isascii():
        return line[: width - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(line, width - 1) + "…"
