"""Text of a Markdown paragraph with styles: emphasis, code and links."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from .escape import escape_controls
from .rows import BOLD, CYAN, DIM, ITALIC, STRIKE, Piece, join_styles

MAX_MARKS = 400
"""Above this number of marks a paragraph is shown as it is: the parser needs quadratic time to find pairs."""

MAX_NESTING = 40
_STYLES = {"em": ITALIC, "strong": BOLD, "s": STRIKE}
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}
_MARK = re.compile(r"[*_`\[]|~~")
_BLANKS = re.compile(r"[\t\n]")

# Texts that mean the same to the parser wherever they are, which takes ten times as long.
_WORDS = r"[^*_`\[<&\\~\n\t]+"
_INSIDE = r"(?=[A-Za-z0-9])[^*_`\[<&\\~\n\t]+(?<=[A-Za-z0-9])"
_SIMPLE = re.compile(
    rf"(?P<words>{_WORDS}(?:(?:(?<=\w)_+(?=\w)|(?<! )\n(?! )){_WORDS})*)|`(?P<code>[^`\s][^`\n\t]*)`(?!`)"
    rf"|\*\*(?P<strong>{_INSIDE})\*\*(?!\*)|\*(?P<em>{_INSIDE})\*(?!\*)"
)
_SIMPLE_STYLES = {"words": "", "code": CYAN, **_STYLES}


@cache
def get_parser() -> Any:
    """Return a parser for blocks; inline text is parsed when a block is rendered.

    HTML is text. So are link definitions: most come after their references, which are printed by then.
    """
    from markdown_it import MarkdownIt  # `run` without a terminal needs no parser

    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    return parser.disable(["reference", "html_block", "html_inline", "inline", "text_join"])


@lru_cache(maxsize=512)
def render_inline(source: str, style: str = "") -> tuple[Piece, ...]:
    """Return a paragraph with its styles; only hard line breaks of the source remain."""
    pieces = _split_simple(source, style)
    if pieces is not None:
        return tuple(pieces)
    if len(_MARK.findall(source)) > MAX_MARKS:
        return ((escape_line(source), style),)
    tokens: list[Any] = []
    get_parser().inline.parse(source, get_parser(), {}, tokens)
    return tuple(piece for piece in _join_tokens(tokens, style) if piece[0])


def escape_line(text: str) -> str:
    """Escape a parsed text and put it on one line: an HTML entity can stand for a control character."""
    return _BLANKS.sub(" ", escape_controls(text))


def _split_simple(source: str, style: str) -> list[Piece] | None:
    """Return the pieces of a source that has only simple marks, otherwise None."""
    pieces = []
    at = 0
    for match in _SIMPLE.finditer(source):
        if match.start() != at:
            return None
        kind = match.lastgroup or ""
        text = match[kind].replace("\n", " ")
        pieces.append((text, join_styles(style, _SIMPLE_STYLES[kind])))
        at = match.end()
    return pieces if at == len(source) else None


def _join_tokens(tokens: list[Any], style: str) -> Iterator[Piece]:
    """Yield the pieces of inline tokens. A link is followed by its target, unless its label says the same."""
    styles = [style]
    href = ""
    label = ""
    for token in tokens:
        match token.type:
            case "link_open":
                href = _get_target(token, "href")
                label = ""
            case "link_close":
                if href.removeprefix("mailto:") != label:
                    yield f" ({href})", join_styles(styles[-1], DIM)
            case _ if token.nesting > 0:
                added = _STYLES.get(token.tag, "")
                styles.append(join_styles(styles[-1], added))
            case _ if token.nesting < 0:
                styles.pop()
            case _:
                yield _make_piece(token, styles[-1])
        label += escape_line(token.content)


def _make_piece(token: Any, style: str) -> Piece:
    """Return the piece of a token that has no tokens within it."""
    text = escape_line(token.content)
    match token.type:
        case "softbreak" | "hardbreak":
            return _BREAKS[token.type], style
        case "code_inline":
            return text, join_styles(style, CYAN)
        case "image":
            source = _get_target(token, "src")
            return f"[image: {text} ({source})]", join_styles(style, DIM)
        case _:
            return text, style


def _get_target(token: Any, name: str) -> str:
    return escape_line(str(token.attrs.get(name, "")))
