"""Rows as models send them: objects, columns, or either as JSON text."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from goose_like.core.entry_points import did_you_mean
from goose_like.core.events import Chart
from goose_like.toolkit import ToolError

Row = dict[str, JsonValue]

_ROWS, _COLUMNS, _BYTES = 1_000, 60, 300_000
_FORM = 'send a list of objects, e.g. [{"day": "Mon", "price": 2.5}]'


def read_rows(value: Any) -> list[Row]:
    """The rows: cells are text, numbers, yes or no, or nothing; what is nested becomes JSON text.

    Raises:
        ToolError: they are none, or too many.
    """
    rows = _listed(value)
    if not rows:
        raise ToolError(f"there are no rows; {_FORM}")
    if len(rows) > _ROWS:
        raise ToolError(f"{len(rows):,} rows are too many to show; send at most {_ROWS:,}: the newest, or sums of them")
    read = [_row(row, number) for number, row in enumerate(rows, 1)]
    if (count := len(columns(read))) > _COLUMNS:
        raise ToolError(f"{count} columns are too many to show; send at most {_COLUMNS}, those that matter")
    if (size := len(json.dumps(read))) > _BYTES:
        raise ToolError(f"the rows have {size:,} bytes; send at most {_BYTES:,}: fewer rows, or shorter texts")
    return read


def columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys of all rows, in the order in which they first come."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the rows are text, but no JSON ({error}); {_FORM}") from None
    if isinstance(value, dict):
        if not value or not all(isinstance(column, list) for column in value.values()):
            return [value] if value else []  # one row, or none
        lengths = {len(column) for column in value.values()}
        if len(lengths) > 1:
            raise ToolError(f"the columns have different lengths ({', '.join(map(str, sorted(lengths)))}); {_FORM}")
        return [dict(zip(value, cells, strict=True)) for cells in zip(*value.values(), strict=True)]
    if not isinstance(value, list):
        raise ToolError(f"the rows are a {type(value).__name__}; {_FORM}")
    return value


def _row(row: Any, number: int) -> Row:
    if not isinstance(row, dict):
        raise ToolError(f"row {number} is {json.dumps(row)[:80]}, no object; {_FORM}")
    return {str(key): _cell(cell) for key, cell in row.items()}


def _cell(value: Any) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def drawable(rows: Sequence[Row], chart: Chart) -> list[Row]:
    """The rows with numbers where the chart needs them; numbers that were sent as text are read.

    Raises:
        ToolError: a key is in none of the rows, or there are texts where numbers are needed.
    """
    keys = columns(rows)
    for key in (chart.x, *chart.y):
        if key not in keys:
            raise ToolError(f"no row has a key {key!r}; {did_you_mean(key, keys)}")
    is_round = chart.kind in ("pie", "donut")
    if is_round and len(chart.y) > 1:
        raise ToolError(f"a {chart.kind} shows one key; send one `y`, or call show_chart with kind bar")
    numeric = (chart.x, *chart.y) if chart.kind == "scatter" else chart.y
    drawn = [row | {key: _number(row.get(key), key, at, chart) for key in numeric} for at, row in enumerate(rows, 1)]
    for key in numeric:
        if all(row[key] is None for row in drawn):
            raise ToolError(f"no row has a number at {key!r}; pick another key")
    if is_round and any((_size(row[chart.y[0]])) < 0 for row in drawn):
        raise ToolError(f"a {chart.kind} has no place for sizes below 0; call show_chart with kind bar")
    return [row for row in drawn if not is_round or row[chart.y[0]] is not None]


def _size(value: JsonValue) -> float:
    return value if isinstance(value, int | float) else 0.0


def _number(value: JsonValue, key: str, at: int, chart: Chart) -> float | None:
    """The number, whole where it was sent so; None where there is none."""
    if value is None or value == "":
        return None
    try:
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else float(str(value))
        is_finite = math.isfinite(number)
    except (ValueError, OverflowError):  # no number, or one beyond what is drawn
        is_finite = False
    if not is_finite:
        told = f"row {at} has {json.dumps(value)[:80]} at {key!r}, where a {chart.kind} needs a number"
        raise ToolError(f"{told}; send numbers without units and separators, or another key")
    return number
