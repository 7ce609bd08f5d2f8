"""Markdown blocks, and each block as rows of a terminal."""

import re
from collections.abc import Callable, Iterator, Sequence
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
_HEADINGS = {"h1": BOLD + Style(underline=True)}
_BAR = "│ "
_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]*")


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level block or a top-level list item: the unit that becomes final as a whole.

    `number` is the number of an item in an ordered list. `is_next` marks an item after another item.
    """

    tokens: Sequence[Token]
    lines: Sequence[str]
    number: int | None = None
    is_next: bool = False

    @property
    def start(self) -> int:
        """The index of the first line."""
        return _get_line_range(self.tokens)[0]

    @property
    def is_item(self) -> bool:
        """A list item at the top level."""
        return self.tokens[0].type == "list_item_open"

    @property
    def is_fence(self) -> bool:
        """A block of code between fences."""
        return self.tokens[0].type == "fence"

    @property
    def is_spaced(self) -> bool:
        """An empty row precedes every block, and an item if the source has an empty line there."""
        return not self.is_next or _has_space_before(self.tokens, self.lines)

    @property
    def code(self) -> list[str]:
        """The lines between the fences."""
        return _get_code_lines(self.tokens[0])

    @property
    def end(self) -> int:
        """The index of the line after the last one."""
        return _get_line_range(self.tokens)[1]

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
        return _get_language(self.tokens[0])

    def render(self, width: int) -> list[Row]:
        """Return the block as rows of at most `width` columns."""
        source = "\n".join(self.lines[slice(*_get_line_range(self.tokens))]).rstrip()
        is_too_deep = any(token.level >= MAX_NESTING - 1 for token in self.tokens)  # the parser skips deeper levels
        if is_too_deep or len(source) > LIMIT_CHARACTERS:
            return render_plain(source, width)
        if self.is_item:
            return _render_item(self.tokens, self.lines, width, self.number)
        return _render_tokens(self.tokens, self.lines, width)


def split_blocks(source: str, number: int | None = None) -> list[Block]:
    """Return the blocks and items of a source; `number` replaces the first number of a list at its beginning."""
    lines = source.split("\n")
    result: list[Block] = []
    for tokens in _iterate_siblings(get_parser().parse(source)):
        if not tokens[0].type.endswith("list_open"):
            result.append(Block(tokens, lines))
            continue
        first = _get_first_number(tokens[0]) if number is None or result else number
        for count, item in enumerate(_iterate_siblings(tokens[1:-1])):
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


def _get_line_range(tokens: Sequence[Token]) -> tuple[int, int]:
    """Return the index of a block's first line and of the line after its last one."""
    start, end = tokens[0].map or (0, 0)
    return start, end


def _has_space_before(tokens: Sequence[Token], lines: Sequence[str]) -> bool:
    """Return whether an empty line precedes a block, also within a quote."""
    start = _get_line_range(tokens)[0]
    return start > 0 and not lines[start - 1].strip(" \t>")


def _get_first_number(token: Token) -> int | None:
    return int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None


def _get_code_lines(token: Token) -> list[str]:
    return token.content.removesuffix("\n").split("\n") if token.content else []


def _get_language(token: Token) -> str:
    return [*token.info.split(), ""][0]


def _render_tokens(tokens: Sequence[Token], lines: Sequence[str], width: int) -> list[Row]:
    first = tokens[0]
    match first.type:
        case "paragraph_open":
            return wrap_words(render_inline(tokens[1].content, get_parser()), width)
        case "heading_open":
            return wrap_words(render_inline(tokens[1].content, get_parser(), _HEADINGS.get(first.tag, BOLD)), width)
        case "fence" | "code_block":
            code = list(map(escape_controls, _get_code_lines(first)))
            return CodeHighlighter(_get_language(first)).render_lines(code, width)
        case "blockquote_open":
            return _render_behind(_BAR, _BAR, width, lambda room: _render_children(tokens[1:-1], lines, room))
        case "bullet_list_open" | "ordered_list_open":
            return _render_list(tokens, lines, width)
        case "table_open":
            return _render_table(tokens, width)
        case _:
            return [[Segment("─" * min(width, RULE_WIDTH), DIM)]]


def _render_children(tokens: Sequence[Token], lines: Sequence[str], width: int) -> list[Row]:
    """Return the blocks within a quote or an item."""
    rows: list[Row] = []
    for block in _iterate_siblings(tokens):
        rows += [[]] * bool(rows and _has_space_before(block, lines))
        rows += _render_tokens(block, lines, width)
    return rows


def _render_list(tokens: Sequence[Token], lines: Sequence[str], width: int) -> list[Row]:
    first = _get_first_number(tokens[0])
    rows: list[Row] = []
    for count, item in enumerate(_iterate_siblings(tokens[1:-1])):
        rows += [[]] * bool(rows and _has_space_before(item, lines))
        rows += _render_item(item, lines, width, None if first is None else first + count)
    return rows


def _render_item(tokens: Sequence[Token], lines: Sequence[str], width: int, number: int | None) -> list[Row]:
    mark = "• " if number is None else f"{number}. "
    indent = " " * len(mark)
    rows = _render_behind(mark, indent, width, lambda room: _render_children(tokens[1:-1], lines, room))
    return rows or [make_row(mark)]


def _render_behind(first: str, other: str, width: int, draw: Callable[[int], list[Row]]) -> list[Row]:
    """Return rendered rows behind a mark, or without the mark if too few columns remain."""
    room = width - cell_len(first)
    if room < MIN_INDENTED_WIDTH:
        return draw(width)
    return indent_rows(draw(room), Segment(first, DIM), Segment(other, DIM))


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
