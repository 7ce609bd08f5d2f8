"""Streaming Markdown: final text is printed once, and only the open end is drawn again."""

import re
from collections.abc import Iterable
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
        # The item before the open block, which is printed already, as a line to parse, and its number.
        self._head = ""
        self._number: int | None = None
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
        state = self._has_rows, self._has_block_rows
        if self._fence:
            line = _drop_marks(self._text)
            rows = self._add_rows(self._fence.render_open([line] if line else [], width))
        else:
            if self._open is None or not self._open.extend(self._text):
                at = self._text.rfind("\n") + 1
                source = self._text[:at] + _drop_marks(self._text[at:])
                self._open = _OpenEnd(_split_blocks(self._head, source, self._number), self._text)
            rows = self._finish_blocks(self._open.blocks, width)
        self._has_rows, self._has_block_rows = state
        return Rows(rows[-height:] if height > 0 else ())

    def finish(self, width: int) -> Rows:
        """Return the rest when the message has ended."""
        rows = self._settle(width)
        if self._fence:
            self._text += "\n" * bool(self._text)
            rows += self._settle_code(width)
        else:
            rows += self._finish_blocks(_split_blocks(self._head, self._text, self._number), width)
        self._text = self._head = ""
        self._fence = self._open = None
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
        at = self._text.rfind("\n") + 1
        line = _drop_marks(self._text[at:])
        if is_start := line.lstrip().startswith(("```", "~~~")):  # it can still become a text
            line = ""
        blocks = _split_blocks(self._head, self._text[:at] + line, self._number)
        if not blocks:
            self._text = self._text[at:]
            return rows
        *final, last = blocks
        is_closed = not line and last.is_closed
        number, head, (end, next_start) = None, "", last.span
        if is_closed:
            final, end = blocks, next_start
        elif last.is_next and not final:
            head, number = self._head, self._number
            end = head.count("\n")
        elif last.is_next:
            head, number = final[-1].stub + "\n" * last.is_spaced, final[-1].number
        rows += self._finish_blocks(final, width)
        if last.is_fence and not is_closed:
            self._fence = OpenFence(last)
            rows += self._add_rows(self._fence.render_lines(last.lines[end + 1 : -1], width))
            printed = at
        else:
            printed = sum(len(line) + 1 for line in last.lines[:end]) - len(self._head)
        self._text, self._head, self._number = self._text[printed:], head, number
        if not (is_closed or is_start or self._fence):
            self._open = _OpenEnd([last], self._text)
        return rows

    def _settle_code(self, width: int) -> list[str]:
        """Return the rows of the whole lines of code, up to the end of the fence, and drop their text."""
        assert self._fence
        *lines, rest = self._text.split("\n")
        end = next((index for index, line in enumerate(lines) if self._fence.is_end(line)), None)
        rows = self._add_rows(self._fence.render_lines(lines[:end], width))
        self._text = rest
        if end is not None:
            self._text = "\n".join([*lines[end + 1 :], rest])
            self._fence, self._has_block_rows = None, False
        return rows

    def _end_long_block(self, width: int) -> list[str]:
        """End the open block after a word; in code end only the line."""
        at = self._text.rfind(" ", 0, LIMIT_CHARACTERS) + 1 or LIMIT_CHARACTERS
        rest = self._text[at:]
        self._has_new_lines, self._open = True, None
        if self._fence:
            self._text = f"{self._text[:at]}\n{rest}"
            return self._settle(width)
        rows = self._finish_blocks(_split_blocks(self._head, self._text[:at], self._number), width)
        self._text, self._head, self._number = rest, "", None
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
        gap = [""] if rows and is_spaced and self._has_rows and not self._has_block_rows else []
        self._has_rows |= bool(rows)
        self._has_block_rows |= bool(rows)
        return gap + rows


class _OpenEnd:
    """The blocks of text that is not final yet. They are parsed again only if more text can change their kinds."""

    def __init__(self, blocks: list[Block], text: str) -> None:
        self.blocks = blocks
        self._leaf: Any = None  # the paragraph at the end, or
        self._table: Block | None = None  # the table there, up to the last line
        start = text.rfind("\n") + 1
        line = _drop_marks(text[start:])
        if self.blocks and self.blocks[-1].node.type == "table":
            self._add_table(self.blocks[-1], text, start, line)
        elif self.blocks and line:
            self._add_leaf(self.blocks[-1], text)

    def extend(self, text: str) -> bool:
        """Return whether the text only continues the last paragraph or table, and add it there."""
        if self._table:
            *lines, line = text[self._length :].split("\n")
            if any(not row.startswith("|") for row in lines) or not line.startswith("|" if line else ""):
                return False
            self._table.more_cells[:] = map(split_cells, lines)
            if line := _drop_marks(line):
                *cells, last = split_cells(line)
                self._table.more_cells.append([*cells, _close_marks(last)])
            return True
        more = text[self._length :] if self._leaf else "\n"
        if "\n" in more:
            return False
        self._leaf.content = _close_marks(self._content + more)
        return True

    def _add_table(self, table: Block, text: str, start: int, line: str) -> None:
        if line.startswith("|"):
            table.node.children[-1].children.pop()
        elif line:
            return
        self._table, self._length = table, start
        self.extend(text)

    def _add_leaf(self, block: Block, text: str) -> None:
        nodes = [node for node in block.node.walk() if node.children and node.text]
        if not nodes:
            return
        node, leaf = nodes[-1], nodes[-1].children[0].token
        self._content, self._length = leaf.content, len(text.rstrip())
        if node.type == "paragraph" and text.endswith(leaf.content.rsplit("\n", 1)[-1], 0, self._length):
            self._leaf = leaf
        leaf.content = _close_marks(leaf.content)


def _drop_marks(line: str) -> str:
    return "" if _ONLY_MARKS.fullmatch(line) else line


def _split_blocks(head: str, text: str, number: int | None) -> list[Block]:
    """Return the blocks of a text after the head, which is one block."""
    return split_blocks(head + text, number)[bool(head) :]


def _close_marks(text: str) -> str:
    """Close or drop marks without a partner, so that the open end does not flicker."""
    if "``" in text or "~~~" in text:
        return text
    text = text.rstrip("*_~` \t")
    return text + next((mark for mark in ("`", "**", "~~") if text.count(mark) % 2), "")
