"""Prints what finding a file by some letters costs in a repository of 100,000 files. `python bench/files.py`.

The repository is made in a temporary folder: empty files in 2,000 folders. The floor is one pass of `str.find` over
the same names, as a list.
"""

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from goose_like.cli.chat.file_finder import Files, Names
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace

COUNT, FOLDERS, ROUNDS = 100_000, 2_000, 7
TARGET_MS = 100
WORDS = [*("core", "api", "http", "client", "server", "test", "parse", "token", "stream", "event", "model", "view")]
TYPED = ("s", "src", "sesv", "stream_event", "m9.py", "tokenzzq", "eeeeeeeeez", "src/tmo")
"""What may be typed; each is also measured letter by letter."""


def paths() -> list[str]:
    chance = random.Random(9)
    folders = [f"src/{'/'.join(chance.choices(WORDS, k=chance.randint(1, 5)))}_{n}" for n in range(FOLDERS)]
    return [f"{folders[n % FOLDERS]}/{'_'.join(chance.choices(WORDS, k=2))}_{n}.py" for n in range(COUNT)]


def milliseconds(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    took = []
    for _ in range(ROUNDS):
        before()
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1000


async def listed(root: Path) -> tuple[float, float]:
    """The milliseconds of the first search, which waits for a listing, with a sandbox and without."""
    took = []
    for mode in ("workspace", "full"):
        async with Workspace(root, mode=mode, approval="auto", notifier=Recorder()) as workspace:
            await workspace.run(["true"])  # the sandbox is there when a person begins to type
            begun = time.perf_counter()
            assert await asyncio.to_thread(Files(workspace.root, workspace.run).matching, "")
            took.append((time.perf_counter() - begun) * 1000)
    return took[0], took[1]


def main() -> None:
    names = paths()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).touch()
        confined, free = asyncio.run(listed(Path(folder)))
    print(
        f"listing {COUNT:,} files, until the first are offered: {confined:.0f} ms in the sandbox, {free:.0f} ms without"
    )
    raw = "".join(f"{name}\0" for name in names).encode()
    print(f"of that making them ready to be searched: {milliseconds(lambda: Names.read(raw)):.0f} ms")
    ready = Names.read(raw)

    def forget() -> None:
        """A search that finds nothing, and that none goes on from."""
        ready.matching("\0")

    print(f"{'typed':>14}  first filter  next keystroke  floor (str.find)   found")
    for typed in TYPED:
        floor = milliseconds(lambda typed=typed: [name.find(typed) for name in names])
        first = milliseconds(lambda typed=typed: ready.matching(typed), forget)
        following = milliseconds(
            lambda typed=typed: ready.matching(typed), lambda typed=typed: ready.matching(typed[:-1])
        )
        found = len(ready.matching(typed))
        print(f"{typed:>14}  {first:9.1f} ms  {following:11.1f} ms  {floor:13.1f} ms  {found:6}")
    letters = [typed[:end] for typed in TYPED for end in range(1, len(typed) + 1)]
    slowest = max(milliseconds(lambda typed=typed: ready.matching(typed), forget) for typed in letters)
    print(f"the slowest first filter of these and their beginnings: {slowest:.1f} ms; wanted: {TARGET_MS} ms")


if __name__ == "__main__":
    main()
