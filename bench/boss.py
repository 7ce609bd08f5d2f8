"""Prints what a boss sends in early and late rounds, beside what the same conversation would be without its moderator.

    python bench/boss.py [--rounds N]

A log that grows by a line a round, a library that grows by a function every four, results of 200 to 14,000 characters.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

from goose_like.agent.compaction.base import Passive  # noqa: E402
from goose_like.core.history import History  # noqa: E402
from goose_like.providers.base import Request  # noqa: E402
from goose_like.providers.openai_wire import Encoder  # noqa: E402
from goose_like.sessions.session import Session  # noqa: E402
from tests.long_session import GOAL, exchange_over  # noqa: E402
from tests.long_session import work as steps_of  # noqa: E402
from tests.toolkits.boss.long_boss import PLAN, Timed, worked  # noqa: E402

ROUNDS = 240
AROUND = 14  # twice this is after how many rounds the sizes of results and the kinds of actions come again


def at(figures: list[float] | list[int], number: int) -> float:
    """The mean around a round: results have different sizes."""
    return statistics.mean(figures[number - AROUND : number + AROUND])


async def bare(folder: Path, rounds: int) -> list[float]:
    """The milliseconds between an answer and the next request of a plain exchange, whose tool gives little."""
    session = Session(folder, "bare", History())
    session._open(is_new=True)
    respond, look = steps_of(rounds, output=lambda step: f"line {step}")
    provider = Timed(respond)
    end = await exchange_over(session, provider, Passive({}), look, window=10_000_000).reply(GOAL)
    assert end.reason == "stop", end.detail
    session.close()
    return provider.gaps_ms


async def measured(folder: Path, rounds: int) -> tuple[Timed, History, list[float]]:
    session = Session.create("bench")
    provider, history = await worked(rounds, session)
    session.close()
    return provider, history, await bare(folder / "bare", rounds)


def report(provider: Timed, history: History, floor: list[float], functions: int) -> None:
    answers = [place for place, message in enumerate(history.messages) if message.role == "assistant"]
    last = provider.requests[-1]
    asked = (Request(last.model, last.system, history.messages[:place], last.tools) for place in answers)
    passive = [len(Encoder().body(request)) for request in asked]
    sizes, gaps = [len(body) for body in provider.bodies], provider.gaps_ms
    print(f"{len(sizes)} rounds, {functions} functions in the library at the end")
    print(f"{'round':>6}{'sent':>10}{'tokens':>9}{'passive':>12}{'own work':>12}{'bare step':>12}")
    for number in (20, 50, 100, 200):
        own, step = (statistics.median(each[number - AROUND : number + AROUND]) for each in (gaps, floor))
        sent = at(sizes, number)
        print(f"{number:6}{sent:10,.0f}{sent / 4:9,.0f}{at(passive, number):12,.0f}{own:9.1f} ms{step:9.1f} ms")
    print(f"round 200 over round 20: {at(sizes, 200) / at(sizes, 20):.2f}x (at most 1.2), ", end="")
    print(f"passive {at(passive, 200) / at(passive, 20):.1f}x; the largest request {max(sizes):,} bytes")


def main(rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="goose-like-bench-"))
    os.environ["GOOSE_LIKE_HOME"] = str(folder / "home")
    (folder / "work").mkdir()
    os.chdir(folder / "work")
    try:
        Path("plan.md").write_text(PLAN)
        came = asyncio.run(measured(folder, rounds))
        report(*came, Path("library.py").read_text().count("def "))
    finally:
        os.chdir(HERE)
        shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least 210")
    main(parser.parse_args().rounds)
