"""The general guide, section by section: its YAML, filled in, as the tools of a running session."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from goose_like_toolkits.components.definition.reader import read_definitions

from goose_like.core.errors import ProfileError
from goose_like.core.events import Logged
from tests import ROOT
from tests.toolkits.components.component_files import put_into_repository
from tests.toolkits.components.exchange_with_components import COMPONENTS, hired, installed, named

ADDRESS = {"number": 12, "street": "Main Street"}
ORDER = {
    "size": "small",
    "tables": [1, "two"],
    "dishes": [{"count": 2, "dish": "Margherita"}],
    "prices": {"Margherita": 8.5, "Funghi": 9},
    "address": ADDRESS,
}
PIZZERIA = {"path": str(COMPONENTS / "guidebook" / "pizzeria")}
LEDGER, CLERK, AUDITOR = ({"path": str(COMPONENTS / "guidebook" / name)} for name in ("ledger", "clerk", "auditor"))


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A local repository with the pizzeria in it, in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    installed("guidebook/pizzeria")
    return tmp_path / "person" / ".concopilot" / "repository"


def copied(folder: Path, name: str, old: str, new: str) -> dict[str, str]:
    """A component with some of its config.yaml replaced, as a profile names it."""
    target = folder / "variants" / "guidebook" / name
    shutil.copytree(COMPONENTS / "guidebook" / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    file = target / ".config" / "config.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return {"path": str(target)}


# --- the info and commands sections


async def test_a_model_is_told_what_the_commands_section_says(tmp_path):
    async with hired(tmp_path, PIZZERIA) as made:
        order = made.tools["pizzeria_order"]
        assert order.description == "Orders dishes."
        assert order.schema["description"] == "An order."
        assert order.schema["required"] == ["size", "tables", "dishes", "prices", "address"]
        fields = order.schema["properties"]
        assert fields["size"] == {
            "type": "string",
            "enum": ["small", "large"],
            "description": "How large they are.",
            "examples": ["small"],
        }
        assert fields["tables"]["type"] == "array"
        items = fields["dishes"]["items"]
        assert items["properties"]["count"] == {"type": "integer", "description": "How many.", "examples": [2]}
        assert items["required"] == ["count", "dish"]  # by default
        assert fields["prices"]["additionalProperties"] == {"type": "number"}
        address = fields["address"]
        assert address["required"] == ["number", "street"]
        assert fields["billing"]["properties"] == address["properties"]
        deliver = made.tools["pizzeria_deliver"].schema["properties"]
        assert deliver["to"]["properties"] == deliver["stops"]["items"]["properties"] == address["properties"]
        spell = made.tools["pizzeria_spell"].schema
        assert spell["properties"] == {"param": {"type": "string", "description": "A dish."}}
        assert spell["required"] == ["param"]


async def test_a_command_sees_what_was_given(tmp_path):
    async with hired(tmp_path, PIZZERIA) as made:
        seen = json.loads(json.loads(await made.ok("pizzeria_order", **ORDER))["taken"])
        assert {key: seen[key] for key in ORDER} == ORDER
        assert "billing" not in seen
        assert await made.ok("pizzeria_spell", param="Müsli") == json.dumps("Müsli")
        assert json.loads(await made.ok("pizzeria_deliver", to=ADDRESS, stops=[ADDRESS])) == ADDRESS
        assert json.loads(await made.ok("pizzeria_move", param=ADDRESS)) == ADDRESS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"size": "medium"}, ["size", "small", "large"]),
        ({"size": None}, ["size: None is not"]),
        ({"tables": 3}, ["tables: 3 is not of type 'array'"]),
        ({"dishes": [{"count": "2", "dish": "x"}]}, ["dishes[0].count: '2' is not of type 'integer'"]),
        ({"dishes": [{"count": 2}]}, ["dishes[0]: 'dish' is a required property"]),
        ({"dishes": [{"count": True, "dish": "x"}]}, ["dishes[0].count: True is not"]),
        ({"prices": {"a": "cheap"}}, ["prices.a: 'cheap' is not of type 'number'"]),
        (
            {"address": {"number": 1, "stret": "x"}},
            ["address: 'street' is a required property", "'stret' was unexpected"],
        ),
        ({"billing": {"number": 1.5, "street": "x"}}, ["billing.number: 1.5 is not of type 'integer'"]),
        ({"sise": "small"}, ["'sise' was unexpected"]),
    ],
)
async def test_what_is_not_as_described_never_reaches_the_command(tmp_path, change, words):
    async with hired(tmp_path, PIZZERIA) as made:
        said = await made.failed("pizzeria_order", **(ORDER | change))
        assert [word for word in words if word not in said] == [], said


async def test_a_reference_is_taken_where_the_guide_lets_it_be(tmp_path):
    dish, count = "asset://kept/content/dish", {"asset_id": "kept", "field_path": ["content", "count"]}
    address = {"asset_id": "kept", "field_path": ["content", "address"]}
    async with hired(tmp_path, PIZZERIA) as made:
        await made.ok("pizzeria_keep")
        taken = {
            "field": count,
            "records": [{"dish": dish, "count": 1}, {"dish": "Napoli"}],
            "nested": {"inner": {"dish": f"<|{dish}|>"}},
        }
        assert json.loads(await made.ok("pizzeria_review", **taken)) == {
            "field": 3,
            "records": [{"dish": "Funghi", "count": 1}, {"dish": "Napoli"}],
            "nested": {"inner": {"dish": "Funghi"}},
        }
        whole = json.loads(await made.ok("pizzeria_move", param=address))
        assert whole == {"number": 4, "street": "Lane"}
        for refused in (
            {"records": [{"dish": "x", "count": count}]},
            {"nested": {"inner": {"dish": "x", "count": count}}},
            {"nested": "asset://kept/content"},
            {"records": "asset://kept/content"},
        ):
            said = await made.failed("pizzeria_review", **refused)
            assert "a reference to an asset is not accepted here" in said
        assert "not accepted here" in await made.failed("pizzeria_order", **(ORDER | {"size": dish}))
        assert "not accepted here" in await made.failed("pizzeria_spell", param=dish)
        # What it leads to is held against the type as the value itself would be.
        assert "'integer'" in await made.failed("pizzeria_review", field=dish)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("prompt: own words", "prompt_file_name: prompt.md", "prompt_file_path: {root}/far.md"), "own words"),
        (("prompt_file_name: prompt.md", "prompt_file_path: {root}/far.md"), "Never order after ten."),
        (("prompt_file_path: {root}/far.md",), "from afar"),
        ((), None),
    ],
)
async def test_prompt_before_prompt_file_name_before_prompt_file_path(tmp_path, lines, words):
    root = tmp_path / "project"
    root.mkdir()
    (root / "far.md").write_text("from afar\n")
    there = "  prompt: Never order without an address.\n  prompt_file_name: prompt.md\n"
    wanted = "".join(f"  {line.format(root=root)}\n" for line in lines)
    async with hired(tmp_path, copied(tmp_path, "pizzeria", there, wanted)) as made:
        await made.does()
        told = made.system.partition("- pizzeria: Takes orders; call it when somebody is hungry.\n")[2]
        assert told.startswith(f"{words}\n" if words else "Where a parameter takes an asset")
        others = {"own words", "Never order after ten.", "from afar"} - {words}
        assert [text for text in others if text in told] == []


# --- the config field, the .runtime folder and its instances


async def config_of(made, tool: str) -> dict:
    return json.loads(json.loads(await made.ok(tool, **ORDER))["taken"])["config"]


async def test_an_outer_config_overrides_and_merges(tmp_path, repository):
    outer = {"key1": "of the profile", "nested": {"right": "outer"}, "listed": [3]}
    async with hired(tmp_path, named("pizzeria", config=outer)) as made:
        assert await config_of(made, "pizzeria_order") == {
            "key1": "of the profile",
            "nested": {"left": "own", "right": "outer"},
            "listed": [3],
        }


async def test_two_instances_have_files_and_configuration_of_their_own(tmp_path, repository):
    use = (
        named("pizzeria", instance_id=0, config={"nested": {"left": "zeroth"}}),
        named("pizzeria", instance_id="north", config={"nested": {"left": "northern"}}),
    )
    async with hired(tmp_path, *use) as made:
        assert not (made.root / ".runtime").exists()  # until one is called
        assert (await config_of(made, "pizzeria_0_order"))["nested"]["left"] == "zeroth"
        assert (await config_of(made, "pizzeria_north_order"))["nested"]["left"] == "northern"
    placed = tmp_path / "project" / ".runtime" / "org" / "example" / "guidebook" / "pizzeria" / "1.0.0"
    assert sorted(folder.name for folder in placed.iterdir()) == ["0", "north"]
    assert sorted(file.name for file in (placed / "north").iterdir()) == ["config.yaml", "prompt.md"]
    for folder, word in (("0", "one"), ("north", "two")):
        file = placed / folder / "config.yaml"
        text = file.read_text().replace("key1: of the pizzeria", f"key1: edited {word}")
        file.write_text(text.replace("prompt: Never order without an address.", f"prompt: edited prompt {word}"))
    async with hired(tmp_path, *use) as made:
        zeroth, north = await config_of(made, "pizzeria_0_order"), await config_of(made, "pizzeria_north_order")
        assert (zeroth["key1"], zeroth["nested"]["left"]) == ("edited one", "zeroth")
        assert (north["key1"], north["nested"]["left"]) == ("edited two", "northern")
        assert "edited prompt one" in made.system
        assert "edited prompt two" in made.system
    stored = repository / "org" / "example" / "guidebook" / "pizzeria" / "1.0.0" / "pizzeria-1.0.0-config.yaml"
    assert "edited" not in stored.read_text()


async def test_a_command_that_a_person_adds_in_the_copy_is_a_tool_in_the_next_session(tmp_path, repository):
    async with hired(tmp_path, named("pizzeria")) as made:
        assert "pizzeria_praise" not in made.tools
        await made.ok("pizzeria_spell", param="good")
    file = next((tmp_path / "project" / ".runtime").rglob("config.yaml"))
    text = file.read_text().replace("command_name: spell", "command_name: praise").replace("Takes orders; ", "Takes ")
    file.write_text(text)
    async with hired(tmp_path, named("pizzeria")) as made:
        assert "pizzeria_spell" not in made.tools
        assert await made.ok("pizzeria_praise", param="good") == '"good"'
        assert "Takes call it when" in made.system


async def test_what_a_person_breaks_in_the_copy_is_told_with_what_finds_it(tmp_path, repository):
    async with hired(tmp_path, named("pizzeria")) as made:
        await made.ok("pizzeria_spell", param="good")
    file = next((tmp_path / "project" / ".runtime").rglob("config.yaml"))
    file.write_text(file.read_text().replace("as_plugin: true", "as_plugin: maybe"))
    with pytest.raises(ProfileError, match=r"config\.yaml:6: as_plugin: expected a valid boolean") as raised:
        async with hired(tmp_path, named("pizzeria")):
            pass
    command = re.search("`goose-like (.+)`", str(raised.value))
    assert command
    words = [sys.executable, "-m", "goose_like", *command[1].split()]
    folder = tmp_path / "project"
    checked = await asyncio.to_thread(subprocess.run, words, cwd=folder, capture_output=True, text=True, check=False)
    assert (checked.returncode, "config.yaml:6: as_plugin" in checked.stdout) == (1, True), checked.stderr


async def test_before_its_first_call_a_component_says_what_the_repositorys_files_say(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    own = "  prompt: Never order without an address.\n"
    changed = Path(copied(tmp_path, "pizzeria", own, "")["path"])
    put_into_repository(changed)
    async with hired(tmp_path, named("pizzeria")) as made:
        await made.ok("pizzeria_spell", param="good")
        assert "Never order after ten." in made.system
    copy = next((tmp_path / "project" / ".runtime").rglob("prompt.md"))
    copy.write_text("Order at once.")
    async with hired(tmp_path, named("pizzeria")) as made:
        await made.does()
        assert "Order at once." in made.system
        assert "Never order after ten." not in made.system


async def test_sandbox_read_only_leaves_no_copy(tmp_path, repository):
    async with hired(tmp_path, named("pizzeria", config={"key1": "mine"}), mode="read-only") as made:
        assert (await config_of(made, "pizzeria_order"))["key1"] == "mine"
        assert [each.name for each in made.root.iterdir()] == []


async def test_a_session_does_not_parse_an_installed_component_again(tmp_path, repository):
    start = """
import sys
from pathlib import Path
from goose_like_toolkits.components.definition.reader import read_definitions
(read,) = read_definitions([Path(sys.argv[1])]).values()
print(read.value.coordinates, any(name.endswith("definition.parser") for name in sys.modules))
"""
    stored = next(repository.rglob("*config.yaml"))
    read_definitions([stored])
    words = [sys.executable, "-c", start, str(stored)]
    read = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=True)
    assert read.stdout == "org.example.guidebook:pizzeria:1.0.0 False\n"


# --- resources


async def test_a_shared_resource_is_opened_once_and_closed_once_after_its_users(tmp_path):
    async with hired(tmp_path, CLERK, AUDITOR, LEDGER) as made:
        assert not (made.root / "ledger.log").exists()
        assert await made.ok("clerk_write", line="one") == "3 characters"
        assert await made.ok("auditor_write", line="two") == "3 characters"
    assert (tmp_path / "project" / "ledger.log").read_text().splitlines() == [
        "opened",
        "clerk came",
        "clerk: one",
        "auditor came",
        "auditor: two",
        "auditor went",
        "clerk went",
        "closed",
    ]


async def test_a_user_that_raises_keeps_no_resource_open(tmp_path):
    async with hired(tmp_path, LEDGER, CLERK, AUDITOR) as made:
        said = await made.failed("clerk_write", line="one", then="raise")
        assert "RuntimeError: out of ink" in said
        await made.ok("auditor_write", line="two")
    log = (tmp_path / "project" / "ledger.log").read_text().splitlines()
    assert log[-3:] == ["auditor went", "clerk went", "closed"]
    assert log.count("opened") == log.count("closed") == 1


@pytest.mark.parametrize("when", ["initialize", "finalize"])
async def test_a_user_that_can_not_begin_or_end_keeps_no_resource_open(tmp_path, when):
    async with hired(tmp_path, LEDGER, {**CLERK, "config": {"fails": when}}, AUDITOR) as made:
        if when == "initialize":
            said = await made.failed("clerk_write", line="one")
            assert "clerk can't be constructed: RuntimeError: no initialize today" in said
        else:
            await made.ok("clerk_write", line="one")
        await made.ok("auditor_write", line="two")
    log = (tmp_path / "project" / "ledger.log").read_text().splitlines()
    assert (log[0], log[-1], log.count("opened"), log.count("closed")) == ("opened", "closed", 1, 1)
    assert "auditor went" in log
    told = [event.text for event in made.recorder.events if isinstance(event, Logged)]
    assert [text for text in told if "no finalize today" in text] == told[: when == "finalize"]


async def test_a_crash_that_left_a_resource_open_is_told(tmp_path):
    async with hired(tmp_path, LEDGER, CLERK, AUDITOR) as made:
        await made.ok("auditor_write", line="one")
        said = await made.failed("clerk_write", line="two", then="crash")
        assert "the components' process died (exit code 5)" in said
        again = await made.ok("auditor_write", line="three")
        assert "[the components' process is a new one; what these held is gone: ledger, auditor, clerk]" in again
        assert "gone" not in await made.ok("clerk_write", line="four")
    log = (tmp_path / "project" / "ledger.log").read_text().splitlines()
    assert log.count("opened") == 2
    assert log.count("closed") == 1
    assert log[-1] == "closed"


# --- at a session's start

WATCHED = """
import asyncio, json, sys
from tests.toolkits.components.exchange_with_components import COMPONENTS, hired
from pathlib import Path

started = []
sys.addaudithook(lambda event, _: started.append(event) if event in ("subprocess.Popen", "os.fork", "os.posix_spawn",
                                                                    "os.exec") else None)

async def main():
    folder, use = Path(sys.argv[1]), json.loads(sys.argv[2])
    async with hired(folder, *use, mode="full", path=[str(COMPONENTS)]) as made:
        await made.does()
        before, tools = len(started), len(made.tools)
        said = await made.ok("c99_spell", param="now")
        print(json.dumps([tools, before, len(started) > before, said]))

asyncio.run(main())
"""


def test_a_hundred_components_start_no_process_until_one_is_called(tmp_path):
    """In a process of its own, where nothing else starts any."""
    text = (COMPONENTS / "guidebook" / "pizzeria" / ".config" / "config.yaml").read_text()
    use = []
    for number in range(100):
        folder = tmp_path / "many" / f"c{number}" / ".config"
        folder.mkdir(parents=True)
        own = text.replace("artifact_id: pizzeria", f"artifact_id: c{number}").replace(
            "title: pizzeria", f"title: c{number}"
        )
        (folder / "config.yaml").write_text(own)
        (folder / "prompt.md").touch()
        use.append({"path": str(folder.parent)})
    watched = subprocess.run(
        [sys.executable, "-c", WATCHED, str(tmp_path), json.dumps(use)],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
    assert watched.returncode == 0, watched.stderr
    tools, before, has_started, said = json.loads(watched.stdout.splitlines()[-1])
    assert (tools >= 600, before, has_started, said) == (True, 0, True, '"now"')
