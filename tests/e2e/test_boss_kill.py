"""SIGKILL of a boss at any moment: after a resume, its files equal those of an undisturbed run.

`--kills N` is the number of moments (default 2, full count 100). Every second run is killed again after its resume.
`--kill-state FILE` is described in test_kill.py.
"""

import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from goose_like.core.history import INTERRUPTED
from tests.e2e.command import Place
from tests.loopback import threaded
from tests.toolkits.boss.boss_model import FILES, GOAL, LIBRARY, MARKS, RESULT, BossServer, make_config

WORDS = ("boss", "--model", "openai:m", "--output-format", "stream-json")


def new_place(folder: Path) -> Place:
    for name in ("home", "work"):
        (folder / name).mkdir(parents=True)
    (folder / "work" / "boss.yaml").write_text(json.dumps(make_config()))
    return Place(folder / "home", folder / "work")


def kill_run(place: Place, env: dict[str, str], *words: str, after: int, wait_s: float) -> int:
    """Kill a run `wait_s` after it printed `after` lines and saved its goal. Return the number of lines."""
    process = place.start(*WORDS, *words, env=env)
    shown = 0
    for _ in process.stdout if after else ():
        shown += 1
        if shown == after:
            break
    while not any("turn_started" in file.read_text() for file in place.home.rglob("events.jsonl")):
        time.sleep(0.001)
    time.sleep(wait_s)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return shown


def read_memory(place: Place) -> dict[str, str]:
    """Read all memory files."""
    return {name: (place.work / name).read_text() for name in (*FILES, LIBRARY)}


def read_events(place: Place) -> dict[str, list[dict[str, Any]]]:
    """Read the events of each session, including those of sub-bosses."""
    files = (place.home / "state" / "sessions").rglob("events.jsonl")
    return {str(file.parent): [json.loads(line) for line in file.read_text().splitlines()] for file in files}


def test_killed_boss_resumes(tmp_path, moments):
    with threaded(BossServer()) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        new, on = ("--config", "boss.yaml", "--session", "s", GOAL), ("--resume", "--session", "s")
        whole = new_place(tmp_path / "whole")
        lines = kill_run(whole, env, *new, after=sys.maxsize, wait_s=0)
        expected = read_memory(whole)
        check_calls(whole)
        for moment, chance in moments("boss"):
            place = new_place(tmp_path / str(moment))
            after = chance.randrange(lines)
            kill_run(place, env, *new, after=after, wait_s=chance.random() * 0.05 if after else 0)
            if moment % 2:
                more = chance.randrange(1, lines - after + 2)
                kill_run(place, env, *on, after=more, wait_s=chance.random() * 0.05)
            done = place.run("boss", "--model", "openai:m", *on, env=env)
            moments.note = f"after {after} of {lines} lines"
            where = f"killed {moments.note}, see {place.home}"
            assert (done.returncode, done.stdout) == (0, f"{RESULT}\n"), f"{where}: {done.stderr}"
            assert read_memory(place) == expected, where
            check_calls(place)


def check_calls(place: Place) -> None:
    """Check that no call with a result ran twice, and that interrupted calls were repeated."""
    starts, done = Counter[str](), Counter[tuple[str, str, str]]()
    for session, events in read_events(place).items():
        messages = [event["message"] for event in events if event["type"] == "message_completed"]
        calls = {part["id"]: part for message in messages for part in message["parts"] if part["type"] == "tool_call"}
        results = [event["result"] for event in events if event["type"] == "tool_finished"]
        assert sorted(result["call_id"] for result in results) == sorted(calls)
        for result in results:
            call = calls[result["call_id"]]
            is_cut = result["output"].startswith(INTERRUPTED)
            assert result["is_error"] == is_cut, (call, result)
            done[session, call["name"], call["arguments"]] += not is_cut
        starts.update(find_mark(call["arguments"]) for call in calls.values() if call["name"] == "run_code")
    assert set(done.values()) == {1}
    marks = Counter((place.work / MARKS).read_text().split())
    assert marks.keys() == starts.keys()
    assert marks <= starts, "a call that ran once left two marks"


def find_mark(arguments: str) -> str:
    """Return the mark that a call of `run_code` leaves in its file."""
    return json.loads(arguments)["code"].split('"')[1]
