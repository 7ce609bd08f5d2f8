"""The page docs/hooks.md, from nothing to the first result, and hooks in runs and sessions."""

import json
import re

import pytest

from tests import ROOT
from tests.e2e.command import Place, shell
from tests.e2e.pages import find_blocks, run_line
from tests.workspace.workspace_harness import needs_sandbox

PAGE = "docs/hooks.md"


@pytest.fixture
def project(place: Place) -> Place:
    """Write the hook of the page into the project."""
    (settings,) = find_blocks(PAGE, "json")
    (script,) = find_blocks(PAGE, "python")
    folder = place.work / ".claude/hooks"
    folder.mkdir(parents=True)
    (place.work / ".claude/settings.json").write_text(settings)
    (folder / "no_push.py").write_text(script)
    return place


@needs_sandbox
def test_the_page_from_nothing_to_the_first_result(project):
    (commands,) = find_blocks(PAGE, "sh")
    done = run_line(project, f"set -e\n{commands}")
    assert done.returncode == 0, done.stderr
    (effect,) = re.findall(r"The last line says `(.*?)`", (ROOT / PAGE).read_text())
    assert done.stdout.rstrip().endswith(effect)

    model = project.script({"calls": [shell("git push"), shell("echo fine")]}, "done")
    done = project.run("run", "--model", model, "go")
    outputs = [event["result"]["output"] for event in project.events() if event["type"] == "tool_finished"]
    assert "a hook forbids it: a person pushes, after a review" in outputs[0]
    assert outputs[1].startswith("fine")


@needs_sandbox
def test_the_profile_of_the_page(place):
    (text,) = find_blocks(PAGE, "yaml")
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(text)
    model = place.script({"calls": [{"tool": "write_file", "arguments": {"path": "a", "content": "x"}}]}, "done")
    done = place.run("run", "--model", model, "go")
    assert done.returncode == 0, done.stderr
    assert (place.work / "edits.log").exists()


def test_the_profile_of_a_project_neither_adds_nor_removes_hooks(place):
    (place.home / "config").mkdir()
    own = "default: {sandbox: full, hooks: {PreToolUse: [{hooks: [{command: exit 2}]}]}}\n"
    (place.home / "config/profiles.yaml").write_text(own)
    (place.work / ".goose-like").mkdir()
    file = place.work / ".goose-like/profiles.yaml"
    model = place.script({"calls": [shell("touch ran")]}, "done")
    for text in ("extends: default\n  toolkits: [developer]", "extends: default\n  toolkits: [developer, hooks]"):
        file.write_text(f"team:\n  {text}\n")
        place.run("run", "--trust", "--profile", "team", "--model", model, "go")
        assert not (place.work / "ran").exists()
    file.write_text("team:\n  extends: default\n  hooks: {}\n")
    done = place.run("run", "--trust", "--profile", "team", "--model", model, "go")
    assert (done.returncode, "a project may not set 'hooks'" in done.stderr) == (2, True)


def test_nothing_of_a_project_runs_before_trust(project):
    settings = project.work / ".claude/settings.json"
    settings.write_text(json.dumps({"hooks": {"SessionStart": [{"hooks": [{"command": "touch ran"}]}]}}))
    done = project.run("run", "--model", project.script("done"), "go")
    assert "skipped untrusted files: " in done.stderr
    assert not (project.work / "ran").exists()


def test_the_tables_of_the_page_are_complete():
    from goose_like_toolkits.hooks.settings import _KEYS, EVENTS

    page = (ROOT / PAGE).read_text()
    named = set(re.findall(r"`(\w+)", page))
    assert set(EVENTS) <= named
    assert set(_KEYS) <= named
