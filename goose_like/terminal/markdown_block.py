"""Markdown blocks, and each block as rows of a terminal."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from markdown_it.tree import SyntaxTreeNode
from rich.align import AlignMethod
from rich.style import Style, StyleType
from rich.text import Text

from .highlight import CodeHighlighter
from .markdown_inline import BOLD, DIM, MAX_NESTING, escape_line, get_parser, render_inline
from .markdown_table import render_table
from .wrap import indent_rows, wrap_words

MIN_INDENTED_WIDTH = 10
"""Nothing is indented if fewer columns would remain."""

RULE_WIDTH = 40
_TEXT_STYLES: dict[str, StyleType] = {"p": "", "h1": BOLD + Style(underline=True)}
_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]*")


@dataclass(frozen=True, slots=True)
class Block:
    """A block or a list item. At the top level, each one becomes final as a whole.

    `number` is the number of an item in an ordered list. `is_next` marks an item after another item.
    """

    node: SyntaxTreeNode
    lines: Sequence[str]
    number: int | None = None
    is_next: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """The index of the first line, and of the line after the last one."""
        return self.node.map or (0, 0)

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
        content = self.node.content
        return content.removesuffix("\n").split("\n") if content else []

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
        line = self.lines[self.span[0]]
        is_empty = not self.node.children  # an empty item stays empty: no text after an empty line belongs to it
        if mark := None if is_empty else _ITEM.match(line):
            line = f"{mark[0]}." if mark[0][-1].isspace() else f"{mark[0]} ."
        return f"{line}\n"

    @property
    def language(self) -> str:
        """The language after the opening fence, or an empty string."""
        return [*self.node.info.split(), ""][0]

    def render(self, width: int) -> list[Text]:
        """Return the block as rows of at most `width` columns."""
        if any(node.level >= MAX_NESTING - 1 for node in self.node.walk()):  # the parser skips deeper levels
            lines = map(escape_line, self.lines[slice(*self.span)])
            return [row for line in lines for row in wrap_words(Text(line), width)]
        match self.node.type:
            case "paragraph" | "heading":
                style = _TEXT_STYLES.get(self.node.tag, BOLD)
                return wrap_words(render_inline(self.node.children[0].content, style), width)
            case "fence" | "code_block":
                return CodeHighlighter(self.language).render_lines(self.code, width)
            case "blockquote":
                return self._render_children("│ ", "│ ", width)
            case "list_item":
                mark = "• " if self.number is None else f"{self.number}. "
                return self._render_children(mark, " " * len(mark), width) or [Text(mark)]
            case "table":
                return _render_table(self.node, width)
            case _:
                return [Text("─" * min(width, RULE_WIDTH), DIM)]

    def _render_children(self, first: str, other: str, width: int) -> list[Text]:
        """Return the blocks within a quote or an item behind a mark, or without it if too few columns remain."""
        room = width - len(first)
        is_indented = room >= MIN_INDENTED_WIDTH
        rows: list[Text] = []
        for block in _make_blocks(self.node.children, self.lines):
            rows += [Text()] * bool(rows and block.has_space_before)
            rows += block.render(room if is_indented else width)
        return indent_rows(rows, Text(first, DIM), Text(other, DIM)) if is_indented else rows


def split_blocks(source: str, number: int | None = None) -> list[Block]:
    """Return the blocks and items of a source; `number` replaces the first number of a list at its beginning."""
    return _make_blocks(SyntaxTreeNode(get_parser().parse(source)).children, source.split("\n"), number)


def _make_blocks(nodes: Sequence[SyntaxTreeNode], lines: Sequence[str], number: int | None = None) -> list[Block]:
    result: list[Block] = []
    for node in nodes:
        if node.type not in ("bullet_list", "ordered_list"):
            result.append(Block(node, lines))
            continue
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        if number is not None and not result:
            first = number
        for count, item in enumerate(node.children):
            result.append(Block(item, lines, None if first is None else first + count, is_next=count > 0))
    return result


def _render_table(table: SyntaxTreeNode, width: int) -> list[Text]:
    rows = [node.children for node in table.walk() if node.type == "tr"]
    sides = [str(cell.attrs.get("style", "text-align:left")).removeprefix("text-align:") for cell in rows[0]]
    head, *body = [[render_inline(cell.children[0].content) for cell in row] for row in rows]
    return render_table(head, body, cast(list[AlignMethod], sides), width)
