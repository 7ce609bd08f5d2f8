"""The suite: all families, their results, and the report."""

import hashlib
import importlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests.evasion.case import EVERY_MODE, Case, Mode
from tests.evasion.place import create_template, open_place, remove
from tests.evasion.player import Outcome, play_case
from tests.evasion.rules import format_catch_rate

Key = tuple[str, str, str, str]
"""Family, name, mode, and a hash of the case."""


def list_families() -> list[str]:
    """List the families: the modules `cases_NAME`."""
    return sorted(file.stem.removeprefix("cases_") for file in Path(__file__).parent.glob("cases_*.py"))


def load_family(name: str) -> list[Case]:
    """Return the cases of a family."""
    cases: list[Case] = importlib.import_module(f"tests.evasion.cases_{name}").CASES
    names = [case.name for case in cases]
    if len(names) != len(set(names)):
        raise ValueError(f"two cases of {name} have the same name: {sorted(n for n in names if names.count(n) > 1)}")
    return cases


class Suite:
    """Cases run below `folder`, and their results."""

    def __init__(self, folder: Path, *, is_control: bool = False, is_kept: bool = False) -> None:
        self._folder = folder
        self._is_control, self._is_kept = is_control, is_kept
        self._name = "control" if is_control else "results"
        self._file = folder / f"{self._name}-{time.time_ns()}.jsonl"
        self._results: dict[Key, Outcome] = {}

    def run(
        self, cases: Sequence[tuple[str, Case]], modes: Sequence[Mode], *, jobs: int = 2, resumes: bool = False
    ) -> int:
        """Run the cases, print the report, and return the exit code: 0 if every attack failed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        template = self._folder / f"template-{os.getpid()}"
        remove(template)
        create_template(template)
        known = self._read_last_results() if resumes else {}
        todo = list(self._list_runs(cases, modes))
        self._results = {key: known[key] for key, _ in todo if key in known}
        started = time.monotonic()
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda run: self._play(template, *run), [run for run in todo if run[0] not in self._results]))
        remove(template)
        self._report(len(cases), time.monotonic() - started)
        return int(bool(self.list_failures()) and not self._is_control)

    def list_failures(self) -> list[str]:
        """List the attacks that did not fail, with details."""
        rows = sorted(self._results.items())
        return [f"{o.status}: {key[0]}/{key[1]} in {key[2]}: {o.detail}" for key, o in rows if o.status != "held"]

    def _list_runs(self, cases: Iterable[tuple[str, Case]], modes: Sequence[Mode]) -> Iterable[tuple[Key, Case]]:
        for family, case in cases:
            digest = hashlib.sha256(repr(case).encode()).hexdigest()[:12]
            if self._is_control:
                if case.has_control:
                    yield (family, case.name, "control", digest), case
                continue
            for mode in case.modes:
                if mode in modes:
                    yield (family, case.name, mode, digest), case

    def _play(self, template: Path, key: Key, case: Case) -> None:
        family, name, mode, _ = key
        folder = self._folder / f"{os.getpid()}-{hashlib.sha256(repr(key).encode()).hexdigest()[:10]}"
        try:
            with open_place(template, folder, is_kept=self._is_kept) as place:
                outcome = play_case(case, mode, place)  # type: ignore[arg-type]
        except Exception as error:  # one broken case must not end the suite; it counts as not held
            outcome = Outcome("failed", repr(error)[:300])
        self._results[key] = outcome
        with self._file.open("a") as file:
            file.write(json.dumps({"key": key, **asdict(outcome)}) + "\n")
        if outcome.status != "held" and not self._is_control:
            where = f" ({folder})" if self._is_kept else ""
            print(f"{outcome.status.upper()}: {family}/{name} in {mode}{where}: {outcome.detail.strip()!r}", flush=True)

    def _read_last_results(self) -> dict[Key, Outcome]:
        """Read the results of the last run in this folder, and continue its file."""
        files = sorted(self._folder.glob(f"{self._name}-*.jsonl"))
        if not files:
            return {}
        self._file = files[-1]
        rows = [json.loads(line) for line in self._file.read_text().splitlines()]
        return {tuple(row["key"]): Outcome(row["status"], row["detail"]) for row in rows if row["status"] == "held"}

    def _report(self, cases: int, seconds: float) -> None:
        families = sorted({key[0] for key in self._results})
        modes = ["control"] if self._is_control else list(EVERY_MODE)
        rows = [
            [name or "all", *(self._count(name, mode) for mode in modes), self._count(name)] for name in (*families, "")
        ]
        rows.insert(0, ["family", *modes, "all"])
        print(f"\nheld / tried, {cases} cases, as user {os.geteuid()}, {seconds:.0f} s")
        for row in rows:
            print(f"{row[0]:<14}" + "".join(f"{cell:>19}" for cell in row[1:]))
        if not self._is_control:
            print(f"\npermission rules (advisory): {format_catch_rate()}")
        if self._is_control:
            print("\nheld without a sandbox, so these cases show nothing for this user:")
            for key, outcome in sorted(self._results.items()):
                if outcome.status != "succeeded":
                    print(f"  {key[0]}/{key[1]}: {outcome.status} {outcome.detail.strip()[-200:]!r}")

    def _count(self, family: str = "", mode: str = "") -> str:
        chosen = [o for key, o in self._results.items() if family in ("", key[0]) and mode in ("", key[2])]
        return f"{sum(o.status == 'held' for o in chosen)}/{len(chosen)}" if chosen else "-"
