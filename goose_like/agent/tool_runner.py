"""The tool calls of one model message: run them, and turn their outcomes into results for the model."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from goose_like.core.events import ToolFinished, ToolStarted
from goose_like.core.images import save_image
from goose_like.core.message import ToolCall, ToolResult
from goose_like.core.output_limit import limit_text
from goose_like.core.tool import Tool, current_call

from .journal import Journal
from .tool_call import CallOutcome, call_tool

WARN_EQUAL_FAILURES = 3


async def run_tools(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], journal: Journal, output_limit_bytes: int
) -> None:
    """Run calls in parallel, except exclusive tools, and emit their results.

    Raises:
        SessionError: a result cannot be written.
    """
    for batch in _split_batches(calls, tools):
        try:
            async with asyncio.TaskGroup() as group:
                for call in batch:
                    group.create_task(_run_tool(call, tools, journal, output_limit_bytes))
        except BaseExceptionGroup as errors:  # tools never raise, but the journal may
            raise errors.exceptions[0] from None


def _split_batches(calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> Iterator[list[ToolCall]]:
    batch: list[ToolCall] = []
    for call in calls:
        if call.name in tools and tools[call.name].options.exclusive:
            yield batch
            yield [call]
            batch = []
        else:
            batch.append(call)
    yield batch


async def _run_tool(call: ToolCall, tools: Mapping[str, Tool], journal: Journal, output_limit_bytes: int) -> None:
    """Run one call. For a remote tool, only check the arguments: a valid call stays open for the client."""
    is_remote = call.name in tools and tools[call.name].options.remote
    if not is_remote:
        journal.emit(ToolStarted(call=call))
    current_call.set(call.id)
    outcome = await call_tool(tools, call)
    if is_remote:
        if not outcome.is_error:
            return
        journal.emit(ToolStarted(call=call))
    journal.emit(ToolFinished(result=_create_result(call, outcome, journal, output_limit_bytes)))


def _create_result(call: ToolCall, outcome: CallOutcome, journal: Journal, output_limit_bytes: int) -> ToolResult:
    session = journal.session
    output = limit_text(outcome.output, session.output_path(call.id), output_limit_bytes)
    failures = journal.history.failures.get((call.name, call.arguments), 0) + 1
    if outcome.is_error and failures >= WARN_EQUAL_FAILURES:
        output += f"\n[this very call has failed {failures} times; do something else, or say what you need]"
    images = (save_image(outcome.image.data, outcome.image.source, session.outputs),) if outcome.image else ()
    return ToolResult(
        call_id=call.id,
        output=output,
        is_error=outcome.is_error,
        images=images,
        replacement=outcome.replacement[:output_limit_bytes] if outcome.replacement is not None else None,
        is_final=outcome.is_final,
    )
