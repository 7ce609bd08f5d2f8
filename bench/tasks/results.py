"""What agents did with the tasks: one line of JSON for each task and trial, transcripts, and tables."""

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import suite

HEAD = f"{'solved':>8} {'time':>9} {'processor':>10} {'tokens in':>10} {'cached':>9} {'out':>7} {'per solved':>10}"


@dataclass(frozen=True, slots=True)
class Agent:
    label: str
    command: list[str]


@dataclass(frozen=True, slots=True)
class Output:
    answer: str
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    agent: str
    task: str
    size: str
    trial: int
    is_solved: bool
    why: str
    """Why the check refused the work."""
    exit_code: int | None
    took_s: float
    processor_s: float
    input_tokens: int
    cached_tokens: int
    output_tokens: int

    def format_line(self) -> str:
        verdict = "solved" if self.is_solved else f"no: {self.why}"
        ended = " (time)" if self.exit_code is None else ""
        return f"{self.task:18} {self.agent:24} {self.took_s:6.1f} s{ended}  {verdict}"


@dataclass(slots=True)
class Results:
    folder: Path
    outcomes: list[Outcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._read()

    @property
    def _path(self) -> Path:
        return self.folder / "outcomes.jsonl"

    def _read(self) -> None:
        """Read the outcomes, and cut off a last line whose writing was interrupted."""
        data = self._path.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        if len(complete) < len(data):
            os.truncate(self._path, len(complete))
        self.outcomes = [Outcome(**json.loads(line)) for line in complete.splitlines()]

    def has(self, agent: str, task: str, trial: int) -> bool:
        return any((one.agent, one.task, one.trial) == (agent, task, trial) for one in self.outcomes)

    def append(self, outcome: Outcome) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.outcomes.append(outcome)

    def keep_transcript(self, agent: Agent, task: str, trial: int, place: Path) -> None:
        """Copy what the agent printed, its answer, the report of the check and the files that it left."""
        name = re.sub(r"[^\w.-]+", "-", agent.label)
        kept = self.folder / "transcripts" / name / f"{task}-{trial}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(place, kept, symlinks=True)


def read_output(text: str) -> Output:
    """Read the events of `goose-like run`, or take the text itself for the answer."""
    events = [event for line in text.splitlines() if (event := _parse_event(line))]
    completed = [event for event in events if event["type"] == "message_completed"]
    if not events:
        return Output(text.strip())
    answer = ""
    for event in completed:
        parts = event["message"]["parts"]
        answer = "".join(part["text"] for part in parts if part["type"] == "text")
    usages = [event.get("usage") or {} for event in completed]
    return Output(
        answer=answer,
        input_tokens=sum(usage.get("input_tokens", 0) for usage in usages),
        cached_tokens=sum(usage.get("cache_read_tokens", 0) for usage in usages),
        output_tokens=sum(usage.get("output_tokens", 0) for usage in usages),
    )


def _parse_event(line: str) -> dict[str, Any]:
    """Return the event of a line, or nothing: the last line of a killed agent may be half of one."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and "type" in event else {}


def format_tables(outcomes: list[Outcome]) -> str:
    """Format a table of the agents for each size."""
    lines = []
    for size in suite.LIMITS_S:
        of_size = [outcome for outcome in outcomes if outcome.size == size]
        if not of_size:
            continue
        head = (
            f"{'solved':>8} {'time':>9} {'processor':>10} {'tokens in':>10} {'cached':>9} {'out':>7} {'per solved':>10}"
        )
        lines += ["", f"{size:30} {head}"]
        for agent in dict.fromkeys(outcome.agent for outcome in of_size):
            lines.append(_format_row(agent, [outcome for outcome in of_size if outcome.agent == agent]))
    return "\n".join(lines)


def _format_row(agent: str, outcomes: list[Outcome]) -> str:
    solved = sum(outcome.is_solved for outcome in outcomes)
    took_s = sum(outcome.took_s for outcome in outcomes)
    processor_s = sum(outcome.processor_s for outcome in outcomes)
    input_tokens = sum(outcome.input_tokens for outcome in outcomes)
    cached_tokens = sum(outcome.cached_tokens for outcome in outcomes)
    output_tokens = sum(outcome.output_tokens for outcome in outcomes)
    share = f"{solved}/{len(outcomes)}"
    per_solved = "-"
    if solved:
        per_solved = f"{(input_tokens + output_tokens) // solved:,}"
    times = f"{took_s:7.0f} s {processor_s:8.0f} s"
    return f"{agent:30} {share:>8} {times} {input_tokens:10,} {cached_tokens:9,} {output_tokens:7,} {per_solved:>10}"
