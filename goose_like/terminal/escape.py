"""Text that a terminal shows and never obeys: what one does not see of it is written out."""

import re
import unicodedata

from rich.text import Text as Styled

_SHOWN = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)] if chr(code) not in "\n\t"}
_SEPARATORS_AND_DIRECTIONS = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_SHOWN |= {code: f"\\u{code:04x}" for code in _SEPARATORS_AND_DIRECTIONS}
NO_TEXT = {chr(code) for code in _SHOWN} - {"\r", "\x1b"} | {"\ufffd"}

# Of the characters that are neither controls nor spaces those that show as nothing: fillers, variation selectors, the
# blank of Braille.
_BLANKS = (
    *(range(code, code + 1) for code in (0x034F, 0x2800, 0x3164, 0xFFA0)),
    *(range(0x115F, 0x1161), range(0x17B4, 0x17B6), range(0x180B, 0x1810), range(0xFE00, 0xFE10)),
    range(0xE0000, 0xE1000),
)
_GAP = re.compile(r"[ \t]{40,}|\n{6,}")


def visible(text: str) -> str:
    """The text with control and direction characters written out, so that a terminal shows instead of obeys them."""
    return text.replace("\r\n", "\n").translate(_SHOWN)


def exact(text: str) -> str:
    """The text with everything written out that one does not see or would take for something else.

    For what a person is asked to allow: no zero-width or tag character, no look-alike of a space, no long gap hides
    anything. Of line ends only \\n is one.
    """
    return _GAP.sub(_gap, "".join(one if _is_plain(one) else _written_out(ord(one)) for one in text))


def _is_plain(character: str) -> bool:
    """A letter, digit, sign, accent or space that is what it looks like."""
    if character in " \n\t":
        return True
    is_blank = any(ord(character) in blank for blank in _BLANKS)
    return not is_blank and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")


def _written_out(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _gap(found: re.Match[str]) -> str:
    size = f"{len(found[0]):,}"
    return f"\n[{size} line ends]\n" if found[0][0] == "\n" else f" [{size} blanks] "


def one_line(text: str, width: int = 100) -> str:
    """The text as one line of at most `width` columns."""
    line = Styled(" ".join(visible(text[: 20 * width]).split()))
    line.truncate(max(width, 1), overflow="ellipsis")
    return line.plain
