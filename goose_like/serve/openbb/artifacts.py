"""Artifacts, which are tables, charts, pages and texts, in the form of the protocol."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from goose_like.core.events import ArtifactShown, Chart
from goose_like.sessions.artifact_text import list_columns, simplify_cell


def encode_artifact(event: ArtifactShown) -> dict[str, Any]:
    """Encode an artifact as the Workspace expects it; the same artifact of the same call has the same uuid."""
    artifact = event.artifact
    content = json.dumps(artifact.model_dump())
    uuid = uuid5(NAMESPACE_URL, f"artifact:{event.call_id}:{content}")
    data: dict[str, Any] = {
        "type": artifact.kind,
        "name": artifact.name,
        "description": artifact.description,
        "uuid": str(uuid),
        "content": artifact.text,
    }
    if artifact.kind == "chart" and artifact.chart:
        points = [_encode_point(row) for row in artifact.rows]
        return data | {"content": points, "chart_params": _encode_chart(artifact.chart)}
    if artifact.kind in ("table", "chart"):  # a chart without parameters is shown as a table
        keys = list_columns(artifact.rows)
        rows = []
        for row in artifact.rows:
            rows.append({key: simplify_cell(row.get(key)) for key in keys})
        return data | {"type": "table", "content": rows}
    return data


def _encode_point(row: Mapping[str, Any]) -> dict[str, Any]:
    """Encode a row of a chart without its empty cells, which are gaps."""
    point = {}
    for key, value in row.items():
        cell = simplify_cell(value)
        if cell != "":
            point[key] = cell
    return point


def _encode_chart(chart: Chart) -> dict[str, Any]:
    if chart.kind in ("pie", "donut"):
        return {"chartType": chart.kind, "angleKey": chart.y[0], "calloutLabelKey": chart.x}
    return {"chartType": chart.kind, "xKey": chart.x, "yKey": list(chart.y)}
