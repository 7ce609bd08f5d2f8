"""The table of an evaluation."""

import re

from goose_like.core.message import Usage
from goose_like.jobs.batch.comparison import format_comparison, has_error
from goose_like.jobs.batch.job import ResultLine


def make_lines(label, results, cost_usd: float | None = 0.25):
    """Make the lines of a profile: the exit codes of its trials by task."""
    lines = []
    for task, codes in results.items():
        for trial, code in enumerate(codes, 1):
            line = ResultLine(
                number=1,
                input={"task": task, "trial": trial, "profile": label},
                attempts=1,
                seconds=10.0 * trial,
                status="failed" if code else "done",
                exit_code=code,
                usage=Usage(input_tokens=900, output_tokens=100),
                cost_usd=cost_usd,
            )
            lines.append(line)
    return lines


def test_rows_tell_what_each_column_solved_and_took():
    lines = make_lines("a", {"x": [0, 0, 8], "y": [8, 8, 8]}) + make_lines("b", {"x": [0, 0, 0], "y": [0, 3, 8]}, None)
    shown = format_comparison(lines, 100)
    rows, difference, matrix = shown.split("\n\n")
    head, first, second = rows.splitlines()
    assert head.split() == ["tasks", "trials", "solved", "pass@1", "95", "%", "tokens", "cost", "time"]
    assert re.split(r"\s{2,}", first) == ["a", "2", "6", "2", "33%", "5% to 84%", "6,000", "$1.50", "20 s"]
    assert re.split(r"\s{2,}", second) == ["b", "2", "6", "4", "67%", "16% to 95%", "6,000", "-", "20 s"]
    assert difference == "b - a: +33 points over 2 tasks; too few tasks for an interval"
    cells = [row.split() for row in matrix.splitlines()]
    assert cells == [["task", "a", "b"], ["x", "2/3", "3/3"], ["y", "0/3", "1/3"]]
    assert matrix not in format_comparison(lines, 5)


def test_trials_that_measured_nothing_are_told():
    lines = make_lines("a", {"x": [0, 76, 124], "y": [0, 0, 0]})
    assert [has_error(line) for line in lines] == [False, True, False, False, False, False]
    assert "a: 1 trial ended by an error, and not by the model" in format_comparison(lines, 100)


def test_tasks_that_only_one_column_has_are_not_compared():
    lines = make_lines("a", {"x": [0], "y": [8], "z": [0]}) + make_lines("b", {"x": [0], "y": [0]})
    shown = format_comparison(lines, 100)
    assert "b - a: +50 points (-100 to +100) over 2 tasks; no difference is shown" in shown
    assert shown.splitlines()[-1].split() == ["z", "1/1"]
    shown = format_comparison(make_lines("a", {"x": [0]}) + make_lines("b", {"x": [0]}), 100)
    assert "b - a: +0 points over 1 task; too few tasks for an interval" in shown
    assert format_comparison([], 100) == "no trial is finished"
