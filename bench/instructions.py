"""Count the instructions of a start with valgrind, which other work on the machine does not change.

`python bench/instructions.py`. The subjects are those of `skills.py`. The instructions of the kernel are not counted,
and SHA-256 has more of them than on a processor with its own instructions for it.
"""

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

from server import record
from skills import Subject, prepare

VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
START = [sys.executable, "-m", "goose_like", "run", "--model", "openai:bench", "--sandbox", "full", "go"]


def read_count(log: Path) -> float:
    """Read the millions of instructions that valgrind counted."""
    found = re.search(r"I +refs: +([\d,]+)", log.read_text())
    assert found
    return int(found[1].replace(",", "")) / 1e6


async def count(command: list[str], env: dict[str, str], folder: Path, log: Path) -> float:
    """Return the millions of instructions of a process from its start to its end, with one request."""
    await record([*VALGRIND, f"--log-file={log}", *command], {**env, "PYTHONHASHSEED": "0"}, 1, str(folder))
    return read_count(log)


async def count_start(subject: Subject, log: Path) -> float:
    """Count the second start, which finds full caches."""
    await record(START, subject.env, 1, str(subject.project))
    return await count(START, subject.env, subject.project, log)


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        folder = Path(name)
        subjects = prepare(folder)
        nothing = subjects[0]
        floor = [sys.executable, str(Path(__file__).with_name("floor_openai.py"))]
        floor_count = await count(floor, dict(os.environ), nothing.project, folder / "log")
        print(f"millions of instructions; the bare loop of the openai SDK has {floor_count:,.0f}")
        base = 0.0
        for subject in subjects:
            found = await count_start(subject, folder / "log")
            base = base or found
            print(f"  {subject.name:40} {found:8,.0f} {found - base:+8,.0f} {found / floor_count:6.2f}x")


if __name__ == "__main__":
    asyncio.run(main())
