"""A real exchange whose profile has components; only the model is played."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import ModelChoice, Profile, SandboxMode, ToolkitChoice
from goose_like.core.events import Answer
from goose_like.core.message import ToolResult
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace
from tests import ROOT
from tests.fakes import FakeProvider, call, calls
from tests.toolkits.components.component_files import put_into_repository

COMPONENTS = ROOT / "tests/fixtures/components"


class Hired:
    """A session with components. What the model says is what a test wants called."""

    def __init__(self, exchange: Exchange, played: FakeProvider, recorder: Recorder, root: Path) -> None:
        self.exchange, self.played, self.recorder, self.root = exchange, played, recorder, root
        self.tools = {tool.spec.name: tool.spec for tool in exchange.tools.values()}

    @property
    def system(self) -> str:
        return self.played.requests[-1].system

    async def does(self, *wanted: tuple[str, dict[str, Any]], meanwhile: Sequence[Any] = ()) -> list[ToolResult]:
        """The results that a turn has in which the model wants one call after the other.

        `meanwhile` is what the model answers to components that ask it.
        """
        before = len(self._results)
        for at, (name, arguments) in enumerate(wanted, before):
            self.played.script.append(calls(call(name, json.dumps(arguments), f"c{at}")))
        self.played.script += meanwhile
        self.played.script.append("That was it; what failed stays as it is.")
        assert (await self.exchange.reply("go on")).reason == "stop"
        return self._results[before:]

    async def ok(self, name: str, /, **arguments: Any) -> str:
        """What the model reads of a call that did well."""
        (result,) = await self.does((name, arguments))
        assert not result.is_error, result.output
        return result.output

    async def failed(self, name: str, /, **arguments: Any) -> str:
        """What it reads of one that failed."""
        (result,) = await self.does((name, arguments))
        assert result.is_error, result.output
        return result.output

    @property
    def _results(self) -> list[ToolResult]:
        return [result for message in self.exchange.history.messages for result in message.tool_results]


@asynccontextmanager
async def hired(
    folder: Path, *use: dict[str, Any], mode: SandboxMode = "workspace", answer: Answer = Answer(), **config: Any
) -> AsyncIterator[Hired]:
    """A session in `folder/project`, which may be there from another one."""
    root = folder / "project"
    root.mkdir(exist_ok=True)
    toolkit = ToolkitChoice(name="components", config={"use": list(use), **config})
    model = ModelChoice(model="scripted:none")
    profile = Profile(name="p", processor=model, accelerator=model, toolkits=(toolkit,), sandbox=mode, approval="auto")
    played, recorder, session = FakeProvider(), Recorder(answer), Session.temporary()
    made = Model(played, "x", "scripted:x")
    workspace = Workspace(root, mode=mode, approval="auto", notifier=recorder, session_folder=session.folder)
    try:
        async with workspace as around:
            how = {"session": session, "workspace": around, "models": ModelPair(made, made)}
            async with build_exchange(profile, recorder, **how) as exchange:
                yield Hired(exchange, played, recorder, root)
    finally:
        session.close()


def installed(*names: str) -> None:
    """Put components of the fixtures into the local repository."""
    put_into_repository(*(COMPONENTS / name for name in names))


def named(name: str, group: str = "org.example.guidebook", version: str = "1.0.0", **more: Any) -> dict[str, Any]:
    """A component as a profile names it by its coordinates."""
    return {"group_id": group, "artifact_id": name, "version": version, **more}
