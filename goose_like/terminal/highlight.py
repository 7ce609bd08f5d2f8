"""Code highlighting line by line: the colours of a line never depend on later lines."""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType

from .rows import BOLD, CYAN, DIM, GREEN, ITALIC, MAGENTA, RED, Piece, encode, fold_pieces, get_plain, join_styles

LONG_LINE = 1000
"""Longer lines get no colours: a lexer could take long."""

_COMMENT = join_styles(DIM, ITALIC)
# Readable on dark and light backgrounds: no yellow, no white, no blue.
_STYLES = {
    **dict.fromkeys((Keyword, Comment.Preproc, Name.Decorator), MAGENTA),
    **dict.fromkeys((Number, Name.Attribute, Name.Builtin, Name.Tag, Generic.Subheading), CYAN),
    **dict.fromkeys((Name.Class, Name.Function, Generic.Heading), BOLD),
    **dict.fromkeys((String, Generic.Inserted), GREEN),
    **dict.fromkeys((Comment, Generic.Prompt), _COMMENT),
    Generic.Deleted: RED,
}

# Tokens that can span lines: start, end, style. Other states, such as a CSS block, are not kept from line to line.
_SPANS = {
    '"""': ('"""', GREEN),
    "'''": ("'''", GREEN),
    "`": ("`", GREEN),
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

# Languages whose lines are split here, so that a lexer colours each word only once, in half to a tenth of the time.
# The word or mark before a name can change its colour.
_OPEN_QUOTED = r"\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?"
_NAME = r"[A-Za-z_$][\w$]*|\b\d[\w.]*"
_PYTHON_WORD = re.compile(
    rf"(?P<string>\b[bfruBFRU]{{1,2}}(?:{_OPEN_QUOTED})|{_OPEN_QUOTED})|(?P<comment>#.*)"
    rf"|(?:\b(?:def|class)\s+|[@.]\s*)?(?:{_NAME})"
)
_SCRIPT_WORD = re.compile(
    rf"(?P<string>{_OPEN_QUOTED})|(?P<comment>//.*)|(?:\b(?:function|class|new)\s+|\.)?(?:{_NAME})"
)
_WORDS = {"Python": _PYTHON_WORD, **dict.fromkeys(("JavaScript", "TypeScript"), _SCRIPT_WORD)}
# Lines whose words depend on others: code within a string, and names that are a keyword at the start of a line.
_DEPENDENT = re.compile(r"\b(?:[fF][rR]?|[rR][fF])['\"].*\{|`|^\s*(?:match|case|type)\b")


class CodeHighlighter:
    """Colours for the lines of one block of code, given in order."""

    def __init__(self, language: str) -> None:
        self._lexer = _find_lexer(language.lower())
        self._starts = _STARTS.get(self._lexer.name, _NEVER) if self._lexer else _NEVER
        self._inside = ""

    def render_lines(self, lines: Iterable[str], width: int) -> list[str]:
        """Return the next lines as rows, indented by two columns; long lines are folded."""
        room = max(width - 2, 2)
        rows = []
        for line in lines:
            pieces = self._highlight_line(line.expandtabs(4))
            for row in fold_pieces(pieces, room):
                rows.append("  " + encode(row) if row else "")
        return rows

    def _highlight_line(self, line: str) -> Sequence[Piece]:
        if self._lexer is None or len(line) > LONG_LINE:
            return [(line, "")] if line else []
        result: list[Piece] = []
        at = 0
        while at < len(line):
            begin = at
            search_from = at
            if not self._inside:
                start = self._find_start(line, at)
                if start is None:
                    result += _highlight_text(self._lexer, line[at:])
                    break
                begin, search_from = start.span()
                result += _highlight_text(self._lexer, line[at:begin])
                self._inside = start[0]
            mark, style = _SPANS[self._inside]
            end = line.find(mark, search_from)
            if end < 0:
                at = len(line)
            else:
                at = end + len(mark)
                self._inside = ""
            result.append((line[begin:at], style))
        return result

    def _find_start(self, line: str, at: int) -> re.Match[str] | None:
        """Find the next token that can span lines. A start within another string is not a match of its own."""
        for start in self._starts.finditer(line, at):
            if start[0] in _SPANS:
                return start
        return None


def _highlight_text(lexer: Lexer, text: str) -> list[Piece]:
    words = _WORDS.get(lexer.name)
    if words is None or _DEPENDENT.search(text):
        return _lex(lexer, text)
    result: list[Piece] = []
    at = 0
    for word in words.finditer(text):
        result.append((text[at : word.start()], ""))
        if word.lastgroup:
            style = GREEN if word.lastgroup == "string" else _COMMENT
            result.append((word[0], style))
        else:
            result += _lex_word(lexer, word[0])
        at = word.end()
    result.append((text[at:], ""))
    return result


@lru_cache(maxsize=1024)
def _lex_word(lexer: Lexer, word: str) -> Sequence[Piece]:
    """Return the pieces of a word within a line."""
    first, *pieces = _lex(lexer, f";{word}")
    return pieces if first == (";", "") else _lex(lexer, word)


def _lex(lexer: Lexer, text: str) -> list[Piece]:
    # A lexer needs a line end, and it can return pieces out of order.
    tokens = sorted(lexer.get_tokens_unprocessed(f"{text}\n"), key=lambda token: token[0])
    pieces = [(value.rstrip("\n"), _get_style(kind)) for _, kind, value in tokens]
    return pieces if get_plain(pieces) == text else [(text, "")]


@cache
def _get_style(kind: _TokenType) -> str:
    for parent in reversed(kind.split()):
        if parent in _STYLES:
            return _STYLES[parent]
    return ""


@lru_cache
def _find_lexer(language: str) -> Lexer | None:
    """Return Pygments' own lexer of a language, or None; lexers of plugins would need a scan of entry points."""
    for name, aliases, *_ in get_all_lexers(plugins=False):
        if language in aliases:
            return find_lexer_class(name)()
    return None
