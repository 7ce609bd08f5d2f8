"""Count the instructions of a start with valgrind, which other work on the machine does not change.

`python bench/instructions.py [--only WORD]`. The subjects are those of `skills.py`, and one and ten of the servers of
`mcp.py` that nothing uses. The instructions of the kernel are not counted, and SHA-256 has more of them than on a
processor with its own instructions for it. With `--only`, subjects without the word are left out.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from mcp import configure
from server import record
from skills import SETTLING_S, Subject, prepare

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


def add_servers(subjects: list[Subject], folder: Path) -> None:
    """Add subjects with MCP servers to those of `skills.py`."""
    nothing = subjects[0]
    for count in (1, 10):
        home = folder / f"home/{count} servers"
        configure(home / "ours", count)
        subjects.append(Subject(f"MCP servers: {count}", nothing.project, home, nothing.packages))
    del os.environ["GOOSE_LIKE_HOME"]  # `configure` sets it, and each subject has its own
    time.sleep(SETTLING_S)


async def main(word: str) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        folder = Path(name)
        subjects = prepare(folder)
        add_servers(subjects, folder)
        nothing = subjects[0]
        floor = [sys.executable, str(Path(__file__).with_name("floor_openai.py"))]
        floor_count = await count(floor, dict(os.environ), nothing.project, folder / "log")
        print(f"millions of instructions; the bare loop of the openai SDK has {floor_count:,.0f}")
        base = await count_start(nothing, folder / "log")
        print(f"  {nothing.name:40} {base:8,.0f} {'':8} {base / floor_count:6.2f}x")
        for subject in subjects[1:]:
            if word not in subject.name:
                continue
            found = await count_start(subject, folder / "log")
            print(f"  {subject.name:40} {found:8,.0f} {found - base:+8.1f} {found / floor_count:6.2f}x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD")
    asyncio.run(main(parser.parse_args().only))
