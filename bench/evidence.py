"""Measure what the ledger adds to a command, and a second look at many files. `python bench/evidence.py [--rounds N]`.

Turns with and without the ledger alternate in one session, with commands that change no file, add to one, and make one.
The model waits before each command, as models do: the hash after a command is computed meanwhile.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Profile
from goose_like.core.events import Event, ToolFinished, ToolStarted
from goose_like.core.notifier import EventNotifier
from goose_like.sessions.session import Session
from goose_like.workspace.evidence.tree_hash import TreeHash
from goose_like.workspace.undo.trees import Trees

FILES = 2_000
MANY_FILES = 20_000
FILES_PER_FOLDER = 50
COMMANDS = 20
LINES = {
    "changes no file": "true",
    "adds to a file": "echo >> part_0/file_0.py",
    "makes a file": "mktemp part_0/new_XXXXXX.py",
}
MODEL_S = 0.05
ADDED_TARGET_MS = 2
LOOK_TARGET_MS = 20
SETTLING_S = 1.1
"""Files that changed within the last second are no clean files."""


class Clock(EventNotifier):
    """A front-end that measures how long each call takes."""

    def __init__(self) -> None:
        self.calls_ms: list[float] = []
        self._started_s = 0.0

    def notify(self, event: Event) -> None:
        if isinstance(event, ToolStarted):
            self._started_s = time.perf_counter()
        elif isinstance(event, ToolFinished):
            self.calls_ms.append((time.perf_counter() - self._started_s) * 1000)


def create_repository(folder: Path, count: int) -> list[str]:
    """Create a repository with committed files. Return their paths."""
    paths = []
    for number in range(count):
        file = folder / f"part_{number // FILES_PER_FOLDER}" / f"file_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"number = {number}\n")
        paths.append(str(file))
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", "-c", "gc.auto=0"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    return paths


def write_script(file: Path, rounds: int) -> None:
    """Write the script of a model that runs one command again and again in a turn, and the next one in the next."""
    script = []
    for line in LINES.values():
        call = {"tool": "shell", "arguments": {"command": line}}
        turn = [{"calls": [call], "delay_s": MODEL_S}] * COMMANDS + [{"text": "Done."}]
        script += turn * 2
    file.write_text(json.dumps(script * rounds))


async def measure_commands(top: Path, rounds: int) -> dict[tuple[str, str], list[float]]:
    """Return the times of calls by command, without and with the ledger, in milliseconds.

    The first one of a turn does not count.
    """
    folder = top / "work"
    create_repository(folder, FILES)
    write_script(top / "script.json", rounds)
    profile = Profile.model_validate({"processor": f"scripted:{top}/script.json", "sandbox": "full"})
    times_ms: dict[tuple[str, str], list[float]] = {}
    for name in LINES:
        times_ms |= {(name, "without"): [], (name, "with"): []}
    clock = Clock()
    async with build_exchange(profile, clock, session=Session.create(), folder=folder) as exchange:
        ledger = exchange.workspace.ledger
        hash_tree = ledger.hash_tree
        for _ in range(rounds):
            for (_, subject), times in times_ms.items():
                ledger.hash_tree = hash_tree if subject == "with" else None
                clock.calls_ms.clear()
                await exchange.reply("go")
                has_tree = bool(exchange.history.commands[-1].after)
                assert has_tree == (subject == "with")
                times += clock.calls_ms[1:]
    return times_ms


def measure_looks(top: Path, rounds: int) -> dict[str, list[float]]:
    """Return the times of looks at all files in milliseconds, of `git diff-files`, and of as many calls of lstat."""
    folder = top / "many"
    paths = create_repository(folder, MANY_FILES)
    time.sleep(SETTLING_S)
    trees = Trees(top / "state", [str(folder)], lambda _: frozenset())
    tree = TreeHash([folder], trees, [folder / ".git"], frozenset)
    trees.look_before(frozenset, lambda _: "stored")
    tree.load(trees.known, frozenset(), frozenset())
    times_ms: dict[str, list[float]] = {"look": [], "git": [], "lstat": []}
    git = ["git", "-C", str(folder), "diff-files", "--quiet"]
    acts = {"look": tree.rescan, "git": lambda: subprocess.run(git, check=True), "lstat": lambda: look_at(paths)}
    for _ in range(rounds):
        for subject, act in acts.items():
            started_s = time.perf_counter()
            act()
            times_ms[subject].append((time.perf_counter() - started_s) * 1000)
    return times_ms


def look_at(paths: list[str]) -> None:
    for path in paths:
        os.lstat(path)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        top = Path(name)
        os.environ["GOOSE_LIKE_HOME"] = str(top / "home")
        times_ms = asyncio.run(measure_commands(top, rounds))
        looks_ms = measure_looks(top, rounds)
    print(f"medians of {rounds} interleaved rounds, and minima")
    for name in LINES:
        bare_ms = times_ms[name, "without"]
        all_ms = times_ms[name, "with"]
        without_ms = statistics.median(bare_ms)
        added_ms = statistics.median(all_ms) - without_ms
        least_ms = min(all_ms) - min(bare_ms)
        print(f"  a command that {name}, in a repository of {FILES:,} files, without the ledger {without_ms:.1f} ms")
        print(f"    the ledger adds {added_ms:+.2f} ms, {least_ms:+.2f} ms (target: {ADDED_TARGET_MS} ms)")
    names = {
        "look": f"looking at {MANY_FILES:,} files again (target: {LOOK_TARGET_MS} ms)",
        "git": "`git diff-files` on them",
        "lstat": "as many calls of lstat",
    }
    for subject, name in names.items():
        print(f"  {name} {statistics.median(looks_ms[subject]):.1f}, {min(looks_ms[subject]):.1f} ms")
    ratios = [look / git for look, git in zip(looks_ms["look"], looks_ms["git"], strict=True)]
    print(f"  a look takes {statistics.median(ratios):.2f}x `git diff-files`, median of the rounds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    main(parser.parse_args().rounds)
