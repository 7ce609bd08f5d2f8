"""Citations: the sources of an answer in the form of the protocol."""

import json
import re
from collections.abc import Iterable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from goose_like.core.message import ToolCall

from .client_tools import WIDGET_DATA_FUNCTIONS, get_changes
from .query import Outcome, Query, Widget, replace_nonfinite

HIDDEN_DETAILS = {
    *("lastupdated", "source", "id", "uuid", "storedfileuuid", "datakey", "originalfilename", "extension"),
    *("category", "subcategory", "transcript_url"),
}
"""Details, in lower case, that openbb-ai leaves out of citations; it leaves `url` out of statuses, too."""

_SOURCE_TYPES = ("widget", "direct retrieval", "web", "artifact")
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def cite_outcomes(outcomes: Iterable[tuple[ToolCall, Outcome]], query: Query) -> list[dict[str, Any]]:
    """Cite the widgets that calls got data from, and add the client's own citations; equal citations have equal ids."""
    widgets = {widget.uuid: widget for widget in reversed(query.all_widgets)}
    citations: list[dict[str, Any]] = []
    for call, outcome in outcomes:
        arguments = call.parse_arguments()
        widget = widgets.get(str(arguments.get("widget_uuid"))) if call.name in WIDGET_DATA_FUNCTIONS else None
        if widget and any(item.is_citable for item in outcome.items):
            citations.append(_cite_widget(widget, get_changes(arguments)))
        citations += filter(_is_citable, outcome.citations)
    return list({citation["id"]: citation for citation in map(_encode_citation, citations)}.values())


def _cite_widget(widget: Widget, changes: dict[str, Any]) -> dict[str, Any]:
    arguments = widget.current_values | replace_nonfinite(changes)
    source = {
        "type": "widget",
        "uuid": widget.uuid if _UUID.fullmatch(widget.uuid) else "",
        "origin": widget.origin,
        "widget_id": widget.widget_id,
        "name": widget.name,
        "description": widget.description,
        "metadata": {"input_args": arguments},
        "citable": True,
    }
    source = {key: value for key, value in source.items() if value}
    return {"source_info": source, "details": [{"Name": widget.name} | arguments]}


def _is_citable(citation: dict[str, Any]) -> bool:
    source = citation.get("source_info")
    return isinstance(source, dict) and source.get("type") in _SOURCE_TYPES and source.get("citable") is not False


def _encode_citation(citation: dict[str, Any]) -> dict[str, Any]:
    """Leave out hidden details, and give the citation an id if it has none."""
    given = citation.get("details")
    details = [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []
    shown = [{key: value for key, value in entry.items() if key.lower() not in HIDDEN_DETAILS} for entry in details]
    encoded = citation | {"details": [entry for entry in shown if entry] or None}
    return encoded | {"id": str(citation.get("id") or uuid5(NAMESPACE_URL, f"citation:{json.dumps(encoded)}"))}
