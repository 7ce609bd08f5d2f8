"""What a call shows beside the words, as rows of a terminal: a table, a chart with its rows, text."""

from collections.abc import Sequence
from typing import Any

from rich.segment import Segment

from goose_like.core.events import Artifact

from .chart import number, plot
from .escape import one_line, visible
from .markdown_inline import BOLD, DIM
from .markdown_table import table
from .wrap import Row, wrapped, written

_TABLE_ROWS, _CHART_ROWS, _COLUMNS, _CELL = 20, 8, 12, 60
_LINES = 60
_TEXT_LINES = 12


def artifact_rows(artifact: Artifact, width: int) -> list[Row]:
    """The artifact under its name, cut to what one reads at a glance; what is left out is counted."""
    drawn = wrapped(written(visible(artifact.name), BOLD), width)
    drawn += wrapped(written(visible(artifact.description), DIM), width)
    match artifact.kind:
        case "table":
            drawn += _table(artifact.rows, _TABLE_ROWS, width)
        case "chart" if artifact.chart:
            drawn += plot(artifact.rows, artifact.chart, width)
            drawn += [[], *_table(artifact.rows, _CHART_ROWS, width)]
        case "html":
            drawn.append(written(f"a page of {len(artifact.text.encode()):,} bytes, for a browser", DIM))
        case _:
            lines = visible(artifact.text).split("\n")
            drawn += _cut([row for line in lines for row in wrapped([Segment(line)], width)])
    return drawn


def _cut(rows: list[Row]) -> list[Row]:
    more = len(rows) - _TEXT_LINES
    return [*rows[:_TEXT_LINES], written(f"… {more:,} more lines", DIM)] if more > 1 else rows


def _table(rows: Sequence[dict[str, Any]], most: int, width: int) -> list[Row]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shown = rows[: most + 1] if len(rows) == most + 1 else rows[:most]  # a line that says "1 more" would be as long
    columns = keys[:_COLUMNS]
    body = [[written(_cell(row.get(key))) for key in columns] for row in shown]
    sides = ["right" if _is_numeric(rows, key) else "left" for key in columns]
    drawn = table([written(one_line(key, _CELL)) for key in columns], body, sides, width) if columns else []
    left = [
        f"{count:,} more {noun}{'s' * (count != 1)}"
        for count, noun in ((len(rows) - len(shown), "row"), (len(keys) - len(columns), "column"))
        if count > 0
    ]
    if len(drawn) > _LINES:  # each row as lines of its own, in a narrow terminal
        drawn, left = drawn[:_LINES], [*left, f"{len(drawn) - _LINES:,} more lines"]
    return [*drawn, *([written(f"… {', '.join(left)}", DIM)] if left else [])]


def _is_numeric(rows: Sequence[dict[str, Any]], key: str) -> bool:
    values = [row[key] for row in rows if row.get(key) is not None]
    return bool(values) and all(number(value) is not None for value in values)


def _cell(value: Any) -> str:
    return "" if value is None else one_line(str(value).lower() if isinstance(value, bool) else str(value), _CELL)
