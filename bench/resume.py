"""Compare resuming a session of 10,000 messages with reading its file, and measure the bytes of 200 turns.

`python bench/resume.py [--rounds N] [--profile]`
"""

import argparse
import cProfile
import gc
import json
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from goose_like.core.events import (
    DurableEvent,
    MessageCompleted,
    SessionStarted,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    saved_event_adapter,
)
from goose_like.core.message import Message, ToolCall, ToolResult, Usage
from goose_like.sessions.session import Session

MESSAGES, TURNS = 10_000, 200
TARGET, TARGET_BYTES = 1.3, 1.2


def make_turn(number: int) -> list[DurableEvent]:
    """Return a turn of four messages: a user message, a call, its output of 1 kB, and an answer."""
    call = ToolCall(id=f"call_{number}", name="shell", arguments=json.dumps({"command": f"sed -n {number}p README.md"}))
    usage = Usage(input_tokens=900 + number, output_tokens=80, cache_read_tokens=800)
    return [
        TurnStarted(message=Message.user(f"What stands in line {number}, and why? " * 3)),
        MessageCompleted(message=Message.assistant("I look.", [call]), usage=usage),
        ToolFinished(
            result=ToolResult(call_id=call.id, output='a line of some output, with „quotes“ "and" tabs\t\n' * 20)
        ),
        MessageCompleted(message=Message.assistant("It says what it does, in *words*. " * 12), usage=usage),
        TurnFinished(reason="stop"),
    ]


def write_session(name: str, turns: int) -> tuple[Path, int]:
    """Return the file of a new session, and the bytes of its events without their times."""
    session = Session.create(name)
    header = SessionStarted(version="0", name=name, cwd="/w", profile="p", models={"processor": "openai:m"}, tools=())
    events = [header, *(event for number in range(turns) for event in make_turn(number))]
    for event in events:
        session.append(event)
    session.close()
    return session.file, sum(len(event.model_dump_json()) + 1 for event in events)


def resume_session(name: str) -> Session:
    """Return a resumed and closed session, so that its release is not measured either."""
    session = Session.resume(name)
    assert len(session.history.messages) == MESSAGES
    session.close()
    return session


def main(rounds: int, *, is_profiled: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as home:
        os.environ["GOOSE_LIKE_HOME"] = home
        file, _ = write_session("long", MESSAGES // 4)
        plain: TypeAdapter[DurableEvent] = TypeAdapter(dict[str, object])
        lines = [line.rsplit(b',"at":', 1)[0] + b"}" for line in file.read_bytes().splitlines()]
        subjects: dict[str, Callable[[], object]] = {
            "read, json.loads each line": lambda: [json.loads(line) for line in file.read_bytes().splitlines()],
            "read, pydantic's parser, no models": lambda: [
                plain.validate_json(line) for line in file.read_bytes().splitlines()
            ],
            "read, pydantic's models": lambda: (
                file.read_bytes(),
                [saved_event_adapter.validate_json(line) for line in lines],
            ),
            "Session.resume": lambda: resume_session("long"),
        }
        if is_profiled:
            resume_session("long")
            with cProfile.Profile() as profile:
                resume_session("long")
            pstats.Stats(profile).sort_stats("tottime").print_stats(15)
        times: dict[str, list[float]] = {subject: [] for subject in subjects}
        for _ in range(rounds + 1):  # the first round builds the schemas and warms the caches
            for subject, work in subjects.items():
                gc.collect()
                start = time.process_time()
                kept = work()
                times[subject].append(time.process_time() - start)
                del kept
        medians = {subject: statistics.median(taken[1:]) for subject, taken in times.items()}
        print(f"{MESSAGES:,} messages, {file.stat().st_size / 1e6:.1f} MB, processor time, median of {rounds}:")
        for subject, taken in medians.items():
            print(f"  {subject:36} {taken * 1000:7.0f} ms  resume is {medians['Session.resume'] / taken:.2f}x")
        print(f"  target: {TARGET}x of reading into pydantic's models")
        file, size = write_session("short", TURNS)
        ratio = file.stat().st_size / size
        print(f"{TURNS} turns: {file.stat().st_size:,} bytes, {ratio:.2f}x their events (target {TARGET_BYTES}x)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    main(options.rounds, is_profiled=options.profile)
