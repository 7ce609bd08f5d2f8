"""The toolkit `components` on a real workspace with the components of tests/components, called as a model calls it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.components.toolkit import ComponentsToolkit

from goose_like.agent.tool_call import CallOutcome, call_tool
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import ApprovalMode, Limits, Profile, SandboxMode
from goose_like.core.events import Answer, Logged, ToolProgress
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.core.tool import current_call
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from goose_like.toolkit import Requirements
from goose_like.workspace.workspace import Workspace
from tests import ROOT
from tests.fakes import FakeProvider, call

COMPONENTS = ROOT / "tests/fixtures/components"


def used(name: str, **more: Any) -> dict[str, Any]:
    """A component of the workshop, as a profile names it."""
    return {"path": str(COMPONENTS / "workshop" / name), **more}


class Company:
    """One toolkit, its workspace, and everything it told people."""

    def __init__(
        self, session: Session, workspace: Workspace, recorder: Recorder, said: Iterable[Any], **config: Any
    ) -> None:
        self.session, self.workspace, self.recorder = session, workspace, recorder
        self.root = workspace.root
        self.strong = FakeProvider(said)
        models = ModelPair(
            Model(self.strong, "strong", "scripted:strong"), Model(FakeProvider(), "fast", "scripted:fast")
        )
        self.kit = ComponentsToolkit(
            recorder,
            Requirements("components", {}),
            workspace=workspace,
            session=session,
            limits=Limits(),
            profile=Profile(),
            exchange_view=ExchangeView(session, models, recorder),
            config=config,
        )
        self.tools = {tool.name: tool for tool in self.kit.tools()}

    async def outcome(self, name: str, /, **arguments: Any) -> CallOutcome:
        current_call.set("c1")
        return await call_tool(self.tools, call(name, json.dumps(arguments)))

    async def ok(self, name: str, /, **arguments: Any) -> str:
        """What the model reads of a call that did well."""
        outcome = await self.outcome(name, **arguments)
        assert not outcome.is_error, outcome.output
        return outcome.output

    async def value(self, name: str, /, **arguments: Any) -> Any:
        """The value that a command gave."""
        return json.loads(await self.ok(name, **arguments))

    async def failed(self, name: str, /, **arguments: Any) -> str:
        """What the model reads of a call that failed."""
        outcome = await self.outcome(name, **arguments)
        assert outcome.is_error, outcome.output
        return outcome.output

    @property
    def shown(self) -> str:
        return "".join(event.text for event in self.recorder.events if isinstance(event, ToolProgress))

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]


@asynccontextmanager
async def company(
    folder: Path,
    *use: str | dict[str, Any],
    mode: SandboxMode = "workspace",
    approval: ApprovalMode = "auto",
    answer: Answer = Answer(),
    history: History | None = None,
    said: Iterable[Any] = (),
    **config: Any,
) -> AsyncIterator[Company]:
    """`use` are names of the workshop, or what a profile says; `said` is what the strong model answers."""
    root = folder / "project"
    root.mkdir(exist_ok=True)
    recorder, session = Recorder(answer), Session(folder / "session", "n", history or History())
    where = Workspace(root, mode=mode, approval=approval, notifier=recorder, session_folder=session.folder)
    async with where as workspace:
        named = [used(each) if isinstance(each, str) else each for each in use]
        made = Company(session, workspace, recorder, said, use=named, **config)
        try:
            yield made
        finally:
            await asyncio.wait_for(made.kit.close(), 60)
