"""Citations: the sources of an answer in the form of the protocol."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from goose_like.core.message import ToolCall
from goose_like.serve.documents.document import Line
from goose_like.serve.documents.quotes import find_quotes

from .client_tools import WIDGET_DATA_FUNCTIONS, get_changes
from .query import DataItem, Outcome, Query, Widget, replace_nonfinite

HIDDEN_DETAILS = {
    *("lastupdated", "source", "id", "uuid", "storedfileuuid", "datakey", "originalfilename", "extension"),
    *("category", "subcategory", "transcript_url"),
}
"""Details, in lower case, that openbb-ai leaves out of citations; it leaves `url` out of statuses, too."""

_SOURCE_TYPES = ("widget", "direct retrieval", "web", "artifact")
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def cite_outcomes(outcomes: Iterable[tuple[ToolCall, Outcome]], query: Query, answer: str = "") -> list[dict[str, Any]]:
    """Cite the widgets that calls got data from, with the pages of documents that an answer is based on.

    The client's own citations are added. Equal citations have equal ids.
    """
    widgets = {widget.uuid: widget for widget in reversed(query.all_widgets)}
    citations: list[dict[str, Any]] = []
    for call, outcome in outcomes:
        arguments = call.parse_arguments()
        widget = widgets.get(str(arguments.get("widget_uuid"))) if call.name in WIDGET_DATA_FUNCTIONS else None
        if widget and any(item.is_citable for item in outcome.items):
            citation = _cite_widget(widget, get_changes(arguments))
            citations += [citation, *(_cite_page(citation, *page) for page in _find_pages(outcome.items, answer))]
        citations += filter(_is_citable, outcome.citations)
    for context in query.context:
        source = {"type": "direct retrieval", "name": context.name or "file", "citable": True}
        pages = _find_pages(context.items, answer)
        citations += (_cite_page({"source_info": source, "details": [{}]}, *page) for page in pages)
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


def _find_pages(items: Iterable[DataItem], answer: str) -> Iterator[tuple[str, int, list[Line]]]:
    """Find the pages of documents that an answer is based on, as names of files, pages and lines."""
    for item in items:
        if item.document and item.document.lines and item.is_citable:
            quotes = find_quotes(item.document.lines, answer)
            for page, lines in groupby(quotes, key=lambda line: line.page):
                yield item.filename, page, list(lines)


def _cite_page(citation: dict[str, Any], filename: str, page: int, lines: list[Line]) -> dict[str, Any]:
    """Cite a page with boxes around the lines."""
    details = [citation["details"][0] | {"File": filename, "Page": page}]
    return citation | {"details": details, "quote_bounding_boxes": [[line.model_dump()] for line in lines]}


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
