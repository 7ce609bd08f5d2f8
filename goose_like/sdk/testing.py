"""Test harness for toolkit authors: run a toolkit in a real workspace and call its tools as a model does."""

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from goose_like.agent.tool_call import call_tool
from goose_like.agent.tool_rules import apply_tool_rules
from goose_like.agent.toolkit import Requirements, Toolkit
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits, ModelChoice, Profile
from goose_like.core.errors import ProviderError
from goose_like.core.events import Logged
from goose_like.core.message import ToolCall
from goose_like.core.notifier import Recorder
from goose_like.core.tool import Tool, ToolError, current_call
from goose_like.providers.base import Model, ModelPair
from goose_like.providers.null_provider import build_null_models
from goose_like.providers.scripted import ScriptedProvider
from goose_like.sessions.session import Session
from goose_like.terminal.plain_text import RichNotifier
from goose_like.workspace.workspace import Workspace

__all__ = ["Trial", "trial"]

K = TypeVar("K", bound=Toolkit)

_LABEL = "scripted:answers"


class _TrialRecorder(RichNotifier, Recorder):
    """A recorder that takes also Rich renderables in `log`."""


class Trial(Generic[K]):
    """A running toolkit. `recorder.events` holds all events that the toolkit emitted."""

    def __init__(self, toolkit: K, recorder: Recorder) -> None:
        self.toolkit = toolkit
        self.recorder = recorder
        tools: dict[str, Tool] = {}
        for tool in toolkit.tools():
            tools[tool.name] = tool
        self.tools: dict[str, Tool] = apply_tool_rules(tools, toolkit.workspace)

    async def call(self, name: str, /, **arguments: Any) -> str:
        """Call a tool and return its output for the model.

        Raises:
            ToolError: The call failed or its arguments were wrong. The text is the model's.
        """
        call = ToolCall(id="call_1", name=name, arguments=json.dumps(arguments))
        token = current_call.set(call.id)
        try:
            outcome = await call_tool(self.tools, call)
        finally:
            current_call.reset(token)
        if outcome.is_error:
            raise ToolError(outcome.output)
        return outcome.output

    @property
    def logged(self) -> list[str]:
        """The lines that the toolkit logged for people."""
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]


@asynccontextmanager
async def trial(
    kind: type[K],
    folder: str | Path | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    requires: Mapping[str, Toolkit] | None = None,
    answers: Sequence[str] = (),
) -> AsyncIterator[Trial[K]]:
    """Build a toolkit as a profile does, and close it at the end. Nobody is asked, and there is no sandbox.

    Args:
        kind: The toolkit class.
        folder: The workspace; by default an empty folder.
        config: The toolkit's configuration, as in a profile.
        requires: The toolkits that it depends on, by its own names for them.
        answers: The answers of models to the toolkit's questions, in order.
    """
    async with AsyncExitStack() as stack:
        session = Session.temporary()
        recorder = _TrialRecorder()
        stack.callback(session.close)
        models = _build_models(answers, session.folder / "answers.yaml")
        root = Path(folder or session.folder / "workspace")
        os.makedirs(root, exist_ok=True)
        workspace = Workspace(
            root,
            mode="full",
            approval="yolo",
            notifier=recorder,
            session_folder=session.folder,
        )
        toolkit = await kind.create(
            recorder,
            Requirements(kind.__name__, requires or {}),
            config=config,
            workspace=await stack.enter_async_context(workspace),
            session=session,
            limits=Limits(),
            profile=Profile(),
            exchange_view=ExchangeView(session, models, recorder),
        )
        stack.push_async_callback(toolkit.close)
        yield Trial(toolkit, recorder)


def _build_models(answers: Sequence[str], script: Path) -> ModelPair:
    if not answers:
        reason = 'there is no model in a trial; pass answers=["..."], one for each question'
        return build_null_models(ProviderError(reason), _LABEL)
    script.write_text(json.dumps(list(answers)), encoding="utf-8")  # JSON is YAML too
    provider = ScriptedProvider(ModelChoice(model=f"scripted:{script}"))
    model = Model(provider, "answers", _LABEL)
    return ModelPair(model, model)
