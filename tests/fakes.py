"""Fakes for tests: a provider that plays a script, a toolkit made of functions, and an exchange over them."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from goose_like.agent.budget import Budget
from goose_like.agent.compaction.moderators import Moderator, Passive
from goose_like.agent.exchange import Exchange
from goose_like.agent.journal import Journal
from goose_like.agent.toolkit import Requirements, Toolkit
from goose_like.agent.toolkit_hooks import ToolkitHooks
from goose_like.config.profile import Limits, ModelChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import MessageCompleted, SessionStarted, TextDelta
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.core.notifier import Notifier, Recorder
from goose_like.core.tool import Tool, make_tool
from goose_like.providers.base import Delta, FileLimits, Model, ModelPair, ProviderInfo, Request
from goose_like.providers.retry import RetryPolicy
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

PAUSE = object()
"""An item of a script: the stream stops until it is cancelled."""


class FakeProvider:
    """A provider that plays one item of its script per request: a message, text, an error, or a list of deltas."""

    info: ClassVar[ProviderInfo] = ProviderInfo("plays a script")

    def __init__(self, script: Iterable[Any] = ()) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.usage = Usage(input_tokens=10, output_tokens=5)
        self.opened = self.closed = self.streams_closed = 0

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        self.opened += 1
        step = self.script.pop(0)
        try:
            for item in step if isinstance(step, list) else [step]:
                await asyncio.sleep(0)
                if item is PAUSE:
                    await asyncio.Event().wait()
                elif isinstance(item, BaseException):
                    raise item
                elif isinstance(item, str):
                    yield TextDelta(text=item)
                    yield MessageCompleted(message=Message.assistant(item))
                elif isinstance(item, Message):
                    yield MessageCompleted(message=item, usage=self.usage)
                else:
                    yield item
        finally:
            self.streams_closed += 1

    async def close(self) -> None:
        self.closed += 1


def call(name: str, arguments: str = "{}", id: str = "c1") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def calls(*wanted: ToolCall, text: str = "") -> Message:
    return Message.assistant(text, wanted)


HEADER = SessionStarted(
    version="0",
    name="n",
    cwd="/",
    profile="p",
    models={"processor": "scripted:x", "accelerator": "scripted:x"},
    tools=(),
)
FAST_RETRIES = RetryPolicy(max_attempts=3, first_wait_s=0.0, max_wait_s=0.0)


class FakeToolkit(Toolkit):
    """A toolkit with the given functions as hooks."""

    def __init__(self, **hooks: Any) -> None:
        super().__init__(Notifier(), Requirements("fake", {}))
        for name, hook in hooks.items():
            setattr(self, name, hook)


def create_hooks(journal: Journal, *toolkits: Toolkit) -> ToolkitHooks:
    """Create the hooks of toolkits, which are named `0`, `1` and so on."""
    return ToolkitHooks(journal, {str(index): toolkit for index, toolkit in enumerate(toolkits)})


class ExchangeHarness:
    """An exchange over a fake provider, with everything that tests look at."""

    def __init__(
        self,
        script: Sequence[Any],
        *functions: Any,
        folder: Path,
        front: Notifier | None = None,
        limits: Limits = Limits(),  # noqa: B008
        moderator: Moderator | None = None,
        label: str = "scripted:x",
        toolkits: Sequence[Toolkit] = (),
        takes_images: bool = False,
        file_limits: FileLimits | None = None,
        workspace: Workspace | None = None,
    ) -> None:
        self.provider = FakeProvider(script)
        self.recorder = Recorder()
        self.session = Session(folder, "n", History())
        self.session._open(is_new=True)
        self.journal = Journal(self.session, front or self.recorder)
        self.journal.emit(HEADER.model_copy(update={"models": {"processor": label, "accelerator": label}}))
        model = Model(self.provider, "x", label, sees_images=takes_images, file_limits=file_limits)
        tools: dict[str, Tool] = {tool.name: tool for tool in map(make_tool, functions)}
        self.exchange = Exchange(
            models=ModelPair(model, model),
            moderator=moderator or Passive({}),
            system="system",
            tools=tools,
            journal=self.journal,
            budget=Budget(limits, self.session),
            retry_policy=FAST_RETRIES,
            workspace=workspace or Workspace(Path.cwd(), mode="full", approval="auto", notifier=self.journal),
            hooks=create_hooks(self.journal, *toolkits),
        )

    def add_toolkits(self, *toolkits: Toolkit) -> None:
        """Let the exchange call the hooks of these toolkits."""
        self.exchange = dataclasses.replace(self.exchange, hooks=create_hooks(self.journal, *toolkits))

    @property
    def messages(self) -> list[Message]:
        return self.exchange.history.messages

    @property
    def outputs(self) -> list[str]:
        """The outputs of all tool results, in order."""
        return [result.output for message in self.messages for result in message.tool_results]

    def events_of(self, kind: type) -> list[Any]:
        return [event for event in self.recorder.events if isinstance(event, kind)]

    def replay(self) -> History:
        return History.replay(self.session.read_events())


def is_well_formed(messages: Sequence[Message]) -> bool:
    """Return whether exactly the results of its calls follow each assistant message, in order."""
    for index, message in enumerate(messages):
        asked = [call.id for call in message.tool_calls]
        after = messages[index + 1] if index + 1 < len(messages) else None
        answered = [result.call_id for result in after.tool_results] if after and after.role == "tool" else []
        if asked != answered or (message.role == "tool" and (index == 0 or not messages[index - 1].tool_calls)):
            return False
    return True
