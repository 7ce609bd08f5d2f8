"""What the tests put in the place of a model, and the shortest way to an exchange with it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from goose_like.agent.compaction.base import Moderator, Passive
from goose_like.agent.exchange import Exchange
from goose_like.agent.journal import Journal
from goose_like.config.profile import Limits, ModelChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import MessageCompleted, SessionStarted, TextDelta
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.core.notifier import Notifier, Recorder
from goose_like.core.tool import Tool, make_tool
from goose_like.providers.base import Delta, Facts, Model, Models, Patience, Request
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

PAUSE = object()
"""In a script: the stream stands still until it is cancelled."""


class Played:
    """Plays one item of its script a request: a message, text, an error, or a list of deltas, errors and PAUSEs."""

    facts: ClassVar[Facts] = Facts("plays a script")

    def __init__(self, script: Iterable[Any] = ()) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.opened = self.closed = self.streams_closed = 0

    @staticmethod
    def missing(choice: ModelChoice) -> GooseLikeError | None:
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
                    yield MessageCompleted(message=item, usage=Usage(input_tokens=10, output_tokens=5))
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
NO_PATIENCE = Patience(tries=3, first_wait_s=0.0, longest_wait_s=0.0)


class Bench:
    """An exchange over a played provider, and everything around it that tests look at."""

    def __init__(
        self,
        script: Sequence[Any],
        *functions: Any,
        folder: Path,
        front: Notifier | None = None,
        limits: Limits = Limits(),  # noqa: B008
        moderator: Moderator | None = None,
        label: str = "scripted:x",
        doubts: Sequence[Callable[[], str | None]] = (),
        takes_images: bool = False,
        workspace: Workspace | None = None,
    ) -> None:
        self.provider = Played(script)
        self.recorder = Recorder()
        self.session = Session(folder, "n", History())
        self.session._open(is_new=True)
        self.journal = Journal(History(), self.session, front or self.recorder)
        self.journal.emit(HEADER.model_copy(update={"models": {"processor": label, "accelerator": label}}))
        model = Model(self.provider, "x", label, takes_images=takes_images)
        tools: dict[str, Tool] = {tool.name: tool for tool in map(make_tool, functions)}
        self.exchange = Exchange(
            models=Models(model, model),
            moderator=moderator or Passive({}),
            system="system",
            tools=tools,
            journal=self.journal,
            session=self.session,
            limits=limits,
            patience=NO_PATIENCE,
            workspace=workspace or Workspace(Path.cwd(), mode="full", approval="auto", notifier=self.journal),
            doubts=doubts,
        )

    @property
    def messages(self) -> list[Message]:
        return self.exchange.history.messages

    @property
    def outputs(self) -> list[str]:
        """What the model read of all tool results, in the order in which it read them."""
        return [result.output for message in self.messages for result in message.tool_results]

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.recorder.events if isinstance(event, kind)]

    def replayed(self) -> History:
        return History.replay(self.session.read())


def is_well_formed(messages: Sequence[Message]) -> bool:
    """Whether each assistant message with calls is followed by exactly their results, in order, and no others are."""
    for index, message in enumerate(messages):
        asked = [call.id for call in message.tool_calls]
        after = messages[index + 1] if index + 1 < len(messages) else None
        answered = [result.call_id for result in after.tool_results] if after and after.role == "tool" else []
        if asked != answered or (message.role == "tool" and (index == 0 or not messages[index - 1].tool_calls)):
            return False
    return True
