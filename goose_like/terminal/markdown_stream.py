"""Streaming Markdown: final text is printed once, and only the open end is drawn again."""

import copy
import re

from rich.containers import Lines
from rich.text import Text

from .escape import escape_controls
from .highlight import CodeHighlighter
from .markdown_block import Block, split_blocks

LIMIT_CHARACTERS = 20_000
"""A longer open block is ended, so that no frame takes long; code has no limit."""

# A line of marks only can still become a rule, an item, or the line below a heading.
_ONLY_MARKS = re.compile(r"[ \t>#=*_+~`|:.)\d-]*")
_FENCE = re.compile("```|~~~")


class MarkdownStream:
    """One answer as it arrives: final rows to print once, and rows of the open end to draw again and again.

    Final are all blocks but the last, all items of a list but the last, and each whole line of code. The rows of every
    `take_final` and of `finish` together equal the rows of the whole text, unless a block exceeds `LIMIT_CHARACTERS`.
    """

    def __init__(self) -> None:
        self._text = ""  # from the start of the open block
        self._held = ""
        self._has_new_lines = False
        # A line before the open block that is printed already: the first line of a fence, or the item before.
        self._head = ""
        self._number: int | None = None  # number of that item
        self._code: CodeHighlighter | None = None  # colours of that fence
        self._has_rows = False
        self._has_block_rows = False

    def feed(self, text: str) -> None:
        """Add the next text. A carriage return at its end waits: it can be half of a line end."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = escape_controls(text.removesuffix("\r"))
        self._has_new_lines |= "\n" in text
        self._text += text

    def take_final(self, width: int) -> Lines:
        """Return the rows that have become final since the last call."""
        rows = self._settle(width)
        while len(self._text) > LIMIT_CHARACTERS:
            rows += self._end_long_block(width)
        return Lines(rows)

    def render_open(self, width: int, height: int) -> Lines:
        """Return the last rows of the open end, at most `height`."""
        end = copy.copy(self)
        end._code = copy.copy(self._code)
        end._text = _tidy(self._text, is_code=self._code is not None)
        rows = end._render_rest(width)
        return Lines(rows[-height:] if height > 0 else ())

    def finish(self, width: int) -> Lines:
        """Return the rest when the message has ended."""
        rows = self._settle(width) + self._render_rest(width)
        self._text = self._head = ""
        return Lines(rows)

    def _settle(self, width: int) -> list[Text]:
        """Return the rows that are final now and drop their text."""
        rows: list[Text] = []
        if not self._has_new_lines:
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
        number, head, (end, next_start) = None, "", last.span
        if last.is_closed:
            rows += self._finish_block(last, width)
            end = next_start
        elif last.is_fence:
            rows += self._render_block(last, width)
            head, end = last.stub, end + 1 + len(last.code)
        elif last.is_next and not final:
            return rows
        elif last.is_next:
            head, number = final[-1].stub + "\n" * last.is_spaced, final[-1].number
        printed = sum(len(line) + 1 for line in last.lines[:end]) - len(self._head)
        self._text, self._head, self._number = self._text[printed:], head, number
        return rows

    def _end_long_block(self, width: int) -> list[Text]:
        """End the open block after a word; in code end only the line."""
        at = self._text.rfind(" ", 0, LIMIT_CHARACTERS) + 1 or LIMIT_CHARACTERS
        rest = self._text[at:]
        if self._code:
            self._text, rows = f"{self._text[:at]}\n{rest}", []
        else:
            self._text = self._text[:at]
            rows = self._render_rest(width)
            self._text, self._head, self._number = rest, "", None
        self._has_new_lines = True
        return rows + self._settle(width)

    def _render_rest(self, width: int) -> list[Text]:
        """Return all rows as if the text ended here."""
        blocks = self._split_blocks(self._head + self._text)
        return [row for block in blocks for row in self._finish_block(block, width)]

    def _split_blocks(self, source: str) -> list[Block]:
        """Return the blocks of a source without the block that is printed already."""
        return split_blocks(source, self._number)[bool(self._head and not self._code) :]

    def _finish_block(self, block: Block, width: int) -> list[Text]:
        rows = self._render_block(block, width)
        self._has_block_rows = False
        self._code = None
        return rows

    def _render_block(self, block: Block, width: int) -> list[Text]:
        """Return the rows of a block, or the next rows of code, with an empty row between two blocks."""
        if block.is_fence:
            self._code = self._code or CodeHighlighter(block.language)
            rows = self._code.render_lines(block.code, width)
        else:
            rows = block.render(width)
        gap = [Text()] if rows and block.is_spaced and self._has_rows and not self._has_block_rows else []
        self._has_rows |= bool(rows)
        self._has_block_rows |= bool(rows)
        return gap + rows


def _tidy(text: str, *, is_code: bool) -> str:
    """Close or drop marks without a partner, so that the open end does not flicker."""
    line = text.rfind("\n") + 1
    if _ONLY_MARKS.fullmatch(text, line):
        return text[:line]
    start = text.rfind("\n\n") + 1
    if is_code or _FENCE.search(text, start):
        return text
    text = text.rstrip("*_~` ")
    return text + next((mark for mark in ("`", "**", "~~") if text.count(mark, start) % 2), "")
