"""Export of a session as a web page: one file without scripts that loads nothing."""

import re
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt

from goose_like.core.message import Image
from goose_like.terminal.escape import escape_controls

from .transcript import Entry, Transcript

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_DIFF_START = re.compile(r"^(?:diff --git |@@ -\d+(?:,\d+)? \+\d+)", re.MULTILINE)


def export_html(transcript: Transcript) -> str:
    """Render the page. All text is escaped. The model's Markdown is rendered without HTML and images."""
    info = transcript.info
    style = files(__package__).joinpath("session_page.css").read_text(encoding="utf-8")
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    outputs = info.folder / "outputs"
    body = "\n".join(part for entry in transcript.iterate_entries() for part in _render_entry(entry, markdown, outputs))
    return escape_controls(f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width">
<title>{escape(info.name)}</title>
<style>
{style}</style>
</head>
<body>
<h1>{escape(info.name)}</h1>
<p class="facts">{escape(chr(10).join(transcript.list_facts()))}</p>
{body}
</body>
</html>
""")


def _render_entry(entry: Entry, markdown: MarkdownIt, outputs: Path) -> Iterator[str]:
    match entry.kind:
        case "person":
            yield f'<h2>{escape(entry.title)}</h2>\n<div class="person" dir="auto">{escape(entry.text)}</div>'
        case "model":
            yield f'<div class="model" dir="auto">{markdown.render(entry.text)}</div>'
        case "call" if entry.result:
            mark, kind = ("✗", "bad") if entry.result.is_error else ("✓", "good")
            yield f'<details><summary><span class="{kind}">{mark}</span> {escape(entry.title)}</summary>'
            yield f"{_render_block(entry.text)}\n{_render_block(entry.result.output)}\n</details>"
        case "diff":
            yield f"<details open><summary>{escape(entry.title)}</summary>{_render_diff(entry.text)}</details>"
        case "thinking" | "folded":
            yield f"<details><summary>{escape(entry.title)}</summary>{_render_block(entry.text)}</details>"
        case _:
            yield f'<div class="{entry.kind}" dir="auto">{escape(entry.text)}</div>'
    for image in entry.images:
        yield _render_image(image, outputs)


def _render_block(text: str) -> str:
    if not text.strip():
        return ""
    return _render_diff(text) if _DIFF_START.search(text) else f'<pre dir="auto">{escape(text)}</pre>'


def _render_diff(text: str) -> str:
    tags = {"+": "ins", "-": "del", "@": "b"}
    head = 2 if text.startswith("--- ") else 0
    lines = enumerate(text.rstrip("\n").split("\n"))
    tagged = (("span" if number < head else tags.get(line[:1], "span"), escape(line)) for number, line in lines)
    return f'<pre class="diff">{"".join(f"<{tag}>{line}</{tag}>" for tag, line in tagged)}</pre>'


def _render_image(image: Image, outputs: Path) -> str:
    source = escape(image.source)
    try:
        data = b64encode((outputs / Path(image.name).name).read_bytes()).decode()
    except OSError:
        return f'<div class="note">[image {source}]</div>'
    return f'<img alt="{source}" src="data:{image.media_type};base64,{data}">'
