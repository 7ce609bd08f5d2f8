"""Text files: decode bytes to text with plain newlines, and encode edited text with the same encoding and newlines."""

import codecs
import re
from bisect import bisect_left
from dataclasses import dataclass, replace

from goose_like.toolkit import ToolError

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NEWLINE = re.compile("(?<!\r)\r++\n")  # linear also for many \r without \n, as in the output of progress bars
_BINARY = re.compile("[\0-\x07\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class TextFile:
    r"""A decoded text file. `exact` is its text; `shown` is the same text with all newlines as \n, for a model."""

    exact: str = ""
    encoding: str = "utf-8"
    bom: bytes = b""

    @classmethod
    def decode(cls, data: bytes) -> "TextFile | None":
        """Decode UTF-8, UTF-16 with a BOM, or else Latin-1, which accepts any byte. Return None for binary data."""
        bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", "utf-8"))
        try:
            exact = data[len(bom) :].decode(encoding)
        except UnicodeDecodeError:
            exact, encoding, bom = data.decode("latin-1"), "latin-1", b""
            if _BINARY.search(exact):
                return None
        return None if "\0" in exact else cls(exact, encoding, bom)

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
            raise ToolError(
                f"the file is {self.encoding} and has no {wrong!r}; use another character, or convert it to UTF-8 first"
            ) from error

    @property
    def shown(self) -> str:
        r"""The text with all newlines as \n."""
        return normalize_newlines(self.exact)

    @property
    def newline(self) -> str:
        """The newline that most lines end with."""
        crlf = self.exact.count("\r\n")
        return "\r\n" if crlf > self.exact.count("\n") - crlf else "\n"

    def with_all(self, shown: str) -> "TextFile":
        """Return the file with all text replaced, in the same encoding and with the same newlines."""
        return replace(self, exact=shown if self.newline == "\n" else normalize_newlines(shown).replace("\n", "\r\n"))

    def with_part(self, start: int, end: int, shown: str) -> "TextFile":
        """Return the file with `shown[start:end]` replaced. All other bytes stay, even with mixed newlines."""
        # For every \r that `shown` leaves out: the position in `shown` that it comes before.
        left_out: list[int] = []
        for match in _NEWLINE.finditer(self.exact):
            left_out += [match.start() - len(left_out)] * (len(match[0]) - 1)
        first, last = start + bisect_left(left_out, start), end + bisect_left(left_out, end)
        return replace(self, exact=self.exact[:first] + shown.replace("\n", self.newline) + self.exact[last:])


def normalize_newlines(text: str) -> str:
    r"""Convert all newlines to \n, including \r\r\n from a file that was converted twice."""
    return _NEWLINE.sub("\n", text)


def split_lines(text: str) -> list[str]:
    r"""Split into lines as editors and `rg -n` do: at \n only, without an empty line at the end."""
    parts = text.split("\n")
    return parts[:-1] if parts[-1] == "" else parts


def take_fitting(wanted: list[str], limit_bytes: int) -> list[str]:
    """Take as many lines from the start as fit. If not even the first line fits, cut it."""
    room = limit_bytes
    for index, line in enumerate(wanted):
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            return wanted[:index] or [line.encode(errors="replace")[:limit_bytes].decode(errors="ignore")]
    return wanted
