"""What is shown beside an answer as Markdown, for where nothing is drawn; and what a table's cell can hold."""

import json
import math
from collections.abc import Sequence
from typing import Any

from html_to_markdown import ConversionOptions, convert

from goose_like.core.events import Artifact

_ROWS, _COLUMNS, _CELL, _TEXT = 50, 12, 200, 20_000
"""How much of an artifact stands in a text: rows, columns, characters of a cell, characters of a page."""

_SAFE_INTEGER = 2**53
"""From here on JavaScript reads another number."""


def keys_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The columns of rows, in the order in which they first come."""
    return list(dict.fromkeys(key for row in rows for key in row))


def cell_of(value: Any) -> str | int | float | bool:
    """A value that every table can show: no null, nothing nested, and no number that would become another."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and abs(value) > _SAFE_INTEGER:
        return str(value)
    return value  # type: ignore[no-any-return]


def as_markdown(artifact: Artifact) -> str:
    """The artifact in the text of an answer, cut to a size that one reads, and told what is left out."""
    head = f"**{_line(artifact.name)}**"
    if artifact.description:
        head += f"\n\n{artifact.description.strip()}"
    match artifact.kind:
        case "table":
            body = _table(artifact.rows, keys_of(artifact.rows))
        case "chart":
            keys, sentence = keys_of(artifact.rows), "To be drawn as a chart:"
            if chart := artifact.chart:
                sentence = f"A {chart.kind} chart of {', '.join(chart.y)} by {chart.x}:"
                keys = [key for key in (chart.x, *chart.y) if key in keys] or keys
            body = f"{sentence}\n\n{_table(artifact.rows, keys)}"
        case "html":
            page = convert(artifact.text, ConversionOptions(skip_images=True, extract_metadata=False))
            body = _cut((page.content or "").strip())
        case "text":
            body = _cut(artifact.text)
    return f"{head}\n\n{body}"


def _table(rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> str:
    if not keys:
        return "(no rows)"
    shown = keys[:_COLUMNS]
    lines = [_row(shown), _row(["---"] * len(shown))]
    lines += [_row([_written(row.get(key)) for key in shown]) for row in rows[:_ROWS]]
    left = [
        f"{count:,} more {noun}{'s' * (count != 1)}"
        for count, noun in ((len(rows) - _ROWS, "row"), (len(keys) - _COLUMNS, "column"))
        if count > 0
    ]
    return "\n".join(lines) + (f"\n\n({' and '.join(left)} not shown)" if left else "")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _written(value: Any) -> str:
    cell = cell_of(value)
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CELL else f"{line[:_CELL]}…"


def _cut(text: str) -> str:
    left = len(text) - _TEXT
    return text if left <= 0 else f"{text[:_TEXT]}…\n\n({left:,} more characters not shown)"
