"""The provider `scripted:FILE`: plays answers from a YAML script, for tests, demos and toolkit authors.

Each model request plays the next step of the script, also retries and side questions. docs/scripted.md describes the
keys of a step. A request with a limit of tokens gets that many deltas of the text, and the answer is marked as cut.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, RootModel, model_validator
from pydantic_core import PydanticCustomError

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
            yield from (text[at : at + self.chunk] for at in range(0, len(text), self.chunk))

    def truncate(self, limit: int | None) -> "ScriptedStep":
        """Cut the step to a limit of tokens. A delta of the text counts as one token."""
        pieces = [*self.split_text(self.text)]
        if limit is None or len(pieces) <= limit:
            return self
        return self.model_copy(update={"text": "".join(pieces[:limit]), "calls": (), "cut": True})

    def build_message(self, number: int) -> MessageCompleted:
        """Build the message of this step. `number` is its place in the script, counted from 1."""
        parts: list[Part] = []
        if self.thinking:
            parts.append(Thinking(text=self.thinking))
        if self.text:
            parts.append(Text(text=self.text))
        for at, call in enumerate(self.calls, 1):
            arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            generated_id = f"call_{number}_{at}"
            parts.append(ToolCall(id=generated_id if call.id is None else call.id, name=call.tool, arguments=arguments))
        used, written, cached = (self.usage.get(kind, 0) for kind in ("input", "output", "cached"))
        usage = Usage(input_tokens=used, output_tokens=written, cache_read_tokens=cached)
        return MessageCompleted(message=Message(role="assistant", parts=tuple(parts)), usage=usage, is_cut=self.cut)


class Script(RootModel[tuple[ScriptedStep, ...]]):
    """The steps of a script in their order."""


class ScriptedProvider:
    """A provider whose answers come from a script."""

    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="plays a YAML script (scripted:FILE), for tests, demos and toolkit authors", takes_images=True
    )

    def __init__(self, choice: ModelChoice) -> None:
        self._source, self._script = read_script(Path(choice.name).expanduser())
        self._position: int | None = None

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """Return the error about a missing script, or None if the script exists."""
        if Path(choice.name).expanduser().is_file():
            return None
        problem = f"there is no script {choice.name!r}" if choice.name else "no script is named"
        return ModelUnavailableError(f"{problem}; write it, or correct the path in scripted:FILE")

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Play the next step; see `Provider.stream`."""
        at = self._find_first_step(request) if self._position is None else self._position
        self._position = at + 1
        if at >= len(self._script):
            raise ProviderError(
                f"the script {self._source.file} has {len(self._script)} steps, and this was request number {at + 1}; "
                "add a step"
            )
        step = self._script[at].truncate(request.max_tokens)
        self._check_expectation(step, at, request)
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
        answers = sum(message.role == "assistant" for message in request.messages)
        ends = [at + 1 for at, step in enumerate(self._script) if step.error is None]
        return 0 if answers == 0 else ends[answers - 1] if answers <= len(ends) else len(self._script)

    def _check_expectation(self, step: ScriptedStep, at: int, request: Request) -> None:
        last = request.messages[-1] if request.messages else None
        text = "\n".join([last.text, *(result.output for result in last.tool_results)]) if last else ""
        if step.expect is not None and not re.search(step.expect.pattern, text.strip("\n"), re.DOTALL):
            raise ProviderError(
                f"{self._source.locate(at, 'expect')}: step {at + 1} expects {step.expect.pattern!r}, "
                f"but the last message is {clip(text)!r}"
            )


def read_script(file: Path) -> tuple[YamlSource, tuple[ScriptedStep, ...]]:
    """Read the steps of a script, and its source for line numbers.

    Raises:
        ProfileError: The script cannot be read, is no YAML or has an invalid step. The text names file and line.
    """
    source = read_yaml(file)
    return source, validate(Script, source.data, source, "the script").root
