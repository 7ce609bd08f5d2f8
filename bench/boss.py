"""Compare the requests of a boss in early and late rounds with the same conversation without its moderator.

    python bench/boss.py [--rounds N]

The log grows by a line per round, the library by a function per four rounds. Results have 200 to 14,000 characters.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from goose_like.agent.compaction.moderators import Passive
from goose_like.core.history import History
from goose_like.providers.base import Request
from goose_like.providers.openai_wire import OpenAIEncoder
from goose_like.sessions.session import Session
from tests.long_session import GOAL, exchange_over
from tests.long_session import work as steps_of
from tests.toolkits.boss.long_boss import PLAN, TimedProvider, run_rounds

HERE = Path(__file__).parent
ROUNDS = 240
AROUND = 14  # sizes of results and kinds of actions repeat after twice as many rounds


def mean_at(figures: list[float] | list[int], number: int) -> float:
    """Return the mean around a round, because results have different sizes."""
    return statistics.mean(figures[number - AROUND : number + AROUND])


async def run_plain_exchange(folder: Path, rounds: int) -> list[float]:
    """Return the milliseconds between each answer and the next request, for an exchange with a small tool."""
    session = Session(folder, "bare", History())
    session._open(is_new=True)
    respond, look = steps_of(rounds, output=lambda step: f"line {step}")
    provider = TimedProvider(respond)
    end = await exchange_over(session, provider, Passive({}), look, window=10_000_000).reply(GOAL)
    assert end.reason == "stop", end.detail
    session.close()
    return provider.gaps_ms


async def run_both(folder: Path, rounds: int) -> tuple[TimedProvider, History, list[float]]:
    session = Session.create("bench")
    provider, history = await run_rounds(rounds, session)
    session.close()
    return provider, history, await run_plain_exchange(folder / "bare", rounds)


def print_report(provider: TimedProvider, history: History, floor: list[float], functions: int) -> None:
    answers = [place for place, message in enumerate(history.messages) if message.role == "assistant"]
    last = provider.requests[-1]
    requests = (Request(last.model, last.system, history.messages[:place], last.tools) for place in answers)
    passive = [len(OpenAIEncoder().encode_request(request)) for request in requests]
    sizes, gaps = [len(body) for body in provider.bodies], provider.gaps_ms
    print(f"{len(sizes)} rounds, {provider.asides} requests for notes, {functions} functions in the library")
    print(f"{'round':>6}{'sent':>10}{'tokens':>9}{'passive':>12}{'own work':>12}{'bare step':>12}")
    for number in (20, 50, 100, 200):
        own, step = (statistics.median(each[number - AROUND : number + AROUND]) for each in (gaps, floor))
        sent = mean_at(sizes, number)
        print(f"{number:6}{sent:10,.0f}{sent / 4:9,.0f}{mean_at(passive, number):12,.0f}{own:9.1f} ms{step:9.1f} ms")
    print(f"round 200 over round 20: {mean_at(sizes, 200) / mean_at(sizes, 20):.2f}x (at most 1.2), ", end="")
    print(f"passive {mean_at(passive, 200) / mean_at(passive, 20):.1f}x; the largest request {max(sizes):,} bytes")


def main(rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="goose-like-bench-"))
    os.environ["GOOSE_LIKE_HOME"] = str(folder / "home")
    (folder / "work").mkdir()
    os.chdir(folder / "work")
    try:
        Path("plan.md").write_text(PLAN)
        results = asyncio.run(run_both(folder, rounds))
        print_report(*results, Path("library.py").read_text().count("def "))
    finally:
        os.chdir(HERE)
        shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least 210")
    main(parser.parse_args().rounds)
