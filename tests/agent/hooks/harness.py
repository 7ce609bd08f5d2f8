"""Toolkits whose hooks a test gives, and an exchange with a scripted model over them."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.core.events import Answer, Logged
from goose_like.core.notifier import Recorder
from goose_like.core.tool import InnerCall, make_tool
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from goose_like.toolkit import (
    FinalResult,
    ImageResult,
    ToolError,
    Toolkit,
    tool,
)
from tests.fakes import FakeProvider, call, calls

NO = Answer(choice="deny", by="person")
ONCE = Answer(choice="allow", by="person")
ALWAYS_HERE = Answer(choice="allow_prefix", by="person")
NOBODY = Answer()
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080600000"
    "01f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


class Work(Toolkit):
    """Tools that the tests call."""

    ran: ClassVar[list[str]] = []
    later: ClassVar[list[asyncio.Task[None]]] = []

    @tool
    def say(self, text: str, times: int = 1) -> str:
        """Say a text."""
        self.ran.append(text)
        if text == "fail":
            raise ToolError("it failed")
        return text * times

    @tool(calls_another=True)
    def relay(self, text: str) -> InnerCall:
        """Let `say` say a text."""
        return InnerCall(make_tool(self.say), {"text": text})

    @tool(parallel=True)
    async def look(self, text: str) -> str:
        """Look at a text."""
        await asyncio.sleep(0)
        return text

    @tool
    def finish(self, text: str) -> FinalResult:
        """Finish."""
        return FinalResult(text, replacement="short")

    @tool
    def draw(self) -> ImageResult:
        """Draw."""
        return ImageResult(PIXEL, "a.png")

    @tool
    async def write(self, path: str) -> str:
        """Write a file."""
        return str(await self.workspace.write_bytes(path, b"x"))

    @tool
    async def write_later(self, path: str) -> str:
        """Write a file after the call has ended."""
        self.later.append(asyncio.create_task(self._write_later(path)))
        return "soon"

    async def _write_later(self, path: str) -> None:
        while self.session.history.open_calls:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await self.workspace.write_bytes(path, b"x")

    @tool(remote=True)
    def show(self, text: str) -> None:
        """Show a text."""


class First(Toolkit):
    """A toolkit whose hooks are those that a test gives."""

    is_read_only = True


class Second(Toolkit):
    """Another one."""

    is_read_only = True


def list_files() -> list[str]:
    """List the files in the workspace."""
    return sorted(os.listdir())


class Place:
    """An exchange with a scripted model, and what tests look at."""

    def __init__(self, exchange: Exchange, recorder: Recorder, provider: FakeProvider) -> None:
        self.exchange = exchange
        self.recorder = recorder
        self.provider = provider

    def play(self, *script: Any) -> None:
        self.provider.script += script

    async def run(self, *wanted: Any, words: str = "go") -> list[str]:
        """Run a turn in which the model makes these calls, and return all outputs of the turn."""
        self.play(calls(*wanted), "Done.")
        start = len(self.exchange.history.messages)
        await self.exchange.reply(words)
        messages = self.exchange.history.messages[start:]
        return [result.output for message in messages for result in message.tool_results]

    def events(self, kind: type) -> list[Any]:
        return [event for event in self.recorder.events if isinstance(event, kind)]

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.events(Logged)]


@asynccontextmanager
async def open_place(
    *names: str, answer: Answer = NO, session: Session | None = None, **profile: Any
) -> AsyncIterator[Place]:
    provider = FakeProvider()
    recorder = Recorder(answer)
    model = Model(provider, "x", "scripted:x")
    toolkits = tuple([ToolkitChoice(name=name) for name in (*names, "work")])
    chosen = Profile.model_validate({"name": "mine", "toolkits": toolkits, "sandbox": "full", **profile})
    async with build_exchange(chosen, recorder, models=ModelPair(model, model), session=session) as exchange:
        yield Place(exchange, recorder, provider)


def say(text: str, id: str = "c1", **more: object) -> Any:
    return call("say", json.dumps({"text": text, **more}), id)


def crash(value: object) -> Any:
    raise LookupError("nowhere")
