"""Skills in runs and sessions of the real command."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import Place, shell
from tests.e2e.pages import find_blocks, run_line
from tests.toolkits.skills.write_skill import write_skill
from tests.workspace.workspace_harness import GIT, needs_sandbox

USE = {"tool": "use_skill", "arguments": {"name": "pdf"}}


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "person"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def repository(place: Place) -> Path:
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    return place.work


def list_results(place: Place) -> list[str]:
    return [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]


def read_prompt(place: Place) -> str:
    return next(event["system"] for event in place.events() if event["type"] == "prompt_recorded")


def test_the_commands_and_files_of_the_page(place: Place, repository: Path) -> None:
    """In their order, as a person would."""
    begun, script, checked = find_blocks("docs/skills.md", "sh")
    done = run_line(place, begun)
    assert done.returncode == 0, done.stderr
    (text,) = find_blocks("docs/skills.md", "markdown")
    folder = place.home / "config/skills/release-notes"
    assert (folder / "SKILL.md").exists()
    (folder / "SKILL.md").write_text(text)
    (folder / script.partition("\n")[0].removeprefix("# ")).write_text(script)
    done = run_line(place, f"set -e\n{checked}")
    assert done.returncode == 0, done.stderr
    assert "1 skill, 0 errors, 0 notes\n" in done.stdout
    assert "- release-notes: Writes release notes from git." in done.stdout

    for name in ("one", "two"):
        line = f"{GIT} commit -q --allow-empty -m {name}"
        subprocess.run(line.split(), cwd=repository, check=True)
    named = {"tool": "use_skill", "arguments": {"name": "release-notes"}}
    steps = ({"calls": [named]}, {"calls": [shell(f"sh {folder}/commits.sh")], "expect": "sh .*/commits.sh`"}, "done")
    first, second = find_blocks("docs/skills.md", "text")[0].splitlines()
    done = place.run("run", "--sandbox", "full", "--model", place.script(*steps), first)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\w+ two\n?", list_results(place)[1])
    model = place.script({"text": "done", "expect": r"^\[skill release-notes, .*The task: only for version 2$"})
    (line,) = re.findall(r'`goose-like run "(.*)"`', Path("docs/skills.md").read_text())
    assert line == second
    done = place.run("run", "--model", model, line)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_nothing_of_a_project_is_used_before_trust(place: Place, repository: Path) -> None:
    write_skill(repository / ".claude/skills", "pdf", "Fills forms.", "Always sign in blue.")
    steps = ({"calls": [USE]}, "done")
    done = place.run("run", "--model", place.script(*steps), "go")
    assert f"skipped untrusted files: {repository}/.claude/skills/pdf/SKILL.md (" in done.stderr
    assert "Fills forms" not in read_prompt(place)
    assert "no tool" in list_results(place)[0]
    done = place.run("run", "--trust", "--model", place.script(*steps), "go")
    assert "- pdf: Fills forms." in read_prompt(place)
    assert "Always sign in blue." in list_results(place)[0]
    assert "not trusted" not in done.stderr


def test_a_changed_script_is_refused_where_nobody_can_be_asked(place: Place, repository: Path) -> None:
    folder = write_skill(repository / ".agents/skills", "pdf").parent
    (folder / "fill.sh").write_text("echo 1")
    done = place.run("trust", "add")
    assert f"{folder}/SKILL.md (" in done.stdout
    assert ", with fill.sh)" in done.stdout
    (folder / "fill.sh").write_text("echo 2")
    steps = ({"calls": [USE]}, "done")
    done = place.run("run", "--model", place.script(*steps), "go")
    assert "- pdf: Does it." in read_prompt(place)
    assert "(fill.sh (changed))" in list_results(place)[0]
    assert place.list_answers() == [("deny", "nobody")]
    assert done.returncode == 6
    done = place.run("trust", "add")
    assert "changed since: fill.sh (changed)" in done.stdout
    done = place.run("run", "--model", place.script(*steps), "go")
    assert done.returncode == 0, done.stderr
    assert list_results(place)[0].startswith("[skill pdf, in ")


def test_a_name_that_is_taken_stays_with_the_command(place: Place, person: Path) -> None:
    file = write_skill(person / ".claude/skills", "init", body="Not this.")
    model = place.script("done")
    done = place.run("run", "--model", model, "/init")
    (message,) = place.list_messages()
    assert "Not this." not in message
    told = f"{file}: the name /init is taken by another command; the model can still use it"
    assert told in done.stderr
    done = place.run("session", "start", "--model", model, input="/help\n")
    assert told in done.stderr + done.stdout


@needs_sandbox
def test_a_script_of_the_person_runs_and_the_rest_of_the_folder_stays_hidden(
    place: Place, repository: Path, person: Path
) -> None:
    folder = write_skill(person / ".claude/skills", "pdf").parent
    (folder / "fill.sh").write_text(f"echo filled; touch made; echo more >> {folder}/SKILL.md")
    (person / ".claude/.credentials.json").write_text("CANARY")
    (person / "notes.txt").write_text("CANARY")
    wanted = [shell(f"sh {folder}/fill.sh; cat {person}/.claude/.credentials.json {person}/notes.txt"), USE]
    read = {"tool": "read_file", "arguments": {"path": f"{folder}/fill.sh"}}
    done = place.run("run", "--model", place.script({"calls": [*wanted, read]}, "done"), "go")
    ran, _, text = list_results(place)
    assert "filled\n" in ran
    assert "CANARY" not in ran
    assert "Read-only file system" in ran
    assert "echo filled" in text
    assert (repository / "made").exists()
    assert done.returncode in (0, 1)


@needs_sandbox
def test_allowed_tools_spare_questions_for_the_turn_inside_the_sandbox(
    place: Place, repository: Path, person: Path
) -> None:
    front = "allowed-tools: Bash(touch:*), Write, WebFetch(domain:example.org)\n"
    write_skill(person / ".claude/skills", "pdf", front=front)
    wrote = {"tool": "write_file", "arguments": {"path": "b", "content": "x"}}
    first = {"calls": [USE, shell("touch a"), wrote, shell("mkdir c"), shell(f"touch {person}/d")]}
    steps = (first, "done", {"calls": [shell("touch e")]}, "done")
    words = ("session", "start", "--approval", "ask", "--model", place.script(*steps))
    place.run(*words, input="go\nagain\n")
    answered = [event["question"]["subject"] for event in place.events() if event["type"] == "asked"]
    assert answered == ["mkdir c", "touch e"]
    assert sorted(path.name for path in repository.iterdir()) == [".git", "a", "b"]
    assert not (person / "d").exists()

    steps = ({"calls": [USE, shell("touch f")]}, "done")
    done = place.run("run", "--approval", "ask", "--sandbox", "full", "--model", place.script(*steps), "go")
    assert done.returncode == 6
    assert not (repository / "f").exists(), "without a sandbox it spares no question"
    model = place.script({"calls": [shell("touch g")]}, "done")
    done = place.run("run", "--approval", "ask", "--model", model, "/pdf a form")
    assert (repository / "g").exists(), done.stderr
