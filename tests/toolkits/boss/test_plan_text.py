"""The plan as text: find its steps, and mark them without other changes."""

import re

import pytest
from goose_like_toolkits.boss.memory.plan_text import extract_plan, list_tasks, mark_steps
from hypothesis import given
from hypothesis import strategies as st

from goose_like.toolkit import ToolError

PLAN = """# Build it

1. [x] Read the specs
2. [~] Write `stats.py`
   - mean
   - [ ] median
3. [!] Ask **which** rounding
4) Test

   ```
   - no step, but code
   ```

- Tell
* * *
"""


def read_steps(text: str) -> list[tuple[str, str]]:
    return [(task.description, task.status) for task in list_tasks(text)]


def test_steps_are_items_of_the_outermost_lists():
    assert read_steps(PLAN) == [
        ("Read the specs", "complete"),
        ("Write `stats.py`", "in-progress"),
        ("Ask **which** rounding", "failed"),
        ("Test", "planned"),
        ("Tell", "planned"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("first this\n\n  then that \r\n[x] and this\n", ["first this", "then that", "and this"]),
        ("# Plan\nfirst\n", ["first"]),
        ("### Step 1: a\n### Step 2: b\n", ["Step 1: a", "Step 2: b"]),
        (" 9. nine\n10. ten\n", ["nine", "ten"]),
        ("  - a\n    - of a\n  - b\n", ["a", "b"]),
        ("- a\n\t- of a\n", ["a"]),
        ("- [y] a\n- [x](link)\n-\n- [ ]\n- \n", ["[y] a", "[x](link)"]),
        ("2024. was a year\n~~~\n", ["2024. was a year"]),
        ("\n".join(f"line {n}" for n in range(40)), [f"line {n}" for n in range(30)]),
    ],
)
def test_steps_in_texts_of_any_form(text, expected):
    assert [task.description for task in list_tasks(text)] == expected


def test_marks():
    text = mark_steps(PLAN, done=[2, 5], current=4, failed=[1])
    assert [status for _, status in read_steps(text)] == ["failed", "complete", "failed", "in-progress", "complete"]
    assert text.replace("1. [!]", "1. [x]").replace("2. [x]", "2. [~]").replace("4) [~] ", "4) ").replace(
        "- [x] Tell", "- Tell"
    ) == PLAN  # fmt: skip


def test_only_one_step_is_current():
    assert mark_steps("- [~] a\n- b\n", current=2) == "- [ ] a\n- [~] b\n"
    assert mark_steps("- [~] a\n- b\n", done=[2]) == "- [~] a\n- [x] b\n"


def test_wrong_step_number_lists_the_steps():
    with pytest.raises(ToolError, match=r"no step 3; the steps are: 1 'a', 2 'b'$"):
        mark_steps("- a\n- b\n", done=[3])
    with pytest.raises(ToolError, match="no step 0"):
        mark_steps("- a\n", failed=[0])
    with pytest.raises(ToolError, match="the plan has no steps; give the whole plan"):
        mark_steps("", current=1)
    with pytest.raises(ToolError, match="step 1 is given as complete and as in-progress; give it once"):
        mark_steps("- a\n", done=[1], current=1)


LINES = st.one_of(
    st.builds(
        "{}{} {}{}{}".format,
        st.sampled_from(["", " ", "  ", "    ", "\t"]),
        st.sampled_from(["-", "*", "+", "1.", "12)", "", "#", "```", "~~~", "---"]),
        st.sampled_from(["", "[ ] ", "[x] ", "[X] ", "[~] ", "[!] ", "[?] ", "[x]"]),
        st.text(alphabet="ab [x]`#-*\x0b\u2028é", max_size=8),
        st.sampled_from(["", "\r"]),
    ),
    st.text(max_size=12),
)


@given(st.lists(LINES, max_size=40).map("\n".join), st.data())
def test_marks_can_be_read_back_and_nothing_else_changes(text, data):
    before = list_tasks(text)
    ways = {n: data.draw(st.sampled_from(["", "done", "failed", "current"])) for n in range(1, len(before) + 1)}
    current = next((n for n, way in ways.items() if way == "current"), 0)
    done, failed = ([n for n, way in ways.items() if way == name] for name in ("done", "failed"))
    after = mark_steps(text, done, current, failed)
    expected = []
    for n, task in enumerate(before, 1):
        rest = "planned" if current and task.status == "in-progress" else task.status
        status = "complete" if n in done else "failed" if n in failed else "in-progress" if n == current else rest
        expected.append((task.description, status))
    assert read_steps(after) == expected
    assert mark_steps(after, done, current, failed) == after
    box = re.compile(r"\[[ xX~!]\] ?")
    assert box.sub("", after) == box.sub("", text)
    assert after.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("answer", "plan"),
    [
        ("1. a\n2. b", "1. a\n2. b\n"),
        ("```markdown\n- a\n- b\n```", "- a\n- b\n"),
        ("Sure! Here is the plan:\n\n```\n1. a\n   - b\n```\nGood luck!", "1. a\n   - b\n"),
        ("Here is the plan.\n\n- a\n\n```\ncode\n```\n- b\n\n", "- a\n\n```\ncode\n```\n- b\n"),
        ("I will:\n# Plan\n\n- a", "# Plan\n\n- a\n"),
        ("first a\nthen b", "first a\nthen b\n"),
        ("```\nfirst a\n```", "first a\n"),
        ("```\n- a\n- b", "- a\n- b\n"),
        ("```", ""),
        (" \n", ""),
    ],
)
def test_plan_is_extracted_from_an_answer(answer, plan):
    assert extract_plan(answer) == plan


@given(st.lists(LINES, max_size=20).map("\n".join))
def test_extracted_plan_is_part_of_the_answer(answer):
    plan = extract_plan(answer)
    assert plan == "" or (plan.endswith("\n") and plan.strip() in answer)
