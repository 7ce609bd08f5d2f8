"""A whole session with MCP servers and a scripted model."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.mcp.definitions import Definitions, ToolDefinition
from goose_like_toolkits.mcp.offer import Offer
from goose_like_toolkits.mcp.toolkit import McpToolkit

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Profile
from goose_like.core.events import Answer, Question
from goose_like.core.message import ToolCall
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair, Request
from goose_like.sessions.session import Session
from tests.agent.hooks.harness import Place
from tests.fakes import FakeProvider
from tests.toolkits.mcp.servers import script

YES = Answer(choice="allow_always", by="person")
ONCE = Answer(choice="allow", by="person")
NO = Answer(choice="deny", by="person")
NOBODY = Answer()


class Answers(Recorder):
    """A person who answers questions of the kind `trust` with one answer, and others with a text."""

    def __init__(self, trust: Answer = NO, text: str = "") -> None:
        super().__init__(trust)
        self.words = text

    async def ask(self, question: Question) -> Answer:
        answer = await super().ask(question)
        if question.kind == "text":
            return Answer(choice="allow", by="person", text=self.words)
        return answer


class McpPlace(Place):
    """An exchange with MCP servers."""

    @property
    def toolkit(self) -> McpToolkit:
        toolkit = self.exchange.hooks.toolkits["mcp"]
        assert isinstance(toolkit, McpToolkit)
        return toolkit

    @property
    def requests(self) -> list[Request]:
        return self.provider.requests

    async def call(self, tool: str, /, **arguments: Any) -> str:
        """Let the model call one tool, and return the output."""
        wanted = ToolCall(id=f"c{len(self.exchange.history.messages)}", name=tool, arguments=json.dumps(arguments))
        (output,) = await self.run(wanted)
        return output


@asynccontextmanager
async def open_session(
    root: Path,
    servers: Mapping[str, Any],
    *,
    person: Recorder | None = None,
    session: Session | None = None,
    script: tuple[Any, ...] = (),
    **profile: Any,
) -> AsyncIterator[McpPlace]:
    """Open a session in a folder. The servers are those of the profile."""
    provider = FakeProvider(script)
    recorder = person or Answers()
    model = Model(provider, "x", "scripted:x", sees_images=True)
    root.mkdir(exist_ok=True)  # noqa: ASYNC240
    toolkit = {"name": "mcp", "config": dict(servers)}
    chosen = Profile.model_validate({"name": "mine", "toolkits": [toolkit], "sandbox": "full", **profile})
    async with build_exchange(
        chosen, recorder, models=ModelPair(model, model), session=session, folder=root
    ) as exchange:
        yield McpPlace(exchange, recorder, provider)


def write_list(file: Path, tools: Mapping[str, str], **more: Any) -> None:
    """Write the file of `listed_server.py`: tools with their descriptions."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"tools": dict(tools), **more}))


def listed(file: Path, *more: str) -> dict[str, Any]:
    """Configure `listed_server.py` with a file."""
    command, *arguments = script("listed_server.py", str(file), *more)
    return {"command": command, "args": arguments}


def make_definitions(tools: Mapping[str, str], **more: Any) -> Definitions:
    """Make the definitions that `listed_server.py` would list."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    made = [ToolDefinition(name=name, description=text, input_schema=schema) for name, text in tools.items()]
    return Definitions(era="2025-11-25", tools=tuple(made), **more)


def describe_offer(offer: Offer) -> dict[str, Any]:
    """Return the values of an offer, to compare it with another one."""
    sent = list(map(vars, offer.sent))
    deferred = list(map(vars, offer.deferred))
    return {**vars(offer), "sent": sent, "deferred": deferred}
