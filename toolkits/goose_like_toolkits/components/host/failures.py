"""Failures that come again and again: a component that catches its errors may repeat one without end."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

MAX_EQUAL_FAILURES = 10

_PAUSE_S = 60.0
"""A failure that comes later than this after an equal one begins a new count."""
_MAX_WAYS = 1_000
_MAX_LINE_CHARS = 1_000
_MAX_FRAME_LINES = 200
_FIRST_LINE = "Traceback (most recent call last):"
_FRAME_LINE = re.compile(r"\s")


@dataclass(slots=True)
class _Count:
    count: int
    at_s: float
    answer_count: int


class FailureWatch:
    """Counts equal failures in a row. Answers of models between two of them show that the work goes on.

    One answer is not enough: a loop may fail at every answer.
    """

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self._answer_count = 0

    def add_answer(self) -> None:
        """Note that a model answered."""
        self._answer_count += 1

    def clear(self) -> None:
        """Begin anew: a person said something."""
        self._counts.clear()

    def is_stuck(self, way: str) -> bool:
        """Count a failure; `way` is equal for equal ones. Return whether it came too often."""
        now_s = time.monotonic()
        if len(self._counts) > _MAX_WAYS:
            self._counts.clear()
        count = 1
        seen = self._counts.get(way)
        if seen:
            is_recent = now_s - seen.at_s < _PAUSE_S
            answers_since = self._answer_count - seen.answer_count
            if is_recent and answers_since < 2:
                count += seen.count
        self._counts[way] = _Count(count, now_s, self._answer_count)
        return count >= MAX_EQUAL_FAILURES


class TracebackReader:
    """Finds tracebacks in what a process prints."""

    def __init__(self) -> None:
        self._line = ""
        self._frames: list[str] | None = None

    def read(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the frames and the last line of each traceback that is complete now."""
        *lines, rest = (self._line + text).split("\n")
        self._line = rest[:_MAX_LINE_CHARS]
        for line in lines:
            if line == _FIRST_LINE:
                self._frames = []
            elif self._frames is None:
                continue
            elif _FRAME_LINE.match(line):
                self._frames.append(line[:_MAX_LINE_CHARS])
                del self._frames[:-_MAX_FRAME_LINES]
            else:
                frames = "\n".join(self._frames)
                self._frames = None
                yield frames, line
