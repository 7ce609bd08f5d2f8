"""Tests of a toolkit package for goose 0.9: it runs unchanged."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from goose_like.agent.goose09 import ToolResult, ToolUse, convert_messages
from goose_like.core import message
from tests import ROOT

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(40)
PACKAGE = ROOT / "tests/fixtures/packages" / "goose09"

PROFILE = """
processor: scripted:script.yaml
accelerator: scripted:aside.yaml
toolkits:
  - almanac
  - [stars, {almanac: almanac}]
"""
SCRIPT = """
- text: I look.
  calls:
    - {tool: moon, arguments: {day: 3}}
    - {tool: tide, arguments: {place: Dover}}
    - {tool: sunset, arguments: {city: Rome}}
- text: And I go on.
  calls:
    - {tool: last_said, arguments: {}}
    - {tool: asked_days, arguments: {}}
    - {tool: think, arguments: {question: Which star is near?}}
    - {tool: moon, arguments: {day: soon}}
- Done.
"""
PROGRAM = """
import asyncio, json
from goose_like.agent.build import build_exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.core.notifier import Recorder
from goose_like.config.profile_loader import load_profile

async def main():
    recorder = Recorder()
    async with build_exchange(load_profile("old")[0], recorder) as exchange:
        end = await exchange.reply("When is the moon full?")
        outputs = [result.output for message in exchange.history.messages for result in message.tool_results]
        told = [[event.type, event.text.strip()] for event in recorder.events if event.type in ("logged", "status")]
        described = {
            f"{tool.name}.{name}": field.get("description")
            for tool in exchange.tools.values() for name, field in tool.spec.schema["properties"].items()
        }
    print(json.dumps([end.reason, end.detail, outputs, told, described, exchange.system.splitlines()]))

asyncio.run(main())
"""


@pytest.fixture
def old(tmp_path, home):
    """Run a program where the package is installed, with `more` folders at the start of its path."""
    site, work = tmp_path / "site", tmp_path / "work"
    shutil.copytree(PACKAGE / "almanac_goose", site / "almanac_goose")
    info = site / "almanac_goose-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: almanac-goose\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(
        "[goose.toolkit]\nalmanac = almanac_goose.almanac:Almanac\nstars = almanac_goose.stars:Stars\n"
        "lamp = almanac_goose.lamp:Lamp\n"
        "[goose.command]\nshout = almanac_goose.commands:Shout\n[exchange.provider]\nown = almanac_goose.own:Own\n"
        "[metadata.plugins]\nalmanac-goose = almanac_goose:name\n"
    )
    (home / "config/profiles").mkdir(parents=True)
    (home / "config/profiles/old.yaml").write_text(PROFILE)
    work.mkdir()
    (work / "script.yaml").write_text(SCRIPT)
    (work / "aside.yaml").write_text("- {text: Proxima., expect: Which star is near}\n")

    def run(*words, more=(), stdin=""):
        return subprocess.run(
            [sys.executable, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=work,
            check=False,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(home),
                "GOOSE_LIKE_HOME": str(home),
                "PYTHONPATH": ":".join(map(str, [*more, site])),
            },
        )

    return run


def test_it_runs_in_a_turn(old):
    ended = old("-c", PROGRAM)
    assert ended.returncode == 0, ended.stderr
    reason, detail, outputs, report, described, system = json.loads(ended.stdout)
    assert reason == "stop", detail
    assert outputs[0] == "done"
    assert json.loads(outputs[1]) == {"place": "Dover", "metres": 1.5}
    assert outputs[2:4] == ["in Rome at six", "And I go on."]
    assert json.loads(outputs[4]) == [3]
    assert outputs[5] == "Proxima."
    assert "field 'day'" in outputs[6]
    assert report == [
        ["status", "looking up"],
        ["logged", "moon of day 3"],  # without its markup
        ["logged", "it is full"],
        ["logged", "-- read"],
    ]
    assert described == {
        "moon.day": "The day of the month, from 1 on",
        "tide.place": "A harbour",
        "tide.hours": "Hours from now",
        "sunset.city": "Where somebody stands",
        "think.question": "What about",
    }
    assert "**Look days up in the almanac**" in system
    assert system[-1] == "Name stars by their constellation."


def test_it_is_listed_with_its_package_and_shown(old):
    listed = old("-m", "goose_like", "toolkit", "list").stdout
    assert [line.split() for line in listed.splitlines() if line.endswith("almanac-goose")] == [
        ["almanac", "Knows", "days,", "moons", "and", "tides.", "almanac-goose"],
        ["lamp", "Gives", "light.", "almanac-goose"],
        ["stars", "Knows", "stars.", "almanac-goose"],
    ]
    for group in ("goose.command", "exchange.provider"):
        assert f"'almanac-goose', because goose_like does not read the group {group!r}" in listed
    assert "day (integer) The day of the month" in old("-m", "goose_like", "toolkit", "show", "almanac").stdout
    assert "times (integer) How often" in old("-m", "goose_like", "toolkit", "show", "lamp").stdout
    assert old("-m", "goose_like", "version").stdout.splitlines()[1:] == ["almanac-goose 0.3"]


LAMP = """
processor: scripted:lamp.yaml
toolkits: [lamp]
"""
LAMP_SCRIPT = """
- calls:
    - {tool: blink, arguments: {times: 2}}
    - {tool: glow, arguments: {path: lamp.png}}
    - {tool: glow, arguments: {path: ""}}
    - {tool: glow, arguments: {path: ../secret.png}}
- I see.
"""


@pytest.fixture
def lamp(old, tmp_path, home):
    (home / "config/profiles/lamp.yaml").write_text(LAMP)
    (tmp_path / "work/lamp.yaml").write_text(LAMP_SCRIPT)
    (tmp_path / "work/lamp.png").write_bytes(PIXEL)
    (tmp_path / "secret.png").write_bytes(PIXEL)
    os.utime(tmp_path / "secret.png", (1, 1))  # no tool has just written this temporary file
    return lambda *words: old("-m", "goose_like", "run", "--profile", "lamp", *words, "shine")


def test_prints_are_notes_and_keep_standard_output_clean(lamp):
    done = lamp("--output-format", "json")
    assert json.loads(done.stdout)["result"] == "I see."
    assert "\n  the lamp is on\n" in done.stderr
    assert "\n  blink blink \n" in done.stderr
    assert "  half a line and its rest\n" in done.stderr
    assert "from a child process\n" in done.stderr
    events = [json.loads(line) for line in lamp("--output-format", "stream-json").stdout.splitlines()]
    assert [event["type"] for event in events][:2] == ["session_started", "logged"]
    assert [event["text"] for event in events if event["type"] == "logged"][1:] == [
        "blink blink ",
        "half a line and its rest",
    ]


def test_prints_in_a_session_are_notes(old, lamp):
    done = old("-m", "goose_like", "session", "start", "--profile", "lamp", stdin="shine\n")
    assert done.stdout == "I see.\n"
    assert "\n  the lamp is on\n" in done.stderr
    assert "\n  blink blink \n" in done.stderr


def test_an_image_of_a_tool_is_shown_unless_the_session_may_not_read_it(lamp):
    events = [json.loads(line) for line in lamp("--output-format", "stream-json").stdout.splitlines()]
    results = [event["result"] for event in events if event["type"] == "tool_finished"][1:]
    assert [len(result.get("images", ())) for result in results] == [1, 1, 0]
    assert results[2]["output"].startswith("image:../secret.png\n[no image is shown: ")


def package(folder, **files):
    for name, text in files.items():
        file = folder / (name.replace("__", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(text)


def test_the_real_package_wins(old, tmp_path):
    base = "class Toolkit:\n    '''Real.'''\n\ndef tool(function): return function\n"
    package(tmp_path / "real", goose__toolkit__base=base)
    (tmp_path / "real/goose/__init__.py").touch()
    ended = old("-m", "goose_like", "toolkit", "show", "almanac", more=[tmp_path / "real"])
    assert ended.returncode == 1
    assert "which is no toolkit; it belongs to the goose 0.9 that is installed here" in ended.stderr


def test_a_folder_of_that_name_is_not_the_real_package(old, tmp_path):
    (tmp_path / "work" / "goose").mkdir()
    assert "Knows stars" in old("-m", "goose_like", "toolkit", "list").stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("from exchange import Exchange", "needs a part of goose 0.9 that goose_like does not have: ImportError"),
        ("import goose.synopsis.system", "No module named 'goose.synopsis'; at almanac_goose.stars:1"),
        ("import exchange.providers.azure", "change this line: `goose-like help toolkits` lists the parts"),
    ],
)
def test_a_missing_name(old, tmp_path, line, words):
    file = tmp_path / "site/almanac_goose/stars.py"
    file.write_text(f"{line}\n{file.read_text()}")
    listed = old("-m", "goose_like", "toolkit", "list").stdout
    assert words in listed
    assert "Knows days" in listed


def test_ask_an_ai_outside_of_a_tool(old, tmp_path):
    file = tmp_path / "site/almanac_goose/stars.py"
    template = 'Message.load(filename="prompts/stars.jinja", what="stars").text'
    file.write_text(file.read_text().replace(template, 'self.think("?")'))
    ended = old("-m", "goose_like", "profile", "check", "old")
    assert ended.stderr == "goose-like: ask_an_ai works in tools only, not while a toolkit is built\n"


def test_parts_of_messages_have_the_names_of_goose09():
    use = ToolUse(id="c1", name="moon", parameters={"day": 3})
    result = ToolResult(tool_use_id="c1", output="full", is_error=False)
    assert (use.parameters, use.arguments) == ({"day": 3}, '{"day": 3}')
    assert (result.tool_use_id, result.call_id) == ("c1", "c1")
    call = message.ToolCall(id="c2", name="tide", arguments='{"place": "Dover"}')
    answer = message.ToolResult(call_id="c2", output="high")
    source = [
        message.Message(role="assistant", parts=(call,)),
        message.Message(role="tool", parts=(answer,)),
    ]
    first, second = convert_messages(source)
    assert [part.parameters for part in first.tool_use] == [{"place": "Dover"}]
    assert [part.tool_use_id for part in second.content] == ["c2"]
    assert isinstance(first.content[0], ToolUse)
    assert isinstance(second.tool_result[0], ToolResult)
