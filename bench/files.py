"""Measure finding a file by some letters in a repository of 100,000 files. `python bench/files.py`.

The repository is a temporary folder: empty files in 2,000 folders. The floor is one pass of `str.find` over a list of
the same names.
"""

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from goose_like.cli.chat.file_finder import FileFinder, PathIndex
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace

COUNT, FOLDERS, ROUNDS = 100_000, 2_000, 7
TARGET_MS = 100
WORDS = [*("core", "api", "http", "client", "server", "test", "parse", "token", "stream", "event", "model", "view")]
TYPED = ("s", "src", "sesv", "stream_event", "m9.py", "tokenzzq", "eeeeeeeeez", "src/tmo")
"""Search texts. Each is also measured letter by letter."""


def make_paths() -> list[str]:
    chance = random.Random(9)
    folders = [f"src/{'/'.join(chance.choices(WORDS, k=chance.randint(1, 5)))}_{n}" for n in range(FOLDERS)]
    return [f"{folders[n % FOLDERS]}/{'_'.join(chance.choices(WORDS, k=2))}_{n}.py" for n in range(COUNT)]


def measure_ms(work: Callable[[], object]) -> float:
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1000


async def measure_first_search_ms(root: Path) -> tuple[float, float]:
    """Return the milliseconds of the first search, which waits for a listing, with a sandbox and without."""
    took = []
    for mode in ("workspace", "full"):
        async with Workspace(root, mode=mode, approval="auto", notifier=Recorder()) as workspace:
            await workspace.run_internal(["true"])  # a session has entered its sandbox before a person types
            begun = time.perf_counter()
            assert await asyncio.to_thread(FileFinder(workspace.root, workspace.run_internal).find_paths, "")
            took.append((time.perf_counter() - begun) * 1000)
    return took[0], took[1]


def main() -> None:
    names = make_paths()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).touch()
        confined, free = asyncio.run(measure_first_search_ms(Path(folder)))
    print(
        f"listing {COUNT:,} files, until the first are offered: {confined:.0f} ms in the sandbox, {free:.0f} ms without"
    )
    raw = "".join(f"{name}\0" for name in names).encode()
    print(f"time to index them: {measure_ms(lambda: PathIndex.from_listing(raw)):.0f} ms")
    ready = PathIndex.from_listing(raw)

    print(f"{'typed':>14}  filter       floor (str.find)   found")
    for typed in TYPED:
        floor = measure_ms(lambda typed=typed: [name.find(typed) for name in names])
        took = measure_ms(lambda typed=typed: ready.find_paths(typed))
        found = len(ready.find_paths(typed))
        print(f"{typed:>14}  {took:6.1f} ms  {floor:13.1f} ms  {found:6}")
    letters = [typed[:end] for typed in TYPED for end in range(1, len(typed) + 1)]
    slowest = max(measure_ms(lambda typed=typed: ready.find_paths(typed)) for typed in letters)
    print(f"the slowest filter of these and their beginnings: {slowest:.1f} ms; wanted: {TARGET_MS} ms")


if __name__ == "__main__":
    main()
