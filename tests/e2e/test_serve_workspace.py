"""Tests of the fake Workspace with the real server: discovery, query, widget data, follow-up."""

import pytest

from tests.e2e.serving import serving
from tests.serve.workspace_client import ESTIMATES, PRICES, Workspace


def asks(uuid: str) -> dict[str, object]:
    return {"tool": "get_widget_data", "arguments": {"widget_uuid": uuid}}


@pytest.mark.parametrize("dialect", ["copilot", "workspace"])
@pytest.mark.parametrize("calls_as", ["text", "twice", "object"])
@pytest.mark.parametrize("records_text", [True, False])
async def test_a_conversation_in_either_dialect(place, dialect, calls_as, records_text):
    model = place.script(
        {"text": "I look. ", "calls": [asks(PRICES), asks(ESTIMATES)]},
        {"text": "It closed at 104.5.", "expect": "104.5.*1.5"},
        {"text": "Yes.", "expect": "^sure"},
    )
    with serving(place, "--model", model) as server:
        async with Workspace(server.url, dialect, calls_as=calls_as, records_text=records_text) as workspace:
            entry = await workspace.discover()
            assert entry["endpoints"]["query"] == f"{server.url}/v1/query"
            turn = await workspace.ask("what is the price?")
            assert turn.text == "I look. It closed at 104.5."
            # Both in one call today; in 2024 one after the other.
            assert len(turn.calls) == (1 if dialect == "workspace" else 2)
            assert (await workspace.ask("sure?")).text == "Yes."
            if dialect == "copilot":
                kinds = {sent.event for sent in turn.events}
                assert kinds == {"copilotMessageChunk", "copilotFunctionCall"}
            else:
                assert turn.events[0].event == "copilotStatusUpdate"
                assert turn.of("copilotCitationCollection")


async def test_a_tool_of_the_client(place):
    model = place.script({"calls": [{"tool": "add", "arguments": {"a": 2, "b": 3}}]}, {"text": "Five.", "expect": "5"})
    added = {"add": lambda given: given["a"] + given["b"]}
    with serving(place, "--model", model) as server:
        async with Workspace(server.url, tools=added) as workspace:
            turn = await workspace.ask("add 2 and 3")
    assert turn.text == "Five."
    assert turn.calls[0]["input_arguments"]["tool_name"] == "add"


async def test_a_turns_steps_are_counted_over_its_hand_offs(place):
    config = place.home / "config"
    config.mkdir()
    (config / "profiles.yaml").write_text("short: {extends: openbb, limits: {steps: 2}}\n")
    model = place.script({"calls": [asks(PRICES)]}, {"calls": [asks(ESTIMATES)]}, {"text": "Done."}, {"text": "Anew."})
    with serving(place, "--model", model, "--profile", "short") as server:
        async with Workspace(server.url) as workspace:
            turn = await workspace.ask("go on for ever")
            assert len(turn.calls) == 2
            assert turn.text == "Stopped: the limit of 2 steps."
            assert (await workspace.ask("and now?")).text
