"""The command `eval` as a person uses it: the suite of the page, a setup, a stop, a resume, and the table."""

import json
import os
import shlex

from tests.e2e.command import Place, shell
from tests.e2e.pages import find_blocks, find_indented_commands

CHECK = """#!/bin/sh
cat a.txt
git log | grep -q 'Kim Doe' && grep -q topic $ANSWER
"""


def write_suite(place: Place) -> None:
    """Write the task of the page, and one with a setup and a check of another kind."""
    greet = place.work / "suite/greet"
    branch = place.work / "suite/branch"
    greet.mkdir(parents=True)
    (greet / "task.yaml").write_text(find_blocks("docs/eval.md", "yaml")[0])
    (greet / "check.py").write_text(find_blocks("docs/eval.md", "python")[0])
    (branch / "files").mkdir(parents=True)
    (branch / "files/a.txt").write_text("a\n")
    setup = "git init -q -b topic && git add . && git commit -qm first"
    (branch / "task.yaml").write_text(json.dumps({"prompt": "Name the branch.", "setup": setup}))
    (branch / "check.sh").write_text(CHECK)
    (branch / "check.sh").chmod(0o755)


def test_the_page_with_a_stop_and_a_resume(place: Place) -> None:
    write_suite(place)
    first = {"calls": [shell("echo Hello Ada > greeting.txt; git branch")], "usage": {"input": 900, "output": 50}}
    model = place.script(first, {"text": "It is topic.", "usage": {"input": 900, "output": 50}})
    file = os.path.relpath(model.removeprefix("scripted:"), place.work)  # each trial runs in another folder
    (line,) = find_indented_commands("docs/eval.md")
    line = line.replace("-P default -P mine --trials 3", f"-m scripted:{file}").replace("/tmp/results.jsonl", "r.jsonl")
    words = (*shlex.split(line)[1:], "--workers", "1", "--max-tokens", "3000")
    done = place.run(*words, "--total-tokens", "4000")
    assert done.returncode == 5, done.stderr
    done = place.run("batch", "resume", "r.jsonl", "--total-tokens", "9000")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[1:5] == ["2", "2", "2", "100%"]
    lines = [json.loads(line) for line in (place.work / "r.jsonl").read_text().splitlines()]
    assert [(line["input"]["task"], line["status"]) for line in lines] == [("branch", "done"), ("greet", "done")]
    assert "<pre>" in (place.work / "r.html").read_text()
