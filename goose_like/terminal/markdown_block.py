"""Markdown blocks, and each block as rows of a terminal."""

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .highlight import CodeHighlighter
from .markdown_inline import MAX_NESTING, escape_line, get_parser, render_inline
from .markdown_table import render_table
from .rows import BOLD, DIM, UNDERLINE, encode, join_styles, wrap_encoded

MIN_INDENTED_WIDTH = 10
"""Nothing is indented if fewer columns would remain."""

RULE_WIDTH = 40
_TEXT_STYLES = {"p": "", "h1": join_styles(BOLD, UNDERLINE)}
_PIPE = re.compile(r"(?<!\\)\|")
_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]*")


@dataclass(frozen=True, slots=True)
class Node:
    """A token of the Markdown parser with the tokens within it."""

    token: Any
    children: list["Node"] = field(default_factory=list)

    @property
    def type(self) -> str:
        """The kind of the block, such as `paragraph`."""
        return str(self.token.type.removesuffix("_open"))

    @property
    def text(self) -> str:
        """The source of the text in a paragraph, a heading or a cell."""
        return str(self.children[0].token.content)

    def walk(self) -> Iterator["Node"]:
        """Yield the node and all nodes within it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Block:
    """A block or a list item. At the top level, each one becomes final as a whole.

    `number` is the number of an item in an ordered list. `is_next` marks an item after another item. `more_cells` are
    rows of a table that came after the block was parsed.
    """

    node: Node
    lines: Sequence[str]
    number: int | None = None
    is_next: bool = False
    more_cells: list[list[str]] = field(default_factory=list)

    @property
    def span(self) -> tuple[int, int]:
        """The index of the first line, and of the line after the last one."""
        start, end = self.node.token.map or (0, 0)
        return start, end

    @property
    def is_fence(self) -> bool:
        """A block of code between fences."""
        return self.node.type == "fence"

    @property
    def has_space_before(self) -> bool:
        """The source has an empty line before the block, also within a quote."""
        start, _ = self.span
        return start > 0 and not self.lines[start - 1].strip(" \t>")

    @property
    def is_spaced(self) -> bool:
        """An empty row precedes every block, and an item if the source has an empty line there."""
        return not self.is_next or self.has_space_before

    @property
    def code(self) -> list[str]:
        """The lines of code, without the fences."""
        content = str(self.node.token.content)
        if not content:
            return []
        return content.removesuffix("\n").split("\n")

    @property
    def is_closed(self) -> bool:
        """No following line can belong to a closed block."""
        start, end = self.span
        match self.node.type:
            case "fence":
                return end > start + 1 + len(self.code)
            case "hr":
                return True
            case "list_item" | "code_block":
                return False
            case _:
                return not self.lines[end].strip() and end < len(self.lines) - 1

    @property
    def stub(self) -> str:
        """One line that can replace this fence line or item: text after it parses as it does now."""
        start, _ = self.span
        line = self.lines[start]
        item = _ITEM.match(line)
        # An empty item stays empty: no text after an empty line belongs to it.
        if item and self.node.children:
            mark = item[0]
            gap = "" if mark[-1].isspace() else " "
            line = f"{mark}{gap}."
        return f"{line}\n"

    @property
    def language(self) -> str:
        """The language after the opening fence, or an empty string."""
        words = self.node.token.info.split()
        return str(next(iter(words), ""))

    def render(self, width: int) -> list[str]:
        """Return the block as rows of at most `width` columns."""
        if self._is_cut_by_parser():
            return self._render_source(width)
        match self.node.type:
            case "paragraph" | "heading":
                style = _TEXT_STYLES.get(self.node.token.tag, BOLD)
                return wrap_encoded(render_inline(self.node.text, style), width)
            case "fence" | "code_block":
                return CodeHighlighter(self.language).render_lines(self.code, width)
            case "blockquote":
                return self._render_children("│ ", "│ ", width)
            case "list_item":
                mark = "• "
                if self.number is not None:
                    mark = f"{self.number}. "
                return self._render_children(mark, " " * len(mark), width) or [mark]
            case "table":
                return self._render_table(width)
            case _:
                return [encode([("─" * min(width, RULE_WIDTH), DIM)])]

    def _is_cut_by_parser(self) -> bool:
        """Return whether a quote or an item is so deep that the parser skips a part of it."""
        if self.node.type not in ("blockquote", "list_item"):
            return False
        return any(node.token.level >= MAX_NESTING - 1 for node in self.node.walk())

    def _render_source(self, width: int) -> list[str]:
        start, end = self.span
        rows: list[str] = []
        for line in self.lines[start:end]:
            rows += wrap_encoded([(escape_line(line), "")], width)
        return rows

    def _render_children(self, first: str, other: str, width: int) -> list[str]:
        """Return the blocks within a quote or an item behind a mark, or without it if too few columns remain."""
        room = width - len(first)
        if room < MIN_INDENTED_WIDTH:
            return self._render_blocks_within(width)
        rows = []
        mark = first
        for row in self._render_blocks_within(room):
            rows.append(_add_mark(mark, row))
            mark = other
        return rows

    def _render_blocks_within(self, width: int) -> list[str]:
        rows: list[str] = []
        for block in _make_blocks(self.node.children, self.lines):
            if rows and block.has_space_before:
                rows.append("")
            rows += block.render(width)
        return rows

    def _render_table(self, width: int) -> list[str]:
        rows: list[Node] = []
        for part in self.node.children:  # the head and the body
            rows += part.children
        cells = []
        for row in rows:
            cells.append([render_inline(cell.text) for cell in row.children])
        head, *body = cells
        for texts in self.more_cells:
            missing_count = len(head) - len(texts)
            filled = [*texts, *[""] * missing_count]
            body.append([render_inline(text) for text in filled[: len(head)]])
        sides = [_get_side(cell) for cell in rows[0].children]
        return render_table(head, body, sides, width)


def _add_mark(mark: str, row: str) -> str:
    """Return a row behind a mark; an empty row needs no blanks."""
    if mark.strip():
        return encode([(mark, DIM)]) + row
    return mark + row if row else ""


def _get_side(cell: Node) -> str:
    style = str(cell.token.attrs.get("style", ""))
    return style.removeprefix("text-align:")


def split_blocks(source: str, number: int | None = None) -> list[Block]:
    """Return the blocks and items of a source; `number` replaces the first number of a list at its beginning."""
    return _make_blocks(_make_nodes(get_parser().parse(source)), source.split("\n"), number)


def split_cells(line: str) -> list[str]:
    """Return the cells of a table's row that starts with a pipe."""
    _, *parts = _PIPE.split(line.strip())
    cells = [part.replace("\\|", "|").strip() for part in parts]
    if cells[-1] == "":  # after a pipe at the end
        cells.pop()
    return cells


def _make_nodes(tokens: Iterable[Any]) -> list[Node]:
    levels: list[list[Node]] = [[]]
    for token in tokens:
        if token.nesting < 0:
            levels.pop()
            continue
        node = Node(token)
        levels[-1].append(node)
        if token.nesting > 0:
            levels.append(node.children)
    return levels[0]


def _make_blocks(nodes: Sequence[Node], lines: Sequence[str], number: int | None = None) -> list[Block]:
    result: list[Block] = []
    for node in nodes:
        if node.type not in ("bullet_list", "ordered_list"):
            result.append(Block(node, lines))
            continue
        first = None
        if node.type == "ordered_list":
            first = int(node.token.attrs.get("start", 1))
        if number is not None and not result:
            first = number
        result += _make_items(node.children, lines, first)
    return result


def _make_items(nodes: Sequence[Node], lines: Sequence[str], first: int | None) -> Iterator[Block]:
    """Yield the items of a list, with numbers if it is an ordered one."""
    number = first
    for node in nodes:
        yield Block(node, lines, number, is_next=node is not nodes[0])
        if number is not None:
            number += 1


class OpenFence:
    """A block of code whose end has not come; each whole line is final."""

    def __init__(self, block: Block) -> None:
        start, _ = block.span
        line = block.lines[start]
        mark = block.node.token.markup
        self._code = CodeHighlighter(block.language)
        self._end = re.compile(rf" {{0,3}}{mark}{mark[0]}*[ \t]*")
        self._indent = len(line) - len(line.lstrip(" "))

    def is_end(self, line: str) -> bool:
        """Return whether a line ends the block."""
        return self._end.fullmatch(line) is not None

    def render_lines(self, lines: Iterable[str], width: int) -> list[str]:
        """Return the next lines as rows."""
        return self._code.render_lines(map(self._unindent, lines), width)

    def render_open(self, lines: Iterable[str], width: int) -> list[str]:
        """Return the rows of lines that can still change."""
        code = self._code
        self._code = copy.copy(code)
        rows = self.render_lines(lines, width)
        self._code = code
        return rows

    def _unindent(self, line: str) -> str:
        """Return a line without the indent that the first fence has. A tab ends at a multiple of four columns."""
        at = 0
        column = 0
        while column < self._indent and line[at : at + 1] in (" ", "\t"):
            if line[at] == "\t":
                column += 4 - column % 4
            else:
                column += 1
            at += 1
        return " " * (column - self._indent) + line[at:]
