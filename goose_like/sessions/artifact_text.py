"""Artifacts as Markdown, for front-ends that cannot draw them."""

import json
import math
from collections.abc import Sequence
from typing import Any

from goose_like.core.events import Artifact
from goose_like.core.spelling import format_count

_MAX_ROWS = 50
_MAX_COLUMNS = 12
_MAX_CELL_CHARS = 200
_MAX_TEXT_CHARS = 20_000

_SAFE_INTEGER = 2**53
"""The largest integer that JavaScript reads exactly."""


def list_columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """List the columns of rows, in the order of their first appearance."""
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(row))
    return list(columns)


def simplify_cell(value: Any) -> str | int | float | bool:
    """Convert a value to one that every table can show: not null, not nested, and exact in JavaScript."""
    if value is None:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
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
            chart = artifact.chart
            if chart:
                sizes = ", ".join(chart.y)
                body = f"A {chart.kind} chart of {sizes} by {chart.x}:\n\n{body}"
        case "html":
            from html_to_markdown import ConversionOptions, convert  # few sessions show a page

            options = ConversionOptions(skip_images=True, extract_metadata=False)
            page = convert(artifact.text, options)
            body = _truncate((page.content or "").strip())
        case "text":
            body = _truncate(artifact.text)
    return f"{head}\n\n{body}"


def _render_table(rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> str:
    if not keys:
        return "(no rows)"
    shown = keys[:_MAX_COLUMNS]
    lines = [_render_row(shown), _render_row(["---"] * len(shown))]
    for row in rows[:_MAX_ROWS]:
        cells = [_render_cell(row.get(key)) for key in shown]
        lines.append(_render_row(cells))
    hidden = []
    hidden_row_count = len(rows) - _MAX_ROWS
    if hidden_row_count > 0:
        hidden.append(format_count(hidden_row_count, "more row"))
    hidden_column_count = len(keys) - _MAX_COLUMNS
    if hidden_column_count > 0:
        hidden.append(format_count(hidden_column_count, "more column"))
    if hidden:
        lines.append(f"\n({' and '.join(hidden)} not shown)")
    return "\n".join(lines)


def _render_row(cells: Sequence[str]) -> str:
    safe = [_shorten(cell).replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(safe)} |"


def _render_cell(value: Any) -> str:
    cell = simplify_cell(value)
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(cell)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _MAX_CELL_CHARS:
        return line
    return f"{line[:_MAX_CELL_CHARS]}…"


def _truncate(text: str) -> str:
    hidden_count = len(text) - _MAX_TEXT_CHARS
    if hidden_count <= 0:
        return text
    return f"{text[:_MAX_TEXT_CHARS]}…\n\n({hidden_count:,} more characters not shown)"
