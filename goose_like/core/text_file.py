"""Text files: decode bytes to text with plain newlines, and encode edited text with the same encoding and newlines."""

import codecs
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from goose_like.core.dataclass import dataclass
from goose_like.core.pattern import compile_later

from .tool import ToolError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NEWLINE = compile_later("(?<!\r)\r++\n")  # linear also for many \r without \n, as in the output of progress bars
_BINARY = compile_later("[\0-\x07\x0e-\x1a\x1c-\x1f]")
_KANA = compile_later("[\u3001\u3002\u3041-\u30fe]")
_MIN_KANA_SHARE = 1 / 3
_LABELS = {"cp932": "Shift-JIS", "cp1252": "Windows-1252", "latin-1": "Latin-1"}
_UNKNOWN = "unknown 8-bit encoding"


@dataclass(frozen=True, slots=True)
class TextFile:
    r"""A decoded text file. `exact` is its text; `shown` is the same text with all newlines as \n, for a model.

    `is_guess`: the bytes do not tell the encoding, and `encoding` is only one in which every byte is a letter.
    """

    exact: str = ""
    encoding: str = "utf-8"
    bom: bytes = b""
    is_guess: bool = False

    @classmethod
    def decode(cls, data: bytes, encoding: str = "") -> "TextFile | None":
        """Decode text with a known encoding, else with the one that its bytes tell. Return None for binary data.

        Bytes tell UTF-8, UTF-16 with a BOM, and Shift-JIS with kana. Anything else is shown as Windows-1252 or, if a
        byte has no letter there, as Latin-1; both are guesses.

        Raises:
            ToolError: `encoding` is unknown, or not the encoding of this text.
        """
        if encoding:
            return cls._decode_as(data, encoding)
        bom = b""
        encoding = "utf-8"
        for known_bom, name in _BOMS:
            if data.startswith(known_bom):
                bom = known_bom
                encoding = name
        try:
            exact = data[len(bom) :].decode(encoding)
        except UnicodeDecodeError:
            return cls._decode_bytes(data)
        if "\0" in exact:
            return None
        return cls(exact, encoding, bom)

    @classmethod
    def _decode_as(cls, data: bytes, encoding: str) -> "TextFile | None":
        codec = find_codec(encoding)
        told = None
        if not data.isascii():
            told = cls.decode(data)
        if told and not told.is_guess and told.encoding != "cp932":
            if codec in (told.encoding, told.encoding[:6]):  # utf-16 stands for both orders of bytes
                return told
            raise ToolError(f"the text is {told.encoding}, not {encoding}; leave `encoding` out")
        try:
            exact = data.decode(codec)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ToolError(f"the text is not {encoding}: its line {line} has other bytes; try another one") from error
        if "\0" in exact:
            return None
        if exact.encode(codec, errors="replace") != data:
            raise ToolError(f"some bytes would not stay the same in {encoding}; try another one")
        return cls(exact, codec)

    @classmethod
    def _decode_bytes(cls, data: bytes) -> "TextFile | None":
        """Decode bytes that are not Unicode."""
        if _BINARY.search(data.decode("latin-1")):
            return None
        japanese = _try_decoding(data, "cp932")
        if japanese is not None and _is_japanese(japanese):
            return cls(japanese, "cp932")
        exact = _try_decoding(data, "cp1252")
        if exact is None:
            return cls(data.decode("latin-1"), "latin-1", is_guess=True)
        return cls(exact, "cp1252", is_guess=True)

    def encode(self) -> bytes:
        """Encode the text with the file's encoding.

        Raises:
            ToolError: the encoding lacks a character of the text.
        """
        try:
            return self.bom + self.exact.encode(self.encoding)
        except UnicodeEncodeError as error:
            wrong = self.exact[error.start]
            if "\ud800" <= wrong <= "\udfff":
                raise ToolError(
                    f"the text holds half a character ({wrong!a}); send it whole or leave it out"
                ) from error
            name = _LABELS.get(self.encoding, self.encoding)
            raise ToolError(f"the file is {name}, which has no {wrong!r}; use another character") from error

    def find_foreign_letter(self, shown: str) -> str:
        """Find a letter of a new text whose byte is uncertain: in a guessed encoding, one that the file does not hold.

        Return an empty string if there is none.
        """
        if not self.is_guess or shown.isascii():
            return ""
        held = set(self.exact)
        for letter in shown:
            if not letter.isascii() and letter not in held:
                return letter
        return ""

    @property
    def encoding_note(self) -> str:
        """A note for readers about the encoding; empty for UTF-8."""
        if self.encoding == "utf-8":
            return ""
        name = _LABELS.get(self.encoding, self.encoding)
        if self.is_guess:
            return f"{_UNKNOWN}, shown as {name}"
        return name

    @property
    def shown(self) -> str:
        r"""The text with all newlines as \n."""
        return normalize_newlines(self.exact)

    @property
    def newline(self) -> str:
        """The newline that most lines end with."""
        crlf_count = self.exact.count("\r\n")
        lf_count = self.exact.count("\n") - crlf_count
        return "\r\n" if crlf_count > lf_count else "\n"

    def with_all(self, shown: str) -> "TextFile":
        """Return the file with all text replaced, in the same encoding and with the same newlines."""
        exact = shown
        if self.newline == "\r\n":
            exact = normalize_newlines(shown).replace("\n", "\r\n")
        return replace(self, exact=exact)

    def with_part(self, start: int, end: int, shown: str) -> "TextFile":
        """Return the file with `shown[start:end]` replaced. All other bytes stay, even with mixed newlines."""
        return self.with_parts([(start, end)], shown)

    def with_parts(self, places: Sequence[tuple[int, int]], shown: str) -> "TextFile":
        """Return the file with the same text at several places of `shown`, which are sorted and do not overlap."""
        # For every \r that `shown` leaves out: the position in `shown` that it comes before.
        left_out: list[int] = []
        for match in _NEWLINE.finditer(self.exact):
            position = match.start() - len(left_out)
            count = len(match[0]) - 1
            left_out += [position] * count
        new = shown.replace("\n", self.newline)
        parts: list[str] = []
        kept = 0
        for start, end in places:
            first = start + bisect_left(left_out, start)
            parts += [self.exact[kept:first], new]
            kept = end + bisect_left(left_out, end)
        parts.append(self.exact[kept:])
        return replace(self, exact="".join(parts))


def create_text(shown: str, encoding: str = "") -> TextFile:
    """Create the text of a new file.

    Raises:
        ToolError: the encoding is unknown.
    """
    codec = find_codec(encoding) if encoding else "utf-8"
    return TextFile(shown, codec)


def normalize_newlines(text: str) -> str:
    r"""Convert all newlines to \n, including \r\r\n from a file that was converted twice."""
    return _NEWLINE.sub("\n", text)


def split_lines(text: str) -> list[str]:
    r"""Split into lines as editors and `rg -n` do: at \n only, without an empty line at the end."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def take_fitting(wanted: list[str], limit_bytes: int) -> list[str]:
    """Take as many lines from the start as fit. If not even the first line fits, cut it."""
    room = limit_bytes
    for index, line in enumerate(wanted):
        data = line.encode(errors="replace")
        room -= len(data) + 1
        if room >= 0:
            continue
        if index > 0:
            return wanted[:index]
        return [data[:limit_bytes].decode(errors="ignore")]
    return wanted


def find_codec(encoding: str) -> str:
    """Return Python's name of an encoding. Shift-JIS is read as Windows does, with its additional characters."""
    try:
        name = codecs.lookup(encoding.strip()).name
        "".encode(name)  # refuses codecs that convert no text, such as `hex`
    except (LookupError, ValueError) as error:
        text = f"there is no encoding {encoding!r}; name one of Python's, such as latin-1, cp1252 or shift_jis"
        raise ToolError(text) from error
    names = {"shift_jis": "cp932", "iso8859-1": "latin-1"}
    return names.get(name, name)


def _try_decoding(data: bytes, encoding: str) -> str | None:
    """Decode bytes strictly. Return None if the bytes would not stay the same in this encoding."""
    try:
        text = data.decode(encoding)
        is_same = text.encode(encoding) == data
    except UnicodeError:
        return None
    return text if is_same else None


def _is_japanese(text: str) -> bool:
    """Check whether kana, which stand in any longer Japanese text, are frequent and some stand side by side."""
    wide = sum(not letter.isascii() for letter in text)
    kana = _KANA.findall(text)
    has_pair = re.search(f"{_KANA.pattern}{{2}}", text) is not None
    return has_pair and len(kana) >= wide * _MIN_KANA_SHARE
