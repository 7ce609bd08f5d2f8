"""Artifacts as Markdown, for front-ends that cannot draw them."""

import json
import math
from collections.abc import Sequence
from typing import Any

from html_to_markdown import ConversionOptions, convert

from goose_like.core.events import Artifact

_MAX_ROWS, _MAX_COLUMNS = 50, 12
_MAX_CELL_CHARS, _MAX_TEXT_CHARS = 200, 20_000

_SAFE_INTEGER = 2**53
"""The largest integer that JavaScript reads exactly."""


def list_columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """List the columns of rows, in the order of their first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def simplify_cell(value: Any) -> str | int | float | bool:
    """Convert a value to one that every table can show: not null, not nested, and exact in JavaScript."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and abs(value) > _SAFE_INTEGER:
        return str(value)
    return value  # type: ignore[no-any-return]


def render_artifact(artifact: Artifact) -> str:
    """Render an artifact as Markdown, cut to a readable size with a note on the rest."""
    head = f"**{_shorten(artifact.name)}**"
    if artifact.description:
        head += f"\n\n{artifact.description.strip()}"
    match artifact.kind:
        case "table" | "chart":
            body = _render_table(artifact.rows, list_columns(artifact.rows))
            if chart := artifact.chart:
                body = f"A {chart.kind} chart of {', '.join(chart.y)} by {chart.x}:\n\n{body}"
        case "html":
            page = convert(artifact.text, ConversionOptions(skip_images=True, extract_metadata=False))
            body = _truncate((page.content or "").strip())
        case "text":
            body = _truncate(artifact.text)
    return f"{head}\n\n{body}"


def _render_table(rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> str:
    if not keys:
        return "(no rows)"
    shown = keys[:_MAX_COLUMNS]
    lines = [_render_row(shown), _render_row(["---"] * len(shown))]
    lines += [_render_row([_render_cell(row.get(key)) for key in shown]) for row in rows[:_MAX_ROWS]]
    left = [
        f"{count:,} more {noun}{'s' * (count != 1)}"
        for count, noun in ((len(rows) - _MAX_ROWS, "row"), (len(keys) - _MAX_COLUMNS, "column"))
        if count > 0
    ]
    return "\n".join(lines) + (f"\n\n({' and '.join(left)} not shown)" if left else "")


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_shorten(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _render_cell(value: Any) -> str:
    cell = simplify_cell(value)
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_CELL_CHARS else f"{line[:_MAX_CELL_CHARS]}…"


def _truncate(text: str) -> str:
    left = len(text) - _MAX_TEXT_CHARS
    return text if left <= 0 else f"{text[:_MAX_TEXT_CHARS]}…\n\n({left:,} more characters not shown)"
