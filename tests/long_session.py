"""A long session for tests: three hundred steps with real text, and a model that counts tokens."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from goose_like.agent.budget import Budget
from goose_like.agent.compaction.moderators import Moderator
from goose_like.agent.exchange import Exchange
from goose_like.agent.journal import Journal
from goose_like.agent.toolkit_hooks import ToolkitHooks
from goose_like.config.profile import Limits
from goose_like.core.errors import ContextLengthError
from goose_like.core.events import MessageCompleted, Task, TextDelta
from goose_like.core.message import Message, Usage
from goose_like.core.notifier import Recorder
from goose_like.core.tool import make_tool
from goose_like.providers.anthropic_wire import AnthropicEncoder as AnthropicEncoder
from goose_like.providers.base import Delta, Model, ModelPair, ProviderInfo, Request
from goose_like.providers.openai_wire import OpenAIEncoder as OpenAIEncoder
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace
from tests import ROOT
from tests.fakes import FAST_RETRIES, HEADER, call, calls

GOAL = "Make every page of the documentation agree with the program. The goal is called quince-marmalade."
PLAN = (
    Task(description="read the pages", status="complete"),
    Task(description="compare them with the program", status="in-progress"),
    Task(description="write what is missing about juniper", status="planned"),
)
SYSTEM = "You are a developer agent.\n" + "Work step by step, and check what you did. " * 40


class Counting:
    """Plays steps, counts tokens as bytes / 4 of the body, and refuses what is longer than its window.

    `respond` gives the step to the number of the request; a request without tools is a question aside.
    """

    info = ProviderInfo("counts")

    def __init__(self, respond: Callable[[int], Message | str], window: int = 1_000_000, aside: str = "") -> None:
        self.respond = respond
        self.window = window
        self.aside = aside
        self.requests: list[Request] = []
        self.bodies: list[bytes] = []
        self.asides = 0
        self._encoder = OpenAIEncoder()

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        body = self._encoder.encode_request(request) if request.tools else OpenAIEncoder().encode_request(request)
        tokens = len(body) // 4
        if tokens > self.window:
            raise ContextLengthError(f"{tokens} tokens are too many")
        if request.tools:
            step = self.respond(len(self.requests))
            self.requests.append(request)
            self.bodies.append(body)
        else:
            self.asides += 1
            step = self.aside or "Goal: quince-marmalade. State: well under way. Next step: go on."
        message = Message.assistant(step) if isinstance(step, str) else step
        yield TextDelta(text=message.text)
        usage = Usage(input_tokens=tokens, output_tokens=len(message.model_dump_json()) // 4)
        yield MessageCompleted(message=message, usage=usage)

    async def close(self) -> None: ...


def pages() -> list[str]:
    """Real text to read: the project's own pages."""
    return [file.read_text() for file in sorted((ROOT / "docs").glob("*.md"))]


def work(
    steps: int, output: Callable[[int], str] | None = None
) -> tuple[Callable[[int], Message | str], Callable[[int], str]]:
    """A script of so many steps, each with a call of `look`, and that tool."""
    texts = pages()

    def look(number: int) -> str:
        """Looks at a part of a page."""
        if output:
            return output(number)
        text = texts[number % len(texts)]
        start = number * 997 % max(1, len(text) - 3_000)
        return text[start : start + 400 + number * 131 % 2_600]

    def respond(number: int) -> Message | str:
        if number >= steps:
            return "All of it is done."
        wish = call("look", f'{{"number": {number}}}', f"c{number}")
        return calls(wish, text=f"I look at part {number} now, and compare it with the program.")

    return respond, look


def exchange_over(
    session: Session, provider: Counting, moderator: Moderator, *tools: Callable[..., object], **options: object
) -> Exchange:
    """Create an exchange that continues a session, as after `goose-like session resume`."""
    model = Model(provider, "x", "scripted:x", options.pop("window", None))
    journal = Journal(session, Recorder())
    journal.emit(HEADER)
    return Exchange(
        models=ModelPair(model, model),
        moderator=moderator,
        system=SYSTEM,
        tools={tool.name: tool for tool in map(make_tool, tools)},
        journal=journal,
        budget=Budget(Limits(steps=10_000), session),
        retry_policy=FAST_RETRIES,
        workspace=Workspace(Path.cwd(), mode="full", approval="auto", notifier=journal),
        hooks=ToolkitHooks(journal),
        **options,
    )


def wires(requests: Sequence[Request]) -> tuple[list[bytes], list[bytes]]:
    """Each request's body on either wire, without the marks that move on Anthropic's."""
    openai, anthropic = OpenAIEncoder(), AnthropicEncoder()
    mark = b',"cache_control":{"type":"ephemeral"}'
    return [openai.encode_request(each) for each in requests], [
        anthropic.encode_request(each).replace(mark, b"") for each in requests
    ]
