"""Markdown blocks, and each block as rows of a terminal."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from .escape import escape_controls
from .highlight import CodeHighlighter
from .markdown_inline import BOLD, DIM, escape_line, render_inline
from .markdown_table import render_table
from .wrap import Row, indent_rows, make_row, wrap_words

LIMIT_CHARACTERS = 10_000
"""A longer block is shown as it is, so that no frame takes long; code has no limit."""

MIN_INDENTED_WIDTH = 10
"""Nothing is indented if fewer columns would remain."""

RULE_WIDTH = 40
MAX_NESTING = 40
_TEXT_STYLES = {"p": None, "h1": BOLD + Style(underline=True)}
_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]*")


@dataclass(frozen=True, slots=True)
class Block:
    """A block or a list item. At the top level, each one becomes final as a whole.

    `number` is the number of an item in an ordered list. `is_next` marks an item after another item.
    """

    tokens: Sequence[Token]
    lines: Sequence[str]
    number: int | None = None
    is_next: bool = False

    @property
    def start(self) -> int:
        """The index of the first line."""
        return (self.tokens[0].map or (0, 0))[0]

    @property
    def end(self) -> int:
        """The index of the line after the last one."""
        return (self.tokens[0].map or (0, 0))[1]

    @property
    def is_fence(self) -> bool:
        """A block of code between fences."""
        return self.tokens[0].type == "fence"

    @property
    def has_space_before(self) -> bool:
        """The source has an empty line before the block, also within a quote."""
        return self.start > 0 and not self.lines[self.start - 1].strip(" \t>")

    @property
    def is_spaced(self) -> bool:
        """An empty row precedes every block, and an item if the source has an empty line there."""
        return not self.is_next or self.has_space_before

    @property
    def code(self) -> list[str]:
        """The lines of code, without the fences."""
        content = self.tokens[0].content
        return content.removesuffix("\n").split("\n") if content else []

    @property
    def is_closed(self) -> bool:
        """No following line can belong to a closed block."""
        match self.tokens[0].type:
            case "fence":
                return self.end > self.start + 1 + len(self.code)
            case "hr":
                return True
            case "list_item_open" | "code_block":
                return False
            case _:
                return not self.lines[self.end].strip() and self.end < len(self.lines) - 1

    @property
    def stub(self) -> str:
        """One line that can replace this fence line or item: text after it parses as it does now."""
        line = self.lines[self.start]
        is_empty = len(self.tokens) <= 2  # an empty item stays empty: no text after an empty line belongs to it
        if mark := None if is_empty else _ITEM.match(line):
            line = f"{mark[0]}." if mark[0][-1].isspace() else f"{mark[0]} ."
        return f"{line}\n"

    @property
    def language(self) -> str:
        """The language after the opening fence, or an empty string."""
        return [*self.tokens[0].info.split(), ""][0]

    def render(self, width: int) -> list[Row]:
        """Return the block as rows of at most `width` columns."""
        source = "\n".join(self.lines[self.start : self.end]).rstrip()
        is_too_deep = any(token.level >= MAX_NESTING - 1 for token in self.tokens)  # the parser skips deeper levels
        if is_too_deep or len(source) > LIMIT_CHARACTERS:
            return render_plain(source, width)
        match self.tokens[0].type:
            case "paragraph_open" | "heading_open":
                style = _TEXT_STYLES.get(self.tokens[0].tag, BOLD)
                return wrap_words(render_inline(self.tokens[1].content, get_parser(), style), width)
            case "fence" | "code_block":
                return CodeHighlighter(self.language).render_lines(list(map(escape_controls, self.code)), width)
            case "blockquote_open":
                return self._render_children("│ ", "│ ", width)
            case "list_item_open":
                mark = "• " if self.number is None else f"{self.number}. "
                return self._render_children(mark, " " * len(mark), width) or [make_row(mark)]
            case "table_open":
                return _render_table(self.tokens, width)
            case _:
                return [[Segment("─" * min(width, RULE_WIDTH), DIM)]]

    def _render_children(self, first: str, other: str, width: int) -> list[Row]:
        """Return the blocks within a quote or an item behind a mark, or without it if too few columns remain."""
        room = width - cell_len(first)
        is_indented = room >= MIN_INDENTED_WIDTH
        rows: list[Row] = []
        for block in _make_blocks(self.tokens[1:-1], self.lines):
            rows += [[]] * bool(rows and block.has_space_before)
            rows += block.render(room if is_indented else width)
        return indent_rows(rows, Segment(first, DIM), Segment(other, DIM)) if is_indented else rows


def split_blocks(source: str, number: int | None = None) -> list[Block]:
    """Return the blocks and items of a source; `number` replaces the first number of a list at its beginning."""
    return _make_blocks(get_parser().parse(source), source.split("\n"), number)


def _make_blocks(tokens: Sequence[Token], lines: Sequence[str], number: int | None = None) -> list[Block]:
    result: list[Block] = []
    for block in _iterate_siblings(tokens):
        if not block[0].type.endswith("list_open"):
            result.append(Block(block, lines))
            continue
        first = int(block[0].attrs.get("start", 1)) if block[0].type == "ordered_list_open" else None
        if number is not None and not result:
            first = number
        for count, item in enumerate(_iterate_siblings(block[1:-1])):
            result.append(Block(item, lines, None if first is None else first + count, is_next=count > 0))
    return result


def render_plain(source: str, width: int) -> list[Row]:
    """Return a source as it is, line by line."""
    return [row for line in source.split("\n") for row in wrap_words(make_row(escape_line(line)), width) or [[]]]


@cache
def get_parser() -> MarkdownIt:
    """Return a parser for blocks; inline text is parsed when a block is rendered.

    HTML is text. So are link definitions: most come after their references, which are printed by then.
    """
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    return parser.disable(["reference", "html_block", "html_inline", "inline", "text_join"])


def _iterate_siblings(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens of each block or item at the top level."""
    depth = begin = 0
    for number, token in enumerate(tokens, 1):
        depth += token.nesting
        if not depth:
            yield tokens[begin:number]
            begin = number


def _render_table(tokens: Sequence[Token], width: int) -> list[Row]:
    cells: list[list[Row]] = []
    sides: list[str] = []
    for token in tokens:
        if token.type == "tr_open":
            cells.append([])
        elif token.type == "th_open":
            sides.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
        elif token.type == "inline":
            cells[-1].append(render_inline(token.content, get_parser()))
    return render_table(cells[0], cells[1:], sides, width)
