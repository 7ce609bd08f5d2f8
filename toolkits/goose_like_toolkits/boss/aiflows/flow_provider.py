"""Flows in place of a boss's memory, or wrapped as providers in place of its models."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, ClassVar

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.providers.base import Delta, Model, ProviderInfo, Request
from goose_like_toolkits.boss.flow.executor import Detect, FlowPart, call_detect, get_flow_name
from goose_like_toolkits.boss.flow.key_interface import Payload
from goose_like_toolkits.boss.memory.prompt import WriteEntry
from goose_like_toolkits.boss.spec import LOGS

_RESULT_KEYS = ("result", "answer", "summary")


class FlowMemory:
    """The goal and the newest memory texts for flows. Without a `reader` flow, the texts are those of the files."""

    def __init__(self, goal: str, reader: FlowPart | None) -> None:
        self._goal = goal
        self._reader = reader
        self._texts: Mapping[str, str] = {}
        self._paths: Mapping[str, str] = {}

    async def read(self, paths: Mapping[str, str], texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return the texts from the reader flow, or the given ones. Raise ToolError if the flow fails."""
        if self._reader:
            output = await self._reader.call({"memory_files": dict(paths)})
            known = output if isinstance(output, Mapping) else {}
            texts = {name: str(known[name]) for name in paths if name in known}
        self._paths, self._texts = dict(paths), dict(texts)
        return self._texts

    def build_payload(self, question: str) -> Payload:
        """Build the input of a planner or controller flow. `question` stands for an unknown goal."""
        return {"goal": self._goal or question, "memory_files": dict(self._paths), **self._texts}


def make_log_writer(part: FlowPart) -> WriteEntry:
    """Pass each log entry to a flow, as `memory_files`, `logs` and `summary`."""

    async def write_entry(path: str, entry: str) -> None:
        summary = entry.partition(": ")[2] or entry
        await part.call({"memory_files": {LOGS: path}, "logs": entry, "summary": summary})

    return write_entry


class FlowProvider:
    """A provider that gets each message from a function."""

    info: ClassVar[ProviderInfo] = ProviderInfo("a flow of the Python API")

    def __init__(self, answer: Callable[[Request], Awaitable[Message]]) -> None:
        self._answer = answer

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """Return None: a flow needs neither a key nor a package."""
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Yield one message, without deltas. Raise ProviderError if the flow failed, or its output can't be used."""
        try:
            message = await self._answer(request)
        except ProviderError:
            raise
        except GooseLikeError as error:
            raise ProviderError(str(error)) from error
        yield MessageCompleted(message=message, usage=Usage())

    async def close(self) -> None:
        """Do nothing: a flow holds no resources."""


def make_planner_model(part: FlowPart, memory: FlowMemory) -> Model:
    """Wrap a planner flow as a model. The flow gets the goal, the memory and `question`; it returns a plan."""
    name = get_flow_name(part.flow)

    async def answer(request: Request) -> Message:
        question = request.messages[-1].text
        output = await part.call({**memory.build_payload(question), "question": question})
        text = output.get("plan", output.get("result")) if isinstance(output, Mapping) else output
        if not isinstance(text, str) or not text.strip():
            raise ProviderError(f"the Planner {name!r} gave no plan but {output!r}; return {{'plan': text}}")
        return Message.assistant(text)

    return Model(FlowProvider(answer), name, f"flow:{name}")


def make_controller_model(part: FlowPart, memory: FlowMemory, detect: Detect | None, early_exit_key: str) -> Model:
    """Wrap a controller flow as a model. The flow gets the goal, the memory and the last result; it returns a command.

    `detect` is called here, so that the flow can use commands that are no branches.
    """
    name = get_flow_name(part.flow)

    async def choose_call(choice: Payload) -> ToolCall:
        if detect:
            decision = await call_detect(detect, choice)
            if decision.get(early_exit_key):
                return _make_call("finish", _build_end(decision))
            return _make_call(decision["branch"], decision["branch_input_data"])
        command, arguments = choice["command"], choice["command_args"]
        return _make_call(command, _build_end(arguments) if command == "finish" else arguments)

    async def answer(request: Request) -> Message:
        if not request.tools:
            raise ProviderError("there is no model to ask: the Controller is a flow")
        output = await part.call({**memory.build_payload(request.messages[0].text), **_get_last_result(request)})
        choice = _parse_choice(output)
        command, arguments = choice.get("command"), choice.get("command_args") or {}
        if not isinstance(command, str) or not isinstance(arguments, Mapping):
            raise ProviderError(
                f"the Controller {name!r} gave no command but {output!r}; "
                "return {'command': name, 'command_args': {...}}"
            )
        thought = str(choice.get("thought", ""))
        call = await choose_call({**choice, "command_args": dict(arguments), "thought": thought})
        return Message.assistant(thought, [call])

    return Model(FlowProvider(answer), name, f"flow:{name}")


def _make_call(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(id="", name=name, arguments=json.dumps(arguments, ensure_ascii=False, default=str))


def _build_end(payload: Mapping[str, Any]) -> dict[str, str]:
    result = next((str(payload[key]) for key in _RESULT_KEYS if payload.get(key)), "")
    return {"result": result, "summary": str(payload.get("summary") or result)}


def _get_last_result(request: Request) -> Payload:
    results = next((message.tool_results for message in reversed(request.messages) if message.tool_results), ())
    return {
        "result": "\n".join(result.output for result in results),
        "summary": "\n".join(result.replacement or "" for result in results),
    }


def _parse_choice(output: Any) -> Mapping[str, Any]:
    if isinstance(output, str):
        try:
            output = json.loads(output)
        except ValueError:
            return {}
    return output if isinstance(output, Mapping) else {}
