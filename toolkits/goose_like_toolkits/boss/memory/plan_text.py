"""The plan as text, Markdown or not, as a planner or a person writes it: its steps, and the marks on them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from goose_like.core.events import Task
from goose_like.toolkit import ToolError

Status = Literal["planned", "in-progress", "complete", "failed"]

_MARKS: dict[Status, str] = {"planned": " ", "in-progress": "~", "complete": "x", "failed": "!"}
_STATUSES: dict[str, Status] = {mark: status for status, mark in _MARKS.items()} | {"X": "complete"}

_BOX = r"(?P<box>)(?:\[(?P<mark>[ xX~!])\](?:[ \t]+|$))?(?P<words>.*)"
_ITEM = re.compile(rf"(?P<before>[ \t]*)(?:[-*+]|\d{{1,3}}[.)])[ \t]+{_BOX}")
_LINE = re.compile(rf"(?P<before>[ \t]*(?:#{{1,6}}[ \t]+)?){_BOX}")
_RULE = re.compile(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*")
_FENCE = re.compile(r"[ \t]*(?:(`{3,})[^`]*|(~{3,}).*)")
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^`\n]*\n(.*?)(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_LIMIT_LINES = 30
_NAMED = 40


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the plan: the line that it begins on, where its box stands in there or would, and what it says."""

    line: int
    box: int
    mark: str | None
    words: str

    @property
    def status(self) -> Status:
        return _STATUSES[self.mark or " "]


def steps(text: str) -> list[Step]:
    """The items of the outermost lists, or, where there are no lists, the first 30 lines. Not what stands in fences."""
    if items := _found(_ITEM, text):
        outermost = min(_width(found["before"]) for _, found in items) + 1  # " 9." stands above "10."
        return [_step(number, found) for number, found in items if _width(found["before"]) <= outermost]
    lines = _found(_LINE, text)
    plain = [(number, found) for number, found in lines if "#" not in found["before"]]
    return [_step(number, found) for number, found in (plain or lines)[:_LIMIT_LINES]]


def tasks(text: str) -> tuple[Task, ...]:
    """The steps as people are shown them."""
    return tuple(Task(description=step.words, status=step.status) for step in steps(text))


def marked(text: str, done: Sequence[int] = (), current: int = 0, failed: Sequence[int] = ()) -> str:
    """The plan with those steps marked, by their numbers from 1 on; `current` 0 leaves it open which one it is.

    Only boxes change, and are put where there are none. What was the current step is a planned one again if another is.

    Raises:
        ToolError: a number that is no step's, or given as two things.
    """
    found = steps(text)
    wanted: dict[int, Status] = {}
    given: list[tuple[Sequence[int], Status]] = [(done, "complete"), (failed, "failed")]
    given.append(((current,) if current else (), "in-progress"))
    for numbers, status in given:
        for number in numbers:
            if not 1 <= number <= len(found):
                raise ToolError(_no_step(number, found))
            if wanted.setdefault(number, status) != status:
                raise ToolError(f"step {number} is given as {wanted[number]} and as {status}; give it once")
    if current:
        for number, step in enumerate(found, 1):
            if step.status == "in-progress":
                wanted.setdefault(number, "planned")
    lines = text.split("\n")
    for number, status in wanted.items():
        step = found[number - 1]
        line, mark = lines[step.line], _MARKS[status]
        if step.mark is None:
            lines[step.line] = f"{line[: step.box]}[{mark}] {line[step.box :]}"
        elif step.status != status:
            lines[step.line] = f"{line[: step.box + 1]}{mark}{line[step.box + 2 :]}"
    return "\n".join(lines)


def as_plan(answer: str) -> str:
    """A planner's answer without what it says before its plan, and without the fence around it; ends with a newline."""
    text = answer.strip()
    if not _found(_ITEM, text):
        fenced = [found[2] for found in _FENCED.finditer(text)]
        whole = fenced[0] if fenced and _FENCE.fullmatch(text.split("\n")[0]) else text
        text = next((inner for inner in fenced if _found(_ITEM, inner)), whole)
    lines = text.split("\n")
    first = next((number for number, _ in _found(_ITEM, text)), 0)
    while first and (not lines[first - 1].strip() or lines[first - 1].startswith("#")):
        first -= 1  # a heading is the plan's
    text = "\n".join(lines[first:]).strip("\n").rstrip()
    return f"{text}\n" if text else ""


def _found(pattern: re.Pattern[str], text: str) -> list[tuple[int, re.Match[str]]]:
    """The lines of that form which say something, by their numbers."""
    matches = ((number, pattern.fullmatch(line)) for number, line in _unfenced(text) if not _RULE.fullmatch(line))
    return [(number, found) for number, found in matches if found and found["words"].strip()]


def _step(number: int, found: re.Match[str]) -> Step:
    return Step(number, found.start("box"), found["mark"], " ".join(found["words"].split()))


def _unfenced(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of code, by number, without carriage returns."""
    fence = ""
    for number, line in enumerate(text.split("\n")):
        bare = line.strip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0]):
                fence = ""
        elif found := _FENCE.fullmatch(line):
            fence = found[1] or found[2]
        else:
            yield number, line.removesuffix("\r")


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))


def _no_step(number: int, found: Sequence[Step]) -> str:
    if not found:
        return f"no step {number}: the plan has no steps; give the whole plan as `plan`, each step a line with `- [ ]`"
    named = ", ".join(f"{place} {step.words[:_NAMED]!r}" for place, step in enumerate(found[:_LIMIT_LINES], 1))
    return f"no step {number}; the steps are: {named}{', ...' if len(found) > _LIMIT_LINES else ''}"
