"""The profile of a recipe: its model, tools, servers, limits and checks, and what it cannot change."""

import sys

import pytest

from goose_like.config.profile import Limits, Profile, ToolkitChoice
from goose_like.core.errors import UsageError
from goose_like.recipes.profile import change_profile, name_model
from goose_like.recipes.recipe import load_recipe

HEAD = "title: T\ndescription: d\nprompt: go\n"


@pytest.fixture
def fill(tmp_path, home):
    def write(text):
        (tmp_path / "r.yaml").write_text(HEAD + text)
        return load_recipe(tmp_path / "r.yaml").fill({}, keeps_missing=True)

    return write


def list_toolkits(profile):
    return [choice.name for choice in profile.toolkits]


def test_a_recipe_without_extensions_keeps_the_tools_of_the_person(fill):
    profile = Profile(toolkits=("developer", "skills"), sandbox="read-only", approval="ask")
    changed = change_profile(fill("instructions: be kind"), profile)
    assert changed == profile.model_copy(update={"instructions": "be kind"})


def test_extensions_become_toolkits_and_servers(fill):
    filled = fill(
        """
extensions:
  - {type: builtin, name: developer, timeout: 300, bundled: true}
  - {type: platform, name: todo}
  - {type: stdio, name: git, cmd: uvx, args: [mcp-server-git, 1], envs: {A: b}, env_keys: [TOKEN], timeout: 9,
     available_tools: [log]}
  - {type: streamable_http, name: web, uri: "https://example.org/mcp", headers: {X: "${KEY}"}}
  - {type: sse, name: old, uri: "http://example.org/sse"}
  - {type: inline_python, name: code, code: "print(1)", dependencies: [mcp, pydantic]}
  - {type: inline_python, name: more, code: "print(2)", dependencies: [no-such-package]}
"""
    )
    developer = ToolkitChoice(name="developer", config={"checks": False})
    profile = change_profile(filled, Profile(toolkits=(developer, "reasoner", "hooks")))
    assert list_toolkits(profile) == ["hooks", "developer", "mcp"]  # hooks guard the person
    assert profile.toolkits[1] == developer
    servers = profile.toolkits[2].config
    assert servers["git"] == {
        "command": "uvx",
        "args": ["mcp-server-git", "1"],
        "env": {"A": "b", "TOKEN": "${TOKEN}"},
        "timeout_s": 9,
        "tools": ["log"],
    }
    assert servers["web"] == {"url": "https://example.org/mcp", "headers": {"X": "${KEY}"}}
    assert servers["old"]["type"] == "sse"
    assert servers["code"]["command"] == sys.executable
    assert servers["code"]["args"][1].endswith("print(1)")
    assert servers["more"]["command"] == "uvx"
    assert "no-such-package" in servers["more"]["args"]


def test_a_recipe_with_an_empty_list_has_no_tools(fill):
    assert list_toolkits(change_profile(fill("extensions: []"), Profile())) == []


@pytest.mark.parametrize(
    "extension", ["type: builtin, name: memory", "type: frontend, name: ui", "type: stdio, name: x"]
)
def test_an_extension_without_counterpart_is_refused_with_its_line(fill, extension):
    filled = fill(f"extensions:\n  - {{type: builtin, name: developer}}\n  - {{{extension}}}")
    name = extension.rpartition(" ")[2]
    with pytest.raises(UsageError, match=f"line 6: the extension '{name}' .*--without {name}"):
        change_profile(filled, Profile())
    assert list_toolkits(change_profile(filled, Profile(), [name])) == ["developer"]


def test_settings_choose_the_model_and_lower_limits(fill):
    filled = fill("settings: {goose_provider: aws_bedrock, goose_model: m, temperature: 0.2, max_turns: 1000}")
    assert name_model(filled) == "bedrock:m"
    profile = change_profile(filled, Profile(processor="openai:gpt-5", limits=Limits(steps=7)))
    assert profile.limits.steps == 7
    assert profile.processor is not None
    assert (profile.processor.model, profile.processor.temperature) == ("openai:gpt-5", 0.2)
    assert change_profile(fill("settings: {max_turns: 3}"), Profile()).limits.steps == 3
    assert name_model(fill("")) is None


def test_checks_hold_also_without_a_change(fill):
    checks = "checks: [{type: shell, command: a}, {type: shell, command: b}]"
    profile = change_profile(fill(f"retry: {{max_retries: 2, {checks}, timeout_seconds: 5, on_failure: c}}"), Profile())
    assert profile.verify is not None
    assert profile.verify.model_dump() == {
        "commands": ("a", "b"),
        "attempts": 2,
        "unchanged": True,
        "time_s": 5,
        "on_failure": "c",
        "on_failure_s": 600,
    }


def test_sub_recipes_travel_with_their_texts(fill, tmp_path):
    (tmp_path / "sub.yaml").write_text(HEAD + "sub_recipes: [{name: me, path: sub.yaml}]")
    sub = "{name: find, path: ./sub.yaml, values: {n: 3}, sequential_when_repeated: true}"
    profile = change_profile(fill(f"extensions: []\nsub_recipes: [{sub}]"), Profile())
    (choice,) = profile.toolkits
    (described,) = choice.config["recipes"]
    assert described["texts"] == {"sub.yaml": (tmp_path / "sub.yaml").read_text()}
    assert (described["name"], described["values"], described["is_sequential"]) == ("find", {"n": "3"}, True)


def test_the_folder_of_a_recipe_can_be_read_if_the_text_names_it(fill, tmp_path):
    assert change_profile(fill("instructions: '{{ recipe_dir }}'"), Profile()).paths.read == (str(tmp_path),)
    assert change_profile(fill(""), Profile()).paths.read == ()
