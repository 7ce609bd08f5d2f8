"""The toolkit `code` on a real workspace with a real kernel, driven as a model drives it: by the JSON of its calls."""

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
from tests.fakes import Played, call


class Cells:
    """One toolkit, its workspace, and everything it told people."""

    def __init__(self, session: Session, workspace: Workspace, recorder: Recorder, **config: Any) -> None:
        self.session, self.workspace, self.recorder = session, workspace, recorder
        self.root = workspace.root
        models = ModelPair(Model(Played(), "strong", "scripted:strong"), Model(Played(), "fast", "scripted:fast"))
        self.kit = CodeToolkit(
            recorder,
            Requirements("code", {}),
            workspace=workspace,
            session=session,
            limits=Limits(output_bytes=config.pop("output_bytes", 16_000)),
            exchange_view=ExchangeView(session, models, recorder),
            config=config,
        )
        self.tools = {tool.name: tool for tool in self.kit.tools()}

    async def outcome(self, name: str, /, **arguments: Any) -> CallOutcome:
        current_call.set("c1")
        return await call_tool(self.tools, call(name, json.dumps(arguments)))

    async def ok(self, code: str, **arguments: Any) -> str:
        """What the model reads of a cell."""
        outcome = await self.outcome("run_python", code=code, **arguments)
        assert not outcome.is_error, outcome.output
        return outcome.output

    async def stopped(self, code: str, **arguments: Any) -> str:
        """What the model reads of a cell that did not end by itself."""
        outcome = await self.outcome("run_python", code=code, **arguments)
        assert outcome.is_error, outcome.output
        return outcome.output

    @property
    def shown(self) -> str:
        """What came on the screen while cells ran."""
        return "".join(event.text for event in self.recorder.events if isinstance(event, ToolProgress))

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]

    @property
    def saved(self) -> Any:
        """What a resumed session would know."""
        return [event.value for event in self.recorder.events if isinstance(event, StateSaved)][-1]

    def outputs(self, pattern: str = "*") -> list[Path]:
        """The files that cells left."""
        return sorted(self.session.outputs.glob(pattern))


@asynccontextmanager
async def cells(
    folder: Path,
    mode: SandboxMode = "workspace",
    /,
    *,
    approval: ApprovalMode = "auto",
    answer: Answer = Answer(),
    history: History | None = None,
    **config: Any,
) -> AsyncIterator[Cells]:
    root = folder / "project"
    root.mkdir(exist_ok=True)
    recorder, session = Recorder(answer), Session(folder / "session", "n", history or History())
    where = Workspace(root, mode=mode, approval=approval, notifier=recorder, session_folder=session.folder)
    async with where as workspace:
        made = Cells(session, workspace, recorder, **config)
        try:
            yield made
        finally:
            await asyncio.wait_for(made.kit.close(), 30)
