"""Markdown as blocks, and each block as rows of a terminal."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from .escape import visible
from .highlight import Code
from .markdown_inline import BOLD, DIM, phrases, said
from .markdown_table import table
from .wrap import Row, indented, wrapped, written

LIMIT = 10_000
"""Characters of a block from which on it is shown as it is, so that no frame takes long; code is not limited."""

LEAST_WIDTH = 10
"""Columns below which nothing is indented any more."""

RULE_WIDTH = 40
MAX_NESTING = 40
_HEADINGS = {"h1": BOLD + Style(underline=True)}
_BAR = "│ "
_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]*")


@dataclass(frozen=True, slots=True)
class Block:
    """A block at the top, or an item of a list there: what becomes final as a whole.

    `number` is that of an item of an ordered list; `is_next` an item that another one precedes.
    """

    tokens: Sequence[Token]
    lines: Sequence[str]
    number: int | None = None
    is_next: bool = False

    @property
    def start(self) -> int:
        """The number of its first line."""
        return _place(self.tokens)[0]

    @property
    def is_item(self) -> bool:
        return self.tokens[0].type == "list_item_open"

    @property
    def is_fence(self) -> bool:
        return self.tokens[0].type == "fence"

    @property
    def is_spaced(self) -> bool:
        """Whether a blank row stands before it: before each block, and between items where the author left one."""
        return not self.is_next or _is_spaced(self.tokens, self.lines)

    @property
    def code(self) -> list[str]:
        """The lines between fences."""
        return _code(self.tokens[0])

    @property
    def end(self) -> int:
        """The number of the line after its last."""
        return _place(self.tokens)[1]

    @property
    def is_closed(self) -> bool:
        """Whether nothing that follows can belong to it."""
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
        """A line in whose place what follows reads as it does after this fence's first line, or after this item."""
        line = self.lines[self.start]
        is_empty = len(self.tokens) <= 2  # so is its stub: nothing after an empty line belongs to it
        if mark := None if is_empty else _ITEM.match(line):
            line = f"{mark[0]}." if mark[0][-1].isspace() else f"{mark[0]} ."
        return f"{line}\n"

    @property
    def language(self) -> str:
        return _language(self.tokens[0])

    def rows(self, width: int) -> list[Row]:
        """The block as rows of at most `width` columns."""
        source = "\n".join(self.lines[slice(*_place(self.tokens))]).rstrip()
        is_too_deep = any(token.level >= MAX_NESTING - 1 for token in self.tokens)  # what is deeper was not read
        if is_too_deep or len(source) > LIMIT:
            return plain(source, width)
        if self.is_item:
            return _item(self.tokens, self.lines, width, self.number)
        return _rows(self.tokens, self.lines, width)


def blocks(source: str, number: int | None = None) -> list[Block]:
    """The blocks and items of a source; `number` is what a list that it begins with counts from instead of its own."""
    lines = source.split("\n")
    found: list[Block] = []
    for tokens in _siblings(_parser().parse(source)):
        if not tokens[0].type.endswith("list_open"):
            found.append(Block(tokens, lines))
            continue
        first = _first_number(tokens[0]) if number is None or found else number
        for count, item in enumerate(_siblings(tokens[1:-1])):
            found.append(Block(item, lines, None if first is None else first + count, is_next=count > 0))
    return found


def plain(source: str, width: int) -> list[Row]:
    """A source as it is, line by line."""
    return [row for line in source.split("\n") for row in wrapped(written(said(line)), width) or [[]]]


@cache
def _parser() -> MarkdownIt:
    """Blocks only; what stands within them is read when it is drawn.

    HTML is text. Definitions of links are too: most come after what refers to them, which is printed by then.
    """
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    return parser.disable(["reference", "html_block", "html_inline", "inline", "text_join"])


def _siblings(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens of each block or item, without those around them."""
    depth = begin = 0
    for number, token in enumerate(tokens, 1):
        depth += token.nesting
        if not depth:
            yield tokens[begin:number]
            begin = number


def _place(tokens: Sequence[Token]) -> tuple[int, int]:
    """The first line of a block and the one after its last."""
    start, end = tokens[0].map or (0, 0)
    return start, end


def _is_spaced(tokens: Sequence[Token], lines: Sequence[str]) -> bool:
    """Whether the source has an empty line before a block, within a quote too."""
    start = _place(tokens)[0]
    return start > 0 and not lines[start - 1].strip(" \t>")


def _first_number(token: Token) -> int | None:
    return int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None


def _code(token: Token) -> list[str]:
    return token.content.removesuffix("\n").split("\n") if token.content else []


def _language(token: Token) -> str:
    return [*token.info.split(), ""][0]


def _rows(tokens: Sequence[Token], lines: Sequence[str], width: int) -> list[Row]:
    first = tokens[0]
    match first.type:
        case "paragraph_open":
            return wrapped(phrases(tokens[1].content, _parser()), width)
        case "heading_open":
            return wrapped(phrases(tokens[1].content, _parser(), _HEADINGS.get(first.tag, BOLD)), width)
        case "fence" | "code_block":
            return Code(_language(first)).rows(list(map(visible, _code(first))), width)
        case "blockquote_open":
            return _behind(_BAR, _BAR, width, lambda room: _stacked(tokens[1:-1], lines, room))
        case "bullet_list_open" | "ordered_list_open":
            return _list(tokens, lines, width)
        case "table_open":
            return _table(tokens, width)
        case _:
            return [[Segment("─" * min(width, RULE_WIDTH), DIM)]]


def _stacked(tokens: Sequence[Token], lines: Sequence[str], width: int) -> list[Row]:
    """The blocks within a quote or an item."""
    made: list[Row] = []
    for block in _siblings(tokens):
        made += [[]] * bool(made and _is_spaced(block, lines))
        made += _rows(block, lines, width)
    return made


def _list(tokens: Sequence[Token], lines: Sequence[str], width: int) -> list[Row]:
    first = _first_number(tokens[0])
    made: list[Row] = []
    for count, item in enumerate(_siblings(tokens[1:-1])):
        made += [[]] * bool(made and _is_spaced(item, lines))
        made += _item(item, lines, width, None if first is None else first + count)
    return made


def _item(tokens: Sequence[Token], lines: Sequence[str], width: int, number: int | None) -> list[Row]:
    mark = "• " if number is None else f"{number}. "
    return _behind(mark, " " * len(mark), width, lambda room: _stacked(tokens[1:-1], lines, room)) or [written(mark)]


def _behind(first: str, other: str, width: int, draw: Callable[[int], list[Row]]) -> list[Row]:
    """What is drawn behind a mark, while there is room for it."""
    room = width - cell_len(first)
    return indented(draw(room), Segment(first, DIM), Segment(other, DIM)) if room >= LEAST_WIDTH else draw(width)


def _table(tokens: Sequence[Token], width: int) -> list[Row]:
    cells: list[list[Row]] = []
    sides: list[str] = []
    for token in tokens:
        if token.type == "tr_open":
            cells.append([])
        elif token.type == "th_open":
            sides.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
        elif token.type == "inline":
            cells[-1].append(phrases(token.content, _parser()))
    return table(cells[0], cells[1:], sides, width)
