"""The page on bosses: its commands, its script and its configurations, as they stand there."""

import re

import pytest
from goose_like_toolkits.boss.spec import ACTIONS

from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.pages import find_blocks, find_indented_commands, run_line

PAGE = "docs/boss.md"


@pytest.fixture
def scripted_place(place) -> Place:
    """Return a place with the page's configuration, where the default model is a script that plans and finishes."""
    model = place.script("1. Do it", {"calls": [{"tool": "finish", "arguments": {"result": "R", "summary": "S"}}]})
    (place.home / "config").mkdir()
    profile = f"default: {{extends: default, processor: '{model}', sandbox: full}}\n"
    (place.home / "config/profiles.yaml").write_text(profile)
    (place.work / "jarvis.yaml").write_text(find_blocks(PAGE, "yaml")[1])
    return place


def test_commands_of_the_page(scripted_place):
    lines = "".join([*find_blocks(PAGE, "sh"), *find_blocks("README.md", "sh")]).splitlines()
    lines = [line for line in lines if line.startswith("goose-like boss")]
    assert len(lines) > 6
    for line in lines:
        done = run_line(scripted_place, line)
        assert (done.returncode, "R" in done.stdout) == (0, True), (line, done.stderr)


def test_script_of_the_page(place):
    (place.work / "adding.yaml").write_text(find_blocks(PAGE, "yaml")[0])
    (line,) = find_indented_commands(PAGE)
    done = run_line(place, f"{line} --memory logs=logs.md --memory code_library=library.py")
    assert (done.returncode, done.stdout) == (0, "The library has add.\n"), done.stderr
    assert "✗" not in done.stderr
    assert "- 3 · run_code" in (place.work / "logs.md").read_text()
    assert "42" in (place.work / "logs.md").read_text()


def test_profile_of_the_page(place):
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(find_blocks(PAGE, "yaml")[2])
    model = place.script(
        {"calls": [{"tool": "boss", "arguments": {"goal": "look"}}]},
        "1. Look",
        {"calls": [{"tool": "finish", "arguments": {"result": "R", "summary": "S"}}]},
        "as it said",
    )
    done = place.run("run", "--profile", "chief", "--model", model, "--sandbox", "full", "go")
    assert (done.returncode, done.stdout) == (0, "as it said\n"), done.stderr
    assert "# look\n" in (place.work / "logs.md").read_text()


def test_table_of_actions_is_complete():
    named = re.findall(r"^\| `(\w+)\(", (ROOT / PAGE).read_text(), re.MULTILINE)
    assert set(named) == set(ACTIONS)
