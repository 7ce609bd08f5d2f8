"""Text that a terminal shows and never obeys: invisible characters are written out."""

import re
import unicodedata
from typing import TextIO

_ESCAPES = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)] if chr(code) not in "\n\t"}
_SEPARATORS_AND_DIRECTIONS = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPES |= {code: f"\\u{code:04x}" for code in _SEPARATORS_AND_DIRECTIONS}
NON_TEXT = {chr(code) for code in _ESCAPES} - {"\r", "\x1b"} | {"\ufffd"}
"""Characters that binary output has and text does not."""

# Characters that text may have, that no terminal shows, and that can carry a hidden text: soft hyphens, invisible
# operators, the byte order mark, tags and the variation selectors beyond those of emoji.
_HIDDEN = (0x00AD, 0x180E, *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC))
_ESCAPES |= {code: f"\\u{code:04x}" for code in _HIDDEN}
_ESCAPES |= {code: f"\\U{code:08x}" for code in (*range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0))}

# Characters that look like nothing although they are neither controls nor spaces: fillers, variation selectors and the
# blank of Braille.
_BLANKS = (
    *(range(code, code + 1) for code in (0x034F, 0x2800, 0x3164, 0xFFA0)),
    *(range(0x115F, 0x1161), range(0x17B4, 0x17B6), range(0x180B, 0x1810), range(0xFE00, 0xFE10)),
    range(0xE0000, 0xE1000),
)
_GAP = re.compile(r"[ \t]{40,}|\n{6,}")


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
    return _GAP.sub(_describe_gap, "".join(one if _is_plain(one) else _escape_code(ord(one)) for one in text))


def _is_plain(character: str) -> bool:
    """Return whether a character is visible, or a plain space or line end."""
    if character in " \n\t":
        return True
    is_blank = any(ord(character) in blank for blank in _BLANKS)
    return not is_blank and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")


def _escape_code(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _describe_gap(gap: re.Match[str]) -> str:
    size = f"{len(gap[0]):,}"
    return f"\n[{size} line ends]\n" if gap[0][0] == "\n" else f" [{size} blanks] "


def measure_width(line: str) -> int:
    """Return the columns of a line without controls."""
    if line.isascii():
        return len(line)
    from rich.cells import cell_len  # imported here: most lines do not need its table of widths

    return cell_len(line)


def to_one_line(text: str, width: int = 100) -> str:
    """Return the text as one line of at most `width` columns."""
    return cut_line(" ".join(escape_controls(text[: 20 * width]).split()), width)


def cut_line(line: str, width: int) -> str:
    """Cut a line without controls to at most `width` columns. Blanks stay, and tabs become blanks."""
    line, width = line.expandtabs(), max(width, 1)
    if measure_width(line) <= width:
        return line
    if line.isascii():
        return line[: width - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(line, width - 1) + "…"
