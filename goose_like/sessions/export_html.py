"""Export of a session as a web page: one file without scripts that loads nothing."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
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
    markdown = MarkdownIt("commonmark", {"html": False})
    markdown.enable(["table", "strikethrough"])
    markdown.disable("image")
    outputs = info.folder / "outputs"
    parts: list[str] = []
    for entry in transcript.iterate_entries():
        parts += _render_entry(entry, markdown, outputs)
    return render_page(info.name, transcript.list_facts(), parts)


def render_page(
    title: str, facts: Sequence[str], parts: Sequence[str], *, own_style: str = "", script: str = ""
) -> str:
    """Render a page: a title and facts as text, and parts as HTML. The page loads nothing; only `script` runs in it."""
    style = files(__package__).joinpath("session_page.css").read_text(encoding="utf-8")
    policy = _POLICY
    end = ""
    if script:
        policy += "; script-src 'unsafe-inline'"
        end = f"<script>\n{script}</script>\n"
    lines = escape("\n".join(facts))
    body = "\n".join(parts)
    return escape_controls(f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>
{style}{own_style}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="facts">{lines}</p>
{body}
{end}</body>
</html>
""")


def _render_entry(entry: Entry, markdown: MarkdownIt, outputs: Path) -> Iterator[str]:
    title = escape(entry.title)
    match entry.kind:
        case "person":
            yield f"<h2>{title}</h2>"
            yield f'<div class="person" dir="auto">{escape(entry.text)}</div>'
        case "model":
            yield f'<div class="model" dir="auto">{markdown.render(entry.text)}</div>'
        case "call" if entry.result:
            mark = '<span class="good">✓</span>'
            if entry.result.is_error:
                mark = '<span class="bad">✗</span>'
            yield f"<details><summary>{mark} {title}</summary>"
            yield _render_block(entry.text)
            yield _render_block(entry.result.output)
            yield "</details>"
        case "diff":
            yield f"<details open><summary>{title}</summary>{render_diff(entry.text)}</details>"
        case "thinking" | "folded":
            yield f"<details><summary>{title}</summary>{_render_block(entry.text)}</details>"
        case _:
            yield f'<div class="{entry.kind}" dir="auto">{escape(entry.text)}</div>'
    for image in entry.images:
        yield _render_image(image, outputs)


def _render_block(text: str) -> str:
    if not text.strip():
        return ""
    if _DIFF_START.search(text):
        return render_diff(text)
    return f'<pre dir="auto">{escape(text)}</pre>'


def render_diff(text: str) -> str:
    """Render a unified diff with coloured lines."""
    tags = {"+": "ins", "-": "del", "@": "b"}
    # The names of the files start with the marks of changed lines.
    head_line_count = 2 if text.startswith("--- ") else 0
    tagged = []
    for number, line in enumerate(text.rstrip("\n").split("\n")):
        tag = "span"
        if number >= head_line_count:
            tag = tags.get(line[:1], "span")
        tagged.append(f"<{tag}>{escape(line)}</{tag}>")
    body = "".join(tagged)
    return f'<pre class="diff">{body}</pre>'


def _render_image(image: Image, outputs: Path) -> str:
    source = escape(image.source)
    if image.is_document:
        return f'<div class="note">[document {source}]</div>'
    file = outputs / Path(image.name).name
    try:
        content = file.read_bytes()
    except OSError:
        return f'<div class="note">[image {source}]</div>'
    data = b64encode(content).decode()
    return f'<img alt="{source}" src="data:{image.media_type};base64,{data}">'
