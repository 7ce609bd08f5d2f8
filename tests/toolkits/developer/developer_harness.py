"""The developer toolkit on a real workspace, driven by the JSON of tool calls."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.developer import DeveloperToolkit

from goose_like.agent.tool_call import CallOutcome, call_tool
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import ApprovalMode, Limits, Profile, SandboxMode, WorkspaceSettings
from goose_like.core.events import Answer, FileChanged, Logged, ToolProgress
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.core.tool import current_call
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from goose_like.toolkit import Requirements
from goose_like.workspace.workspace import Workspace
from tests.fakes import FakeProvider, call


class DeveloperHarness:
    """One toolkit, its workspace below `root`, and everything that people see. `fast_model` is its accelerator."""

    def __init__(self, root: Path, session: Session, workspace: Workspace, recorder: Recorder, **kwargs: Any) -> None:
        self.root, self.session, self.workspace, self.recorder = root, session, workspace, recorder
        limits = Limits(output_bytes=kwargs.pop("output_bytes", 16_000))
        self.fast_model = FakeProvider(kwargs.pop("answers", ()))
        models = ModelPair(
            Model(FakeProvider(), "strong", "scripted:strong"),
            Model(self.fast_model, "fast", kwargs.pop("label", "scripted:fast"), kwargs.pop("window", None)),
        )
        self.toolkit = DeveloperToolkit(
            recorder,
            Requirements("developer", {}),
            workspace=workspace,
            session=session,
            profile=Profile(),
            limits=limits,
            exchange_view=ExchangeView(session, models, recorder),
            config=kwargs,
        )
        self.tools = {tool.name: tool for tool in self.toolkit.tools()}

    async def outcome(self, name: str, **arguments: Any) -> CallOutcome:
        current_call.set("c1")
        return await call_tool(self.tools, call(name, json.dumps(arguments)))

    async def call_ok(self, name: str, **arguments: Any) -> str:
        outcome = await self.outcome(name, **arguments)
        assert not outcome.is_error, outcome.output
        return outcome.output

    async def call_error(self, name: str, **arguments: Any) -> str:
        outcome = await self.outcome(name, **arguments)
        assert outcome.is_error, outcome.output
        return outcome.output

    async def shell(self, command: str, **arguments: Any) -> str:
        answer = await self.call_ok("shell", command=command, **arguments)
        return re.sub(r"^/\S+/bash: ", "bash: ", answer, flags=re.MULTILINE)  # without a sandbox, bash has a full path

    @property
    def shown(self) -> str:
        """The output on the screen while commands ran."""
        return "".join(event.text for event in self.recorder.events if isinstance(event, ToolProgress))

    @property
    def changes(self) -> list[FileChanged]:
        return [event for event in self.recorder.events if isinstance(event, FileChanged)]

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]


def patch(before: str, after: str, **more: Any) -> dict[str, Any]:
    """Return one patch for `patch_file`."""
    return {"before": before, "after": after, **more}


async def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for an effect of another process."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def open_developer(
    folder: Path,
    mode: SandboxMode = "workspace",
    *,
    approval: ApprovalMode = "auto",
    answer: Answer = Answer(),
    settings: WorkspaceSettings | None = None,
    history: History | None = None,
    **kwargs: Any,
) -> AsyncIterator[DeveloperHarness]:
    root = folder / "project"
    root.mkdir(exist_ok=True)
    recorder, session = Recorder(answer), Session(folder / "session", "n", history or History())
    options: dict[str, Any] = {"session_folder": session.folder, "settings": settings}
    async with Workspace(root, mode=mode, approval=approval, notifier=recorder, **options) as workspace:
        made = DeveloperHarness(workspace.root, session, workspace, recorder, **kwargs)
        yield made
        await made.toolkit.close()
