"""Text of a Markdown paragraph with styles: emphasis, code and links."""

import re
from functools import cache, lru_cache
from typing import Any

from rich.style import Style, StyleType
from rich.text import Text

from .escape import escape_controls

MAX_MARKS = 400
"""Above this number of marks a paragraph is shown as it is: the parser needs quadratic time to find pairs."""

MAX_NESTING = 40
DIM = Style(dim=True)
BOLD = Style(bold=True)
_STYLES = {"em": Style(italic=True), "strong": BOLD, "s": Style(strike=True)}
_CODE = Style(color="cyan")
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}
_MARK = re.compile(r"[*_`\[]|~~")
_BLANKS = re.compile(r"[\t\n]")


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
def render_inline(source: str, style: StyleType = "") -> Text:
    """Return a paragraph with its styles; only hard line breaks of the source remain. Copy the text to change it."""
    if len(_MARK.findall(source)) > MAX_MARKS:
        return Text(escape_line(source), style)
    tokens: list[Any] = []
    get_parser().inline.parse(source, get_parser(), {}, tokens)
    return _join_tokens(tokens, style)


def escape_line(text: str) -> str:
    """Escape a parsed text and put it on one line: an HTML entity can stand for a control character."""
    return _BLANKS.sub(" ", escape_controls(text))


def _join_tokens(tokens: list[Any], style: StyleType) -> Text:
    result = Text(style=style)
    styles = [Style.null()]
    href, label = "", ""
    for token in tokens:
        text = escape_line(token.content)
        match token.type:
            case "softbreak" | "hardbreak":
                result.append(_BREAKS[token.type])
            case "code_inline":
                result.append(text, styles[-1] + _CODE)
            case "image":
                result.append(f"[image: {text} ({_get_target(token, 'src')})]", styles[-1] + DIM)
            case "link_open":
                href, label = _get_target(token, "href"), ""
            case "link_close":
                if href.removeprefix("mailto:") != label:
                    result.append(f" ({href})", styles[-1] + DIM)
            case _ if token.nesting > 0:
                styles.append(styles[-1] + _STYLES.get(token.tag, Style.null()))
            case _ if token.nesting < 0:
                styles.pop()
            case _:
                result.append(text, styles[-1])
        label += text
    return result


def _get_target(token: Any, name: str) -> str:
    return escape_line(str(token.attrs.get(name, "")))
