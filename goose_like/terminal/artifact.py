"""Artifacts of tool calls on a terminal: tables, charts and text."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from rich.text import Text

from goose_like.core.events import Artifact
from goose_like.core.spelling import format_count

from .chart import render_chart, to_number
from .escape import escape_controls, to_one_line
from .markdown_table import render_table
from .wrap import indent_rows, wrap_words

_TABLE_ROWS = 20
_CHART_ROWS = 8
_COLUMNS = 12
_CELL_COLUMNS = 60
_MAX_LINES = 60
_TEXT_LINES = 12

_Rows = Sequence[dict[str, Any]]


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
            rows.append(Text())
            rows += _render_rows(artifact.rows, _CHART_ROWS, width)
        case "html":
            size = len(artifact.text.encode())
            rows.append(Text(f"an HTML page of {size:,} bytes, for a browser", "dim"))
        case _:
            rows += _render_text(artifact.text, width)
    indent = Text("    ")
    return [Text(), *indent_rows(rows, indent, indent), Text()]


def _render_text(text: str, width: int) -> list[Text]:
    lines = wrap_words(Text(escape_controls(text).rstrip("\n")), width)
    hidden_count = len(lines) - _TEXT_LINES
    if hidden_count <= 1:  # the note would take as much space
        return lines
    return [*lines[:_TEXT_LINES], Text(f"… {hidden_count:,} more lines", "dim")]


def _render_rows(rows: _Rows, limit: int, width: int) -> list[Text]:
    shown = rows[:limit]
    if len(rows) == limit + 1:  # "1 more row" would take as much space
        shown = rows
    keys = list(dict.fromkeys(chain.from_iterable(rows)))
    columns = keys[:_COLUMNS]
    sides = ["right" if _is_numeric(rows, key) else "left" for key in columns]
    lines = _render_cells(shown, columns, sides, width)
    left_out = []
    if len(shown) < len(rows):
        left_out.append(format_count(len(rows) - len(shown), "more row"))
    if len(columns) < len(keys):
        left_out.append(format_count(len(keys) - len(columns), "more column"))
    if len(lines) > _MAX_LINES:  # in a narrow terminal each cell has a line of its own
        left_out.append(f"{len(lines) - _MAX_LINES:,} more lines")
        lines = lines[:_MAX_LINES]
    if left_out:
        lines.append(Text(f"… {', '.join(left_out)}", "dim"))
    return lines


def _render_cells(rows: _Rows, columns: Sequence[str], sides: Sequence[str], width: int) -> list[Text]:
    if not columns:
        return []
    head = [((to_one_line(key, _CELL_COLUMNS), ""),) for key in columns]
    body = []
    for row in rows:
        cells = [_format_cell(row.get(key)) for key in columns]
        body.append([((cell, ""),) for cell in cells])
    return list(map(Text.from_ansi, render_table(head, body, sides, width)))


def _is_numeric(rows: _Rows, key: str) -> bool:
    values = [row[key] for row in rows if row.get(key) is not None]
    return bool(values) and all(to_number(value) is not None for value in values)


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, bool):
        text = text.lower()
    return to_one_line(text, _CELL_COLUMNS)
