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

LINES = [
    *("", "", "words of a line", "two **bold", "words** and *so* on", "a `code` b", "a | b", "--- | :-:", "| 1 | 2"),
    *("- one", "- two", "-", "  more", "   - deep", "    - deeper", "* star", "1. first", "2. second", "9) ninth"),
    *("    indented", "```", "```python", "````", "~~~", "x = '''a", "'''", "/* c", "*/ d", "  ```", "   ```js"),
    *("> quote", "> - in it", ">", "> ```", "# title", "#", "under", "===", "---", "***", "-  wide", "10. ten"),
    *("[a]: http://b", "[see][a] [b](http://c)", "<div>", "</div>", "<!-- x", "-->", "世界 word", "a\tb", "\t- x"),
    *("a\\", "end  ", "&#27;[1m", "\x1b[31m", "![i](u)", "-     code", " - shifted", "\u202eabc", "\r", "x\r"),
]


@st.composite
def cuts(draw: st.DrawFn) -> tuple[str, list[str], set[int]]:
    """A text, the same in pieces, and after which of them there is a frame."""
    some = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=5))  # few, so that they meet one another
    text = "\n".join(draw(st.lists(st.sampled_from(some), max_size=14)))
    at = sorted(draw(st.sets(st.integers(0, len(text)), max_size=20)))
    deltas = [text[start:end] for start, end in zip([0, *at], [*at, len(text)], strict=True)]
    frames = draw(st.sets(st.integers(0, len(deltas)), max_size=len(deltas)))
    return text, deltas, frames


@settings(max_examples=400, deadline=None)
@given(cuts(), st.sampled_from(WIDTHS))
def test_cut_anywhere_it_is_printed_as_at_once(cut, width):
    text, deltas, frames = cut
    assert streamed(deltas, frames, width, "standard") == whole(text, width, "standard")
