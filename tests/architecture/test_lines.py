"""Limits for readable lines, per package."""

import ast

import pytest

from tests import ROOT
from tests.architecture.lines import measure_complexity, measure_files

MAX_HEAVY_SHARE = 0.03
"""The share of code lines on which more than 15 syntax nodes may start. More than 20 start on none."""
MAX_CONDITIONALS = 15
MAX_COMPREHENSIONS = 25
MAX_TUPLE_ASSIGNMENTS = 1
"""Per 1,000 code lines."""

PACKAGES = [
    folder
    for parent in ("goose_like", "toolkits/goose_like_toolkits")
    for folder in sorted((ROOT / parent).iterdir())
    if any(folder.rglob("*.py"))
]


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_the_lines_of_a_package_hold_one_idea_each(folder):
    figures = measure_files(sorted(folder.rglob("*.py")))
    assert figures.lines
    assert figures.packed == []
    assert len(figures.heavy) <= MAX_HEAVY_SHARE * figures.lines, figures.heavy
    assert figures.per_thousand(figures.conditionals) <= MAX_CONDITIONALS
    assert figures.per_thousand(figures.comprehensions) <= MAX_COMPREHENSIONS
    assert figures.per_thousand(len(figures.tuple_assignments)) <= MAX_TUPLE_ASSIGNMENTS, figures.tuple_assignments
    assert figures.complex == []


SOURCE = '''
def simple(a):
    """Say something with words that do not count."""
    return a


def packed(a, b):
    a, b = b, a
    c, d = 1, 2
    text = (x if a else b + c) if (a and b or d) else [y + 1 for y in range(c) if y > 2]
    for _ in range(3):
        if a:
            return 1
        elif b:
            return 2
    return text
'''


def test_the_measure(tmp_path):
    file = tmp_path / "a.py"
    file.write_text(SOURCE)
    figures = measure_files([file])
    assert figures.functions == 2
    assert figures.tuple_assignments == ["a.py:9"]
    assert (figures.conditionals, figures.comprehensions) == (2, 1)
    assert figures.heavy == figures.packed == ["a.py:10"]
    assert figures.lines == 12
    simple, function = ast.parse(SOURCE).body
    assert (measure_complexity(simple), measure_complexity(function)) == (1, 4)


@pytest.mark.parametrize(("statements", "complexity"), [(3, 2), (4, 4)])
def test_an_exhaustive_match_counts_as_one_branch_if_its_cases_are_short(statements, complexity):
    body = "\n            ".join(["pass"] * statements)
    text = f"""
def show(event):
    match event:
        case int():
            {body}
        case str():
            pass
        case _:
            assert_never(event)
"""
    (function,) = ast.parse(text).body
    assert measure_complexity(function) == complexity
