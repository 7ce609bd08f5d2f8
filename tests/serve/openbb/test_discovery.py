"""Tests of `copilots.json` and `agents.json`."""

import pytest
from openbb_ai.models import WorkspaceAgent

from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.core.errors import ProfileError
from goose_like.serve.openbb.discovery import AgentInfo, build_agents_json, build_copilots_json

DEPTH = {
    "label": "Depth",
    "type": "select",
    "default": "brief",
    "options": [{"label": "Brief", "value": "brief"}, {"label": "Full", "value": "full"}],
}


def profile(**config: object) -> Profile:
    toolkits = (ToolkitChoice(name="developer"), ToolkitChoice(name="openbb", config=config))
    return Profile(name="desk", toolkits=toolkits)


def test_a_profile_that_says_nothing_is_known_by_its_name():
    about = AgentInfo.from_profile(Profile(name="desk", toolkits=()))
    assert build_copilots_json(about, "http://127.0.0.1:7777/") == {
        "desk": {
            "name": "goose_like: desk",
            "description": "Answers with goose_like's profile 'desk'.",
            "image": "http://127.0.0.1:7777/logo.svg",
            "hasStreaming": True,
            "hasFunctionCalling": True,
            "endpoints": {"query": "http://127.0.0.1:7777/v1/query"},
        }
    }


def test_the_workspace_reads_our_features_and_the_profile_s():
    report = {"name": "Desk", "description": "Reads.", "image": "https://x.example/i.png"}
    about = AgentInfo.from_profile(profile(**report, features={"depth": DEPTH, "mcp-tools": False, "news": True}))
    (entry,) = build_agents_json(about, "https://desk.example/copilot/").values()
    assert {key: entry[key] for key in report} == report
    assert entry["endpoints"] == {
        "query": "https://desk.example/copilot/v1/query",
        "feedback": "https://desk.example/copilot/v1/feedback",
    }
    agent = WorkspaceAgent.model_validate({"id": "desk", **entry})
    assert agent.features["depth"].model_dump(exclude_none=True) == DEPTH
    assert {name for name, value in agent.features.items() if value is True} == {
        "streaming",
        "widget-dashboard-select",
        "widget-dashboard-search",
        "feedback",
        "news",
    }
    assert agent.features["mcp-tools"] is False


def test_the_tools_of_the_toolkit_are_not_its_name():
    assert AgentInfo.from_profile(profile(functions=["save_skill"])).features == {}


@pytest.mark.parametrize(
    ("config", "path", "report"),
    [
        ({"name": 3}, ("name",), "name: expected"),
        ({"features": ["x"]}, ("features",), "features: expected a mapping"),
        ({"features": {"depth": {"type": "text"}}}, ("features", "depth"), "this key is missing"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_place(config, path, report):
    with pytest.raises(ProfileError, match=report) as raised:
        AgentInfo.from_profile(profile(**config))
    assert raised.value.path[: 3 + len(path)] == ("toolkits", 1, "config", *path)
