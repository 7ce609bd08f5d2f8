"""Markdown as it comes: what is printed above and what is drawn below, as text."""

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from goose_like.cli.markdown import MarkdownStream

WIDTHS = [20, 80, 200]


def printed(renderables: list[RenderableType], *, color_system: str | None = None) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, force_terminal=True, color_system=color_system, legacy_windows=False)
    for renderable in renderables:
        console.print(renderable)
    return file.getvalue()


def whole(text: str, width: int = 80, color_system: str | None = None) -> str:
    """The text given at once."""
    stream = MarkdownStream()
    stream.feed(text)
    return printed(stream.finish(width), color_system=color_system)


def streamed(deltas: list[str], frames: set[int], width: int = 80, color_system: str | None = None) -> str:
    """The text in pieces, looked at after those whose numbers are given."""
    stream = MarkdownStream()
    shown = ""
    for number, delta in enumerate(deltas):
        stream.feed(delta)
        if number in frames:
            shown += printed(stream.take(width), color_system=color_system)
            stream.open(width, 10)
    return shown + printed(stream.finish(width), color_system=color_system)


def below(text: str, width: int = 80, height: int = 10) -> str:
    """The open end after the text has come."""
    stream = MarkdownStream()
    stream.feed(text)
    stream.take(width)
    return printed([stream.open(width, height)])


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
    "tables": ["a | b", "--- | :-:", "| 1 | 2", "- a | b"],
    "code": ["```", "```python", "````", "~~~", "x = '''a", "'''", "/* c", "*/ d", "  ```", "   ```js", "    indented"],
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
    assert streamed(deltas, frames, width, "standard") == whole(text, width, "standard")
