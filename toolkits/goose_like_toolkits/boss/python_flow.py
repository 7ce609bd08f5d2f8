"""Call the flows of a Python program: branches of the executor, and replacements for other parts of a boss."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from goose_like.agent.tool_call import invoke
from goose_like.core.errors import GooseLikeError, describe_foreign_error
from goose_like.core.tool import ToolError

from .spec import FINISH

Payload = dict[str, Any]

DETECT = "detect_finish_or_continue"
_RETRY_ADVICE = "send other arguments, or choose another action"


class FlowObject(Protocol):
    """An object with `run`, or with an `async def arun` that counts first. A plain `run` is called in a thread."""

    def run(self, input_data: Payload, /) -> Any:
        """Return a mapping with `result` and `summary`, or text."""
        ...


Flow = FlowObject | Callable[[Payload], Any]


@dataclass(frozen=True, slots=True)
class FlowBranch:
    """A flow among the controller's choices. `parameters` are the names of its arguments."""

    flow: Flow
    description: str = ""
    parameters: tuple[str, ...] = ()

    async def run(self, payload: Payload) -> tuple[str, str, Payload]:
        """Return `result` (or the whole output as JSON), `summary` and the output, or raise ToolError for a failure."""
        given = await call_flow(self.flow, payload)
        output = read_output(given)
        result = _to_text(output.get("result", output))
        summary = _to_text(output.get("summary", ""))
        return result, summary, output


@dataclass(frozen=True, slots=True)
class Detection:
    """The step between controller and executor: the method `detect_finish_or_continue` of a flow.

    `controller` is passed to the method. `end_arguments` are further names for the `result` of `finish`. `adapt`
    changes the keys of a decision before it goes to the executor.
    """

    flow: Any
    controller: Any
    early_exit_key: str
    end_arguments: tuple[str, ...] = ()
    adapt: Callable[[Payload], Payload] = dict

    async def decide(self, choice: Payload) -> Payload:
        """Turn a command into `branch` and `branch_input_data`, or an early exit. Raise ToolError if that fails."""
        command = choice["command"]
        arguments = dict(choice["command_args"])
        if command == FINISH and "result" in arguments:
            copies = dict.fromkeys(self.end_arguments, arguments["result"])
            arguments = {**copies, **arguments}
        name = f"{get_flow_name(self.flow)}.{DETECT}"
        method = _bind_method(self.flow, DETECT, parameter_count=2)
        with _convert_errors(f"{name} failed at the command {command!r}", type(self.flow).__module__):
            decision = await _invoke(method, {**choice, "command_args": arguments}, self.controller)
        if not isinstance(decision, dict):
            raise ToolError(f"{name} gave {decision!r}, not a dict; choose another action")
        if decision.get(self.early_exit_key):
            return decision
        decision = self.adapt(decision)
        branch = decision.get("branch", decision.get("command"))
        inputs = decision.get("branch_input_data", decision.get("command_args"))
        if not isinstance(branch, str) or not isinstance(inputs, dict | None):
            raise ToolError(
                f"{name} gave {sorted(decision)} for the command {command!r}: neither a branch with its input nor the "
                "end; choose another action"
            )
        return {"branch": branch, "branch_input_data": inputs or {}}


async def call_flow(flow: Flow, payload: Payload) -> Any:
    """Return the output of a flow for a payload. Raise ToolError if the flow failed, or can't be called."""
    name = get_flow_name(flow)
    method: Any = flow
    module = getattr(flow, "__module__", "")
    for method_name in ("arun", "run"):
        if callable(getattr(flow, method_name, None)):
            method = _bind_method(flow, method_name, parameter_count=1)
            module = type(flow).__module__
            break
    if not callable(method):
        raise ToolError(f"the flow {name!r} has no `run`; write `def run(self, input_data)`, which returns a dict")
    with _convert_errors(f"the flow {name!r} failed", module):
        return await _invoke(method, payload)


def read_output(given: Any) -> Payload:
    """Return a copy of a flow's output. Anything but a mapping becomes its `result`."""
    if isinstance(given, Mapping):
        return dict(given)
    return {"result": given}


def get_flow_name(flow: object) -> str:
    """Return the name of a flow for error messages."""
    name = getattr(flow, "name", "") or getattr(flow, "__name__", "")
    return str(name or type(flow).__name__)


async def _invoke(method: Callable[..., Any], *arguments: Any) -> Any:
    def run() -> Any:
        return method(*arguments)

    return await invoke(run, {})


@contextmanager
def _convert_errors(problem: str, module: str) -> Iterator[None]:
    """Turn an exception from code in `module` into a ToolError with the line that raised it."""
    try:
        yield
    except GooseLikeError:
        raise
    except Exception as error:  # a user's flow can raise anything
        raise ToolError(f"{problem}: {describe_foreign_error(error, module)}; {_RETRY_ADVICE}") from error


def _bind_method(flow: object, name: str, *, parameter_count: int) -> Callable[..., Any]:
    """Return a method that was written with `self`, as a staticmethod, or (as in aiflows' docs) with neither."""
    method: Callable[..., Any] = getattr(flow, name)
    function: Callable[..., Any] = getattr(method, "__func__", method)
    parameters = list(inspect.signature(function).parameters)
    has_neither = len(parameters) == parameter_count and parameters[0] != "self"
    return function if has_neither else method


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
