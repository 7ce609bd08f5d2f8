"""What is shown beside an answer, in the protocol's form."""

import json
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from goose_like.core.events import ArtifactShown, Chart
from goose_like.sessions.artifact_text import cell_of, keys_of


def client_artifact(shown: ArtifactShown) -> dict[str, Any]:
    """The artifact as the Workspace takes it; the same call's same artifact has the same uuid."""
    artifact = shown.artifact
    uuid = uuid5(NAMESPACE_URL, f"artifact:{shown.call_id}:{json.dumps(artifact.model_dump())}")
    told: dict[str, Any] = {
        "type": artifact.kind,
        "name": artifact.name,
        "description": artifact.description,
        "uuid": str(uuid),
        "content": artifact.text,
    }
    if artifact.kind == "chart" and artifact.chart:
        return told | {"content": [_point(row) for row in artifact.rows], "chart_params": _chart_params(artifact.chart)}
    if artifact.kind in ("table", "chart"):  # a chart that says not how it is drawn is a table
        keys = keys_of(artifact.rows)
        rows = [{key: cell_of(row.get(key)) for key in keys} for row in artifact.rows]
        return told | {"type": "table", "content": rows}
    return told


def _chart_params(chart: Chart) -> dict[str, Any]:
    if chart.kind in ("pie", "donut"):
        return {"chartType": chart.kind, "angleKey": chart.y[0], "calloutLabelKey": chart.x}
    return {"chartType": chart.kind, "xKey": chart.x, "yKey": list(chart.y)}


def _point(row: dict[str, Any]) -> dict[str, Any]:
    """A row for a chart, where a value that is not there is a gap."""
    return {key: cell for key, value in row.items() if (cell := cell_of(value)) != ""}
