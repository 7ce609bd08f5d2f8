"""Streaming Markdown: final text is printed once, and only the open end is drawn again."""

import copy
import re
from collections.abc import Sequence

from rich.console import RenderableType

from .escape import escape_controls
from .highlight import CodeHighlighter
from .markdown_block import LIMIT_CHARACTERS, Block, render_plain, split_blocks
from .wrap import Row, Rows, find_last_fold, find_last_row

_EMPTY_LINE = re.compile(r"(?:\A|\n)[ \t]*\n")
# A line of marks only can still become a rule, an item, or the line below a heading.
_ONLY_MARKS = re.compile(r"[ \t>#=*_+~`|:.)\d-]*")
_FENCE = re.compile("```|~~~")


class MarkdownStream:
    """One answer as it arrives: final rows to print once, and rows of the open end to draw again and again.

    Final are all blocks but the last, all items of a list but the last, and each whole line of code. The rows of every
    `take_final` and of `finish` together equal the rows of the whole text. One exception: an open block of more than
    `LIMIT_CHARACTERS` is shown as it was written, up to the next empty line.
    """

    def __init__(self) -> None:
        self._new: list[str] = []
        self._text = ""  # from the start of the open block
        self._has_new_lines = False
        # A line before the open block that is printed already: the first line of a fence, or the item before.
        self._head = ""
        self._number: int | None = None  # number of that item
        self._code: CodeHighlighter | None = None  # colours of that fence
        self._is_unparsed = False
        self._has_rows = False
        self._has_block_rows = False

    def feed(self, text: str) -> None:
        """Store the next text; it is parsed when rows are needed."""
        self._new.append(text)

    def take_final(self, width: int) -> list[RenderableType]:
        """Return the rows that have become final since the last call."""
        self._parse_input()
        rows = self._settle(width)
        while len(self._text) > LIMIT_CHARACTERS:
            self._give_up(width)
            rows += self._settle(width)
        return _make_renderables(rows)

    def render_open(self, width: int, height: int) -> Rows:
        """Return the last rows of the open end, at most `height`."""
        self._parse_input()
        end = copy.copy(self)
        end._code = copy.copy(self._code)
        end._new = []
        if not self._is_unparsed:
            end._text = _tidy(self._text, is_code=self._code is not None)
        rows = end._render_rest(width)
        return Rows(tuple(rows[-height:] if height > 0 else ()))

    def finish(self, width: int) -> list[RenderableType]:
        """Return the rest when the message has ended."""
        self._parse_input()
        rows = self._settle(width) if self._is_unparsed else []
        rows += self._render_rest(width)
        self._text = self._head = ""
        self._code = None
        return _make_renderables(rows)

    def _parse_input(self) -> None:
        """Read the stored text. A carriage return at its end waits: it can be half of a line end."""
        new = "".join(self._new)
        waits = new.endswith("\r")
        self._new = ["\r"] if waits else []
        new = escape_controls(new.removesuffix("\r"))
        self._has_new_lines |= "\n" in new
        self._text += new

    def _settle(self, width: int) -> list[Row]:
        """Return the rows that are final now and drop their text."""
        rows = self._take_unparsed(width) if self._is_unparsed else []
        if self._is_unparsed or not self._has_new_lines:
            return rows
        self._has_new_lines = False
        source = self._head + self._text[: self._text.rfind("\n") + 1]
        blocks = self._split_blocks(source)
        if not blocks:
            self._text = self._text[self._text.rfind("\n") + 1 :]
            return rows
        *final, last = blocks
        for block in final:
            rows += self._finish_block(block, width)
        number, head, ends = None, "", last.start
        if last.is_closed:
            rows += self._finish_block(last, width)
            ends = last.end
        elif last.is_fence:
            rows += self._render_block(last, width)
            head, ends = last.stub, last.start + 1 + len(last.code)
        elif last.is_next and not final:
            return rows
        elif last.is_next:
            head, number = final[-1].stub + "\n" * last.is_spaced, final[-1].number
        self._drop_lines(last.lines, ends)
        self._head, self._number = head, number
        return rows

    def _give_up(self, width: int) -> None:
        """Stop parsing an open block that has become too long; in code end only the line."""
        if self._code:
            at = find_last_fold(self._text, max(width - 2, 2)) or LIMIT_CHARACTERS
            self._text = f"{self._text[:at]}\n{self._text[at:]}"
            self._has_new_lines = True
        else:
            self._is_unparsed, self._head, self._number = True, "", None
            self._text = self._text.lstrip("\n")

    def _take_unparsed(self, width: int) -> list[Row]:
        """Return the rows of an unparsed block, except its last row."""
        if gap := _EMPTY_LINE.search(self._text):
            body, self._text = self._text[: gap.start()], self._text[gap.end() :]
            rows = self._add_space(render_plain(body, width) if body else [])
            self._is_unparsed, self._has_new_lines = False, True
            self._end_block()
            return rows
        line = self._text.rfind("\n") + 1
        at = line + find_last_row(self._text[line:], width)
        if len(self._text) - at > LIMIT_CHARACTERS:  # a row of characters without width never ends
            at = len(self._text)
        body, self._text = self._text[:at], self._text[at:]
        return self._add_space(render_plain(body.removesuffix("\n"), width)) if body else []

    def _render_rest(self, width: int) -> list[Row]:
        """Return all rows as if the text ended here."""
        if self._is_unparsed:
            return self._add_space(render_plain(self._text, width)) if self._text else []
        blocks = self._split_blocks(self._head + self._text)
        return [row for block in blocks for row in self._finish_block(block, width)]

    def _split_blocks(self, source: str) -> list[Block]:
        """Return the blocks of a source without the block that is printed already."""
        return split_blocks(source, self._number)[bool(self._head and not self._code) :]

    def _drop_lines(self, lines: Sequence[str], count: int) -> None:
        """Drop so many lines, including the lines of the head."""
        self._text = self._text[sum(len(line) + 1 for line in lines[:count]) - len(self._head) :]

    def _finish_block(self, block: Block, width: int) -> list[Row]:
        rows = self._render_block(block, width)
        self._end_block()
        return rows

    def _render_block(self, block: Block, width: int) -> list[Row]:
        if not block.is_fence:
            return self._add_space(block.render(width), block.is_spaced)
        self._code = self._code or CodeHighlighter(block.language)
        return self._add_space(self._code.render_lines(block.code, width))

    def _add_space(self, rows: list[Row], is_spaced: bool = True) -> list[Row]:
        """Return the rows, with an empty row before a block that is not the first."""
        gap = is_spaced and self._has_rows and not self._has_block_rows
        if rows:
            self._has_rows = self._has_block_rows = True
        return [[], *rows] if rows and gap else rows

    def _end_block(self) -> None:
        self._has_block_rows = False
        self._code = None


def _tidy(text: str, *, is_code: bool) -> str:
    """Close or drop marks without a partner, so that the open end does not flicker."""
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


def _make_renderables(rows: list[Row]) -> list[RenderableType]:
    return [Rows(tuple(rows))] if rows else []
