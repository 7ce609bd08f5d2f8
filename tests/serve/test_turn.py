"""Tests of what clients of the server may read in events."""

from types import SimpleNamespace

import pytest

from goose_like.core.events import FileChanged, Logged, Retrying, Status, SubagentEvent, TurnFinished
from goose_like.serve.turn import _hide_addresses

ADDRESS = "http://10.0.0.7:8080"
SERVICE = SimpleNamespace(hide_addresses=lambda text: text.replace(ADDRESS, "[server]"))
EVENTS = [
    Logged(text=f"{ADDRESS} is slow"),
    Status(text=f"waiting for {ADDRESS}"),
    Retrying(text=f"{ADDRESS} refused", wait_s=1),
    FileChanged(call_id="c", path="a", diff=f"+{ADDRESS}"),
    TurnFinished(reason="error", detail=f"no answer of {ADDRESS}"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_no_client_reads_the_address_of_a_model_server(event, depth):
    for _ in range(depth):
        event = SubagentEvent(call_id="d", event=event)
    hidden = _hide_addresses(event, SERVICE)
    assert ADDRESS in event.model_dump_json()
    assert ADDRESS not in hidden.model_dump_json()
    assert "[server]" in hidden.model_dump_json()
