"""`scripted:FILE`, a model that plays a YAML script: for tests, demos and toolkit authors.

A script is a list of steps; each model request plays the next one. A step is a text, or a mapping of:

    text: ..., thinking: ...      what the model says
    calls:                        tool calls: `arguments` as a mapping, or as raw text (which may be broken JSON);
      - {tool: shell, arguments: {command: ls}, id: call_1}        without `id` one is made up
    usage: {input: 100, output: 20, cached: 80}
    delay_s: 0.5                  silence before anything comes
    chunk: 4                      characters of a delta; without it, whole words
    delta_delay_s: 0.02           silence after each delta
    cut: true                     the answer hit its length limit
    error: {status: 429, retry_after_s: 1, text: slow down}, or one of: refused, stalled, broken
                                  what the step ends with in place of a message
    expect: REGEX                 the last message sent must match it, searched anywhere, `.` matching new lines too

A request that bounds its answer to so many tokens gets as many deltas of the text, and is told that it was cut.

Which step: a provider plays its script in order, one step a request, retries and side questions included. A resumed
session begins after as many answers (steps without `error`) as its history has messages of the model.
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
    tool: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None


class ScriptedUsage(FrozenModel):
    input: int = 0
    output: int = 0
    cached: int = 0


class ScriptedError(FrozenModel):
    """How a request fails: the server's `status`, or a `kind` of its own."""

    kind: Literal["refused", "stalled", "broken"] | None = None
    status: int | None = Field(None, ge=400, le=599)
    retry_after_s: float | None = None
    text: str = "the script says so"

    @model_validator(mode="before")
    @classmethod
    def _bare_kind(cls, data: Any) -> Any:
        return {"kind": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _one_of_both(self) -> "ScriptedError":
        if (self.kind is None) == (self.status is None):
            raise ValueError("an error has a `status`, or is one of: refused, stalled, broken")
        return self

    def exception(self, model: str) -> ProviderError:
        match self.kind:
            case "refused":
                return ModelUnavailableError(f"scripted: connection refused: {self.text}", is_retryable=True)
            case "stalled":
                return BrokenStreamError(f"scripted: the stream stalled: {self.text}")
            case "broken":
                return BrokenStreamError(f"scripted: the stream broke: {self.text}")
        return build_status_error(self.status or 500, self.text, model, "the variable of its key", self.retry_after_s)


class ScriptedStep(FrozenModel):
    """One model request and what comes of it."""

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
    def _bare_text(cls, data: Any) -> Any:
        return {"text": data} if isinstance(data, str) else data

    @field_validator("expect")
    @classmethod
    def _is_regex(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from error
        return value

    def pieces(self, text: str) -> Iterator[str]:
        if self.chunk is None:
            yield from re.findall(r"\s*\S+\s*|\s+", text)
        else:
            yield from (text[at : at + self.chunk] for at in range(0, len(text), self.chunk))

    def within(self, limit: int | None) -> "ScriptedStep":
        """The step as it is where the answer may have `limit` tokens: a delta of the text is one."""
        pieces = [*self.pieces(self.text)]
        if limit is None or len(pieces) <= limit:
            return self
        return self.model_copy(update={"text": "".join(pieces[:limit]), "calls": (), "cut": True})

    def completed(self, number: int) -> MessageCompleted:
        """The message of this step, the `number`th of its script."""
        parts: list[Part] = []
        if self.thinking:
            parts.append(Thinking(text=self.thinking))
        if self.text:
            parts.append(Text(text=self.text))
        for at, call in enumerate(self.calls, 1):
            arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            made_up = f"call_{number}_{at}"
            parts.append(ToolCall(id=made_up if call.id is None else call.id, name=call.tool, arguments=arguments))
        usage = self.usage
        return MessageCompleted(
            message=Message(role="assistant", parts=tuple(parts)),
            usage=Usage(input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached),
            is_cut=self.cut,
        )


_steps: TypeAdapter[list[ScriptedStep]] = TypeAdapter(list[ScriptedStep])


class ScriptedProvider:
    """The model that a script plays."""

    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="plays a YAML script (scripted:FILE), for tests, demos and toolkit authors", takes_images=True
    )

    def __init__(self, choice: ModelChoice) -> None:
        self._source, self._script = read_script(Path(choice.name).expanduser())
        self._position: int | None = None

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        if not choice.name:
            return ModelUnavailableError("name the script: scripted:FILE")
        path = Path(choice.name).expanduser()
        if path.is_file():
            return None
        what = f"{choice.name!r} is a folder" if path.is_dir() else f"there is no script {choice.name!r}"
        return ModelUnavailableError(f"{what}; write it, or correct the path in scripted:FILE")

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        at = self._begin(request) if self._position is None else self._position
        self._position = at + 1
        if at >= len(self._script):
            raise ProviderError(
                f"the script {self._source.file} has {len(self._script)} steps, and this was request number {at + 1}; "
                "add a step"
            )
        step = self._script[at].within(request.max_tokens)
        self._check(step, at, request)
        await asyncio.sleep(step.delay_s)
        for piece in step.pieces(step.thinking):
            yield ThinkingDelta(text=piece)
            await asyncio.sleep(step.delta_delay_s)
        for piece in step.pieces(step.text):
            yield TextDelta(text=piece)
            await asyncio.sleep(step.delta_delay_s)
        if step.error is not None:
            raise step.error.exception(request.model)
        yield step.completed(at + 1)

    async def close(self) -> None:
        pass

    def _begin(self, request: Request) -> int:
        """The step to begin with: the one after the answers that the history holds already."""
        answers = sum(message.role == "assistant" for message in request.messages)
        ends = [at + 1 for at, step in enumerate(self._script) if step.error is None]
        return 0 if answers == 0 else ends[answers - 1] if answers <= len(ends) else len(self._script)

    def _check(self, step: ScriptedStep, at: int, request: Request) -> None:
        last = request.messages[-1] if request.messages else None
        said = "\n".join([last.text, *(result.output for result in last.tool_results)]) if last else ""
        if step.expect is not None and not re.search(step.expect, said.strip("\n"), re.DOTALL):
            raise ProviderError(
                f"{self._source.locate(at, 'expect')}: step {at + 1} expects {step.expect!r}, "
                f"but the last message is {clip(said)!r}"
            )


def read_script(file: Path) -> tuple[YamlSource, list[ScriptedStep]]:
    """A script's steps, and its source for the lines.

    Raises:
        ProfileError: it can't be read, is no YAML, or says what no step can say; the text names file and line.
    """
    data = read_yaml(file)
    source = YamlSource("script", file, data)
    if not isinstance(data, list):
        raise ProfileError(f"{file}: a script is a list of steps, e.g. `- text: hello`")
    try:
        return source, _steps.validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place, key = source.locate(*fault["loc"]), str(fault["loc"][-1])
        if fault["type"] == "extra_forbidden":
            holder: dict[str, type[FrozenModel]] = {
                "calls": ScriptedCall,
                "usage": ScriptedUsage,
                "error": ScriptedError,
            }
            known = holder.get(str(fault["loc"][1]), ScriptedStep) if len(fault["loc"]) > 2 else ScriptedStep
            raise ProfileError(f"{place}: unknown key {key!r}; {did_you_mean(key, known.model_fields)}") from error
        what = ".".join(str(key) for key in fault["loc"][1:]) or "step"
        raise ProfileError(f"{place}: {what}: {fault['msg'].removeprefix('Value error, ')}") from error
