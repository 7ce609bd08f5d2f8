"""One tool call: check the arguments, call the function, and turn every outcome into a text for the model."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from traceback import format_exception_only
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError, GooseLikeError, find_foreign_frames, list_inner_errors
from goose_like.core.images import check_image
from goose_like.core.masking import find_mask
from goose_like.core.message import ToolCall
from goose_like.core.spelling import find_nearest_name
from goose_like.core.threads import run_in_daemon_thread
from goose_like.core.tool import FinalResult, ImageResult, Tool, ToolError, TransientResult
from goose_like.providers.call_notations import UNREADABLE_CALL

from .arguments import read_arguments

_MAX_FRAMES = 5
_READABLE_CALL = (
    "the <tool_call> in your text can't be read, so nothing ran: use the API's tool calls, or end your text with "
    '<tool_call>{"name": NAME, "arguments": {...}}</tool_call>; put an example into a code fence'
)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The full result of a call, before it is cut to a length that a model can read."""

    output: str
    is_error: bool = False
    image: ImageResult | None = None
    replacement: str | None = None
    is_final: bool = False
    is_denied: bool = False


async def call_tool(tools: Mapping[str, Tool], call: ToolCall) -> CallOutcome:
    """Run a tool call and return its outcome. Every failure becomes an outcome too; only cancellation passes."""
    if call.name not in tools:
        suggestion = _suggest_tool(call.name, tools)
        names = ", ".join(tools) or "none"
        return CallOutcome(f"no tool {call.name!r}; {suggestion}the tools are: {names}", is_error=True)
    mask = find_mask(call.arguments)
    if mask:
        return CallOutcome(
            f"{call.name} did not run: {mask} stands for a secret that you cannot see or write. Leave the secret where "
            "it is: change only the lines around it, or let a command read it from its file or variable",
            is_error=True,
        )
    tool = tools[call.name]
    is_denied = False
    limit = asyncio.timeout(tool.options.time_limit_s)
    try:
        arguments = read_arguments(tool, call.arguments)
        async with limit:
            value = await invoke(tool.function, arguments)
        return _convert_value(value)
    except GooseLikeError as error:
        text = str(error)
        is_denied = isinstance(error, DeniedError)
    # Any error of a tool belongs to the model, also `sys.exit` and a cancellation inside the tool.
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        text = _explain_error(error, tool.function)
        if isinstance(error, TimeoutError) and limit.expired():
            after = f"{tool.options.time_limit_s:g} s"
            text = f"{call.name} was stopped after its time limit of {after}; ask for less at once or try another way"
    return CallOutcome(text, is_error=True, is_denied=is_denied)


def _suggest_tool(name: str, tools: Mapping[str, Tool]) -> str:
    """Suggest the tool that other agents know under this name, however it is spelled, or one with a similar name."""
    if name == UNREADABLE_CALL:
        return f"{_READABLE_CALL}; "
    for tool in tools.values():
        if tool.options.has_alias(name):
            return f"use {tool.name}; "
    near = find_nearest_name(name, tools)
    return f"did you mean {near!r}? " if near else ""


async def invoke(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function: await an `async def`, run a plain `def` in a daemon thread."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    value = await run_in_daemon_thread(partial(function, **arguments), f"tool {function.__name__}")
    if inspect.isawaitable(value):
        return await value
    return value


def _convert_value(value: Any) -> CallOutcome:
    if isinstance(value, ImageResult):
        check_image(value.data, value.source)
        text = value.text or f"[image {value.source}]"
        return CallOutcome(text, image=value, replacement=value.replacement)
    if isinstance(value, TransientResult | FinalResult):
        is_final = isinstance(value, FinalResult)
        return CallOutcome(value.text, replacement=value.replacement, is_final=is_final)
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
    """Describe an error, or each error of a group, with the newest frames in the tool's own package."""
    lines = []
    if isinstance(error, BaseExceptionGroup):
        lines.append(f"{type(error).__name__}: {error}")
        lines += _list_frames(error, function)
    for each in list_inner_errors(error):
        text = "".join(format_exception_only(each))
        lines.append(text.strip())
        lines += _list_frames(each, function)
    return "\n".join(lines)


def _list_frames(error: BaseException, function: Callable[..., Any]) -> list[str]:
    frames = [f"  {frame}" for frame in find_foreign_frames(error, function.__module__)]
    return frames[-_MAX_FRAMES:]
