"""Tool calls: check the arguments, call the function, and turn every outcome into a result for the model."""

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from traceback import format_exception_only
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from goose_like.core.errors import DeniedError, GooseLikeError, find_foreign_frames, list_inner_errors
from goose_like.core.events import ToolFinished
from goose_like.core.history import History
from goose_like.core.images import check_image, save_image
from goose_like.core.masking import find_mask, mask_text, mask_value
from goose_like.core.message import Image, ToolCall, ToolResult
from goose_like.core.spelling import find_nearest_name
from goose_like.core.threads import run_in_daemon_thread
from goose_like.core.tool import FinalResult, ImageResult, Tool, ToolError, TransientResult, current_call
from goose_like.providers.call_notations import UNREADABLE_CALL
from goose_like.sessions.output_limit import limit_text

from .arguments import read_arguments
from .call_hooks import CallHooks
from .call_start import start_call
from .hook_values import ResultChange
from .journal import Journal
from .limits import TurnLimits

WARN_EQUAL_FAILURES = 3
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


async def run_tools(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], journal: Journal, limits: TurnLimits, hooks: CallHooks
) -> None:
    """Run the calls of one model message in order, adjacent parallel ones together, and emit their results.

    Raises:
        SessionError: a result cannot be written.
    """
    failed_edit = ""
    for batch in _split_batches(calls, tools):
        if failed_edit and _may_change(batch[0], tools):
            for call in batch:
                _skip_call(call, failed_edit, tools, journal)
            continue
        tasks = []
        try:
            async with asyncio.TaskGroup() as group:
                for call in batch:
                    run = _run_tool(call, tools, journal, limits.values.output_bytes, hooks)
                    tasks.append(group.create_task(run))
        except BaseExceptionGroup as errors:  # tools never raise, but the journal may
            raise errors.exceptions[0] from None
        name = batch[0].name
        is_edit = name in tools and tools[name].options.edits
        if is_edit and not all(task.result() for task in tasks):
            failed_edit = name


def _may_change(call: ToolCall, tools: Mapping[str, Tool]) -> bool:
    """Check whether a call may change something, such as commit files that a failed edit left as they were."""
    if call.name not in tools:
        return False
    options = tools[call.name].options
    if options.is_read_only(call.name):
        return False
    if options.reads_only_with is None:
        return True
    try:
        arguments = json.loads(call.arguments)
        reads_only = isinstance(arguments, dict) and options.reads_only_with(arguments)
    except ValueError:
        return True
    return not reads_only


def _skip_call(call: ToolCall, failed_edit: str, tools: Mapping[str, Tool], journal: Journal) -> None:
    """Give a call a result without running it."""
    text = (
        f"not run: {failed_edit} failed earlier in this message, and this call may write or commit. Repair that edit, "
        "then send this call again if it still fits"
    )
    _refuse_call(call, text, tools, journal)


def _refuse_call(call: ToolCall, text: str, tools: Mapping[str, Tool], journal: Journal) -> None:
    journal.emit(start_call(call, tools, journal.history))
    result = ToolResult(call_id=call.id, output=text, is_error=True)
    journal.emit(ToolFinished(result=result))


def _split_batches(calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> Iterator[list[ToolCall]]:
    """Split calls into batches, which run one after the other. Adjacent parallel calls are one batch."""
    for parallel, group in groupby(calls, lambda call: _get_parallel(call, tools)):
        if parallel:
            yield list(group)
            continue
        for call in group:
            yield [call]


def _get_parallel(call: ToolCall, tools: Mapping[str, Tool]) -> bool | str:
    """Return False, True, or the name of a tool whose calls run only beside each other."""
    if call.name not in tools:
        return False
    parallel = tools[call.name].options.parallel
    return call.name if parallel == "same tool" else parallel


async def _run_tool(
    call: ToolCall, tools: Mapping[str, Tool], journal: Journal, output_limit_bytes: int, hooks: CallHooks
) -> bool:
    """Run one call, and return whether it succeeded.

    For a remote tool, only check the arguments: a valid call stays open for the client.
    """
    known = journal.history.context.known_prompt
    if known and call.name in known.tools and call.name not in tools:
        names = ", ".join(tools) or "none"
        text = f"not allowed: {call.name} cannot be used in this mode; the tools are: {names}"
        _refuse_call(call, text, tools, journal)
        return False
    is_remote = call.name in tools and tools[call.name].options.remote
    if not is_remote:
        journal.emit(start_call(call, tools, journal.history))
    current_call.set(call.id)
    outcome = await call_tool(tools, call)
    change = await hooks.finish(call, outcome.output, is_error=outcome.is_error, is_denied=outcome.is_denied)
    if is_remote:
        if not outcome.is_error:
            return True
        journal.emit(start_call(call, tools, journal.history))
    result = _create_result(call, outcome, change, journal, output_limit_bytes)
    journal.emit(ToolFinished(result=result))
    return not outcome.is_error


def _create_result(
    call: ToolCall, outcome: CallOutcome, change: ResultChange, journal: Journal, output_limit_bytes: int
) -> ToolResult:
    session = journal.session
    call = mask_value(call)  # as in the history
    if change.output is not None:  # in place of all that the tool gave
        outcome = replace(outcome, output=change.output, image=None, replacement=None)
    output = limit_text(mask_text(outcome.output), session.output_path(call.id), output_limit_bytes)
    if outcome.is_error:
        output += _warn_of_repetition(call, journal.history)
    output += change.context
    images: tuple[Image, ...] = ()
    if outcome.image:
        image = save_image(outcome.image.data, outcome.image.source, session.outputs)
        images = (image,)
    replacement = outcome.replacement
    if replacement is not None:
        replacement = replacement[:output_limit_bytes]
    return ToolResult(
        call_id=call.id,
        output=output,
        is_error=outcome.is_error,
        images=images,
        replacement=replacement,
        is_final=outcome.is_final,
    )


def _warn_of_repetition(call: ToolCall, history: History) -> str:
    """Return a note for the model when a call that fails now has failed before, often enough."""
    failures = history.failures.get((call.name, call.arguments), 0) + 1
    if failures < WARN_EQUAL_FAILURES:
        return ""
    return f"\n[this very call has failed {failures} times; do something else, or say what you need]"


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
