"""A flow of somebody's own in the place of an action: asked once, with its interfaces around it."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from goose_like.core.errors import GooseLikeError
from goose_like.core.frames import describe_foreign_error
from goose_like.core.tool import ToolError, invoke
from goose_like_toolkits.boss.spec import Branch, Interface

from .key_interface import AS_IT_IS, Payload, applied

OUTPUT = "branch_output_data"
"""Where aiflows' branching flow puts what a branch gave, and where its interfaces look for it."""

Detect = Callable[[Payload], Any]
"""Between controller and executor: {command, command_args, thought} -> {branch, branch_input_data}, or an exit."""


class Executor(Protocol):
    """What does an action. One that has an `async def arun` is asked by that, and else `run` in a thread."""

    def run(self, input_data: Payload, /) -> Any:
        """What came of it: a mapping with `result` and `summary`, or text."""
        ...


async def executed(flow: Executor, payload: Payload, branch: Branch) -> tuple[str, str, Payload]:
    """`result`, `summary` and all that the flow gave to a branch's arguments.

    Where it gives no `result` that is all of it as JSON; where it gives no `summary` that is empty.

    Raises:
        ToolError: the flow raised; the text is for the controller.
    """
    given = await asked(flow, payload, branch.input_interface)
    output = given if isinstance(given, Mapping) else {"result": given}
    output = applied(branch.output_interface, {**output, OUTPUT: dict(output)})
    output.pop(OUTPUT, None)
    result, summary = output.get("result", output), output.get("summary", "")
    return _text(result), _text(summary), output


async def asked(flow: Executor, payload: Payload, interface: Interface = AS_IT_IS) -> Any:
    """What the flow gives to a payload.

    Raises:
        ToolError: it raised, or there is no way to ask it.
    """
    name = named(flow)
    way = next((way for way in ("arun", "run") if callable(getattr(flow, way, None))), "")
    method = bound(flow, way, taken=1) if way else flow
    if not callable(method):
        raise ToolError(f"the flow {name!r} has no `run`; write `def run(self, input_data)`, which gives a dict")

    def run(**inputs: Payload) -> Any:
        return method(inputs["input_data"])

    try:
        return await invoke(run, {"input_data": applied(interface, payload)})
    except GooseLikeError:
        raise
    except Exception as error:  # somebody's own code: what it raises is told to the controller
        where = describe_foreign_error(error, type(flow).__module__ if way else flow.__module__)
        raise ToolError(f"the flow {name!r} failed: {where}; send other arguments, or choose another action") from error


@dataclass(frozen=True, slots=True)
class Own:
    """A flow of the caller's in the place of one of the boss's parts, with the topology's interfaces around it."""

    flow: Executor
    input_interface: Interface = AS_IT_IS
    output_interface: Interface = AS_IT_IS

    def run(self, input_data: Payload, /) -> Any:
        """What the flow gives, once it is awaited.

        Raises:
            ToolError: it raised.
        """
        return self._asked(input_data)

    async def _asked(self, payload: Payload) -> Any:
        given = await asked(self.flow, payload, self.input_interface)
        return applied(self.output_interface, dict(given)) if isinstance(given, Mapping) else given


async def detected(detect: Detect, choice: Payload) -> Payload:
    """What is made of a controller's choice.

    Raises:
        ToolError: it raised, or gave no mapping.
    """

    def run(**inputs: Payload) -> Any:
        return detect(inputs["choice"])

    try:
        given = await invoke(run, {"choice": choice})
    except GooseLikeError:
        raise
    except Exception as error:  # somebody's own code
        raise ToolError(
            f"the choice could not be judged: {describe_foreign_error(error, detect.__module__)}; choose again"
        ) from error
    if not isinstance(given, Mapping):
        raise ToolError(f"the choice was judged to be {given!r}, which is no mapping; choose another action")
    return dict(given)


def named(flow: object) -> str:
    """What a flow is called in an error."""
    return str(getattr(flow, "name", "") or getattr(flow, "__name__", "") or type(flow).__name__)


def bound(flow: object, name: str, *, taken: int) -> Callable[..., Any]:
    """A method that takes `taken` values, written with `self`, as a staticmethod, or with neither."""
    method: Callable[..., Any] = getattr(flow, name)
    function: Callable[..., Any] = getattr(method, "__func__", method)
    parameters = list(inspect.signature(function).parameters)
    return function if len(parameters) == taken and parameters[0] != "self" else method


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
