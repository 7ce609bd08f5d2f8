"""Code highlighting line by line: the colours of a line never depend on later lines."""

import re
from functools import cache, lru_cache

from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from rich.style import Style
from rich.text import Text

from .wrap import fold_columns

LONG_LINE = 1000
"""Longer lines get no colours: a lexer could take long."""

_STRING, _COMMENT = Style(color="green"), Style(dim=True, italic=True)
# Readable on dark and light backgrounds: no yellow, no white, no blue.
_STYLES = {
    **dict.fromkeys((Keyword, Comment.Preproc, Name.Decorator), Style(color="magenta")),
    **dict.fromkeys((Number, Name.Attribute, Name.Builtin, Name.Tag, Generic.Subheading), Style(color="cyan")),
    **dict.fromkeys((Name.Class, Name.Function, Generic.Heading), Style(bold=True)),
    **dict.fromkeys((String, Generic.Inserted), _STRING),
    **dict.fromkeys((Comment, Generic.Prompt), _COMMENT),
    Generic.Deleted: Style(color="red"),
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
_NEVER = re.compile("(?!)")
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
        self._lexer = _find_lexer(language.lower())
        self._starts = _STARTS.get(self._lexer.name, _NEVER) if self._lexer else _NEVER
        self._inside = ""

    def render_lines(self, lines: list[str], width: int) -> list[Text]:
        """Return the next lines as rows, indented by two columns; long lines are folded."""
        code = [self._highlight_line(line.expandtabs(4)) for line in lines]
        rows = [row for line in code for row in fold_columns(line, max(width - 2, 2))]
        for row in rows:
            row.pad_left(2 if row else 0)
        return rows

    def _highlight_line(self, line: str) -> Text:
        if self._lexer is None or len(line) > LONG_LINE:
            return Text(line)
        result, at = Text(), 0
        while at < len(line):
            begin = search_from = at
            if not self._inside:
                # A start within another string does not count: it is not a match of its own.
                start = next((start for start in self._starts.finditer(line, at) if start[0] in _SPANS), None)
                begin, search_from = start.span() if start else (len(line), len(line))
                result.append_text(_highlight_text(self._lexer, line[at:begin]))
                if start is None:
                    break
                self._inside = start[0]
            mark, style = _SPANS[self._inside]
            end = line.find(mark, search_from)
            at = len(line) if end < 0 else end + len(mark)
            result.append(line[begin:at], style)
            self._inside = self._inside if end < 0 else ""
        return result


def _highlight_text(lexer: Lexer, text: str) -> Text:
    # A lexer needs a line end, and it can return pieces out of order.
    pieces = sorted(lexer.get_tokens_unprocessed(f"{text}\n"), key=lambda piece: piece[0])
    result = Text.assemble(*((value.rstrip("\n"), _get_style(kind)) for _, kind, value in pieces))
    return result if result.plain == text else Text(text)


@cache
def _get_style(kind: _TokenType) -> Style:
    return next((_STYLES[parent] for parent in reversed(kind.split()) if parent in _STYLES), Style.null())


@lru_cache
def _find_lexer(language: str) -> Lexer | None:
    """Return Pygments' own lexer of a language, or None; lexers of plugins would need a scan of entry points."""
    lexers = get_all_lexers(plugins=False)
    name = next((name for name, aliases, *_ in lexers if language in aliases), "")
    return find_lexer_class(name)() if name else None
