"""Code highlighting line by line: the colours of a line never depend on later lines."""

import re
from functools import cache

from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from rich.segment import Segment
from rich.style import Style

from .wrap import Row, fold_columns, make_row, merge_segments

LONG_LINE = 1000
"""Longer lines get no colours: a lexer could take long."""

_INDENT = Segment("  ")
_STRING, _COMMENT = Style(color="green"), Style(dim=True, italic=True)
# Readable on dark and light backgrounds: no yellow, no white, no blue.
_STYLES = {
    Comment: _COMMENT,
    Comment.Preproc: Style(color="magenta"),
    Keyword: Style(color="magenta"),
    Name.Attribute: Style(color="cyan"),
    Name.Builtin: Style(color="cyan"),
    Name.Class: Style(bold=True),
    Name.Decorator: Style(color="magenta"),
    Name.Function: Style(bold=True),
    Name.Tag: Style(color="cyan"),
    Number: Style(color="cyan"),
    String: _STRING,
    Generic.Deleted: Style(color="red"),
    Generic.Heading: Style(bold=True),
    Generic.Inserted: Style(color="green"),
    Generic.Prompt: _COMMENT,
    Generic.Subheading: Style(color="cyan"),
}

# Tokens that can span lines: start, end, style. Other states, such as a CSS block, are not kept from line to line.
_SPANS = {
    '"""': ('"""', _STRING),
    "'''": ("'''", _STRING),
    "`": ("`", _STRING),
    "/*": ("*/", _COMMENT),
    "<!--": ("-->", _COMMENT),
}
_QUOTED = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
_PYTHON = re.compile(rf"\"\"\"|'''|{_QUOTED}|#.*")
_SLASHES = re.compile(rf"/\*|{_QUOTED}|//.*")
_TICKS = re.compile(rf"/\*|`(?:\\.|[^`\\])*`|`|{_QUOTED}|//.*")
_SQL = re.compile(rf"/\*|{_QUOTED}|--.*")
_MARKUP = re.compile("<!--")
_STARTS = {
    **dict.fromkeys(("Python", "Python 2.x"), _PYTHON),
    **dict.fromkeys(
        ("C", "C++", "C#", "CSS", "Dart", "Java", "Kotlin", "PHP", "Rust", "SCSS", "Scala", "Swift"), _SLASHES
    ),
    **dict.fromkeys(("Go", "JavaScript", "JSX", "TypeScript"), _TICKS),
    **dict.fromkeys(("SQL", "PostgreSQL SQL dialect", "MySQL"), _SQL),
    **dict.fromkeys(("HTML", "XML"), _MARKUP),
}


class CodeHighlighter:
    """Colours for the lines of one block of code, given in order."""

    def __init__(self, language: str) -> None:
        self._lexer = find_lexer(language.lower())
        self._starts = _STARTS.get(self._lexer.name) if self._lexer else None
        self._inside = ""

    def render_lines(self, lines: list[str], width: int) -> list[Row]:
        """Return the next lines as rows, indented by two columns; long lines are folded."""
        code = [self._highlight_line(line.expandtabs(4)) for line in lines]
        rows = [row for line in code for row in fold_columns(line, max(width - 2, 2))]
        return [[_INDENT, *row] if row else row for row in rows]

    def _highlight_line(self, line: str) -> Row:
        if self._lexer is None or len(line) > LONG_LINE:
            return make_row(line)
        segments: Row = []
        at = 0
        while at < len(line):
            begin = search_from = at
            if not self._inside:
                start = self._find_start(line, at)
                if start is None:
                    return merge_segments([*segments, *self._highlight_text(line[at:])])
                segments += self._highlight_text(line[at : start.start()])
                begin, search_from = start.span()
                self._inside = start[0]
            mark, style = _SPANS[self._inside]
            end = line.find(mark, search_from)
            at = len(line) if end < 0 else end + len(mark)
            segments.append(Segment(line[begin:at], style))
            self._inside = self._inside if end < 0 else ""
        return merge_segments(segments)

    def _find_start(self, line: str, at: int) -> re.Match[str] | None:
        """Return where a string or comment that can span lines begins; starts within other strings do not count."""
        starts = self._starts.finditer(line, at) if self._starts else ()
        return next((start for start in starts if start[0] in _SPANS), None)

    def _highlight_text(self, text: str) -> Row:
        if self._lexer is None or not text:
            return []
        # A lexer needs a line end, and it can return pieces out of order.
        pieces = sorted(self._lexer.get_tokens_unprocessed(f"{text}\n"), key=lambda piece: piece[0])
        segments = [Segment(value.rstrip("\n"), _get_style(kind)) for _, kind, value in pieces]
        return segments if "".join(segment.text for segment in segments) == text else make_row(text)


@cache
def _get_style(kind: _TokenType) -> Style | None:
    return next((_STYLES[parent] for parent in reversed(kind.split()) if parent in _STYLES), None)


@cache
def _list_languages() -> dict[str, str]:
    """Return the names of Pygments' own lexers by language alias; plugins would need a scan of entry points."""
    return {alias: name for name, aliases, *_ in get_all_lexers(plugins=False) for alias in aliases}


def find_lexer(language: str) -> Lexer | None:
    """Return the lexer of a language, or None."""
    name = _list_languages().get(language)
    return find_lexer_class(name)() if name else None
