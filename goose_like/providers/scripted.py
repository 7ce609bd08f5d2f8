"""The provider `scripted:FILE`: plays answers from a YAML script, for tests, demos and toolkit authors.

Each model request plays the next step of the script, also retries and side questions. docs/scripted.md describes the
keys of a step. A request with a limit of tokens gets that many deltas of the text, and the answer is marked as cut.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, RootModel, model_validator
from pydantic_core import PydanticCustomError

from goose_like.config.paths import expand_home
from goose_like.config.profile import ModelChoice
from goose_like.config.yaml_source import USER_MESSAGE, YamlSource, read_yaml, validate
from goose_like.core.errors import BrokenStreamError, GooseLikeError, ModelUnavailableError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import FrozenModel, Message, Part, Text, Thinking, ToolCall, Usage

from .base import Delta, ProviderInfo, Request
from .wire import build_status_error, clip


class ScriptedCall(FrozenModel):
    """A tool call of a step."""

    tool: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None


class ScriptedError(FrozenModel):
    """The failure of a request: an HTTP `status`, or a `kind` of connection failure."""

    kind: Literal["refused", "stalled", "broken"] | None = None
    status: int | None = Field(None, ge=400, le=599)
    retry_after_s: float | None = None
    text: str = "the script says so"

    @model_validator(mode="before")
    @classmethod
    def _wrap_kind(cls, data: Any) -> Any:
        return {"kind": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _check_kind_or_status(self) -> "ScriptedError":
        if (self.kind is None) == (self.status is None):
            raise PydanticCustomError(USER_MESSAGE, "an error has a `status`, or is one of: refused, stalled, broken")
        return self

    def build_exception(self, model: str) -> ProviderError:
        """Build the exception of this failure."""
        if self.kind == "refused":
            return ModelUnavailableError(f"scripted: connection refused: {self.text}", is_retryable=True)
        if self.kind is not None:
            return BrokenStreamError(f"scripted: the stream {self.kind}: {self.text}")
        return build_status_error(self.status or 500, self.text, model, "the variable of its key", self.retry_after_s)


class ScriptedStep(FrozenModel):
    """The answer to one model request, or its failure."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: dict[Literal["input", "output", "cached"], int] = {}
    delay_s: float = Field(0.0, ge=0)
    chunk: int | None = Field(None, gt=0)
    delta_delay_s: float = Field(0.0, ge=0)
    cut: bool = False
    error: ScriptedError | None = None
    expect: re.Pattern[str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _wrap_text(cls, data: Any) -> Any:
        return {"text": data} if isinstance(data, str) else data

    def split_text(self, text: str) -> Iterator[str]:
        """Split a text into the texts of deltas."""
        if self.chunk is None:
            yield from re.findall(r"\s*\S+\s*|\s+", text)
        else:
            for at in range(0, len(text), self.chunk):
                yield text[at : at + self.chunk]

    def truncate(self, limit: int | None) -> "ScriptedStep":
        """Cut the step to a limit of tokens. A delta of the text counts as one token."""
        pieces = [*self.split_text(self.text)]
        if limit is None or len(pieces) <= limit:
            return self
        text = "".join(pieces[:limit])
        return self.model_copy(update={"text": text, "calls": (), "cut": True})

    def build_message(self, number: int) -> MessageCompleted:
        """Build the message of this step. `number` is its place in the script, counted from 1."""
        parts: list[Part] = []
        if self.thinking:
            parts.append(Thinking(text=self.thinking))
        if self.text:
            parts.append(Text(text=self.text))
        for at, call in enumerate(self.calls, 1):
            arguments = call.arguments
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments)
            id_ = call.id
            if id_ is None:
                id_ = f"call_{number}_{at}"
            parts.append(ToolCall(id=id_, name=call.tool, arguments=arguments))
        message = Message(role="assistant", parts=tuple(parts))
        return MessageCompleted(message=message, usage=self.read_usage(), is_cut=self.cut)

    def read_usage(self) -> Usage:
        """Return the tokens of this step."""
        return Usage(
            input_tokens=self.usage.get("input", 0),
            output_tokens=self.usage.get("output", 0),
            cache_read_tokens=self.usage.get("cached", 0),
        )


class Script(RootModel[tuple[ScriptedStep, ...]]):
    """The steps of a script in their order."""


class ScriptedProvider:
    """A provider whose answers come from a script."""

    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="plays a YAML script (scripted:FILE), for tests, demos and toolkit authors",
        takes_images=True,
        takes_file=True,
    )

    def __init__(self, choice: ModelChoice) -> None:
        self._source, self._script = read_script(expand_home(choice.name))
        self._position: int | None = None

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """Return the error about a missing script, or None if the script exists."""
        if expand_home(choice.name).is_file():
            return None
        problem = "no script is named"
        if choice.name:
            problem = f"there is no script {choice.name!r}"
        return ModelUnavailableError(f"{problem}; write it, or correct the path in scripted:FILE")

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Play the next step; see `Provider.stream`."""
        if self._position is None:
            self._position = self._find_first_step(request)
        at = self._position
        self._position += 1
        if at >= len(self._script):
            raise ProviderError(
                f"the script {self._source.file} has {len(self._script)} steps, and this was request number {at + 1}; "
                "add a step"
            )
        step = self._script[at].truncate(request.max_tokens)
        self._check_expectation(step, at, request)
        if step.usage:
            usage = step.read_usage().model_copy(update={"output_tokens": 0})
            request.told_usage[:] = [usage]
        await asyncio.sleep(step.delay_s)
        for piece in step.split_text(step.thinking):
            yield ThinkingDelta(text=piece)
            await asyncio.sleep(step.delta_delay_s)
        for piece in step.split_text(step.text):
            yield TextDelta(text=piece)
            await asyncio.sleep(step.delta_delay_s)
        if step.error is not None:
            raise step.error.build_exception(request.model)
        yield step.build_message(at + 1)

    async def close(self) -> None:
        """Do nothing."""

    def _find_first_step(self, request: Request) -> int:
        """Return the index of the first step: the one after the answers that the history already has."""
        answers_left = sum(message.role == "assistant" for message in request.messages)
        for at, step in enumerate(self._script):
            if answers_left == 0:
                return at
            if step.error is None:
                answers_left -= 1
        return len(self._script)

    def _check_expectation(self, step: ScriptedStep, at: int, request: Request) -> None:
        if step.expect is None:
            return
        pattern = step.expect.pattern
        text = "\n".join(_list_last_texts(request.messages))
        if not re.search(pattern, text.strip("\n"), re.DOTALL):
            place = self._source.locate(at, "expect")
            raise ProviderError(f"{place}: step {at + 1} expects {pattern!r}, but the last message is {clip(text)!r}")


def _list_last_texts(messages: Sequence[Message]) -> list[str]:
    """List the texts of the last message of the person or a tool, and of the reminders after it."""
    texts: list[str] = []
    for message in reversed(messages):
        results = [result.output for result in message.tool_results]
        texts = [message.text, *results, *texts]
        if message.role != "system":
            break
    return texts


def read_script(file: Path) -> tuple[YamlSource, tuple[ScriptedStep, ...]]:
    """Read the steps of a script, and its source for line numbers.

    Raises:
        ProfileError: The script cannot be read, is no YAML or has an invalid step. The text names file and line.
    """
    source = read_yaml(file)
    return source, validate(Script, source.data, source, "the script").root
