"""Streaming Markdown: final text is printed once, and only the open end is drawn again."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .escape import escape_controls
from .markdown_block import Block, OpenFence, split_blocks, split_cells
from .rows import Rows

LIMIT_CHARACTERS = 20_000
"""A longer open block is ended, so that no frame takes long; code has no limit."""

# A line of marks only can still become a rule, an item, or the line below a heading.
_ONLY_MARKS = re.compile(r"[ \t>#=*_+~`|:.)\d-]*")


class MarkdownStream:
    """One answer as it arrives: final rows to print once, and rows of the open end to draw again and again.

    Final are all blocks but the last, all items of a list but the last, and each whole line of code. The rows of every
    `take_final` and of `finish` together equal the rows of the whole text, unless a block exceeds `LIMIT_CHARACTERS`.
    """

    def __init__(self) -> None:
        self._new: list[str] = []  # text since the last frame
        self._text = ""  # from the start of the open block
        self._has_new_lines = False
        self._head = _Head()
        self._fence: OpenFence | None = None  # then the text is code
        self._open: _OpenEnd | None = None
        self._has_rows = False
        self._has_block_rows = False

    def feed(self, text: str) -> None:
        """Add the next text."""
        self._new.append(text)

    def take_final(self, width: int) -> Rows:
        """Return the rows that have become final since the last call."""
        rows = self._settle(width)
        while len(self._text) > LIMIT_CHARACTERS:
            rows += self._end_long_block(width)
        return Rows(rows)

    def render_open(self, width: int, height: int) -> Rows:
        """Return the last rows of the text that `take_final` left open, at most `height`."""
        # These rows are not printed: they do not count for the next ones.
        has_rows = self._has_rows
        has_block_rows = self._has_block_rows
        rows = self._render_open_rows(width)
        self._has_rows = has_rows
        self._has_block_rows = has_block_rows
        hidden_count = max(len(rows) - height, 0)
        return Rows(rows[hidden_count:])

    def _render_open_rows(self, width: int) -> list[str]:
        if self._fence:
            line = _drop_marks(self._text)
            lines = [line] if line else []
            return self._add_rows(self._fence.render_open(lines, width))
        if self._open is None or not self._open.extend(self._text):
            at = self._text.rfind("\n") + 1
            source = self._text[:at] + _drop_marks(self._text[at:])
            self._open = _OpenEnd(self._head.split_blocks(source), self._text)
        return self._finish_blocks(self._open.blocks, width)

    def finish(self, width: int) -> Rows:
        """Return the rest when the message has ended."""
        rows = self._settle(width)
        if self._fence:
            if self._text:
                self._text += "\n"
            rows += self._settle_code(width)
        else:
            rows += self._finish_blocks(self._head.split_blocks(self._text), width)
        self._text = ""
        self._head = _Head()
        self._fence = None
        self._open = None
        return Rows(rows)

    def _take_new(self) -> None:
        """Add the new text. A carriage return at its end waits: it can be half of a line end."""
        new = "".join(self._new)
        self._new = ["\r"] if new.endswith("\r") else []
        new = escape_controls(new.removesuffix("\r"))
        self._has_new_lines |= "\n" in new
        self._text += new

    def _settle(self, width: int) -> list[str]:
        """Return the rows that are final now and drop their text."""
        self._take_new()
        rows: list[str] = []
        if not self._has_new_lines:
            return rows
        self._has_new_lines = False
        if self._fence:
            rows += self._settle_code(width)
        if self._fence or (self._open and self._open.extend(self._text)):
            return rows
        self._open = None
        return rows + self._settle_blocks(width)

    def _settle_blocks(self, width: int) -> list[str]:
        """Return the rows of the blocks that are final now, and drop their text."""
        at = self._text.rfind("\n") + 1
        line = _drop_marks(self._text[at:])
        is_fence_start = line.lstrip().startswith(("```", "~~~"))
        if is_fence_start:  # it can still become a text
            line = ""
        blocks = self._head.split_blocks(self._text[:at] + line)
        if not blocks:
            self._text = self._text[at:]
            return []
        *final, last = blocks
        start, end = last.span
        if not line and last.is_closed:
            self._drop_lines(last.lines[:end], _Head())
            return self._finish_blocks(blocks, width)
        rows = self._finish_blocks(final, width)
        if last.is_fence:
            rows += self._open_fence(last, at, width)
            return rows
        if not last.is_next:
            self._drop_lines(last.lines[:start], _Head())
        elif final:
            self._drop_lines(last.lines[:start], _Head.make(final[-1], last))
        if not is_fence_start:
            self._open = _OpenEnd([last], self._text)
        return rows

    def _drop_lines(self, lines: Iterable[str], head: "_Head") -> None:
        """Drop lines that are printed, of which the first are those of the head, and set the head of the others."""
        printed = sum(len(line) + 1 for line in lines)
        self._text = self._text[printed - len(self._head.source) :]
        self._head = head

    def _open_fence(self, block: Block, at: int, width: int) -> list[str]:
        """Return the rows of the whole lines of code in a block that is open, and keep the text from `at`."""
        start, _ = block.span
        self._fence = OpenFence(block)
        self._text = self._text[at:]
        self._head = _Head()
        return self._add_rows(self._fence.render_lines(block.lines[start + 1 : -1], width))

    def _settle_code(self, width: int) -> list[str]:
        """Return the rows of the whole lines of code, up to the end of the fence, and drop their text."""
        assert self._fence
        *lines, rest = self._text.split("\n")
        ends = (index for index, line in enumerate(lines) if self._fence.is_end(line))
        end = next(ends, None)
        rows = self._add_rows(self._fence.render_lines(lines[:end], width))
        if end is None:
            self._text = rest
        else:
            self._text = "\n".join([*lines[end + 1 :], rest])
            self._fence = None
            self._has_block_rows = False
        return rows

    def _end_long_block(self, width: int) -> list[str]:
        """End the open block after a word; in code end only the line."""
        at = self._text.rfind(" ", 0, LIMIT_CHARACTERS) + 1 or LIMIT_CHARACTERS
        rest = self._text[at:]
        self._has_new_lines = True
        self._open = None
        if self._fence:
            self._text = f"{self._text[:at]}\n{rest}"
            return self._settle(width)
        rows = self._finish_blocks(self._head.split_blocks(self._text[:at]), width)
        self._text = rest
        self._head = _Head()
        return rows + self._settle(width)

    def _finish_blocks(self, blocks: Iterable[Block], width: int) -> list[str]:
        """Return the rows of whole blocks."""
        rows = []
        for block in blocks:
            rows += self._add_rows(block.render(width), is_spaced=block.is_spaced)
            self._has_block_rows = False
        return rows

    def _add_rows(self, rows: list[str], *, is_spaced: bool = True) -> list[str]:
        """Return the next rows of a block, with an empty row between two blocks."""
        if not rows:
            return []
        is_next_block = self._has_rows and not self._has_block_rows
        self._has_rows = True
        self._has_block_rows = True
        return ["", *rows] if is_spaced and is_next_block else rows


@dataclass(frozen=True, slots=True)
class _Head:
    """The item before the open block, which is printed already: its source in one line, and its number."""

    source: str = ""
    number: int | None = None

    @classmethod
    def make(cls, item: Block, following: Block) -> "_Head":
        """Return the head for the item that follows."""
        source = item.stub
        if following.is_spaced:
            source += "\n"
        return cls(source, item.number)

    def split_blocks(self, text: str) -> list[Block]:
        """Return the blocks of a text after the head, which is one block."""
        blocks = split_blocks(self.source + text, self.number)
        return blocks[1:] if self.source else blocks


class _OpenEnd:
    """The blocks of text that is not final yet. They are parsed again only if more text can change their kinds."""

    def __init__(self, blocks: list[Block], text: str) -> None:
        self.blocks = blocks
        self._end: _OpenTable | _OpenParagraph | None = None
        if blocks:
            self._end = _find_open_end(blocks[-1], text)

    def extend(self, text: str) -> bool:
        """Return whether the text only continues the last paragraph or table, and add it there."""
        return self._end is not None and self._end.extend(text)


@dataclass(frozen=True, slots=True)
class _OpenTable:
    """A table at the end of a text. `start` is the place in the text from where its rows can change."""

    block: Block
    start: int

    def extend(self, text: str) -> bool:
        """Replace the rows that can change, unless the text has something else than rows."""
        *rows, last_row = text[self.start :].split("\n")
        if not all(row.startswith("|") for row in rows):
            return False
        if last_row and not last_row.startswith("|"):
            return False
        self.block.more_cells[:] = map(split_cells, rows)
        last_row = _drop_marks(last_row)
        if last_row:
            *cells, last = split_cells(last_row)
            self.block.more_cells.append([*cells, _close_marks(last)])
        return True


@dataclass(frozen=True, slots=True)
class _OpenParagraph:
    """A paragraph at the end of a text: its token, its source, and the length of the text up to its end."""

    token: Any
    source: str
    length: int

    def extend(self, text: str) -> bool:
        """Add the rest of the text, unless it has more lines."""
        more = text[self.length :]
        if "\n" in more:
            return False
        self.token.content = _close_marks(self.source + more)
        return True


def _find_open_end(block: Block, text: str) -> _OpenTable | _OpenParagraph | None:
    """Return the table or paragraph at the end of a block that more text can continue, with closed marks."""
    line_start = text.rfind("\n") + 1
    line = _drop_marks(text[line_start:])
    if block.node.type == "table":
        return _find_open_table(block, text, line_start, line)
    if not line:
        return None
    return _find_open_paragraph(block, text)


def _find_open_table(block: Block, text: str, line_start: int, line: str) -> _OpenTable | None:
    if line and not line.startswith("|"):
        return None
    if line:  # the row can change
        block.node.children[-1].children.pop()
    table = _OpenTable(block, line_start)
    table.extend(text)
    return table


def _find_open_paragraph(block: Block, text: str) -> _OpenParagraph | None:
    nodes = [node for node in block.node.walk() if node.children and node.text]
    if not nodes:
        return None
    node = nodes[-1]
    token = node.children[0].token
    source = token.content
    token.content = _close_marks(source)
    length = len(text.rstrip())
    _, _, last_line = source.rpartition("\n")
    is_at_end = text.endswith(last_line, 0, length)
    if node.type != "paragraph" or not is_at_end:
        return None
    return _OpenParagraph(token, source, length)


def _drop_marks(line: str) -> str:
    return "" if _ONLY_MARKS.fullmatch(line) else line


def _close_marks(text: str) -> str:
    """Close or drop marks without a partner, so that the open end does not flicker."""
    if "``" in text or "~~~" in text:
        return text
    text = text.rstrip("*_~` \t")
    for mark in ("`", "**", "~~"):
        if text.count(mark) % 2:
            return text + mark
    return text
