"""The workflows of docs/ci.md: their steps in clean clones, with a scripted model in place of the key."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.e2e.command import Place, shell

PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
REVIEW, FIX, GITLAB = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
NEEDS_SERVICE = re.compile(r"\b(pip install|sudo|gh pr|curl)\b")
EDIT = {"tool": "write_file", "arguments": {"path": "sums.py", "content": "def add(a, b):\n    return a + b\n"}}
READ = {"tool": "read_file", "arguments": {"path": "sums.py"}}


@pytest.fixture
def project(place: Place) -> Path:
    """A bare repository whose newest commit breaks a test, in place of the service."""
    (place.work / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (place.work / "test_sums.py").write_text("from sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    (place.work / ".gitignore").write_text("__pycache__/\n")
    bare = place.home / "origin.git"
    steps = ["init -q -b main", "add -A", "commit -qm good", f"clone -q --bare . {bare}", f"remote add origin {bare}"]
    for step in steps:
        git(place.work, step)
    (place.work / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    git(place.work, "commit -qam change")
    git(place.work, "push -q origin main")
    return bare


def git(folder: Path, words: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *names, *words.split()], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run_steps(place: Place, folder: Path, steps: list[dict[str, Any]], values: dict[str, str]) -> None:
    """Run the steps of a job as a runner does: each in a shell of its own that stops at the first failure."""
    (place.home / "bin").mkdir(exist_ok=True)
    command = place.home / "bin" / "goose-like"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m goose_like "$@"\n')
    command.chmod(0o755)
    python = place.home / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for step in steps:
        text = step.get("run", "")
        if not text or NEEDS_SERVICE.search(text):
            continue
        own = {name: fill(str(value), values) for name, value in step.get("env", {}).items()}
        path = f"{place.home / 'bin'}:{os.environ['PATH']}"
        env = place.env(PATH=path, RUNNER_TEMP=str(place.home), **own)
        done = subprocess.run(
            ["bash", "-e", "-c", fill(text, values)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (text, done.stdout, done.stderr)


def fill(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1]], text)


def use_model(place: Place, *steps: Any) -> None:
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text(
        f"default: {{extends: default, processor: '{place.script(*steps)}'}}\n"
    )


def clone(place: Place, project: Path, name: str) -> Path:
    folder = place.home / name
    git(place.home, f"clone -q {project} {folder}")
    return folder


def list_gitlab_steps(job: str) -> list[dict[str, Any]]:
    return [{"run": line, "env": GITLAB[job].get("variables", {})} for line in GITLAB[job]["script"]]


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_the_review_reads_the_change_and_writes_nothing_else(place, project, service):
    folder = clone(place, project, "clone")
    base = git(folder, "rev-parse HEAD~1")
    use_model(
        place, {"calls": [shell(f"git diff {base}...HEAD")]}, {"text": "sums.py:2: it subtracts", "expect": "a - b"}
    )
    values = {"secrets.OPENAI_API_KEY": "", "github.event.pull_request.base.sha": base}
    steps = REVIEW["jobs"]["review"]["steps"]
    if service == "gitlab":
        steps = list_gitlab_steps("review")
        for step in steps:
            step["env"] = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
    run_steps(place, folder, steps, values)
    assert (folder / "review.md").read_text() == "sums.py:2: it subtracts\n"
    assert git(folder, "status --porcelain") == "?? review.md"


def test_the_fix_becomes_a_branch_with_a_patch_that_passes(place, project):
    use_model(place, {"calls": [READ]}, {"calls": [EDIT]}, {"calls": [shell("python3 -c 'import sums'")]}, "fixed")
    values = {"secrets.OPENAI_API_KEY": "", "github.run_id": "7"}
    run_steps(place, clone(place, project, "model"), FIX["jobs"]["fix"]["steps"], values)
    run_steps(place, clone(place, project, "publish"), FIX["jobs"]["publish"]["steps"], values)
    assert "return a + b" in git(project, "show fix-7:sums.py")
    assert git(project, "diff --name-only main fix-7") == "sums.py"


def test_the_fix_for_gitlab_is_a_patch(place, project):
    use_model(place, {"calls": [READ]}, {"calls": [EDIT]}, "fixed")
    folder = clone(place, project, "clone")
    run_steps(place, folder, list_gitlab_steps("fix"), {})
    assert "+    return a + b" in (folder / "fix.patch").read_text()
    git(clone(place, project, "other"), f"apply {folder / 'fix.patch'}")


def test_jobs_with_the_key_cannot_write_and_others_have_no_key():
    for workflow in (REVIEW, FIX):
        assert workflow["permissions"] == {}
        for job in workflow["jobs"].values():
            has_key = "OPENAI_API_KEY" in str(job)
            can_write = "write" in job["permissions"].values()
            assert has_key != can_write
            assert not has_key or job["permissions"] == {"contents": "read"}
