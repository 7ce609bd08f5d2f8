"""Code in colours of the terminal's own palette, line by line: what a line looks like never depends on later ones."""

import re
from functools import cache

from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from rich.segment import Segment
from rich.style import Style

from .wrap import Row, folded, merged, written

LONG_LINE = 1000
"""Characters of a line from which on it has no colours: a lexer may take long over it."""

_INDENT = Segment("  ")
_STRING, _COMMENT = Style(color="green"), Style(dim=True, italic=True)
# Readable on dark and light grounds alike: no yellow, no white, no blue.
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

# What goes on over lines: where it begins, where it ends, its style. Of other states (a block of CSS, a here-document)
# nothing is kept from line to line.
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


class Code:
    """A block of code: its lines are given in order, and each is coloured by those before it."""

    def __init__(self, language: str) -> None:
        self._lexer = lexer(language.lower())
        self._starts = _STARTS.get(self._lexer.name) if self._lexer else None
        self._inside = ""

    def rows(self, lines: list[str], width: int) -> list[Row]:
        """The next lines as rows, indented by two columns; a line that is too long goes on below."""
        rows = [row for line in lines for row in folded(self._line(line.expandtabs(4)), max(width - 2, 2))]
        return [[_INDENT, *row] if row else row for row in rows]

    def _line(self, line: str) -> Row:
        if self._lexer is None or len(line) > LONG_LINE:
            return written(line)
        runs: Row = []
        at = 0
        while at < len(line):
            begins = search = at
            if not self._inside:
                opened = self._start(line, at)
                if opened is None:
                    return merged([*runs, *self._lexed(line[at:])])
                runs += self._lexed(line[at : opened.start()])
                begins, search = opened.span()
                self._inside = opened[0]
            mark, style = _SPANS[self._inside]
            closed = line.find(mark, search)
            at = len(line) if closed < 0 else closed + len(mark)
            runs.append(Segment(line[begins:at], style))
            self._inside = self._inside if closed < 0 else ""
        return merged(runs)

    def _start(self, line: str, at: int) -> re.Match[str] | None:
        """Where a string or comment begins that may go on over lines; what stands in other strings is none."""
        found = self._starts.finditer(line, at) if self._starts else ()
        return next((start for start in found if start[0] in _SPANS), None)

    def _lexed(self, text: str) -> Row:
        if self._lexer is None or not text:
            return []
        # A lexer wants a line end after a line, and may give pieces in another order than the text's.
        pieces = sorted(self._lexer.get_tokens_unprocessed(f"{text}\n"), key=lambda piece: piece[0])
        runs = [Segment(value.rstrip("\n"), _style(kind)) for _, kind, value in pieces]
        return runs if "".join(run.text for run in runs) == text else written(text)


@cache
def _style(kind: _TokenType) -> Style | None:
    return next((_STYLES[one] for one in reversed(kind.split()) if one in _STYLES), None)


@cache
def _languages() -> dict[str, str]:
    """The lexers' names by what may stand behind a fence; only Pygments' own, so that no entry points are scanned."""
    return {alias: name for name, aliases, *_ in get_all_lexers(plugins=False) for alias in aliases}


def lexer(language: str) -> Lexer | None:
    """The lexer of a language; None if there is none by this name."""
    name = _languages().get(language)
    return find_lexer_class(name)() if name else None
