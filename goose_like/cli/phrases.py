"""What stands within a paragraph, as runs: emphasis, code, links that are written out."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.segment import Segment
from rich.style import Style

from .rows import Row, merged
from .visible import visible

MAX_BRACKETS = 300
"""Opening brackets from which on a paragraph is shown as it is: the search for links is quadratic in them."""

DIM = Style(dim=True)
BOLD = Style(bold=True)
_STYLES = {"em": Style(italic=True), "strong": BOLD, "s": Style(strike=True)}
_CODE = Style(color="cyan")
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}
_BLANKS = re.compile(r"[\t\n]")


def phrases(text: str, parser: MarkdownIt, style: Style | None = None) -> Row:
    """The runs of a paragraph's text; its line ends are those that the author asked for."""
    base = style or Style.null()
    if text.count("[") > MAX_BRACKETS:
        return [Segment(said(text), base)]
    tokens: list[Token] = []
    parser.inline.parse(text, parser, {}, tokens)
    return merged(_runs(tokens, base))


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
