"""Markdown that is still being written: what is final is given once, and only the open end is drawn again."""

import copy
import re
from collections.abc import Sequence

from rich.console import RenderableType

from .escape import visible
from .highlight import Code
from .markdown_block import LIMIT, Block, blocks, plain
from .wrap import Row, Rows, last_fold_start, last_row_start

_EMPTY_LINE = re.compile(r"(?:\A|\n)[ \t]*\n")
# What may still become anything: a rule, an item, the line under a heading or under a table's.
_ONLY_MARKS = re.compile(r"[ \t>#=*_+~`|:.)\d-]*")
_FENCE = re.compile("```|~~~")


class MarkdownStream:
    """The words of one answer as they come: rows to print above, once, and rows of the open end to draw again below.

    Final is each block but the last, of a list each item but the last, of a block of code each whole line. The rows of
    every `take` and of `finish` are together those of the whole text given at once. The one exception is an open
    block of more than `LIMIT` characters: as far as the next empty line it is shown as it was written.
    """

    def __init__(self) -> None:
        self._new: list[str] = []
        self._text = ""  # from the beginning of the open block on
        self._has_new_lines = False
        # What the open block goes on from: the first line of a fence, or an item in the place of those before.
        self._head = ""
        self._number: int | None = None  # of that item
        self._code: Code | None = None  # of that fence
        self._is_plain = False
        self._is_begun = False
        self._is_block_begun = False

    def feed(self, text: str) -> None:
        """Takes the next words; nothing else is done with them yet."""
        self._new.append(text)

    def take(self, width: int) -> list[RenderableType]:
        """What has become final since the last call, to be printed above."""
        self._read()
        rows = self._settle(width)
        while len(self._text) > LIMIT:
            self._give_up(width)
            rows += self._settle(width)
        return _printed(rows)

    def open(self, width: int, height: int) -> Rows:
        """The last rows of what is not final yet, at most `height` of them."""
        self._read()
        end = copy.copy(self)
        end._code = copy.copy(self._code)
        end._new = []
        if not self._is_plain:
            end._text = _tidy(self._text, is_code=self._code is not None)
        rows = end._rest(width)
        return Rows(tuple(rows[-height:] if height > 0 else ()))

    def finish(self, width: int) -> list[RenderableType]:
        """The rest, when the message has ended or was cut."""
        self._read()
        rows = self._settle(width) if self._is_plain else []
        rows += self._rest(width)
        self._text = self._head = ""
        self._code = None
        return _printed(rows)

    def _read(self) -> None:
        """Looks at what was fed. A carriage return waits for what follows: it may be half of a line end."""
        new = "".join(self._new)
        waits = new.endswith("\r")
        self._new = ["\r"] if waits else []
        new = visible(new.removesuffix("\r"))
        self._has_new_lines |= "\n" in new
        self._text += new

    def _settle(self, width: int) -> list[Row]:
        """Draws what is final and forgets it."""
        rows = self._poured(width) if self._is_plain else []
        if self._is_plain or not self._has_new_lines:
            return rows
        self._has_new_lines = False
        source = self._head + self._text[: self._text.rfind("\n") + 1]
        found = self._blocks(source)
        if not found:
            self._text = self._text[self._text.rfind("\n") + 1 :]
            return rows
        *final, last = found
        for block in final:
            rows += self._finished(block, width)
        number, head, ends = None, "", last.start
        if last.is_closed:
            rows += self._finished(last, width)
            ends = last.end
        elif last.is_fence:
            rows += self._drawn(last, width)
            head, ends = last.stub, last.start + 1 + len(last.code)
        elif last.is_next and not final:
            return rows
        elif last.is_next:
            head, number = final[-1].stub + "\n" * last.is_spaced, final[-1].number
        self._cut(last.lines, ends)
        self._head, self._number = head, number
        return rows

    def _give_up(self, width: int) -> None:
        """Goes on without an open block that has become too long; of code only the line is ended."""
        if self._code:
            at = last_fold_start(self._text, max(width - 2, 2)) or LIMIT
            self._text = f"{self._text[:at]}\n{self._text[at:]}"
            self._has_new_lines = True
        else:
            self._is_plain, self._head, self._number = True, "", None
            self._text = self._text.lstrip("\n")

    def _poured(self, width: int) -> list[Row]:
        """The rows of a block that was given up, but for its last one."""
        if found := _EMPTY_LINE.search(self._text):
            body, self._text = self._text[: found.start()], self._text[found.end() :]
            rows = self._spaced(plain(body, width) if body else [])
            self._is_plain, self._has_new_lines = False, True
            self._end_block()
            return rows
        line = self._text.rfind("\n") + 1
        at = line + last_row_start(self._text[line:], width)
        if len(self._text) - at > LIMIT:  # of characters without width a row never ends
            at = len(self._text)
        body, self._text = self._text[:at], self._text[at:]
        return self._spaced(plain(body.removesuffix("\n"), width)) if body else []

    def _rest(self, width: int) -> list[Row]:
        """All that is there, as if the text ended here."""
        if self._is_plain:
            return self._spaced(plain(self._text, width)) if self._text else []
        return [row for block in self._blocks(self._head + self._text) for row in self._finished(block, width)]

    def _blocks(self, source: str) -> list[Block]:
        """The blocks of a source without the one that stands for what is printed already."""
        return blocks(source, self._number)[bool(self._head and not self._code) :]

    def _cut(self, lines: Sequence[str], count: int) -> None:
        """Forgets so many lines, those of the head among them."""
        self._text = self._text[sum(len(line) + 1 for line in lines[:count]) - len(self._head) :]

    def _finished(self, block: Block, width: int) -> list[Row]:
        rows = self._drawn(block, width)
        self._end_block()
        return rows

    def _drawn(self, block: Block, width: int) -> list[Row]:
        if not block.is_fence:
            return self._spaced(block.rows(width), block.is_spaced)
        self._code = self._code or Code(block.language)
        return self._spaced(self._code.rows(block.code, width))

    def _spaced(self, rows: list[Row], is_spaced: bool = True) -> list[Row]:
        """The rows, after an empty one if they begin a block that is not the first."""
        gap = is_spaced and self._is_begun and not self._is_block_begun
        if rows:
            self._is_begun = self._is_block_begun = True
        return [[], *rows] if rows and gap else rows

    def _end_block(self) -> None:
        self._is_block_begun = False
        self._code = None


def _tidy(text: str, *, is_code: bool) -> str:
    """The open end without marks that wait for their other half, so that it does not change its look twice."""
    line = text.rfind("\n") + 1
    if _ONLY_MARKS.fullmatch(text, line):
        return text[:line]
    start = text.rfind("\n\n") + 1
    if is_code or _FENCE.search(text, start):
        return text
    text = text.rstrip("*_~` ")
    for mark in ("`", "**", "~~"):
        if text.count(mark, start) % 2:
            return text + mark
    return text


def _printed(rows: list[Row]) -> list[RenderableType]:
    return [Rows(tuple(rows))] if rows else []
