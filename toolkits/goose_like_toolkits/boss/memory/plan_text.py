"""The plan as text, Markdown or not: find its steps and mark them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from goose_like.core.events import Task
from goose_like.core.tool import ToolError

Status = Literal["planned", "in-progress", "complete", "failed"]

_MARKS: dict[Status, str] = {
    "planned": " ",
    "in-progress": "~",
    "complete": "x",
    "failed": "!",
}
_STATUSES: dict[str, Status] = {
    **{mark: status for status, mark in _MARKS.items()},
    "X": "complete",
}

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
    items = _match_lines(_ITEM, text)
    if items:
        indents = {number: _measure(match["indent"]) for number, match in items.items()}
        outermost = min(indents.values()) + 1  # " 9." stands above "10."
        return [_make_step(number, match) for number, match in items.items() if indents[number] <= outermost]
    lines = _match_lines(_LINE, text)
    plain = {number: match for number, match in lines.items() if "#" not in match["indent"]}
    steps = [_make_step(number, match) for number, match in (plain or lines).items()]
    return steps[:_MAX_LINES]


def list_tasks(text: str) -> tuple[Task, ...]:
    """Return the steps in the form that screens show."""
    steps = find_steps(text)
    return tuple(Task(description=step.text, status=step.status) for step in steps)


def mark_steps(text: str, done: Sequence[int] = (), current: int = 0, failed: Sequence[int] = ()) -> str:
    """Return the plan with new marks. Steps are numbered from 1; `current` 0 keeps the current step.

    Only the boxes change. A new current step turns the previous one back into a planned step. Raise ToolError for an
    unknown number, or for two marks of one step.
    """
    steps = find_steps(text)
    wanted = _collect_statuses(steps, done, current, failed)
    lines = text.split("\n")
    for number, status in wanted.items():
        step = steps[number - 1]
        lines[step.line] = _mark_line(lines[step.line], step, status)
    return "\n".join(lines)


def _collect_statuses(
    steps: Sequence[Step], done: Sequence[int], current: int, failed: Sequence[int]
) -> dict[int, Status]:
    """Return the new status of each step that gets one, by its number."""
    requests: list[tuple[Status, int]] = []
    requests += [("complete", number) for number in done]
    requests += [("failed", number) for number in failed]
    if current:
        requests.append(("in-progress", current))
    wanted: dict[int, Status] = {}
    for status, number in requests:
        if not 1 <= number <= len(steps):
            raise ToolError(_describe_missing_step(number, steps))
        if wanted.setdefault(number, status) != status:
            raise ToolError(f"step {number} is given as {wanted[number]} and as {status}; give it once")
    if current:
        for number, step in enumerate(steps, 1):
            if step.status == "in-progress":
                wanted.setdefault(number, "planned")
    return wanted


def _mark_line(line: str, step: Step, status: Status) -> str:
    """Return the line of a step with the mark of a status. A step without a box gets one."""
    mark = _MARKS[status]
    if step.mark is None:
        return f"{line[: step.box]}[{mark}] {line[step.box :]}"
    if step.status == status:
        return line
    return f"{line[: step.box + 1]}{mark}{line[step.box + 2 :]}"


def extract_plan(answer: str) -> str:
    """Return the plan inside a planner's answer, without introduction and code fence. The plan ends with a newline."""
    answer = answer.strip()
    lines = answer.split("\n")
    items = _match_lines(_ITEM, answer)
    first = 0
    if items:
        first = min(items)
    elif _FENCE.fullmatch(lines[0]):
        first = 1
    while first and (not lines[first - 1].strip() or lines[first - 1].startswith("#")):
        first -= 1  # a heading belongs to the plan
    end = len(lines)
    if first and _FENCE.fullmatch(lines[first - 1]):
        end = _find_fence(lines, first)
    text = "\n".join(lines[first:end]).strip("\n").rstrip()
    return f"{text}\n" if text else ""


def _find_fence(lines: Sequence[str], start: int) -> int:
    """Return the number of the next line with a code fence, or the count of lines."""
    for number in range(start, len(lines)):
        if _FENCE.fullmatch(lines[number]):
            return number
    return len(lines)


def _match_lines(pattern: re.Pattern[str], text: str) -> dict[int, re.Match[str]]:
    """Match each line that has words and is no separator. Return the matches by line number."""
    matches = {}
    for number, line in enumerate(text.split("\n")):
        line = line.removesuffix("\r")
        if _SEPARATOR.fullmatch(line):
            continue
        match = pattern.fullmatch(line)
        if match and match["words"].strip():
            matches[number] = match
    return matches


def _make_step(number: int, match: re.Match[str]) -> Step:
    text = " ".join(match["words"].split())
    return Step(number, match.start("box"), match["mark"], text)


def _measure(indent: str) -> int:
    return len(indent.expandtabs(4))


def _describe_missing_step(number: int, steps: Sequence[Step]) -> str:
    if not steps:
        return f"no step {number}: the plan has no steps; give the whole plan as `plan`, each step a line with `- [ ]`"
    names = []
    for place, step in enumerate(steps[:_MAX_LINES], 1):
        names.append(f"{place} {step.text[:_QUOTED_CHARACTERS]!r}")
    if len(steps) > _MAX_LINES:
        names.append("...")
    return f"no step {number}; the steps are: {', '.join(names)}"
