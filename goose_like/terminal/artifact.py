"""Artifacts of tool calls on a terminal: tables, charts and text."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from goose_like.core.events import Artifact
from goose_like.core.spelling import format_count

from .chart import render_chart, to_number
from .escape import escape_controls, to_one_line
from .markdown_table import render_table
from .wrap import indent_rows, wrap_words

_TABLE_ROWS, _CHART_ROWS, _COLUMNS, _CELL_COLUMNS = 20, 8, 12, 60
_MAX_LINES = 60
_TEXT_LINES = 12


def render_artifact(artifact: Artifact, width: int) -> list[Text]:
    """Return the artifact below its name, between empty rows, cut to about one screen.

    The count of what is left out stands at its end.
    """
    rows = wrap_words(Text(escape_controls(artifact.name), "bold"), width)
    rows += wrap_words(Text(escape_controls(artifact.description), "dim"), width)
    match artifact.kind:
        case "table":
            rows += _render_rows(artifact.rows, _TABLE_ROWS, width)
        case "chart" if artifact.chart:
            rows += render_chart(artifact.rows, artifact.chart, width)
            rows += [Text(), *_render_rows(artifact.rows, _CHART_ROWS, width)]
        case "html":
            rows.append(Text(f"an HTML page of {len(artifact.text.encode()):,} bytes, for a browser", "dim"))
        case _:
            lines = wrap_words(Text(escape_controls(artifact.text).rstrip("\n")), width)
            more = len(lines) - _TEXT_LINES
            rows += [*lines[:_TEXT_LINES], Text(f"… {more:,} more lines", "dim")] if more > 1 else lines
    return [Text(), *indent_rows(rows, Text("    "), Text("    ")), Text()]


def _render_rows(rows: Sequence[dict[str, Any]], limit: int, width: int) -> list[Text]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shown = rows[: limit + 1] if len(rows) == limit + 1 else rows[:limit]  # "1 more row" would take as much space
    columns = keys[:_COLUMNS]
    body = [[((_format_cell(row.get(key)), ""),) for key in columns] for row in shown]
    sides = ["right" if _is_numeric(rows, key) else "left" for key in columns]
    head = [((to_one_line(key, _CELL_COLUMNS), ""),) for key in columns]
    lines = [Text.from_ansi(row) for row in render_table(head, body, sides, width)] if columns else []
    left_out = [
        format_count(count, f"more {noun}")
        for count, noun in ((len(rows) - len(shown), "row"), (len(keys) - len(columns), "column"))
        if count > 0
    ]
    if len(lines) > _MAX_LINES:  # in a narrow terminal each cell has a line of its own
        lines, left_out = lines[:_MAX_LINES], [*left_out, f"{len(lines) - _MAX_LINES:,} more lines"]
    return [*lines, *([Text(f"… {', '.join(left_out)}", "dim")] if left_out else [])]


def _is_numeric(rows: Sequence[dict[str, Any]], key: str) -> bool:
    values = [row[key] for row in rows if row.get(key) is not None]
    return bool(values) and all(to_number(value) is not None for value in values)


def _format_cell(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "" if value is None else to_one_line(text, _CELL_COLUMNS)
