"""Citations: the sources of an answer in the form of the protocol."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from goose_like.core.message import ToolCall
from goose_like.serve.documents.quotes import find_quotes

from .client_tools import WIDGET_DATA_FUNCTIONS, get_changes
from .query import DataItem, Outcome, Query, Widget, list_objects, replace_nonfinite

HIDDEN_DETAILS = {
    "lastupdated",
    "source",
    "id",
    "uuid",
    "storedfileuuid",
    "datakey",
    "originalfilename",
    "extension",
    "category",
    "subcategory",
    "transcript_url",
}
"""Details, in lower case, that openbb-ai leaves out of citations; it leaves `url` out of statuses, too."""

_Citation = dict[str, Any]

_SOURCE_TYPES = ("widget", "direct retrieval", "web", "artifact")
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def cite_outcomes(
    outcomes: Iterable[tuple[ToolCall, Outcome]],
    query: Query,
    answer: str = "",
) -> list[dict[str, Any]]:
    """Cite the widgets that calls got data from, with the pages of documents that an answer is based on.

    The client's own citations are added. Equal citations have equal ids.
    """
    citations: list[_Citation] = []
    for call, outcome in outcomes:
        citations += _cite_widget_data(call, outcome, query, answer)
        citations += filter(_is_citable, outcome.citations)
    for context in query.context:
        source = {"type": "direct retrieval", "name": context.name or "file", "citable": True}
        citations += _cite_pages({"source_info": source, "details": [{}]}, context.items, answer)
    encoded = map(_encode_citation, citations)
    return list({citation["id"]: citation for citation in encoded}.values())


def _cite_widget_data(call: ToolCall, outcome: Outcome, query: Query, answer: str) -> list[_Citation]:
    if call.name not in WIDGET_DATA_FUNCTIONS:
        return []
    arguments = call.parse_arguments()
    widget = query.find_widget(str(arguments.get("widget_uuid")))
    if widget is None or not any(item.is_citable for item in outcome.items):
        return []
    citation = _cite_widget(widget, get_changes(arguments))
    return [citation, *_cite_pages(citation, outcome.items, answer)]


def _cite_widget(widget: Widget, changes: dict[str, Any]) -> _Citation:
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


def _cite_pages(citation: _Citation, items: Iterable[DataItem], answer: str) -> Iterator[_Citation]:
    """Extend a citation to each page of a document that an answer is based on, with boxes around the lines."""
    for item in items:
        if item.document is None or not item.is_citable:
            continue
        quotes = find_quotes(item.document.lines, answer)
        for page, lines in groupby(quotes, key=lambda line: line.page):
            details = citation["details"][0] | {"File": item.filename, "Page": page}
            boxes = [[line.model_dump()] for line in lines]
            yield citation | {"details": [details], "quote_bounding_boxes": boxes}


def _is_citable(citation: _Citation) -> bool:
    source = citation.get("source_info")
    if not isinstance(source, dict) or source.get("type") not in _SOURCE_TYPES:
        return False
    return source.get("citable") is not False


def _encode_citation(citation: _Citation) -> _Citation:
    """Leave out hidden details, and give the citation an id if it has none."""
    shown = []
    for entry in list_objects(citation.get("details")):
        visible = {key: value for key, value in entry.items() if key.lower() not in HIDDEN_DETAILS}
        if visible:
            shown.append(visible)
    encoded = citation | {"details": shown or None}
    own_id = citation.get("id")
    if not own_id:
        own_id = uuid5(NAMESPACE_URL, f"citation:{json.dumps(encoded)}")
    return encoded | {"id": str(own_id)}
