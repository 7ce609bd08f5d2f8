"""The plan as text, Markdown or not: find its steps and mark them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from goose_like.core.events import Task
from goose_like.core.tool import ToolError

Status = Literal["planned", "in-progress", "complete", "failed"]

_MARKS: dict[Status, str] = {"planned": " ", "in-progress": "~", "complete": "x", "failed": "!"}
_STATUSES: dict[str, Status] = {mark: status for status, mark in _MARKS.items()} | {"X": "complete"}

_BOX = r"(?P<box>)(?:\[(?P<mark>[ xX~!])\](?:[ \t]+|$))?(?P<words>.*)"
_ITEM = re.compile(rf"(?P<indent>[ \t]*)(?:[-*+]|\d{{1,3}}[.)])[ \t]+{_BOX}")
_LINE = re.compile(rf"(?P<indent>[ \t]*(?:#{{1,6}}[ \t]+)?){_BOX}")
_FENCE = re.compile(r"[ \t]*(?:```|~~~).*")
_SEPARATOR = re.compile(rf"[ \t]*([-*_])(?:[ \t]*\1){{2,}}[ \t]*|{_FENCE.pattern}")
_MAX_LINES = 30
_QUOTED_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the plan: its line number, the column of its box (or where a box would go), and its text."""

    line: int
    box: int
    mark: str | None
    text: str

    @property
    def status(self) -> Status:
        """The meaning of the mark."""
        return _STATUSES[self.mark or " "]


def find_steps(text: str) -> list[Step]:
    """Find the items of the outermost lists. In a text without lists, take the first 30 lines."""
    if items := _match_lines(_ITEM, text):
        outermost = min(_measure(match["indent"]) for _, match in items) + 1  # " 9." stands above "10."
        return [_make_step(number, match) for number, match in items if _measure(match["indent"]) <= outermost]
    lines = _match_lines(_LINE, text)
    plain = [(number, match) for number, match in lines if "#" not in match["indent"]]
    return [_make_step(number, match) for number, match in (plain or lines)[:_MAX_LINES]]


def list_tasks(text: str) -> tuple[Task, ...]:
    """Return the steps in the form that screens show."""
    return tuple(Task(description=step.text, status=step.status) for step in find_steps(text))


def mark_steps(text: str, done: Sequence[int] = (), current: int = 0, failed: Sequence[int] = ()) -> str:
    """Return the plan with new marks. Steps are numbered from 1; `current` 0 keeps the current step.

    Only the boxes change. A new current step turns the previous one back into a planned step. Raise ToolError for an
    unknown number, or for two marks of one step.
    """
    steps = find_steps(text)
    wanted: dict[int, Status] = {}
    requests: list[tuple[Sequence[int], Status]] = [(done, "complete"), (failed, "failed")]
    requests.append(((current,) if current else (), "in-progress"))
    for numbers, status in requests:
        for number in numbers:
            if not 1 <= number <= len(steps):
                raise ToolError(_describe_missing_step(number, steps))
            if wanted.setdefault(number, status) != status:
                raise ToolError(f"step {number} is given as {wanted[number]} and as {status}; give it once")
    if current:
        for number, step in enumerate(steps, 1):
            if step.status == "in-progress":
                wanted.setdefault(number, "planned")
    lines = text.split("\n")
    for number, status in wanted.items():
        step = steps[number - 1]
        line, mark = lines[step.line], _MARKS[status]
        if step.mark is None:
            lines[step.line] = f"{line[: step.box]}[{mark}] {line[step.box :]}"
        elif step.status != status:
            lines[step.line] = f"{line[: step.box + 1]}{mark}{line[step.box + 2 :]}"
    return "\n".join(lines)


def extract_plan(answer: str) -> str:
    """Return the plan inside a planner's answer, without introduction and code fence. The plan ends with a newline."""
    lines = answer.strip().split("\n")
    items = _match_lines(_ITEM, answer.strip())
    first = items[0][0] if items else int(bool(_FENCE.fullmatch(lines[0])))
    while first and (not lines[first - 1].strip() or lines[first - 1].startswith("#")):
        first -= 1  # a heading belongs to the plan
    if first and _FENCE.fullmatch(lines[first - 1]):  # the plan ends where its fence is closed
        lines = lines[: next((at for at in range(first, len(lines)) if _FENCE.fullmatch(lines[at])), len(lines))]
    text = "\n".join(lines[first:]).strip("\n").rstrip()
    return f"{text}\n" if text else ""


def _match_lines(pattern: re.Pattern[str], text: str) -> list[tuple[int, re.Match[str]]]:
    lines = ((number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n")))
    matches = ((number, pattern.fullmatch(line)) for number, line in lines if not _SEPARATOR.fullmatch(line))
    return [(number, match) for number, match in matches if match and match["words"].strip()]


def _make_step(number: int, match: re.Match[str]) -> Step:
    return Step(number, match.start("box"), match["mark"], " ".join(match["words"].split()))


def _measure(indent: str) -> int:
    return len(indent.expandtabs(4))


def _describe_missing_step(number: int, steps: Sequence[Step]) -> str:
    if not steps:
        return f"no step {number}: the plan has no steps; give the whole plan as `plan`, each step a line with `- [ ]`"
    names = ", ".join(f"{place} {step.text[:_QUOTED_CHARACTERS]!r}" for place, step in enumerate(steps[:_MAX_LINES], 1))
    return f"no step {number}; the steps are: {names}{', ...' if len(steps) > _MAX_LINES else ''}"
