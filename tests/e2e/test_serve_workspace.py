"""Tests of the fake Workspace with the real server: discovery, query, widget data, follow-up."""

from dataclasses import replace

import pytest

from tests.e2e.serving import serving
from tests.serve.workspace_client import DASHBOARD, ESTIMATES, PRICES, UNPICKED, Workspace


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
        async with Workspace(
            server.url, dialect, dashboard=UNPICKED, calls_as=calls_as, records_text=records_text
        ) as workspace:
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
                assert turn.of("copilotCitationCollection")


@pytest.mark.parametrize("calls_as", ["text", "twice", "object"])
async def test_picked_widgets_are_fetched_before_the_model_is_asked(place, calls_as):
    config = place.home / "config"
    config.mkdir()
    (config / "profiles.yaml").write_text("short: {extends: openbb, limits: {steps: 1}}\n")
    model = place.script(
        "skipped: the server's own fetch is a message of the history",
        {"text": "It closed at 104.5, and 1.5 is expected.", "expect": "104.5.*1.5"},
        {"text": "Yes.", "expect": "104.5.*1.5"},
    )
    picked = tuple(replace(widget, tier="primary") for widget in DASHBOARD[:2])
    with serving(place, "--model", model, "--profile", "short") as server:
        async with Workspace(server.url, dashboard=picked, calls_as=calls_as) as workspace:
            turn = await workspace.ask("what is the price?")
            assert turn.text == "It closed at 104.5, and 1.5 is expected."
            assert (await workspace.ask("sure?")).text == "Yes."
    first, second = ([sent.event for sent in request] for request in turn.requests)
    assert first == ["copilotFunctionCall"]
    assert second == ["copilotMessageChunk"] * (len(second) - 1) + ["copilotCitationCollection"]
    assert [source["input_args"] for source in turn.calls[0]["input_arguments"]["data_sources"]] == [
        {"symbol": "SAMP"},
        {"symbol": "SAMP", "period": "quarter"},
    ]
    (collection,) = turn.of("copilotCitationCollection")
    assert [each["source_info"]["name"] for each in collection["citations"]] == [
        "Historical Prices",
        "Analyst Estimates",
    ]


async def test_a_profile_without_the_tool_fetches_nothing(place):
    config = place.home / "config"
    config.mkdir()
    toolkit = "toolkits: [{name: openbb, config: {tools: [show_table]}}]"
    (config / "profiles.yaml").write_text(f"mute: {{extends: openbb, {toolkit}}}\n")
    with serving(place, "--model", place.script("Hello."), "--profile", "mute") as server:
        async with Workspace(server.url) as workspace:
            turn = await workspace.ask("hello")
    assert (turn.text, turn.calls) == ("Hello.", [])


async def test_a_tool_of_the_client(place):
    model = place.script({"calls": [{"tool": "add", "arguments": {"a": 2, "b": 3}}]}, {"text": "Five.", "expect": "5"})
    added = {"add": lambda given: given["a"] + given["b"]}
    with serving(place, "--model", model) as server:
        async with Workspace(server.url, dashboard=UNPICKED, tools=added) as workspace:
            turn = await workspace.ask("add 2 and 3")
    assert turn.text == "Five."
    assert turn.calls[0]["input_arguments"]["tool_name"] == "add"


async def test_a_turns_steps_are_counted_over_its_hand_offs(place):
    config = place.home / "config"
    config.mkdir()
    (config / "profiles.yaml").write_text("short: {extends: openbb, limits: {steps: 2}}\n")
    model = place.script({"calls": [asks(PRICES)]}, {"calls": [asks(ESTIMATES)]}, {"text": "Done."}, {"text": "Anew."})
    with serving(place, "--model", model, "--profile", "short") as server:
        async with Workspace(server.url, dashboard=UNPICKED) as workspace:
            turn = await workspace.ask("go on for ever")
            assert len(turn.calls) == 2
            assert turn.text == "Stopped: the limit of 2 steps."
            assert (await workspace.ask("and now?")).text
