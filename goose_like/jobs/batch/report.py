"""The report of a batch: a web page with a table, a filter, the diffs, and links to the transcripts."""

import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.sessions.export_html import export_html, render_diff, render_page
from goose_like.sessions.index import find_session
from goose_like.sessions.transcript import Transcript
from goose_like.workspace.files import write_file

from .job import ResultLine

_TABLE_START = """<p><input type="search" placeholder="Filter by words" aria-label="Filter by words">
<select aria-label="Status"><option value="">all</option><option>done</option><option>failed</option></select>
<output></output></p>
<table>
<thead><tr><th>#</th><th>status</th><th>input</th><th>result</th><th>s</th><th>tokens</th><th>cost</th></tr></thead>
<tbody>"""
_MAX_DIFF_CHARACTERS = 100_000
_MAX_SHOWN_CHARACTERS = 300


def write_report(title: str, summary: str, lines: Sequence[ResultLine], file: Path, comparison: str = "") -> None:
    """Write the page to a file, and the transcripts into a folder beside it. A comparison stands at the top.

    Raises:
        GooseLikeError: a file cannot be written.
    """
    transcripts = file.with_suffix(".transcripts")
    try:
        rows = [_render_line(line, _write_transcript(line, transcripts)) for line in lines]
        write_file(file, _render_page(title, summary, rows, comparison).encode())  # follows no link
    except OSError as error:
        raise GooseLikeError(f"the report cannot be written to {file}: {error.strerror}") from error


def _write_transcript(line: ResultLine, folder: Path) -> str:
    """Write the transcript of an input's session, and return its link. A session that was removed has none."""
    try:
        transcript = Transcript.read(find_session(line.session))
    except GooseLikeError:
        return ""
    file = folder / f"{line.number}.html"
    write_file(file, export_html(transcript).encode())
    return f"{folder.name}/{file.name}"


def _render_page(title: str, summary: str, rows: Sequence[str], comparison: str) -> str:
    package = files(__package__)
    style = package.joinpath("report.css").read_text(encoding="utf-8")
    script = package.joinpath("report.js").read_text(encoding="utf-8")
    parts = [_TABLE_START, *rows, "</tbody>\n</table>"]
    if comparison:
        parts.insert(0, f"<pre>{escape(comparison)}</pre>")
    return render_page(title, [summary], parts, own_style=style, script=script)


def describe_lines(lines: Sequence[ResultLine], input_count: int) -> str:
    """Describe how many of the inputs of a batch are done, and what these took together."""
    done = sum(line.status == "done" for line in lines)
    tokens = sum(line.usage.total_tokens for line in lines)
    text = f"{done:,} of {input_count:,} inputs done, {tokens:,} tokens"
    costs = [line.cost_usd for line in lines]
    if None in costs:
        return text
    return f"{text}, ${sum(cost for cost in costs if cost is not None):.2f}"


def _render_line(line: ResultLine, transcript: str) -> str:
    mark = '<span class="good">done</span>'
    if line.status == "failed":
        mark = '<span class="bad">failed</span>'
    cost = "" if line.cost_usd is None else f"${line.cost_usd:.4f}"
    shown = ", ".join(f"{name}: {value}" for name, value in line.input.items())
    cells = [
        str(line.number),
        mark,
        escape(_shorten(shown)),
        "\n".join(_render_result(line, transcript)),
        f"{line.seconds:.1f}",
        f"{line.usage.total_tokens:,}",
        cost,
    ]
    columns = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr data-status="{line.status}">{columns}</tr>'


def _render_result(line: ResultLine, transcript: str) -> Iterator[str]:
    text = line.result
    if line.status == "failed":
        text = line.reason
    yield f'<div dir="auto">{escape(_shorten(text))}</div>'
    links = []
    if transcript:
        links.append(f'<a href="{escape(transcript)}">transcript</a>')
    if line.branch:
        links.append(f"branch <code>{escape(line.branch)}</code>")
    if line.patch:
        links.append(f"patch <code>{escape(line.patch)}</code>")
    if links:
        yield f'<div class="facts">{" · ".join(links)}</div>'
    for changed in _read_receipt(line.receipt).get("files", []):
        diff = render_diff(changed["diff"][:_MAX_DIFF_CHARACTERS])
        yield f"<details><summary>{escape(changed['path'])}</summary>{diff}</details>"


def _read_receipt(file: str) -> dict[str, Any]:
    """Read a receipt. One that was removed is empty."""
    try:
        return dict(json.loads(Path(file).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _shorten(text: str) -> str:
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return text
    return text[: _MAX_SHOWN_CHARACTERS - 1] + "…"
