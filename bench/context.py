"""Measure the requests of 300 steps under each moderator, and the time of early and late steps.

    python bench/context.py [--rounds N]

The steps read parts of the project's own pages (`tests/long_session.py`).
"""

import argparse
import asyncio
import bisect
import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from run import agent_command, median_ms, script_command
from server import Recording, record

from goose_like.agent.compaction.moderators import Moderator, Passive, Summarize, Synopsis, Truncate
from goose_like.core.events import Compacted, PlanUpdated
from goose_like.core.history import History
from goose_like.sessions.session import Session
from tests.long_session import GOAL, PLAN, Counting, exchange_over, work

HERE = Path(__file__).parent
STEPS = 300
WINDOW_TOKENS = 60_000
EARLY, LATE = slice(5, 15), slice(STEPS - 11, STEPS - 1)
MODERATORS: dict[str, type[Moderator]] = {
    "passive": Passive,
    "truncate": Truncate,
    "summarize": Summarize,
    "synopsis": Synopsis,
}


async def run_session(kind: type[Moderator], folder: Path) -> tuple[list[bytes], int]:
    """Return the bodies of all requests of a session, and the number of compactions."""
    session = Session(folder, "bench", History())
    session._open(is_new=True)
    respond, look = work(STEPS)
    provider = Counting(respond)
    exchange = exchange_over(session, provider, kind({}, save_result=session.save_result), look, window=WINDOW_TOKENS)
    exchange.journal.emit(PlanUpdated(tasks=PLAN))
    end = await exchange.reply(GOAL)
    assert end.reason == "stop", end.detail
    compactions = sum(isinstance(event, Compacted) for event in session.read_events())
    session.close()
    return provider.bodies, compactions


def find_cached_share(bodies: Sequence[bytes]) -> tuple[float, int]:
    """Return the share of bytes that repeat the beginning of the request before, and the number of misses.

    In a miss, less than half of a request repeats. The first request is not counted.
    """
    shares = [(count_common_bytes(before, after), len(after)) for before, after in pairwise(bodies)]
    misses = sum(same < len(before) / 2 for (same, _), before in zip(shares, bodies, strict=False))
    return sum(same for same, _ in shares) / sum(size for _, size in shares), misses


def count_common_bytes(one: bytes, other: bytes) -> int:
    """Count the bytes at the beginning of both."""
    return bisect.bisect_left(range(1, len(one) + 1), True, key=lambda size: not other.startswith(one[:size]))


async def compare_moderators(folder: Path) -> None:
    print(f"{STEPS} steps, a window of {WINDOW_TOKENS:,} tokens")
    print(f"{'moderator':12}{'sent':>14}{'largest':>12}{'cached':>10}{'compacted':>11}{'misses':>8}")
    for name, kind in MODERATORS.items():
        bodies, compactions = await run_session(kind, folder / name)
        share, misses = find_cached_share(bodies)
        total, largest = sum(map(len, bodies)), max(map(len, bodies))
        print(f"{name:12}{total:14,}{largest:12,}{share:10.1%}{compactions:11}{misses:8}")


async def compare_gaps(folder: Path, rounds: int) -> None:
    pages = sorted(str(page) for page in (HERE.parent / "docs").glob("*.md"))

    def look(step: int) -> str:
        return f"tail -c +{step * 7} {pages[step % len(pages)]} | head -c {400 + step * 131 % 2_600}"

    (folder / "work").mkdir()
    env = {**os.environ, "GOOSE_LIKE_HOME": str(folder / "home")}
    subjects = {"bare httpx loop": script_command("floor_httpx.py"), "goose-like": agent_command("full", STEPS)}
    early: dict[str, list[float]] = {name: [] for name in subjects}
    late: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, command in subjects.items():
            recording: Recording = (await record(command, env, STEPS, str(folder / "work"), look))[0]
            early[name].append(median_ms(recording.gaps_s, EARLY))
            late[name].append(median_ms(recording.gaps_s, LATE))
    ratios = {}
    for title, figures in (("10", early), (str(STEPS), late)):
        floor, ours = (statistics.median(figures[name]) for name in subjects)
        ratios[title] = ours / floor
        print(f"step {title:>4}: {ours:.1f} ms, the bare httpx loop {floor:.1f} ms, {ours / floor:.2f}x")
    print(f"the ratio at step {STEPS} over that at step 10: {ratios[str(STEPS)] / ratios['10']:.2f} (at most 1.5)")


async def main(rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="goose-like-bench-"))
    try:
        await compare_moderators(folder)
        await compare_gaps(folder, rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(main(parser.parse_args().rounds))
