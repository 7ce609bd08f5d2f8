"""Tests of citations, checked with openbb-ai's own models."""

from typing import Any
from uuid import UUID

from openbb_ai import models

from goose_like.core.events import TextDelta
from goose_like.serve.openbb.citations import cite_outcomes
from goose_like.serve.openbb.query import DataItem, Outcome, Query, Widget, WidgetParam, WidgetTiers
from tests.serve.openbb.streams import PRICE, WORKSPACE, call, stream

PARAMS = (WidgetParam(name="symbol", current_value="AAPL"), WidgetParam(name="source", default_value="FMP"))
WIDGET = Widget(uuid=PRICE, origin="openbb", widget_id="price", name="Price", description="Prices", params=PARAMS)
QUERY = Query(dialect="workspace", messages=(), widgets=WidgetTiers(primary=(WIDGET, Widget(uuid="not a uuid"))))
DATA = Outcome(items=(DataItem(content="5"),))


def ask(uuid: str = PRICE, **changes: Any):
    return call("get_widget_data", widget_uuid=uuid, arguments=changes)


def test_what_was_given_is_cited_once_with_what_it_was_asked_for():
    hidden = Outcome(items=(DataItem(content="5", is_citable=False),))
    price, other = (ask(limit=None), DATA), (ask(symbol="TSLA"), DATA)
    uncited = [(ask(), hidden), (ask("gone"), DATA), (call("search", widget_uuid=PRICE), DATA)]
    first, second = cite_outcomes([price, other, price, *uncited], QUERY)
    assert first["source_info"] == {
        "type": "widget",
        "uuid": PRICE,
        "origin": "openbb",
        "widget_id": "price",
        "name": "Price",
        "description": "Prices",
        "metadata": {"input_args": {"symbol": "AAPL", "source": "FMP", "limit": None}},
        "citable": True,
    }
    assert first["details"] == [{"Name": "Price", "symbol": "AAPL", "limit": None}]
    assert second["source_info"]["metadata"] == {"input_args": {"symbol": "TSLA", "source": "FMP"}}
    assert first["id"] != second["id"]
    assert [first, second] == cite_outcomes([price, other], QUERY)
    assert models.Citation.model_validate(first).details == first["details"]
    assert "uuid" not in cite_outcomes([(ask("not a uuid"), DATA)], QUERY)[0]["source_info"]


def test_the_clients_own_citations_go_back_as_far_as_they_are_ones():
    box = {"text": "Yes", "page": 1, "x0": 1, "top": 2, "x1": 3, "bottom": 4}
    whole = {
        "id": PRICE,
        "source_info": {"type": "web", "name": "A page", "metadata": {"url": "https://a.example"}},
        "details": [{"Page": 3, "lastUpdated": 7}, {"id": 1}],
        "quote_bounding_boxes": [[box]],
    }
    bare = {"source_info": {"type": "artifact"}, "details": 7}
    broken: list[dict[str, Any]] = [
        {},
        {"source_info": None},
        {"source_info": {"type": "rumour"}},
        {"source_info": {"type": "web", "citable": False}},
    ]
    outcome = Outcome(citations=(whole, bare, *broken, whole))
    events = cite_outcomes([(call("fetch_page"), outcome)], WORKSPACE)
    assert [entry["source_info"]["type"] for entry in events] == ["web", "artifact"]
    assert events[0]["id"] == PRICE
    assert events[0]["details"] == [{"Page": 3}]
    assert events[0]["quote_bounding_boxes"] == [[box]]
    assert UUID(events[1]["id"])
    stream(WORKSPACE, [TextDelta(text="a")], outcomes=[(call("fetch_page"), outcome)])
