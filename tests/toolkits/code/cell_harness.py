"""The toolkit `code` with a real workspace and kernel, called with JSON arguments as a model calls it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.code.toolkit import CodeToolkit

from goose_like.agent.tool_call import CallOutcome, call_tool
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import ApprovalMode, Limits, SandboxMode
from goose_like.core.events import Answer, Logged, StateSaved, ToolProgress
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.core.tool import current_call
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from goose_like.toolkit import Requirements
from goose_like.workspace.workspace import Workspace
from tests.fakes import FakeProvider
from tests.fakes import call as make_call


class CodeHarness:
    """A toolkit `code` with its workspace and a record of everything that users see."""

    def __init__(self, session: Session, workspace: Workspace, recorder: Recorder, **config: Any) -> None:
        self.session, self.workspace, self.recorder = session, workspace, recorder
        self.root = workspace.root
        models = ModelPair(
            Model(FakeProvider(), "strong", "scripted:strong"), Model(FakeProvider(), "fast", "scripted:fast")
        )
        self.toolkit = CodeToolkit(
            recorder,
            Requirements("code", {}),
            workspace=workspace,
            session=session,
            limits=Limits(output_bytes=config.pop("output_bytes", 16_000)),
            exchange_view=ExchangeView(session, models, recorder),
            config=config,
        )
        self.tools = {tool.name: tool for tool in self.toolkit.tools()}

    async def call(self, name: str, /, **arguments: Any) -> CallOutcome:
        current_call.set("c1")
        return await call_tool(self.tools, make_call(name, json.dumps(arguments)))

    async def run(self, code: str, **arguments: Any) -> str:
        """Run a cell and return the text for the model."""
        outcome = await self.call("run_python", code=code, **arguments)
        assert not outcome.is_error, outcome.output
        return outcome.output

    async def run_stopped(self, code: str, **arguments: Any) -> str:
        """Run a cell that gets stopped, and return the text for the model."""
        outcome = await self.call("run_python", code=code, **arguments)
        assert outcome.is_error, outcome.output
        return outcome.output

    @property
    def screen_text(self) -> str:
        """The live output of all cells."""
        return "".join(event.text for event in self.recorder.events if isinstance(event, ToolProgress))

    @property
    def log_lines(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]

    @property
    def saved_state(self) -> Any:
        """The state that a resumed session gets."""
        return [event.value for event in self.recorder.events if isinstance(event, StateSaved)][-1]

    def list_outputs(self, pattern: str = "*") -> list[Path]:
        """Return the files that cells saved."""
        return sorted(self.session.outputs.glob(pattern))


@asynccontextmanager
async def open_harness(
    folder: Path,
    mode: SandboxMode = "workspace",
    /,
    *,
    approval: ApprovalMode = "auto",
    answer: Answer | Recorder = Answer(),
    history: History | None = None,
    **config: Any,
) -> AsyncIterator[CodeHarness]:
    root = folder / "project"
    root.mkdir(exist_ok=True)
    recorder = answer if isinstance(answer, Recorder) else Recorder(answer)
    session = Session(folder / "session", "n", history or History())
    where = Workspace(root, mode=mode, approval=approval, notifier=recorder, session_folder=session.folder)
    async with where as workspace:
        harness = CodeHarness(session, workspace, recorder, **config)
        try:
            yield harness
        finally:
            await asyncio.wait_for(harness.toolkit.close(), 60)
