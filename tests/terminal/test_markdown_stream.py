"""Markdown as it comes: what is printed above and what is drawn below, as text."""

import io
import re
import unicodedata

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from goose_like.terminal.highlight import CodeHighlighter, _find_lexer, _lex
from goose_like.terminal.markdown_inline import _join_tokens, get_parser, render_inline
from goose_like.terminal.markdown_stream import LIMIT_CHARACTERS, MarkdownStream
from goose_like.terminal.rows import Rows, encode, get_plain, wrap_pieces

WIDTHS = [20, 80, 200]


def print_rows(rows: Rows, *, color_system: str | None = None) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, force_terminal=True, color_system=color_system, legacy_windows=False)
    console.print(rows)
    return file.getvalue()


def render_whole(text: str, width: int = 80, color_system: str | None = None) -> str:
    """Return the rows of a text that arrives at once."""
    stream = MarkdownStream()
    stream.feed(text)
    return print_rows(stream.finish(width), color_system=color_system)


def render_stream(deltas: list[str], frames: set[int], width: int = 80, color_system: str | None = None) -> str:
    """Return the rows of a text in pieces, taken after the pieces with these numbers."""
    stream = MarkdownStream()
    shown = ""
    for number, delta in enumerate(deltas):
        stream.feed(delta)
        if number in frames:
            shown += print_rows(stream.take_final(width), color_system=color_system)
            stream.render_open(width, 10)
    return shown + print_rows(stream.finish(width), color_system=color_system)


def below(text: str, width: int = 80, height: int = 10) -> str:
    """The open end after the text has come."""
    stream = MarkdownStream()
    stream.feed(text)
    stream.take_final(width)
    return print_rows(stream.render_open(width, height))


# --- cut anywhere it comes out the same

KINDS = {
    "text": ["words of a line", "two **bold", "words** and *so* on", "a `code` b", "a\\", "end  ", "世界 word", "a\tb"],
    "bullets": [
        "- one",
        "-",
        "   - deep",
        "    - deeper",
        "* star",
        "-  wide",
        "-     code",
        " - shifted",
        "\t- x",
        "  more",
    ],
    "numbers": ["1. first", "2. second", "9) ninth", "10. ten", "   1. deep", "1.", "   more"],
    "tables": [
        "a | b",
        "--- | :-:",
        "| 1 | 2",
        "- a | b",
        "|a|**b",
        "|-|-|",
        "| x \\| y | z |",
        "|",
        "| 1 | 2 | 3",
        "c",
    ],
    "code": [
        "```",
        "```python",
        "````",
        "~~~",
        "x = '''a",
        "'''",
        "/* c",
        "*/ d",
        "  ```",
        "   ```js",
        "    indented",
        "\ttab",
    ],
    "quotes": ["> quote", "> - in it", ">", "> ```", "lazy"],
    "titles": ["# title", "#", "under", "===", "---", "***"],
    "others": ["[a]: http://b", "[see][a] [b](http://c)", "<div>", "</div>", "<!-- x", "-->", "![i](u)"],
    "escapes": ["&#27;[1m", "\x1b[31m", "\u202eabc", "\r", "x\r"],
}


@st.composite
def cuts(draw: st.DrawFn) -> tuple[str, list[str], set[int]]:
    """A text, the same in pieces, and after which of them there is a frame."""
    kinds = draw(st.lists(st.sampled_from([*KINDS]), min_size=1, max_size=3))
    some = [draw(st.sampled_from(KINDS[kind])) for kind in kinds]  # few, so that they meet one another
    text = "\n".join(draw(st.lists(st.sampled_from([*some, ""]), min_size=2, max_size=12)))
    size = draw(st.integers(1, 10))
    at = range(0, len(text) + size, size)
    deltas = [text[start : start + size] for start in at]
    frames = draw(st.one_of(st.just(set(range(len(deltas)))), st.sets(st.sampled_from(range(len(deltas))))))
    return text, deltas, frames


@settings(max_examples=400, deadline=None)
@given(cuts(), st.sampled_from(WIDTHS))
def test_cut_anywhere_it_is_printed_as_at_once(cut, width):
    text, deltas, frames = cut
    assert render_stream(deltas, frames, width, "standard") == render_whole(text, width, "standard")


@settings(max_examples=400, deadline=None)
@given(cuts(), st.sampled_from(WIDTHS), st.sampled_from(WIDTHS))
def test_a_frame_is_drawn_as_if_all_had_come_at_once(cut, width, other_width):
    """Frames keep what they parsed; a window of another width needs other rows of it."""
    _, deltas, frames = cut
    stream, printed = MarkdownStream(), []
    for number, delta in enumerate(deltas):
        stream.feed(delta)
        if number in frames:
            printed += stream.take_final(width)
            stream.render_open(other_width, 10)
    printed += stream.take_final(width)
    fresh = MarkdownStream()
    fresh.feed("".join(deltas))
    assert printed + stream.render_open(width, 100) == fresh.take_final(width) + fresh.render_open(width, 100)


@settings(max_examples=100, deadline=None)
@given(cuts(), st.sampled_from(WIDTHS))
def test_no_row_is_wider_than_the_window(cut, width):
    text, _, _ = cut
    assert [row for row in render_whole(text, width).split("\n") if cell_len(row) > width] == []


# --- what each block looks like

SHOWN = [
    ("heading", "# A *title*\ntext\n\nUnder\n---", "A title\n\ntext\n\nUnder"),
    ("paragraph", "one\ntwo  \nthree\\\nfour", "one two\nthree\nfour"),
    ("bullets", "- a\n  b\n- c\n\n* d", "• a b\n• c\n\n• d"),
    ("items apart", "- a\n\n- b\n- c", "• a\n\n• b\n• c"),
    ("numbers", "3. a\n3. b\n   1) c\n\n      d", "3. a\n4. b\n   1. c\n\n      d"),
    ("quote", "> a\n>\n> > b\n> - c", "│ a\n│ \n│ │ b\n│ • c"),
    ("code", "a\n```py x\nx = 1\n\ny\n```\nb", "a\n\n  x = 1\n\n  y\n\nb"),
    ("code by indent", "    a\n\n      b", "  a\n\n    b"),
    ("no language of that name", "```nope\n<x>\n```", "  <x>"),
    ("rule", "a\n\n***", f"a\n\n{'─' * 40}"),
    (
        "table",
        "|Name|Size|\n|--|-:|\n|`a`|1|\n|bcdefg|10|",
        "Name   │ Size\n───────┼─────\na      │    1\nbcdefg │   10",
    ),
    ("link", "[a](http://b) <http://c> <d@e.f>", "a (http://b) http://c d@e.f"),
    ("link in bold", "**[a *b*](http://c)**", "a b (http://c)"),
    ("image", "see ![a cat](cat.png)", "see [image: a cat (cat.png)]"),
    ("html", "<b>a</b>\n\n<div>\n<!-- c -->\n</div>", "<b>a</b>\n\n<div> <!-- c --> </div>"),
    ("definition", "[a][b]\n\n[b]: http://c", "[a][b]\n\n[b]: http://c"),
    ("struck", "~~a~~ ~b~", "a ~b~"),
    ("wide", "世界 " * 20, "世界 " * 15 + "世界\n" + "世界 " * 3 + "世界"),
]


@pytest.mark.parametrize(("text", "shown"), [pair[1:] for pair in SHOWN], ids=[pair[0] for pair in SHOWN])
def test_a_block_at_once_and_letter_by_letter(text, shown):
    assert render_whole(text) == f"{shown}\n"
    assert render_stream(list(text), set(range(len(text)))) == f"{shown}\n"


def test_a_wide_table_folds_its_cells():
    table = "| Name | What it is |\n|---|---|\n| one | a cell with many words |"
    assert render_whole(table, 20) == (
        "Name │ What it is\n─────┼──────────────\none  │ a cell with\n     │ many words\n"
    )


def test_a_table_without_room_is_a_list():
    assert render_whole("|aaaa|bbbb|cccc|\n|-|-|-|\n|1111|2222|3333|\n|4|5|6|", 12) == (
        "aaaa: 1111\nbbbb: 2222\ncccc: 3333\n\naaaa: 4\nbbbb: 5\ncccc: 6\n"
    )


@pytest.mark.parametrize("mark", ["> ", "- "])
def test_nesting_without_end_is_shown_as_it_is(mark):
    assert "at the bottom" in " ".join(render_whole(mark * 300 + "at the bottom", 20).split())


# --- colours


def test_there_are_no_codes_without_colours():
    text = "# a\n**b** `c` [d](e)\n\n```py\ndef f(): return 'x'  # y\n```\n> q\n\n|a|\n|-|\n|b|"
    assert "\x1b" not in render_whole(text)
    assert "\x1b" in render_whole(text, color_system="standard")


def test_code_has_the_terminals_own_colours_and_no_ground():
    shown = render_whole("```py\ndef f(): return 'x'  # y\n```", color_system="truecolor")
    codes = {code for found in re.findall(r"\x1b\[([\d;]*)m", shown) for code in found.split(";")}
    assert codes <= {"0", "1", "2", "3", "31", "32", "35", "36"}
    assert "\x1b[35mdef\x1b[0m" in shown


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("python", ['"""one', "return if", '"""']),
        ("python", ["x = '''a", "def", "'''"]),
        ("js", ["/* one", "return if", "*/"]),
        ("js", ["x = `a", "return", "`"]),
        ("html", ["<!-- one", "<b>", "-->"]),
    ],
)
def test_strings_and_comments_go_on_over_lines(language, lines):
    rows = CodeHighlighter(language).render_lines([*lines, "return"], 80)
    first, second, third = ([*re.finditer(r"\x1b\[([\d;]+)m", row)][-1][1] for row in rows[:3])
    assert first == second == third
    assert rows[3:] == CodeHighlighter(language).render_lines(["return"], 80)


CODE = {
    "python": (
        "@cache(size=3)\ndef find(self, name: str = 'x') -> int:  # why\nyield from self\n"
        "match = rb'a' + len(f'{name}')\n"
        "match name:\nfrom os import open\nclass A(Exception): x = 0x1F if None in y else 'open"
    ),
    "js": (
        "class A extends B { constructor() { super(); } } // why\n"
        "const a = new Map(), b = `${a}` + 'x' + 1.5\nimport {x} from 'y'"
    ),
    "ts": "type A = { a: string }\nexport async function f(a: number): Promise<void> { return this.x?.y as any }",
}


@pytest.mark.parametrize("language", CODE)
def test_words_have_the_colours_that_the_lexer_gives_them_in_their_line(language):
    lexer = _find_lexer(language)
    for line in CODE[language].split("\n"):
        row = encode([piece for piece in _lex(lexer, line) if piece[0]])
        assert split_letters(CodeHighlighter(language).render_lines([line], 200)[0]) == split_letters(f"  {row}")


def split_letters(row: str) -> list[tuple[str, str]]:
    """Return each letter of a row with its colour; a space has none."""
    parts = [part for found in re.finditer(r"\x1b\[([\d;]+)m(.*?)\x1b\[0m|(.)", row) for part in [found.groups("")]]
    return [(letter, style) for style, text, plain in parts for letter in text + plain if letter != " "]


INLINE = [
    "*",
    "**",
    "`",
    "_",
    "~~",
    "a",
    "b c",
    " ",
    "\n",
    "snake_case",
    "1",
    ".",
    "(",
    "<",
    "&amp;",
    "\\",
    "[x](y)",
    "é",
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(INLINE), max_size=12).map("".join))
def test_simple_text_is_what_the_parser_makes_of_it(source):
    source = source.strip()
    tokens = []
    get_parser().inline.parse(source, get_parser(), {}, tokens)
    assert split_letters(encode(render_inline(source))) == split_letters(encode(_join_tokens(tokens, "")))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["a", "word", "**", "a-longer-word", "é", "世界", "  "]), max_size=12).map(" ".join))
def test_rows_end_where_rich_ends_them(text):
    text = f"a {text}".strip()
    expected = [row.plain.rstrip() for row in Text(text).wrap(Console(), 14, overflow="fold")]
    assert [get_plain(row) for row in wrap_pieces([(text, "")], 14)] == expected


@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_without_colours_still_shows_bold_text(no_color):
    file = io.StringIO()
    stream = MarkdownStream()
    stream.feed("**b** `c` ***d***")
    console = Console(file=file, force_terminal=True, color_system="standard", no_color=no_color, legacy_windows=False)
    console.print(stream.finish(80))
    screen = pyte.Screen(80, 3)
    pyte.Stream(screen).feed(file.getvalue())
    bold, _, code = (screen.buffer[0][column] for column in (0, 1, 2))
    assert (bold.bold, code.fg, screen.display[0].rstrip()) == (True, "default" if no_color else "cyan", "b c d")


# --- nothing is obeyed


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred\x07",
        "`\x1b[31m`",
        "```\n\x1b]0;title\x07\n```",
        "```\x1b[31m\na\n```",
        "|\x1b[31m|\n|-|\n|\x9b31m|",
        "[a](http://b/\x1b[31m)",
        "[a](<http://b/&#27;&#x202e;>)",
        "![\x1b[31m](\u202e)",
        "- \u202eabc\n- &#x202e;",
        "&#27; &#x9b; &#x202e; &lrm; &#x61c;",
        "a\rb",
        "    \x1b[31m",
    ],
)
def test_no_escape_reaches_the_terminal(text):
    shown = render_whole(text) + render_stream(list(text), set(range(len(text)))) + below(text)
    assert [one for one in shown if one != "\n" and unicodedata.category(one) in ("Cc", "Cf")] == []


def test_an_escape_is_written_out():
    assert render_whole("a \x1b[31mb &#x202e;") == "a \\x1b[31mb \\u202e\n"


def test_a_line_end_of_two_characters_may_come_in_two_pieces():
    assert render_stream(["a\r", "\n\r", "\nb"], {0, 1, 2}) == "a\n\nb\n"


# --- the open end


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a **bold wor", "a bold wor"),
        ("a `co", "a co"),
        ("a **", "a"),
        ("a\n-", "a"),
        ("a\n\n- b\n- c\n- d", "• d"),
        ("```py\nx = 1\ny =", "  y ="),
        ("|a|b|\n|-|-|\n|c|d|\n|e", "a │ b\n──┼──\nc │ d\ne │"),
    ],
)
def test_the_open_end_is_what_is_not_final(text, shown):
    assert below(text).strip("\n") == shown


def test_the_open_end_keeps_to_its_height():
    rows = below("\n".join(f"word{number}  " for number in range(30)), height=3)
    assert rows == "word27\nword28\nword29\n"
    assert below("a", height=0) == ""


def test_what_was_cut_in_a_fence_is_all_there():
    stream = MarkdownStream()
    stream.feed("a\n\n```py\nx = 1\ny = ")
    assert print_rows(stream.take_final(80)) == "a\n\n  x = 1\n"
    assert print_rows(stream.finish(80)) == "  y = \n"
    assert not stream.finish(80)


def test_a_list_is_printed_by_items_and_numbered_on():
    stream = MarkdownStream()
    shown = []
    for number in range(12):
        stream.feed(f"1. item {number}\n")
        shown.append(print_rows(stream.take_final(80)))
    assert shown[:2] == ["", "1. item 0\n"]
    assert shown[11] == "11. item 10\n"
    assert print_rows(stream.finish(80)) == "12. item 11\n"


# --- what has no end


@pytest.mark.parametrize(("head", "piece"), [("", "word "), ("", "x"), ("- ", "word "), ("> ", "世"), ("```\n", "y")])
def test_a_line_without_end_is_printed_and_forgotten(head, piece):
    stream = MarkdownStream()
    stream.feed(head)
    shown, held = "", 0
    for _ in range(60):
        stream.feed(piece * 1000)
        shown += print_rows(stream.take_final(80))
        held = max(held, len(stream._text))
    shown += print_rows(stream.finish(80))
    assert held <= LIMIT_CHARACTERS
    assert shown.count(piece.strip()) == 60_000
    assert max(map(cell_len, shown.split("\n"))) <= 80


def test_after_a_block_that_was_too_long_markdown_goes_on():
    stream = MarkdownStream()
    stream.feed("*word* " * 3000)
    shown = print_rows(stream.take_final(80))
    stream.feed("*end*\n\n*after*\n")
    shown += print_rows(stream.take_final(80)) + print_rows(stream.finish(80))
    assert shown.endswith("word end\n\nafter\n")


def test_marks_without_end_are_shown_as_they_are():
    assert "".join(render_whole("[" * 9000).split()) == "[" * 9000
