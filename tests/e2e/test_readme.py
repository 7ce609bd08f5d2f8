"""README.md: its commands run as they are written there, and it stays short."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests import ROOT
from tests.check import CHECKS, SOURCES
from tests.e2e.pages import find_blocks, run_line
from tests.e2e.serving import serving


def readme_lines() -> list[str]:
    lines = "".join(find_blocks("README.md", "sh")).splitlines()
    return [line for line in lines if "goose-like" in line and "venv" not in line]


def test_it_is_short_and_has_the_lines_that_are_tested_here():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    assert len(readme_lines()) >= 12


def test_it_leads_to_every_page():
    text = (ROOT / "README.md").read_text()
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert sorted(pages - set(re.findall(r"\]\((docs/[\w-]+\.md)\)", text))) == []


@pytest.mark.parametrize("line", readme_lines())
def test_a_command(place, line):
    if "analyst" in line and find_spec("ipykernel") is None:
        pytest.skip("the extra `analyst` is not installed")
    if line.startswith("goose-like component") and find_spec("concopilot") is None:
        pytest.skip("the extra `components` is not installed")
    if line.startswith("goose-like serve"):  # it runs until a signal
        pytest.importorskip("uvicorn")
        with serving(place, *shlex.split(line, comments=True)[2:], env={"OPENAI_API_KEY": "k"}) as server:
            assert "<title>goose_like</title>" in server.get("/").text
        return
    (place.work / "task.md").write_text("a task")
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    if "git diff" in line:
        subprocess.run("git add . && git commit -qm x && echo y >> task.md", shell=True, cwd=place.work, check=True)
    if "--continue" in line:
        assert run_line(place, 'goose-like run "first"').returncode == 0
    if line.startswith("goose-like batch"):
        (place.work / "review.yaml").write_text("title: t\ndescription: d\nprompt: look\n")
        (place.work / "files.csv").write_text("folder\n.\n")
        line = line.replace("goose-like batch", "goose-like batch --trust")
    done = run_line(place, line)
    if line.startswith("goose-like boss"):  # a model that only says ok is not enough: see test_boss_page.py
        assert (done.returncode, "named no action" in done.stdout) == (1, True), done.stdout
    else:
        assert done.returncode == 0, done.stderr


def test_the_second_command_is_the_one_that_ci_runs():
    first, second = (block.strip() for block in find_blocks("README.md", "sh")[:2])
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install '.[local]' && .venv/bin/goose-like run ")
    assert second.replace("pip install -e", "pip install --quiet -e") in (ROOT / ".ci/run").read_text()


def test_the_second_command_checks_our_files_alone():
    """The first command leaves a file in the checkout."""
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name.partition("/")[0] for name in tracked.splitlines()} == {*SOURCES}
    assert {"."}.isdisjoint(CHECKS["lint"] + CHECKS["format"])


@pytest.mark.local
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_the_first_command_does_what_it_says(place):
    """Use the weights in the person's own cache, so that a gigabyte is not unpacked for each run of the tests."""
    task = shlex.split(find_blocks("README.md", "sh")[0].strip())[-1]
    env = {"XDG_CONFIG_HOME": str(place.home / "c"), "XDG_STATE_HOME": str(place.home / "s")}
    env = {name: value for name, value in place.env(**env).items() if name != "GOOSE_LIKE_HOME"}
    command = [sys.executable, "-m", "goose_like", "run", task]
    done = subprocess.run(command, cwd=place.work, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "shell" in done.stderr
    assert done.stdout.strip()
    shown = subprocess.run([sys.executable, "primes.py"], cwd=place.work, capture_output=True, text=True, check=False)
    assert re.findall(r"\d+", shown.stdout) == ["2", "3", "5", "7", "11", "13", "17", "19", "23", "29"], done.stderr
