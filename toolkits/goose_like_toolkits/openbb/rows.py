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

_MAX_ROWS = 1_000
_MAX_COLUMNS = 60
_MAX_BYTES = 300_000
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
    column_count = len(list_columns(parsed))
    if column_count > _MAX_COLUMNS:
        raise ToolError(f"{column_count} columns are too many to show; send at most {_MAX_COLUMNS}, those that matter")
    size_bytes = len(json.dumps(parsed))
    if size_bytes > _MAX_BYTES:
        raise ToolError(
            f"the rows have {size_bytes:,} bytes; send at most {_MAX_BYTES:,}: fewer rows, or shorter texts"
        )
    return parsed


def list_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the keys of all rows in the order of their first appearance."""
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    return list(columns)


def _list_rows(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the rows are text, but no JSON ({error}); {_EXAMPLE}") from None
    if isinstance(value, dict):
        return _list_rows_of_object(value)
    if not isinstance(value, list):
        raise ToolError(f"the rows are a {type(value).__name__}; {_EXAMPLE}")
    return value


def _list_rows_of_object(value: Mapping[str, Any]) -> list[Any]:
    """Read an object as columns if each value is a list, or else as one row."""
    if not value:
        return []
    if not all(isinstance(column, list) for column in value.values()):
        return [value]
    lengths = sorted(set(map(len, value.values())))
    if len(lengths) > 1:
        raise ToolError(f"the columns have different lengths ({', '.join(map(str, lengths))}); {_EXAMPLE}")
    rows = zip(*value.values(), strict=True)
    return [dict(zip(value, cells, strict=True)) for cells in rows]


def _parse_row(row: Any, number: int) -> Row:
    if not isinstance(row, dict):
        raise ToolError(f"row {number} is {json.dumps(row)[:80]}, no object; {_EXAMPLE}")
    return {str(key): _parse_cell(cell) for key, cell in row.items()}


def _parse_cell(value: JsonValue) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value


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
    numeric = chart.y
    if chart.kind == "scatter":
        numeric = (chart.x, *chart.y)
    drawn = []
    for number, row in enumerate(rows, 1):
        numbers = {key: _parse_number(row.get(key), key, number, chart) for key in numeric}
        drawn.append({**row, **numbers})
    for key in numeric:
        if all(row[key] is None for row in drawn):
            raise ToolError(f"no row has a number at {key!r}; pick another key")
    if is_round:
        return _select_shares(drawn, chart)
    return drawn


def _select_shares(rows: Sequence[Row], chart: Chart) -> list[Row]:
    """Return the rows with a size. Raise ToolError if a size is negative."""
    key = chart.y[0]
    shares = []
    for row in rows:
        size = row[key]
        if isinstance(size, int | float) and size < 0:
            raise ToolError(f"a {chart.kind} has no place for sizes below 0; call show_chart with kind bar")
        if size is not None:
            shares.append(row)
    return shares


def _parse_number(value: JsonValue, key: str, row_number: int, chart: Chart) -> float | None:
    """Parse a number, which stays an int if it was one; return None for an empty cell."""
    if value is None or value == "":
        return None
    number = _to_number(value)
    if number is None:
        cell = f"row {row_number} has {json.dumps(value)[:80]} at {key!r}"
        raise ToolError(
            f"{cell}, where a {chart.kind} needs a number; send numbers without units and separators, or another key"
        )
    return number


def _to_number(value: JsonValue) -> float | None:
    """Convert a cell to a finite number. Return None for text without a number, and for numbers too large to draw."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = value
        else:
            number = float(str(value))
        is_finite = math.isfinite(number)
    except (ValueError, OverflowError):
        return None
    return number if is_finite else None
