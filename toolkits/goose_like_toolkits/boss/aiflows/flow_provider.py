"""A planner or a controller that is no model: a flow of somebody's own, asked as a provider is."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.providers.base import Delta, Model, ProviderInfo, Request
from goose_like_toolkits.boss.flow.executor import Detect, Own, asked, detected, named
from goose_like_toolkits.boss.flow.key_interface import Payload

from .flow_memory import Recall

_ENDS = ("result", "answer", "summary")


class FlowProvider:
    """What planners and controllers share. A subclass makes a message of what the flow gives."""

    facts: ClassVar[ProviderInfo] = ProviderInfo("a flow of the Python API")

    def __init__(self, own: Own, recall: Recall) -> None:
        self._own = own
        self._recall = recall

    @staticmethod
    def missing(choice: ModelChoice) -> GooseLikeError | None:
        """Nothing: who gives a flow has it."""
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """One message, without deltas.

        Raises:
            ProviderError: the flow raised, or gave what can't be used; the text says what it should give.
        """
        try:
            message = await self._message(request)
        except ProviderError:
            raise
        except GooseLikeError as error:
            raise ProviderError(str(error)) from error
        yield MessageCompleted(message=message, usage=Usage())

    async def close(self) -> None:
        """Nothing is held."""

    def model(self) -> Model:
        """This as a boss's planner or controller."""
        name = named(self._own.flow)
        return Model(self, name, f"flow:{name}")

    async def _message(self, request: Request) -> Message:
        raise NotImplementedError


class PlannerFlow(FlowProvider):
    """Gives a plan, as `{"plan": text}` or as text, for `goal`, the memory, and all in words as `question`."""

    async def _message(self, request: Request) -> Message:
        question = request.messages[-1].text
        given = await asked(self._own, {**self._recall.payload(question), "question": question})
        text = given.get("plan", given.get("result")) if isinstance(given, Mapping) else given
        if not isinstance(text, str) or not text.strip():
            name = named(self._own.flow)
            raise ProviderError(f"the Planner {name!r} gave no plan but {given!r}; give {{'plan': text}}")
        return Message.assistant(text)


class ControllerFlow(FlowProvider):
    """Gives a command for `goal`, the memory, and `result` and `summary` of the action before.

    What stands between a controller and its actions is asked here, so that a flow may know commands that are none.
    """

    def __init__(self, own: Own, recall: Recall, detect: Detect | None, early_exit_key: str) -> None:
        super().__init__(own, recall)
        self._detect = detect
        self._early_exit_key = early_exit_key

    async def _message(self, request: Request) -> Message:
        if not request.tools:
            raise ProviderError("there is no model to ask, but a Controller that is a flow")
        given = await asked(self._own, {**self._recall.payload(request.messages[0].text), **_newest(request)})
        said = _read(given)
        command, arguments = said.get("command"), said.get("command_args") or {}
        if not isinstance(command, str) or not isinstance(arguments, Mapping):
            raise ProviderError(
                f"the Controller {named(self._own.flow)!r} gave no command but {given!r}; "
                "give {'command': name, 'command_args': {...}}"
            )
        thought = str(said.get("thought", ""))
        call = await self._chosen({**said, "command_args": dict(arguments), "thought": thought})
        return Message.assistant(thought, [call])

    async def _chosen(self, choice: Payload) -> ToolCall:
        if self._detect:
            payload = await detected(self._detect, choice)
            if payload.get(self._early_exit_key):
                return _call("finish", _end(payload))
            return _call(payload["branch"], payload["branch_input_data"])
        arguments = choice["command_args"]
        return _call(choice["command"], _end(arguments) if choice["command"] == "finish" else arguments)


def _call(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(id="", name=name, arguments=json.dumps(arguments, ensure_ascii=False, default=str))


def _end(payload: Mapping[str, Any]) -> dict[str, str]:
    """Result and summary of the end, under whichever name the result was given."""
    result = next((str(payload[key]) for key in _ENDS if payload.get(key)), "")
    return {"result": result, "summary": str(payload.get("summary") or result)}


def _newest(request: Request) -> Payload:
    """What came of the action before; empty before the first."""
    results = next((message.tool_results for message in reversed(request.messages) if message.tool_results), ())
    return {
        "result": "\n".join(result.output for result in results),
        "summary": "\n".join(result.replacement or "" for result in results),
    }


def _read(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {}
    return given if isinstance(given, Mapping) else {}
