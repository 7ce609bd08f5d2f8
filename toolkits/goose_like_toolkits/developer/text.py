"""Text: a file's words without its BOM, encoding and newlines, and the bytes again with all three."""

import codecs
import re
from bisect import bisect_left
from dataclasses import dataclass, replace

from goose_like.toolkit import ToolError

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NEWLINE = re.compile("\r+\n")
_NO_TEXT = re.compile("[\0-\x07\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class Text:
    """`exact` is what the file holds; `shown` what a model reads, and writes: the same with every newline as \\n."""

    exact: str = ""
    encoding: str = "utf-8"
    mark: bytes = b""

    @classmethod
    def decode(cls, data: bytes) -> "Text | None":
        """UTF-8, UTF-16 that says so by its BOM, else Latin-1, which takes any byte; None for what is no text."""
        mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
        try:
            exact = data[len(mark) :].decode(encoding)
        except UnicodeDecodeError:
            exact, encoding, mark = data.decode("latin-1"), "latin-1", b""
            if _NO_TEXT.search(exact):
                return None
        return None if "\0" in exact else cls(exact, encoding, mark)

    def encode(self) -> bytes:
        """
        Raises:
            ToolError: a character that the file's encoding doesn't have.
        """
        try:
            return self.mark + self.exact.encode(self.encoding)
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
        return plain(self.exact)

    @property
    def newline(self) -> str:
        """The kind that most of its lines end with."""
        crlf = self.exact.count("\r\n")
        return "\r\n" if crlf > self.exact.count("\n") - crlf else "\n"

    def with_all(self, shown: str) -> "Text":
        """The same file with all of its words replaced."""
        return replace(self, exact=shown if self.newline == "\n" else plain(shown).replace("\n", "\r\n"))

    def with_part(self, start: int, end: int, shown: str) -> "Text":
        """`shown[start:end]` replaced; every byte outside of it stays, in a file of mixed newlines too."""
        # For every \r that `shown` leaves out: before which character of it.
        left_out: list[int] = []
        for match in _NEWLINE.finditer(self.exact):
            left_out += [match.start() - len(left_out)] * (len(match[0]) - 1)
        first, last = start + bisect_left(left_out, start), end + bisect_left(left_out, end)
        return replace(self, exact=self.exact[:first] + shown.replace("\n", self.newline) + self.exact[last:])


def plain(text: str) -> str:
    """Twice is as good as once, even where a file was converted twice and has \r\r\n."""
    return _NEWLINE.sub("\n", text)


def lines(text: str) -> list[str]:
    """The lines as editors and `rg -n` count them: by \\n alone, and without an empty one after the last."""
    parts = text.split("\n")
    return parts[:-1] if parts[-1] == "" else parts
