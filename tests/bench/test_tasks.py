"""The tasks of bench/tasks: each check accepts the reference solution and refuses the plausible wrong ones."""

import json
import subprocess
import sys
from collections import Counter

import pytest
import yaml

from tests import ROOT

FOLDER = ROOT / "bench" / "tasks"
sys.path.append(str(FOLDER))
import results  # noqa: E402
import suite  # noqa: E402

TASKS = suite.load_tasks()


def solve(task, script, place):
    """Let a script work as an agent would, and return why the check refuses its work."""
    work = place / "work"
    suite.prepare(task, work)
    done = subprocess.run(["bash", "-c", script], cwd=work, env=suite.build_environment(), capture_output=True)
    answer = place / "answer.txt"
    answer.write_bytes(done.stdout)
    return suite.check(task, work, answer)


def run(*words):
    command = [sys.executable, FOLDER / "run", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def read_outcomes(folder):
    return [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]


def test_the_suite_has_three_sizes_and_sets_a_third_aside():
    assert Counter(task.size for task in TASKS.values()) == {"file": 20, "files": 10, "repository": 6}
    held_out = Counter(task.size for task in TASKS.values() if task.is_held_out)
    assert held_out == {"file": 7, "files": 3, "repository": 2}


@pytest.mark.parametrize("name", TASKS)
def test_a_check_separates_right_from_wrong(name, tmp_path, request):
    task = TASKS[name]
    solutions = yaml.safe_load((task.folder / "solutions.yaml").read_text())
    wrong = list(solutions["wrong"].items())
    assert len(wrong) == 3
    first = list(TASKS).index(name) % 3
    chosen = (wrong[first:] + wrong[:first])[: request.config.getoption("--wrong")]
    reasons = {}
    for title, script in [("right", solutions["right"]), ("untouched", ""), *chosen]:
        place = tmp_path / title
        place.mkdir()
        reasons[title] = solve(task, script, place)
    assert reasons.pop("right") == ""
    for title, why in reasons.items():
        assert why.startswith("AssertionError: "), f"{title}: a check says in words what is wrong, not {why!r}"


def test_a_program_that_exits_decides_no_check(tmp_path):
    script = 'echo "import os; os._exit(0)" > calc.py; echo "raise SystemExit(0)" | tee json.py > ast.py'
    assert "the program ended itself" in solve(TASKS["function"], script, tmp_path)


def test_a_second_start_skips_what_is_done(tmp_path):
    words = ["--tasks", "port,todo", "--trials", "2", "--results", tmp_path, "--label", "other"]
    first = run(*words, "--", "echo", "8472, three:")
    assert first.returncode == 0, first.stderr
    outcomes = read_outcomes(tmp_path)
    assert [(one["task"], one["trial"]) for one in outcomes] == [("port", 1), ("port", 2), ("todo", 1), ("todo", 2)]
    assert all(one["is_solved"] for one in outcomes)
    assert "4/4" in first.stdout
    path = tmp_path / "outcomes.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]) + lines[2][:30])
    second = run(*words, "--", "echo", "no")
    assert "2 results are in" in second.stderr
    assert [one["is_solved"] for one in read_outcomes(tmp_path)] == [True, True, False, False]
    assert "2/4" in second.stdout


def test_the_transcript_of_a_failed_task_is_kept(tmp_path):
    command = ["--", "bash", "-c", "echo hello > port.txt; echo no idea; echo working >&2"]
    assert run("--tasks", "port", "--results", tmp_path, "--label", "an agent", *command).returncode == 0
    kept = tmp_path / "transcripts" / "an-agent" / "port-1"
    assert (kept / "stdout.txt").read_text() == "no idea\n"
    assert (kept / "stderr.txt").read_text() == "working\n"
    assert (kept / "work" / "port.txt").read_text() == "hello\n"
    assert "the answer is 'no idea'" in (kept / "check.txt").read_text()


@pytest.mark.parametrize(
    ("limits", "command"),
    [({"processor_s": 1, "wall_s": 60}, "while true; do :; done"), ({"wall_s": 0.5}, "sleep 60 & sleep 60")],
)
def test_a_limit_ends_the_agent(tmp_path, limits, command):
    with open(tmp_path / "out", "w") as out:
        ended = suite.run_limited(["bash", "-c", command], tmp_path, suite.build_environment(), out, out, **limits)
    assert ended.exit_code is None


def test_the_tokens_and_the_answer_of_goose_like_are_read():
    call = {"parts": [{"type": "tool_call", "name": "shell"}]}
    text = {"parts": [{"type": "text", "text": "It is"}, {"type": "text", "text": " 8."}]}
    usage = {"input_tokens": 500, "output_tokens": 20, "cache_read_tokens": 400}
    events = [
        {"type": "message_completed", "message": call, "usage": usage},
        {"type": "status", "text": "the model reads"},
        {"type": "message_completed", "message": text, "usage": usage},
    ]
    printed = "".join(json.dumps(event) + "\n" for event in events) + '{"type": "run_fin'
    assert results.read_output(printed) == results.Output("It is 8.", 1000, 800, 40)


def test_tasks_that_are_set_aside_run_only_on_request(tmp_path):
    words = ["--tasks", "port,primes", "--results", tmp_path, "--label", "other"]
    run(*words, "--", "true")
    run(*words, "--held-out", "--", "true")
    assert [one["task"] for one in read_outcomes(tmp_path)] == ["port", "primes"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--tasks", "x"], "no task 'x'"), (["--sizes", "x"], "no size 'x'"), (["--tasks", "primes"], "--held-out")],
)
def test_a_wrong_choice_is_told(words, message, tmp_path):
    done = run(*words, "--results", tmp_path, "--", "true")
    assert done.returncode == 1
    assert message in done.stderr
