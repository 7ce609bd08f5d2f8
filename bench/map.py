"""Compare a map of a repository of 100,000 files with `rg --files`. `python bench/map.py`.

The repository is a temporary folder: files of about 5 kB in 2,000 folders. Each round is a new process with an empty
cache, and its first map also imports the grammar. Parsing is measured separately, after the maps.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from goose_like_toolkits.repo_context.outline import Grammars
from goose_like_toolkits.repo_context.repo_map import RepoMap

from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace

COUNT, FOLDERS, ROUNDS, FLOORS, BUDGET = 100_000, 2_000, 7, 3, 8_000
WORDS = [*("core", "api", "http", "client", "server", "order", "parse", "token", "stream", "event", "model", "view")]
TARGETS = {"first": "2x and the parsing", "second": "1.2x"}


def make_repository(root: Path) -> None:
    chance = random.Random(9)
    folders = [root / f"src/{'/'.join(chance.choices(WORDS, k=chance.randint(1, 5)))}_{n}" for n in range(FOLDERS)]
    for folder in folders:
        folder.mkdir(parents=True)
    bodies = ["".join(make_class(chance, number) for number in range(8)) for _ in range(100)]
    for n in range(COUNT):
        body = bodies[n % 100].replace("@", str(n)).replace("$", str(chance.randrange(COUNT)))
        (folders[n % FOLDERS] / f"{'_'.join(chance.choices(WORDS, k=2))}_{n}.py").write_text(body)


def make_class(chance: random.Random, number: int) -> str:
    """Return the source of a class that calls a function of another file."""
    name, *words = chance.choices(WORDS, k=9)
    methods = "".join(
        f"\n    def {word}_{name}(self, {word}: str, limit: int = {number}) -> str:\n"
        f'        """Return the {word} of the {name}."""\n'
        f"        return {name}_{number}_$({word}, [limit] * {number})\n"
        for word in words[:4]
    )
    return f"\n\nclass {name.title()}{number}_@:\n    limit = {number}\n{methods}\n\ndef {name}_{number}_@(x): ...\n"


async def measure_round(root: Path, mode: Literal["workspace", "full"]) -> dict[str, float]:
    """Return the milliseconds of one round."""
    floors, took = [measure_floor_ms(root) for _ in range(FLOORS)], {}
    with tempfile.TemporaryDirectory() as folder:
        async with Workspace(root, mode=mode, approval="auto", notifier=Recorder()) as workspace:
            await workspace.run_internal(["true"])  # a session has entered its sandbox before the first map
            drawer = RepoMap(workspace, Recorder(), Path(folder) / "map.db")
            for name in TARGETS:
                begun = time.perf_counter()
                text = await drawer.build(".", "", BUDGET)
                took[name] = (time.perf_counter() - begun) * 1000
                floors += [measure_floor_ms(root) for _ in range(FLOORS)]
            await drawer.close()
    paths = [line.split(" (")[0] for line in text.splitlines() if line.startswith("src/")]
    begun = time.perf_counter()
    grammars = Grammars()
    for path in paths:
        grammars.parse(path, (root / path).read_bytes())
    return {
        **took,
        "floor": statistics.median(floors),
        "parsing": (time.perf_counter() - begun) * 1000,
        "files": len(paths),
    }


def measure_floor_ms(root: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(["rg", "--files"], cwd=root, stdout=subprocess.PIPE, check=True)
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(measure_round(Path(sys.argv[1]), sys.argv[2]))))  # type: ignore[arg-type]
        return
    with tempfile.TemporaryDirectory() as folder:
        make_repository(Path(folder))
        subprocess.run(["rg", "--files", "--quiet"], cwd=folder, check=True)
        print(f"{COUNT:,} files; medians of {ROUNDS} rounds; load {os.getloadavg()[0]:.1f}")
        for mode in ("workspace", "full"):
            child = [sys.executable, __file__, folder, mode]
            rounds = [json.loads(subprocess.check_output(child)) for _ in range(ROUNDS)]
            medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
            print(f"sandbox {mode}: rg --files {medians['floor']:.0f} ms; {medians['files']:.0f} files shown, which")
            print(f"  take {medians['parsing']:.0f} ms to parse")
            for name, target in TARGETS.items():
                beyond = medians["parsing"] if name == "first" else 0.0
                ratio = statistics.median((each[name] - beyond) / each["floor"] for each in rounds)
                less = f" and the parsing (in all {medians[name]:.0f} ms)" if beyond else f" ({medians[name]:.0f} ms)"
                print(f"  {name} map: {ratio:.2f}x rg --files{less}; wanted: {target}")


if __name__ == "__main__":
    main()
