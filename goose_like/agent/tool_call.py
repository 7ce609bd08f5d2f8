"""One tool call: check the arguments, call the function, and turn every failure into an answer for the model."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from goose_like.core.entry_points import find_nearest_name
from goose_like.core.errors import GooseLikeError, find_foreign_frames
from goose_like.core.images import check_image
from goose_like.core.message import ToolCall
from goose_like.core.threads import run_in_daemon_thread
from goose_like.core.tool import FinalResult, ImageResult, Tool, ToolError, TransientResult

_MAX_FRAMES = 5
_MAX_PROBLEMS = 5
_MAX_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The full result of a call, before it is cut to a length that a model can read."""

    output: str
    is_error: bool = False
    image: ImageResult | None = None
    replacement: str | None = None
    is_final: bool = False


async def call_tool(tools: Mapping[str, Tool], call: ToolCall) -> CallOutcome:
    """Run a tool call and return its outcome. Every failure becomes an outcome too; only cancellation passes."""
    if call.name not in tools:
        near = f"did you mean {name!r}? " if (name := find_nearest_name(call.name, tools)) else ""
        return CallOutcome(f"no tool {call.name!r}; {near}the tools are: {', '.join(tools) or 'none'}", True)
    tool = tools[call.name]
    limit = asyncio.timeout(tool.options.time_limit_s)
    try:
        arguments = _read_arguments(tool, call.arguments)
        async with limit:
            value = await invoke(tool.function, arguments)
        return _convert_value(value)
    except GooseLikeError as error:
        return CallOutcome(str(error), True)
    # Any error of a tool belongs to the model, also `sys.exit` and a cancellation inside the tool.
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            return CallOutcome(
                f"{call.name} was stopped after its time limit of {tool.options.time_limit_s:g} s; "
                "ask for less at once or try another way",
                True,
            )
        return CallOutcome(_explain_error(error, tool.function), True)


async def invoke(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function: await an `async def`, run a plain `def` in a daemon thread."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    value = await run_in_daemon_thread(partial(function, **arguments), f"tool {function.__name__}")
    return await value if inspect.isawaitable(value) else value


def _read_arguments(tool: Tool, text: str) -> dict[str, Any]:
    """Parse and validate the arguments.

    Raises:
        ToolError: the message names the wrong field and the expected ones.
    """
    expected = f"send one JSON object with {_describe_fields(tool)}"
    try:
        data = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise ToolError(f"more than one JSON value was sent as arguments; {expected}, once a call") from error
        around = text[max(0, error.pos - 30) : error.pos + 30]
        raise ToolError(
            f"the arguments are no valid JSON: {error.msg} at character {error.pos} of {len(text)}, near {around!r}; "
            f"{expected}"
        ) from error
    except RecursionError as error:
        raise ToolError(f"the arguments are nested too deeply; {expected}") from error
    if not isinstance(data, dict):
        kind = "null" if data is None else type(data).__name__
        raise ToolError(f"the arguments are {kind}, not an object; {expected}")
    try:
        checked = tool.parameters.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(_describe_problem(problem) for problem in error.errors()[:_MAX_PROBLEMS])
        raise ToolError(f"wrong arguments for {tool.name}: {problems}; {expected}") from error
    given = {
        field.alias or name: getattr(checked, name)
        for name, field in tool.parameters.model_fields.items()
        if name in checked.model_fields_set
    }
    return given | (checked.model_extra or {})


def _describe_fields(tool: Tool) -> str:
    properties, required = tool.spec.schema["properties"], tool.spec.schema.get("required", [])
    if not properties:
        return "no fields"
    return ", ".join(f"{name!r}{'' if name in required else ' (optional)'}" for name in properties)


def _describe_problem(problem: Any) -> str:
    field = ".".join(str(step) for step in problem["loc"])
    if problem["type"] == "missing":
        return f"field {field!r} is missing"
    if problem["type"] == "extra_forbidden":
        return f"there is no field {field!r}"
    value = repr(problem["input"])
    short = value if len(value) <= _MAX_VALUE_CHARS else value[: _MAX_VALUE_CHARS - 3] + "..."
    return f"field {field!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}, not {short}"


def _convert_value(value: Any) -> CallOutcome:
    match value:
        case ImageResult():
            check_image(value.data, value.source)
            return CallOutcome(value.text or f"[image {value.source}]", image=value, replacement=value.replacement)
        case TransientResult():
            return CallOutcome(value.text, replacement=value.replacement)
        case FinalResult():
            return CallOutcome(value.text, replacement=value.replacement, is_final=True)
        case _:
            return CallOutcome(_convert_to_text(value))


def _convert_to_text(value: Any) -> str:
    if value is None:
        return "done"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        raise ToolError(f"the tool gave {len(value)} bytes, which are no text; write them to a file and name the file")
    try:
        return to_json(value, indent=2).decode()
    except (PydanticSerializationError, UnicodeDecodeError, ValueError) as error:
        raise ToolError(f"the tool gave a {type(value).__name__}, which has no text form ({error})") from error


def _explain_error(error: BaseException, function: Callable[..., Any]) -> str:
    """Describe an error with its newest frames in the tool's own package."""
    frames = [f"  {frame}" for frame in find_foreign_frames(error, function.__module__)]
    try:
        text = str(error)
    except Exception:  # a broken `__str__`
        text = "(no message)"
    return "\n".join([f"{type(error).__name__}: {text}", *frames[-_MAX_FRAMES:]])
