"""Rows of tables and charts, which models send as objects, as columns, or as JSON text of either."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from goose_like.core.events import Chart
from goose_like.core.spelling import did_you_mean
from goose_like.toolkit import ToolError

Row = dict[str, JsonValue]

_MAX_ROWS, _MAX_COLUMNS, _MAX_BYTES = 1_000, 60, 300_000
_EXAMPLE = 'send a list of objects, e.g. [{"day": "Mon", "price": 2.5}]'


def parse_rows(value: Any) -> list[Row]:
    """Parse rows of text, numbers, booleans and nulls; nested values become JSON text.

    Raises:
        ToolError: the value is not rows, or there are too many.
    """
    rows = _list_rows(value)
    if not rows:
        raise ToolError(f"there are no rows; {_EXAMPLE}")
    if len(rows) > _MAX_ROWS:
        raise ToolError(
            f"{len(rows):,} rows are too many to show; send at most {_MAX_ROWS:,}: the newest, or sums of them"
        )
    parsed = [_parse_row(row, number) for number, row in enumerate(rows, 1)]
    if (count := len(list_columns(parsed))) > _MAX_COLUMNS:
        raise ToolError(f"{count} columns are too many to show; send at most {_MAX_COLUMNS}, those that matter")
    if (size := len(json.dumps(parsed))) > _MAX_BYTES:
        raise ToolError(f"the rows have {size:,} bytes; send at most {_MAX_BYTES:,}: fewer rows, or shorter texts")
    return parsed


def list_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the keys of all rows in the order of their first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _list_rows(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the rows are text, but no JSON ({error}); {_EXAMPLE}") from None
    if isinstance(value, dict):
        if not value or not all(isinstance(column, list) for column in value.values()):
            return [value] if value else []  # one row, or none
        lengths = {len(column) for column in value.values()}
        if len(lengths) > 1:
            raise ToolError(f"the columns have different lengths ({', '.join(map(str, sorted(lengths)))}); {_EXAMPLE}")
        return [dict(zip(value, cells, strict=True)) for cells in zip(*value.values(), strict=True)]
    if not isinstance(value, list):
        raise ToolError(f"the rows are a {type(value).__name__}; {_EXAMPLE}")
    return value


def _parse_row(row: Any, number: int) -> Row:
    if not isinstance(row, dict):
        raise ToolError(f"row {number} is {json.dumps(row)[:80]}, no object; {_EXAMPLE}")
    return {str(key): _parse_cell(cell) for key, cell in row.items()}


def _parse_cell(value: Any) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def prepare_chart_rows(rows: Sequence[Row], chart: Chart) -> list[Row]:
    """Convert the cells that a chart draws to numbers.

    Raises:
        ToolError: no row has one of the keys, or a cell is not a number.
    """
    keys = list_columns(rows)
    for key in (chart.x, *chart.y):
        if key not in keys:
            raise ToolError(f"no row has a key {key!r}; {did_you_mean(key, keys)}")
    is_round = chart.kind in ("pie", "donut")
    if is_round and len(chart.y) > 1:
        raise ToolError(f"a {chart.kind} shows one key; send one `y`, or call show_chart with kind bar")
    numeric = (chart.x, *chart.y) if chart.kind == "scatter" else chart.y
    drawn = [
        row | {key: _parse_number(row.get(key), key, number, chart) for key in numeric}
        for number, row in enumerate(rows, 1)
    ]
    for key in numeric:
        if all(row[key] is None for row in drawn):
            raise ToolError(f"no row has a number at {key!r}; pick another key")
    if is_round and any(_to_float(row[chart.y[0]]) < 0 for row in drawn):
        raise ToolError(f"a {chart.kind} has no place for sizes below 0; call show_chart with kind bar")
    return [row for row in drawn if not is_round or row[chart.y[0]] is not None]


def _to_float(value: JsonValue) -> float:
    return value if isinstance(value, int | float) else 0.0


def _parse_number(value: JsonValue, key: str, row_number: int, chart: Chart) -> float | None:
    """Parse a number, which stays an int if it was one; return None for an empty cell."""
    if value is None or value == "":
        return None
    try:
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else float(str(value))
        is_finite = math.isfinite(number)
    except (ValueError, OverflowError):  # not a number, or too large to draw
        is_finite = False
    if not is_finite:
        cell = f"row {row_number} has {json.dumps(value)[:80]} at {key!r}"
        raise ToolError(
            f"{cell}, where a {chart.kind} needs a number; send numbers without units and separators, or another key"
        )
    return number
