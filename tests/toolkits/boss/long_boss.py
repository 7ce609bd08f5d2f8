"""A boss with hundreds of rounds: results of every size, a growing log and a growing library."""

import json
import time
from collections.abc import AsyncGenerator
from typing import Any

from goose_like_toolkits.boss.flow.boss import Boss
from goose_like_toolkits.boss.flow.setup import open_boss
from goose_like_toolkits.boss.python_flow import FlowBranch
from goose_like_toolkits.boss.spec import BossSpec

from goose_like.config.profile import Profile
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.notifier import Notifier
from goose_like.providers.base import Delta, Model, ModelPair, Request
from goose_like.sessions.session import Session
from tests.fakes import call, calls
from tests.long_session import GOAL, Counting, pages

FUNCTION_EVERY = 4
FUNCTION = '''def part_{number}(text: str, limit: int = {number}) -> list[str]:
    """Lines of part {number} that speak of juniper, at most so many."""
    return [line for line in text.split("\\n") if "juniper" in line][:limit]
'''
PLAN = "".join(
    f"- [{'x' if step < 3 else ' '}] Part {step} of the documentation, compared and mended\n" for step in range(8)
)


class TimedProvider(Counting):
    """A counting provider that measures the time between an answer and the next request."""

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.gaps_ms: list[float] = []
        self._ended = 0.0

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        if request.tools and self._ended:
            self.gaps_ms.append((time.perf_counter() - self._ended) * 1000)
        async for delta in super().stream(request):
            self._ended = time.perf_counter()
            yield delta


class PageFlow:
    """A flow that returns parts of the project's own pages, mostly short ones."""

    def __init__(self) -> None:
        self._text = "".join(pages())

    def run(self, input_data: dict[str, Any]) -> dict[str, str]:
        number = int(input_data["number"])
        size = (200, 900, 3_000, 400, 14_000, 1_500, 600)[number % 7]
        start = number * 911 % (len(self._text) - size)
        return {"result": self._text[start : start + size], "summary": f"looked at {size} characters of page {number}"}


def choose_call(round: int) -> Message:
    """Write a function in every fourth round, save it in the next one, and look at pages in the others."""
    number, phase = divmod(round, FUNCTION_EVERY)
    if phase == 0:
        code = FUNCTION.format(number=number)
        wish = call("write_code", json.dumps({"code": code}), id="")
    elif phase == 1:
        wish = call("save_code", id="")
    else:
        wish = call("look", json.dumps({"number": round}), id="")
    return calls(wish, text=f"Part {number} comes next; I go on with it.")


async def run_rounds(rounds: int, session: Session) -> tuple[TimedProvider, History]:
    """Run these rounds in the current folder. Return the provider with all requests, and the history."""
    files = {"plan": "plan.md", "logs": "logs.md", "code_library": "library.py"}
    branches: dict[str, Any] = {name: {} for name in ("update_plan", "write_code", "save_code", "run_code")}
    branches["hands"] = {"toolkits": [{"name": "developer", "config": {"hints": False}}]}
    spec = BossSpec.model_validate({"memory_files": files, "branches": branches, "planner": None, "max_round": rounds})
    provider = TimedProvider(choose_call)
    model = Model(provider, "x", "scripted:x", 128_000)
    profile = Profile(toolkits=(), sandbox="full", approval="yolo")
    boss = Boss(spec, flows={"look": FlowBranch(PageFlow(), "Looks at a page.", ("number",))})
    async with open_boss(boss, profile, Notifier(), session=session, models=ModelPair(model, model)) as run:
        outcome = await run.work(GOAL)
        assert outcome.status == "max_round", outcome
        return provider, run.history
