"""Text of a Markdown paragraph as styled segments: emphasis, code and links."""

import re
from collections.abc import Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.segment import Segment
from rich.style import Style

from .escape import escape_controls
from .wrap import Row, merge_segments

MAX_MARKS = 400
"""Above this number of marks a paragraph is shown as it is: the parser needs quadratic time to find pairs."""

PIECE_CHARACTERS, MAX_CUTS = 150, 4
"""A paragraph is cut into cached pieces of at least this length, at most so many times."""

DIM = Style(dim=True)
BOLD = Style(bold=True)
_STYLES = {"em": Style(italic=True), "strong": BOLD, "s": Style(strike=True)}
_CODE = Style(color="cyan")
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}
_MARK = re.compile(r"[*_`\[]|~~")
_BLANKS = re.compile(r"[\t\n]")


def render_inline(text: str, parser: MarkdownIt, style: Style | None = None) -> Row:
    """Return the segments of a paragraph; only hard line breaks of the source remain."""
    base = style or Style.null()
    if len(_MARK.findall(text)) > MAX_MARKS:
        return [Segment(escape_line(text), base)]
    end = 0
    for _ in range(MAX_CUTS):  # a growing paragraph is not parsed from its start again
        end = text.find(" ", end + PIECE_CHARACTERS) + 1
        if not end:
            break
        is_between_words = text[end - 2] != " " and not text[end : end + 1].isspace()
        piece, is_whole = _parse(text[:end], parser, base) if is_between_words else ([], False)
        if is_whole:
            return [*piece, *render_inline(text[end:], parser, style)]
    return _parse(text, parser, base)[0]


@lru_cache(maxsize=512)
def _parse(text: str, parser: MarkdownIt, base: Style) -> tuple[Row, bool]:
    """Return the segments, and whether they contain no mark that could still be half of a pair."""
    tokens: list[Token] = []
    parser.inline.parse(text, parser, {}, tokens)
    is_whole = not any(_MARK.search(token.content) for token in tokens if token.type == "text")
    return merge_segments(_make_segments(tokens, base)), is_whole


def escape_line(text: str) -> str:
    """Escape a parsed text and put it on one line: an HTML entity can stand for a control character."""
    return _BLANKS.sub(" ", escape_controls(text))


def _make_segments(tokens: list[Token], base: Style) -> Iterator[Segment]:
    styles = [base]
    href, label = "", ""
    for token in tokens:
        text = escape_line(token.content)
        match token.type:
            case "softbreak" | "hardbreak":
                yield Segment(_BREAKS[token.type], styles[-1])
            case "code_inline":
                yield Segment(text, styles[-1] + _CODE)
            case "image":
                yield Segment(f"[image: {text} ({_get_target(token, 'src')})]", styles[-1] + DIM)
            case "link_open":
                href, text = _get_target(token, "href"), ""
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


def _get_target(token: Token, name: str) -> str:
    return escape_line(str(token.attrs.get(name, "")))
