"""Truncation without a model: long old results become one line, then the oldest steps are left out."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from goose_like.core.events import Compacted
from goose_like.core.history import History, estimate_tokens
from goose_like.core.message import Message, ToolResult

SUMMARY_HEADING = "[Notes on what was said and done before]"
"""The first line of a summary by a model."""

MIN_GAIN = 0.2
"""The smallest share worth saving: a change of the context costs the vendor's prompt cache."""

FIRST_REQUEST_CHARS = 8_000
"""The repeated part of the first request. A pasted file must not fill the window a second time."""

CHARS_PER_TOKEN = 3
LATER_REQUESTS_TOKENS = 1_000
SUMMARY_CHARS = 16_000
_LONG_RESULT_CHARS = 1_500
_FIRST_LINE_CHARS = 200
_SPARED_STEPS = 3

SaveResult = Callable[[ToolResult], str]
"""Saves the complete output of a result in a file and returns the path."""


def truncate_history(history: History, target_tokens: int, save_result: SaveResult) -> Compacted | None:
    """Create the event that shortens the context to about `target_tokens`. Return None when it would save too little.

    First, long results become one line with the path of the complete output, except in the newest three steps, then
    except in the newest step. Then the oldest steps go, never a call without its result. The summary repeats the first
    request and the plan.
    """
    own = history.messages[history.kept_start :]
    summary = history.summary.text if history.summary else ""
    before = sum(map(estimate_tokens, history.context))
    # Vendors count differently, and include the prompt and the tools.
    target = int(target_tokens * before / max(history.context_tokens, before, 1))
    for spared in (_SPARED_STEPS, 1):
        replacements = dict(_shorten_results(own, spared, save_result, history.replacements))
        sizes = [estimate_tokens(message.strip_thinking(history.replacements | replacements)) for message in own]
        kept_count = len(own)
        if (size := sum(sizes) + _count_tokens(summary)) <= target:
            break
    else:
        kept_count = count_newest(own, sizes, target - FIRST_REQUEST_CHARS // 4, at_least_a_step=True)
        summary = describe_left_out(history, len(history.messages) - kept_count)
        size = sum(sizes[len(own) - kept_count :]) + _count_tokens(summary)
    if size > before * (1 - MIN_GAIN):
        return None
    return Compacted(summary=summary, kept_count=kept_count, replacements=replacements)


def describe_left_out(history: History, count: int) -> str:
    """Write the summary that replaces the oldest `count` messages and keeps the notes of an earlier summary."""
    former = history.summary.text if history.summary else ""
    parts = [
        f"[The oldest {count} messages of this conversation are left out here because the window was full.]",
        former[:SUMMARY_CHARS] if former.startswith(SUMMARY_HEADING) else quote_first_request(history),
        quote_later_requests(history, count, LATER_REQUESTS_TOKENS),
        format_plan(history),
    ]
    return "\n\n".join(filter(None, parts))


def quote_first_request(history: History) -> str:
    """Quote the user's first request."""
    indexes = history.user_message_indexes
    first = history.messages[indexes[0]].text if indexes else ""
    cut = " [...]" if len(first) > FIRST_REQUEST_CHARS else ""
    return f"It began with this request:\n{first[:FIRST_REQUEST_CHARS]}{cut}" if first else ""


def quote_later_requests(history: History, end: int, limit_tokens: int) -> str:
    """Quote the user's messages after the first and before message `end`, the newest ones up to the limit.

    At least the start of the newest one is included.
    """
    lines: list[str] = []
    room = limit_tokens * CHARS_PER_TOKEN
    for index in reversed([index for index in history.user_message_indexes[1:] if index < end]):
        line = f"- {history.messages[index].text}"
        if len(line) > room:
            if not lines:
                lines.append(f"{line[:room]} [...]")
            break
        room -= len(line)
        lines.append(line)
    return "Later the person said, word for word:\n" + "\n".join(reversed(lines)) if lines else ""


def format_plan(history: History, title: str = "The plan so far") -> str:
    """Format the plan for the model, with the status of each task."""
    lines = "\n".join(f"- [{task.status}] {task.description}" for task in history.plan)
    return f"{title}:\n{lines}" if lines else ""


def count_newest(messages: Sequence[Message], sizes: Sequence[int], room: int, *, at_least_a_step: bool = False) -> int:
    """Count the newest messages that fit into the room and do not begin with a result. The count may be zero."""
    kept, size, may_stop = 0, 0, not at_least_a_step
    for count, message in enumerate(reversed(messages), 1):
        size += sizes[-count]
        if size > room and may_stop:
            break
        may_stop |= message.role == "assistant"
        if message.role != "tool":
            kept = count
    return kept


def _count_tokens(summary: str) -> int:
    return estimate_tokens(Message.user(summary)) if summary else 0


def _shorten_results(
    messages: Sequence[Message], spared: int, save_result: SaveResult, known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    steps = [index for index, message in enumerate(messages) if message.role == "assistant"]
    end = steps[-spared] if len(steps) >= spared else 0
    for result in (result for message in messages[:end] for result in message.tool_results):
        if len(result.output) > _LONG_RESULT_CHARS and result.call_id not in known:
            yield result.call_id, _shorten(result, save_result(result))


def _shorten(result: ToolResult, path: str) -> str:
    lines = result.output.splitlines()
    return f"{lines[0][:_FIRST_LINE_CHARS]}\n[{len(lines):,} lines, left out here since; all of it is in {path}]"
