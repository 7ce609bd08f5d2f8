"""A flow of a Python program in place of the controller, wrapped as the provider of a model."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, ToolCall, ToolResult, Usage
from goose_like.providers.base import Delta, Model, ProviderInfo, Request
from goose_like_toolkits.boss.python_flow import Detection, Flow, Payload, call_flow, get_flow_name
from goose_like_toolkits.boss.spec import FINISH

from .rounds import Rounds

_RESULT_KEYS = ("result", "answer", "summary")


class FlowController:
    """A provider whose messages come from a controller flow. The flow gets the goal, the memory and the last result.

    `detection` is called here, so that the flow can use commands that are no branches. `rounds` is set by the toolkit
    of the controller.
    """

    info: ClassVar[ProviderInfo] = ProviderInfo("a flow of the Python API")
    rounds: Rounds

    def __init__(self, flow: Flow, detection: Detection | None) -> None:
        self._flow = flow
        self._detection = detection
        name = get_flow_name(flow)
        self.model = Model(self, name, f"flow:{name}")

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """Return None: a flow needs neither a key nor a package."""
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Yield one message, without deltas. Raise ProviderError if the flow failed, or its output can't be used."""
        try:
            message = await self._answer(request)
        except GooseLikeError as error:
            raise ProviderError(str(error)) from error
        yield MessageCompleted(message=message, usage=Usage())

    async def close(self) -> None:
        """Do nothing: a flow holds no resources."""

    async def _answer(self, request: Request) -> Message:
        if not request.tools:
            raise ProviderError("there is no model to ask: the Controller is a flow")
        choice = await self._choose(request)
        command = choice["command"]
        arguments = choice["command_args"]
        if self._detection:
            decision = await self._detection.decide(choice)
            if decision.get(self._detection.early_exit_key):
                command = FINISH
                arguments = decision
            else:
                command = decision["branch"]
                arguments = decision["branch_input_data"]
        if command == FINISH:
            arguments = _build_end(arguments)
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        return Message.assistant(choice["thought"], [ToolCall(id="", name=command, arguments=text)])

    async def _choose(self, request: Request) -> Payload:
        """Return the output of the flow with a `command`, its `command_args` and a `thought`.

        Raises:
            ProviderError: the output has no command.
        """
        payload = {**self.rounds.build_payload(), **_get_last_result(request)}
        output = await call_flow(self._flow, payload)
        choice = output if isinstance(output, Mapping) else {}
        command = choice.get("command")
        arguments = choice.get("command_args") or {}
        if not isinstance(command, str) or not isinstance(arguments, Mapping):
            problem = f"the Controller {self.model.name!r} gave no command but {output!r}"
            raise ProviderError(f"{problem}; return {{'command': name, 'command_args': {{...}}}}")
        thought = str(choice.get("thought", ""))
        return {**choice, "command_args": dict(arguments), "thought": thought}


def _build_end(arguments: Mapping[str, Any]) -> Payload:
    """Build the arguments of `finish` from those of a flow, which may have other names."""
    result = ""
    for key in _RESULT_KEYS:
        if arguments.get(key):
            result = str(arguments[key])
            break
    return {"result": result, "summary": str(arguments.get("summary") or result)}


def _get_last_result(request: Request) -> Payload:
    results: Sequence[ToolResult] = ()
    for message in reversed(request.messages):
        if message.tool_results:
            results = message.tool_results
            break
    return {
        "result": "\n".join(result.output for result in results),
        "summary": "\n".join(result.replacement or "" for result in results),
    }
