"""What stands within a paragraph, as runs: emphasis, code, links that are written out."""

import re
from collections.abc import Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.segment import Segment
from rich.style import Style

from .escape import visible
from .wrap import Row, merged

MAX_MARKS = 400
"""Marks from which on a paragraph is shown as it is: the search for pairs is quadratic in them."""

PIECE, CUTS = 150, 4
"""Characters after which it is tried to take a paragraph apart, and how often."""

DIM = Style(dim=True)
BOLD = Style(bold=True)
_STYLES = {"em": Style(italic=True), "strong": BOLD, "s": Style(strike=True)}
_CODE = Style(color="cyan")
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}
_MARK = re.compile(r"[*_`\[]|~~")
_BLANKS = re.compile(r"[\t\n]")


def phrases(text: str, parser: MarkdownIt, style: Style | None = None) -> Row:
    """The runs of a paragraph's text; its line ends are those that the author asked for."""
    base = style or Style.null()
    if len(_MARK.findall(text)) > MAX_MARKS:
        return [Segment(said(text), base)]
    end = 0
    for _ in range(CUTS):  # so that a paragraph that grows is not read from its start again and again
        end = text.find(" ", end + PIECE) + 1
        if not end:
            break
        is_between_words = text[end - 2] != " " and not text[end : end + 1].isspace()
        piece, is_whole = _parsed(text[:end], parser, base) if is_between_words else ([], False)
        if is_whole:
            return [*piece, *phrases(text[end:], parser, style)]
    return _parsed(text, parser, base)[0]


@lru_cache(maxsize=512)
def _parsed(text: str, parser: MarkdownIt, base: Style) -> tuple[Row, bool]:
    """The runs, and whether no mark among them is left that could yet be half of a pair."""
    tokens: list[Token] = []
    parser.inline.parse(text, parser, {}, tokens)
    is_whole = not any(_MARK.search(token.content) for token in tokens if token.type == "text")
    return merged(_runs(tokens, base)), is_whole


def said(text: str) -> str:
    """The text on one line, as a terminal may be given it: an entity can stand for any character."""
    return _BLANKS.sub(" ", visible(text))


def _runs(tokens: list[Token], base: Style) -> Iterator[Segment]:
    styles = [base]
    href, label = "", ""
    for token in tokens:
        text = said(token.content)
        match token.type:
            case "softbreak" | "hardbreak":
                yield Segment(_BREAKS[token.type], styles[-1])
            case "code_inline":
                yield Segment(text, styles[-1] + _CODE)
            case "image":
                yield Segment(f"[image: {text} ({_target(token, 'src')})]", styles[-1] + DIM)
            case "link_open":
                href, text = _target(token, "href"), ""
                label = ""
            case "link_close":
                if href.removeprefix("mailto:") != label:
                    yield Segment(f" ({href})", styles[-1] + DIM)
            case _ if token.nesting > 0:
                styles.append(styles[-1] + _STYLES.get(token.tag, base))
            case _ if token.nesting < 0:
                styles.pop()
            case _:
                yield Segment(text, styles[-1])
        label += text


def _target(token: Token, name: str) -> str:
    return said(str(token.attrs.get(name, "")))
