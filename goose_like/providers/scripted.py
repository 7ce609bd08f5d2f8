"""The provider `scripted:FILE`: plays answers from a YAML script, for tests, demos and toolkit authors.

A script is a list of steps. Each model request plays the next step. A step is a text, or a mapping with these keys:

    text: ..., thinking: ...      the answer
    calls:                        tool calls: `arguments` as a mapping, or as raw text (which may be invalid JSON);
      - {tool: shell, arguments: {command: ls}, id: call_1}        without `id` one is generated
    usage: {input: 100, output: 20, cached: 80}
    delay_s: 0.5                  pause before the first delta
    chunk: 4                      characters per delta; without it, whole words
    delta_delay_s: 0.02           pause after each delta
    cut: true                     the answer reached its length limit
    error: {status: 429, retry_after_s: 1, text: slow down}, or one of: refused, stalled, broken
                                  the end of the step instead of a message
    expect: REGEX                 must match somewhere in the last message sent; `.` also matches line ends

A request with a limit of tokens gets that many deltas of the text, and the answer is marked as cut.

A provider plays its script in order, one step per request, also for retries and side questions. A resumed session
skips as many answers (steps without `error`) as its history has messages of the model.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from goose_like.config.profile import ModelChoice
from goose_like.config.yaml_source import YamlSource, read_yaml
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import BrokenStreamError, GooseLikeError, ModelUnavailableError, ProfileError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import FrozenModel, Message, Part, Text, Thinking, ToolCall, Usage

from .base import Delta, ProviderInfo, Request
from .wire import build_status_error, clip


class ScriptedCall(FrozenModel):
    """A tool call of a step."""

    tool: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None


class ScriptedUsage(FrozenModel):
    """The tokens of a step."""

    input: int = 0
    output: int = 0
    cached: int = 0


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
            raise ValueError("an error has a `status`, or is one of: refused, stalled, broken")
        return self

    def build_exception(self, model: str) -> ProviderError:
        """Build the exception of this failure."""
        match self.kind:
            case "refused":
                return ModelUnavailableError(f"scripted: connection refused: {self.text}", is_retryable=True)
            case "stalled":
                return BrokenStreamError(f"scripted: the stream stalled: {self.text}")
            case "broken":
                return BrokenStreamError(f"scripted: the stream broke: {self.text}")
        return build_status_error(self.status or 500, self.text, model, "the variable of its key", self.retry_after_s)


class ScriptedStep(FrozenModel):
    """The answer to one model request, or its failure."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage = ScriptedUsage()
    delay_s: float = Field(0.0, ge=0)
    chunk: int | None = Field(None, gt=0)
    delta_delay_s: float = Field(0.0, ge=0)
    cut: bool = False
    error: ScriptedError | None = None
    expect: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _wrap_text(cls, data: Any) -> Any:
        return {"text": data} if isinstance(data, str) else data

    @field_validator("expect")
    @classmethod
    def _is_regex(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from error
        return value

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
        usage = self.usage
        return MessageCompleted(
            message=Message(role="assistant", parts=tuple(parts)),
            usage=Usage(input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached),
            is_cut=self.cut,
        )


_steps: TypeAdapter[list[ScriptedStep]] = TypeAdapter(list[ScriptedStep])


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
        if not choice.name:
            return ModelUnavailableError("name the script: scripted:FILE")
        path = Path(choice.name).expanduser()
        if path.is_file():
            return None
        problem = f"{choice.name!r} is a folder" if path.is_dir() else f"there is no script {choice.name!r}"
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
        if step.expect is not None and not re.search(step.expect, text.strip("\n"), re.DOTALL):
            raise ProviderError(
                f"{self._source.locate(at, 'expect')}: step {at + 1} expects {step.expect!r}, "
                f"but the last message is {clip(text)!r}"
            )


def read_script(file: Path) -> tuple[YamlSource, list[ScriptedStep]]:
    """Read the steps of a script, and its source for line numbers.

    Raises:
        ProfileError: The script cannot be read, is no YAML or has an invalid step. The text names file and line.
    """
    data = read_yaml(file)
    source = YamlSource("script", file, data)
    if not isinstance(data, list):
        raise ProfileError(f"{file}: a script is a list of steps, e.g. `- text: hello`")
    try:
        return source, _steps.validate_python(data)
    except ValidationError as error:
        field = error.errors()[0]
        place, key = source.locate(*field["loc"]), str(field["loc"][-1])
        if field["type"] == "extra_forbidden":
            holder: dict[str, type[FrozenModel]] = {
                "calls": ScriptedCall,
                "usage": ScriptedUsage,
                "error": ScriptedError,
            }
            known = holder.get(str(field["loc"][1]), ScriptedStep) if len(field["loc"]) > 2 else ScriptedStep
            raise ProfileError(f"{place}: unknown key {key!r}; {did_you_mean(key, known.model_fields)}") from error
        name = ".".join(str(key) for key in field["loc"][1:]) or "step"
        raise ProfileError(f"{place}: {name}: {field['msg'].removeprefix('Value error, ')}") from error
