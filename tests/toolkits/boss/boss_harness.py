"""A boss with a scripted model, for tests."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.boss.flow.boss import Boss, BossRun, Outcome
from goose_like_toolkits.boss.flow.setup import open_boss
from goose_like_toolkits.boss.python_flow import FlowBranch
from goose_like_toolkits.boss.spec import BossSpec

from goose_like.config.profile import Limits, Profile
from goose_like.core.events import Answer, Reminded
from goose_like.core.history import History
from goose_like.core.message import Message, ToolResult
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Delta, Model, ModelPair, Request
from goose_like.sessions.jsonl import parse_line
from goose_like.sessions.session import Session
from tests.fakes import FakeProvider, call, calls

PROFILE = Profile(name="mine", toolkits=(), sandbox="full", approval="yolo")
FILES = {"plan": "plan.md", "logs": "logs.md"}


class ScriptedProvider(FakeProvider):
    """A provider that plays its script. A function in the script gets the request and returns the answer."""

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        if callable(step := self.script[0]):
            self.script[0] = step(request)
        async for delta in super().stream(request):
            yield delta


class BossHarness:
    """A boss at work, with its session, events and requests."""

    def __init__(self, run: BossRun, session: Session, recorder: Recorder, provider: FakeProvider) -> None:
        self.run, self.session, self.recorder, self.provider = run, session, recorder, provider

    @property
    def results(self) -> list[ToolResult]:
        return [result for message in self.run.history.messages for result in message.tool_results]

    @property
    def reminders(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Reminded)]

    @property
    def memories(self) -> list[str]:
        """The memory at the end of each request with tools."""
        return [request.messages[-1].text for request in self.provider.requests if request.tools]


class EchoFlow:
    """A flow that returns its input, with fixed extra keys."""

    def __init__(self, **more: object) -> None:
        self.more = more

    def run(self, input_data: dict[str, Any]) -> dict[str, Any]:
        return {"result": f"got {input_data}", "summary": f"echoed {len(input_data)}", **self.more}


class FixedFlow:
    """A flow that returns the same text each time, without a summary."""

    def __init__(self, words: str = "seen") -> None:
        self.words = words

    def run(self, input_data: dict[str, Any]) -> str:
        return self.words


def act(name: str, **arguments: Any) -> Message:
    return calls(call(name, json.dumps(arguments), id=""))


def finish(result: str = "all done") -> Message:
    return act("finish", result=result, summary=f"said {result}")


def make_spec(*branches: str, **more: Any) -> dict[str, Any]:
    """Describe a boss without a planner, with these actions."""
    return {"memory_files": FILES, "planner": None, "branches": {name: {} for name in branches}, **more}


def make_inner_branch(*branches: str, **more: Any) -> dict[str, Any]:
    files = {"plan": "inner_plan.md", "logs": "inner_logs.md"}
    return {"boss": make_spec(*branches, name="inner", memory_files=files, **more)}


def make_boss(spec: Mapping[str, Any], flows: Mapping[str, Any] | None = None, **how: Any) -> Boss:
    """Make a boss. `flows` are the flows of branches; `spec` lists their parameters."""
    branches = {name: branch for name, branch in spec["branches"].items() if name not in (flows or {})}
    listed = {
        name: FlowBranch(flow, parameters=tuple(spec["branches"].get(name, {}).get("parameters", ())))
        for name, flow in (flows or {}).items()
    }
    return Boss(BossSpec.model_validate({**spec, "branches": branches}), listed, **how)


@asynccontextmanager
async def open_harness(
    spec: Mapping[str, Any],
    script: FakeProvider | list[Any],
    *,
    session: Session | None = None,
    answer: Answer = Answer(),
    profile: Profile = PROFILE,
    limits: Limits | None = None,
    **how: Any,
) -> AsyncIterator[BossHarness]:
    provider = script if isinstance(script, FakeProvider) else ScriptedProvider(script)
    recorder, session = Recorder(answer), session or Session.create("here")
    model = Model(provider, "x", "scripted:x")
    boss = make_boss(spec, **how)
    try:
        opened = open_boss(
            boss,
            PROFILE if profile is None else profile,
            recorder,
            session=session,
            limits=limits,
            models=ModelPair(model, model),
        )
        async with opened as run:
            yield BossHarness(run, session, recorder, provider)
    finally:
        session.close()


async def run_boss(
    spec: Mapping[str, Any], script: FakeProvider | list[Any], goal: str = "the goal", **how: Any
) -> tuple[BossHarness, Outcome]:
    """Run a boss on a goal."""
    async with open_harness(spec, script, **how) as place:
        outcome = await place.run.work(goal)
    return place, outcome


def resume_session() -> Session:
    return Session.resume("here", keep_open_turn=True)


def get_events_file(place: BossHarness, *ids: str) -> Path:
    """Return the events file of the session that a call left."""
    folder = place.session.folder
    for id in ids:
        folder = folder / "subagents" / id
    return folder / "events.jsonl"


def replay_file(file: Path) -> History:
    return History.replay(map(parse_line, file.read_bytes().splitlines()))


def cut_events(file: Path, kind: str, name: str = "") -> None:
    """Cut a file of events before the last event of a kind, as if the process had been killed there."""
    lines = file.read_text().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if f'"type":"{kind}"' in line and name in line)
    file.write_text("".join(lines[:last]))


async def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for a condition. The time limit of the test ends the wait."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def return_note(words: str) -> str:
    return words
