"""Call flows of a Python program: executors of branches, and replacements for parts of the boss."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from goose_like.agent.tool_call import invoke
from goose_like.core.errors import GooseLikeError, describe_foreign_error
from goose_like.core.tool import ToolError
from goose_like_toolkits.boss.spec import Branch, KeyInterface

from .key_interface import NO_CHANGE, Payload, apply_interface

OUTPUT_KEY = "branch_output_data"
"""Key under which interfaces of aiflows find the output of a branch."""

RETRY_ADVICE = "send other arguments, or choose another action"

Detect = Callable[[Payload], Any]
"""Turn {command, command_args, thought} into {branch, branch_input_data}, or into an early exit."""


class Executor(Protocol):
    """A flow with `run`, or with an `async def arun` that counts first. A plain `run` is called in a thread."""

    def run(self, input_data: Payload, /) -> Any:
        """Return a mapping with `result` and `summary`, or text."""
        ...


@dataclass(frozen=True, slots=True)
class FlowPart:
    """A flow in place of a part of the boss, with the interfaces of its topology."""

    flow: Executor
    input_interface: KeyInterface = NO_CHANGE
    output_interface: KeyInterface = NO_CHANGE

    async def call(self, payload: Payload) -> Any:
        """Return the output of the flow. Raise ToolError if the flow fails."""
        output = await call_flow(self.flow, payload, self.input_interface)
        return apply_interface(self.output_interface, dict(output)) if isinstance(output, Mapping) else output


async def run_branch(flow: Executor, payload: Payload, branch: Branch) -> tuple[str, str, Payload]:
    """Call the flow of a branch. Return `result`, `summary` and the whole output.

    Without a `result`, the result is the whole output as JSON. Without a `summary`, the summary is empty.

    Raises:
        ToolError: the flow failed. The text is for the controller.
    """
    given = await call_flow(flow, payload, branch.input_interface)
    output = given if isinstance(given, Mapping) else {"result": given}
    output = apply_interface(branch.output_interface, {**output, OUTPUT_KEY: dict(output)})
    output.pop(OUTPUT_KEY, None)
    return _to_text(output.get("result", output)), _to_text(output.get("summary", "")), output


async def call_flow(flow: Executor, payload: Payload, interface: KeyInterface = NO_CHANGE) -> Any:
    """Return the output of a flow for a payload. Raise ToolError if the flow failed, or can't be called."""
    name = get_flow_name(flow)
    method_name = next((each for each in ("arun", "run") if callable(getattr(flow, each, None))), "")
    method = bind_method(flow, method_name, parameter_count=1) if method_name else flow
    if not callable(method):
        raise ToolError(f"the flow {name!r} has no `run`; write `def run(self, input_data)`, which returns a dict")

    def run(**inputs: Payload) -> Any:
        return method(inputs["input_data"])

    module = type(flow).__module__ if method_name else flow.__module__
    with convert_errors(f"the flow {name!r} failed", module, RETRY_ADVICE):
        return await invoke(run, {"input_data": apply_interface(interface, payload)})


async def call_detect(detect: Detect, choice: Payload) -> Payload:
    """Return the decision of a `detect_finish_or_continue` method on a controller's choice.

    Raises:
        ToolError: the method failed, or returned no mapping.
    """

    def run(**inputs: Payload) -> Any:
        return detect(inputs["choice"])

    with convert_errors("the choice can't be judged", detect.__module__, "choose again"):
        decision = await invoke(run, {"choice": choice})
    if not isinstance(decision, Mapping):
        raise ToolError(f"the choice was judged to be {decision!r}, which is no mapping; choose another action")
    return dict(decision)


@contextmanager
def convert_errors(problem: str, module: str, advice: str) -> Iterator[None]:
    """Turn an exception from code in `module` into a ToolError with the line that raised it."""
    try:
        yield
    except GooseLikeError:
        raise
    except Exception as error:  # a user's flow can raise anything
        raise ToolError(f"{problem}: {describe_foreign_error(error, module)}; {advice}") from error


def get_flow_name(flow: object) -> str:
    """Return the name of a flow for error messages."""
    return str(getattr(flow, "name", "") or getattr(flow, "__name__", "") or type(flow).__name__)


def bind_method(flow: object, name: str, *, parameter_count: int) -> Callable[..., Any]:
    """Return a method that was written with `self`, as a staticmethod, or (as in aiflows' docs) with neither."""
    method: Callable[..., Any] = getattr(flow, name)
    function: Callable[..., Any] = getattr(method, "__func__", method)
    parameters = list(inspect.signature(function).parameters)
    return function if len(parameters) == parameter_count and parameters[0] != "self" else method


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
