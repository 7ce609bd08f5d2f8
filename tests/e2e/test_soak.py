"""Thousands of turns in one session hold no more resources than the first hundreds.

`--turns N` sets the number (CI: 36). The full test, with figures, takes 15 to 30 minutes. An interrupted one
starts anew:

    python -m pytest -s tests/e2e/test_soak.py --turns 2000
"""

import os
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression, median

from tests.e2e.screen import ScreenTerminal
from tests.e2e.serving import wait_until
from tests.e2e.soak_model import KINDS, SoakModel
from tests.loopback import threaded
from tests.processes import list_children

PROFILE = "soak: {processor: {model: 'openai:m', window: 12000}}\n"
MEASUREMENTS = 20
MEMORY_KB, MEMORY_KB_PER_TURN = 8_000, 20
"""The memory that a session may gain after its first rounds. It keeps its messages, so a part grows with the turns."""
POOL = (os.cpu_count() or 1) + 4
"""Threads that asyncio keeps after first use."""


@dataclass(frozen=True)
class Held:
    """What a session holds at rest, and its own work per turn since the measurement before."""

    turn: int
    memory_kb: int
    descriptors: int
    threads: int
    children: int
    temporary_files: int
    session_bytes: int
    cpu_ms: float
    gap_ms: float


class QuietTerminal(ScreenTerminal):
    """A terminal that keeps only its newest output and emulates no screen."""

    def _keep(self, chunk: bytes) -> None:
        self.raw = (self.raw + chunk)[-20_000:]

    def wait_for(self, text: str) -> None:
        """Wait until the text is in the newest output."""
        self.until(lambda: text.encode() in self.raw, f"{text!r} did not come")


class Soak:
    """A session in a terminal, and its measurements."""

    def __init__(self, terminal: QuietTerminal, model: SoakModel, folder: Path, temporary: Path) -> None:
        self._terminal, self._model, self._folder, self._temporary = terminal, model, folder, temporary
        self._pid = terminal.process.pid
        self._read_bytes = 0
        self._cpu_ms = self._read_cpu_ms()
        self._turn = 0
        self.held: list[Held] = []

    def run_turn(self, number: int) -> None:
        """Run a turn to its end, and a command of the person after each round of all kinds."""
        self._terminal.type(f"turn {number}\r")
        if KINDS[number % len(KINDS)].__name__ == "wait_for_ever":
            self._terminal.raw = b""
            self._terminal.wait_for("│ waiting")
            self._terminal.type("\x03")
        self._terminal.until(self._take_turn_end, "the turn does not end")
        if number % len(KINDS) == 0:
            self._terminal.type(f"!echo $(({number} + 1000000))\r")
            self._terminal.wait_for(str(number + 1_000_000))

    def _take_turn_end(self) -> bool:
        """Return whether the session file has an end of a turn after the last one."""
        with (self._folder / "events.jsonl").open("rb") as file:
            file.seek(self._read_bytes)
            new = file.read()
        if found := re.search(rb'"type":"turn_finished".*\n', new):
            self._read_bytes += found.end()
        return found is not None

    def measure(self, number: int) -> None:
        """Measure what is held after this turn, when the processes of its end are gone."""
        if self.held:
            wait_until(lambda: len(_list_descendants(self._pid)) <= self.held[0].children)
        process = Path(f"/proc/{self._pid}")
        status = (process / "status").read_text()
        memory, threads = (int(re.findall(rf"^{name}:\s*(\d+)", status, re.M)[0]) for name in ("VmRSS", "Threads"))
        cpu_ms = self._read_cpu_ms()
        gaps = [gap for turn in range(self._turn, number) for gap in self._model.gaps_s.get(turn, [])]
        self.held.append(
            Held(
                number,
                memory,
                len([*(process / "fd").iterdir()]),
                threads,
                len(_list_descendants(self._pid)),
                sum(1 for _ in self._temporary.rglob("*")),
                sum(file.lstat().st_size for file in self._folder.rglob("*") if not file.is_dir()),
                (cpu_ms - self._cpu_ms) / (number - self._turn),
                median(gaps) * 1000,
            )
        )
        self._turn, self._cpu_ms = number, cpu_ms

    def _read_cpu_ms(self) -> float:
        words = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _list_descendants(pid: int) -> list[int]:
    children = list_children(pid)
    return [*children, *(each for child in children for each in _list_descendants(child))]


def find_slope(held: Sequence[Held], name: str) -> float:
    """Return the growth per 1,000 turns, by least squares."""
    return linear_regression([each.turn for each in held], [getattr(each, name) for each in held]).slope * 1000


def test_a_session_holds_no_more_after_many_turns(place, request, tmp_path):
    turns = request.config.getoption("--turns")
    every = max(1, turns // len(KINDS) // MEASUREMENTS) * len(KINDS)  # after whole rounds of all kinds
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text(PROFILE)
    (place.work / "notes.md").write_text("# Notes\n" + "a line of notes\n" * 60)
    (place.work / "data.csv").write_text("a,b\n1,2\n" * 40)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with threaded(SoakModel()) as model:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": model.base_url, "TMPDIR": str(temporary)}
        words = ("session", "start", "soak", "--profile", "soak")
        terminal = QuietTerminal(place, *words, **env)
        try:
            terminal.wait_for("goose>")
            files = (place.home / "state").glob
            terminal.until(lambda: [*files("sessions/*/events.jsonl")], "no session started")
            (folder,) = files("sessions/*")
            soak = Soak(terminal, model, folder, temporary)
            print("", *(field.name for field in fields(Held)), sep="  ")
            for number in range(turns):
                soak.run_turn(number)
                if (number + 1) % every == 0:
                    soak.measure(number + 1)
                    print("", *(f"{value:,.0f}" for value in astuple(soak.held[-1])), sep="  ", flush=True)
            assert terminal.leave() == 0
        finally:
            terminal.close()
    first, *_, last = held = soak.held
    warm = held[len(held) // 5 :]
    for field in fields(Held)[1:]:
        print(f"{field.name}: {find_slope(warm, field.name):+,.1f} per 1,000 turns")
    assert model.summaries >= turns // 24
    assert last.descriptors <= first.descriptors
    assert last.threads <= first.threads + POOL
    assert last.temporary_files <= first.temporary_files
    growth = [after.session_bytes - before.session_bytes for before, after in pairwise(held)]
    assert growth[-1] <= 1.25 * growth[0]
    assert last.memory_kb <= warm[0].memory_kb + MEMORY_KB + MEMORY_KB_PER_TURN * turns
