"""The command `batch` as a person uses it: the page, mistakes, a stop and a resume, worktrees and clones."""

import json
import os
import signal
import subprocess
import time

import pytest

from tests.e2e.command import Place, shell
from tests.e2e.pages import find_blocks, find_indented_commands, run_line
from tests.processes import is_alive, list_children

RECIPE = {
    "version": "1.0.0",
    "title": "Write",
    "description": "Writes a word",
    "prompt": "Write {{ word }} into out.txt.",
    "parameters": [{"key": "word", "input_type": "string", "requirement": "required", "description": "the word"}],
}


@pytest.fixture
def recipe(place: Place) -> str:
    (place.work / "r.json").write_text(json.dumps(RECIPE))
    return "r.json"


def read_lines(place: Place, name: str) -> list[dict]:
    return [json.loads(line) for line in (place.work / name).read_text().splitlines()]


def begin_here(place: Place, model: str) -> str:
    """Name the script of a model by a path that begins in the person's folder. Inputs run in other folders."""
    file = model.removeprefix("scripted:")
    return f"scripted:{os.path.relpath(file, place.work)}"


def test_the_page_from_recipe_to_report(place: Place) -> None:
    (recipe,) = find_blocks("docs/batch.md", "yaml")
    (inputs,) = find_blocks("docs/batch.md", "csv")
    (place.work / "greet.yaml").write_text(recipe)
    (place.work / "people.csv").write_text(inputs)
    start, resume, _ = find_indented_commands("docs/batch.md")
    done = run_line(place, f"{start} --trust")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 inputs done" in done.stderr
    lines = read_lines(place, "results.jsonl")
    assert sorted(line["input"]["name"] for line in lines) == ["Ada", "Grace"]
    assert {(line["status"], line["result"]) for line in lines} == {("done", "ok")}
    page = (place.work / "results.html").read_text()
    assert "<td>" in page
    assert 'href="results.transcripts/1.html"' in page
    assert "Write a greeting for Ada" in (place.work / "results.transcripts/1.html").read_text()
    assert run_line(place, resume).returncode == 0
    assert read_lines(place, "results.jsonl") == lines
    again = run_line(place, f"{start} --trust")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "go on with: goose-like batch resume" in again.stderr


def test_nothing_runs_before_every_input_fits_and_somebody_agreed(place: Place, recipe: str) -> None:
    (place.work / "in.jsonl").write_text('{"word": "x"}\n{"wrod": "y"}\n')
    done = place.run("batch", recipe, "in.jsonl", "-o", "r.jsonl", "--trust", "--model", place.script("never"))
    assert done.returncode == 2
    assert "1 of 2 inputs does not fit the recipe\ninput 2: " in done.stderr
    (place.work / "in.jsonl").write_text('{"word": "x"}\n')
    done = place.run("batch", recipe, "in.jsonl", "-o", "r.jsonl", "--model", place.script("never"))
    assert (done.returncode, list(place.work.glob("r.*"))) == (6, [place.work / "r.json"]), done.stderr


def test_a_worktree_keeps_a_branch_and_a_clone_a_patch(place: Place, recipe: str) -> None:
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    subprocess.run(["git", "-C", str(place.work), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(place.work), "commit", "-qm", "start"], check=True)
    (place.work / "in.jsonl").write_text('{"word": "x"}\n{"word": "y", "repository": "."}\n{"repository": "gone"}\n')
    (place.work / "r.json").write_text(
        json.dumps({**RECIPE, "parameters": [{**RECIPE["parameters"][0], "default": "z"}]})
    )
    model = place.script({"calls": [shell("echo done > out.txt")]}, "Done.")
    options = ("-o", "r.jsonl", "--trust", "--workers", "1", "--retries", "0", "--model", model)
    done = place.run("batch", recipe, "in.jsonl", *options)
    assert done.returncode == 1, done.stderr
    assert "2 of 3 inputs done" in done.stderr
    assert "git clone: " in done.stderr
    worktree, clone, failed = sorted(read_lines(place, "r.jsonl"), key=lambda line: line["number"])
    git = ["git", "-C", str(place.work)]
    shown = subprocess.run([*git, "show", f"{worktree['branch']}:out.txt"], capture_output=True, text=True, check=True)
    assert shown.stdout == "done\n"
    assert (worktree["patch"], clone["branch"], failed["status"]) == ("", "", "failed")
    subprocess.run([*git, "apply", clone["patch"]], check=True)
    assert (place.work / "out.txt").read_text() == "done\n"
    listed = subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert listed.count("\n") == 1


def test_ctrl_c_stops_everything_and_a_resume_finishes(place: Place, recipe: str) -> None:
    (place.work / "in.jsonl").write_text('{"word": "x"}\n{"word": "y"}\n')
    hanging = place.script({"calls": [shell("sleep 1000")]}, "Done.")
    driver = place.start("batch", recipe, "in.jsonl", "-o", "r.jsonl", "--trust", "--model", hanging, "--workers", "2")
    while len(list((place.home / "state/sessions").glob("*/events.jsonl"))) < 2:
        time.sleep(0.05)
    time.sleep(1)
    workers = list_children(driver.pid)
    os.kill(driver.pid, signal.SIGINT)
    _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 130, errors
    assert "go on with: goose-like batch resume" in errors
    assert "0 of 2 inputs done" in errors
    assert not any(map(is_alive, workers))
    (place.home / hanging.removeprefix("scripted:")).write_text("- Done.\n")
    done = place.run("batch", "resume", "r.jsonl")
    assert done.returncode == 0, done.stderr
    assert sorted((line["number"], line["attempts"]) for line in read_lines(place, "r.jsonl")) == [(1, 2), (2, 2)]


def test_totals_stop_the_batch_with_their_exit_code(place: Place, recipe: str) -> None:
    (place.work / "in.jsonl").write_text('{"word": "x"}\n' * 4)
    model = place.script({"text": "Done.", "usage": {"input": 900, "output": 100}})
    model = begin_here(place, model)
    options = ("--model", model, "--workers", "1", "--max-tokens", "1500", "--total-tokens", "2600")
    done = place.run("batch", recipe, "in.jsonl", "-o", "r.jsonl", "--trust", *options)
    assert done.returncode == 5, done.stderr
    assert "--total-tokens MORE" in done.stderr
    assert len(read_lines(place, "r.jsonl")) == 2
    done = place.run("batch", "resume", "r.jsonl", "--total-tokens", "10000")
    assert (done.returncode, len(read_lines(place, "r.jsonl"))) == (0, 4), done.stderr


def test_files_that_are_no_batch(place: Place) -> None:
    (place.work / "notes.jsonl").write_text("{}\n")
    for words in (["resume", "notes.jsonl"], ["report", "nothing.jsonl"]):
        done = place.run("batch", *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "is no file of results of a batch" in done.stderr


def test_nothing_of_the_person_is_replaced(place: Place, recipe: str) -> None:
    """A link that a repository brings leads our own process nowhere, and a name of another kind of file is refused."""
    (place.work / "in.jsonl").write_text('{"word": "x"}\n')
    (place.work / "a.html").write_text("mine")
    (place.work / "b.html").symlink_to(place.home / "b-target")
    (place.work / "c.jsonl").symlink_to(place.home / "c-target")
    for name in ("a.jsonl", "b.jsonl", "c.jsonl", "d.html"):
        done = place.run("batch", recipe, "in.jsonl", "-o", name, "--trust", "--model", place.script("never"))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert not list(place.home.glob("*-target"))
    assert (place.work / "a.html").read_text() == "mine"


def test_a_resume_runs_what_the_person_judged(place: Place, recipe: str) -> None:
    """Files beside the results decide nothing, and a sub recipe that changed is not run."""
    sub = {**RECIPE, "title": "Sub", "parameters": [], "prompt": "Do it."}
    (place.work / "sub.json").write_text(json.dumps(sub))
    (place.work / "r.json").write_text(json.dumps({**RECIPE, "sub_recipes": [{"name": "sub", "path": "sub.json"}]}))
    (place.work / "in.jsonl").write_text('{"word": "x"}\n')
    model = place.script({"text": "Done.", "usage": {"input": 900, "output": 100}})
    options = ("--model", model, "--max-tokens", "5000", "--total-tokens", "1000", "--trust")
    done = place.run("batch", recipe, "in.jsonl", "-o", "r.jsonl", *options)
    assert done.returncode == 5, done.stderr
    assert not list((place.work / "r.batch").glob("*.json*")), "the plan and the spending are private"
    (place.work / "sub.json").write_text(json.dumps({**sub, "prompt": "Do something else."}))
    done = place.run("batch", "resume", "r.jsonl", "--total-tokens", "9000")
    assert done.returncode == 1, done.stderr
    assert "a sub recipe changed since the batch started" in done.stderr


def test_what_was_paid_is_kept_whatever_happens_to_the_folder(place: Place, recipe: str) -> None:
    """The model leaves a detached commit in one worktree, and folders that cannot be removed in a copy."""
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", "-C", str(place.work), *words], check=True)
    (place.work / "in.jsonl").write_text('{"word": "x"}\n')
    model = place.script({"calls": [shell("git checkout -q --detach && echo done > out.txt")]}, "Done.")
    done = place.run("batch", recipe, "in.jsonl", "-o", "März 1.jsonl", "--trust", "--model", model)
    assert done.returncode == 0, done.stderr
    (line,) = read_lines(place, "März 1.jsonl")
    git = ["git", "-C", str(place.work)]
    shown = subprocess.run([*git, "show", f"{line['branch']}:out.txt"], capture_output=True, text=True, check=True)
    assert shown.stdout == "done\n"
    done = place.run(
        "batch", recipe, "in.jsonl", "-o", "q.jsonl", "--trust", "--model", model, "--sandbox", "read-only"
    )
    assert (done.returncode, read_lines(place, "q.jsonl")[0]["status"]) == (0, "done"), done.stderr
