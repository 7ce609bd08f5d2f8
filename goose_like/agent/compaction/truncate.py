"""A conversation made shorter without a model: long old results become a line, then the oldest steps are left out."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from goose_like.core.events import Compacted
from goose_like.core.history import History, estimate_tokens
from goose_like.core.message import Message, ToolResult

NOTES = "[Notes on what was said and done before]"
"""What a summary by a model begins with."""

GAIN = 0.2
"""A conversation that is not made shorter by this share is left as it is: what stands before it is cached."""

FIRST_WORDS_CHARACTERS = 8_000
"""How much of the first request is said again: a pasted file must not fill the window a second time."""

CHARACTERS_A_TOKEN = 3
LATER_WORDS_TOKENS = 1_000
NOTES_CHARACTERS = 16_000
_LONG_CHARACTERS = 1_500
_SPARED_STEPS = 3

Keep = Callable[[ToolResult], str]
"""Sees to it that a result's whole output lies in a file, and gives that file's path."""


def shorter(history: History, target_tokens: int, keep: Keep) -> Compacted | None:
    """The event after which the context has about `target_tokens`; None when less than a fifth would be gained.

    First, results that are long become a line with the path where they lie, but for those of the newest steps, then of
    the newest one. If that is not enough, the oldest steps are left out whole, never a call without its result. What
    the person asked first and the plan are said again.
    """
    own = history.messages[history.kept_from :]
    summary = history.summary.text if history.summary else ""
    before = sum(map(estimate_tokens, history.context))
    # The vendor counts otherwise than we do, and counts prompt and tools as well.
    target = int(target_tokens * before / max(history.tokens, before, 1))
    for spared in (_SPARED_STEPS, 1):
        elided = dict(_elided(own, spared, keep, history.elided))
        sizes = [estimate_tokens(message.to_be_kept(history.elided | elided)) for message in own]
        kept = len(own)
        if (size := sum(sizes) + _tokens(summary)) <= target:
            break
    else:
        kept = _newest(own, sizes, target - FIRST_WORDS_CHARACTERS // 4)
        summary = left_out(history, len(history.messages) - kept)
        size = sum(sizes[len(own) - kept :]) + _tokens(summary)
    return Compacted(summary=summary, kept=kept, elided=elided) if size <= before * (1 - GAIN) else None


def left_out(history: History, count: int) -> str:
    """What stands in the place of the oldest `count` messages: with notes on them, where a model wrote some."""
    former = history.summary.text if history.summary else ""
    parts = [
        f"[The oldest {count} messages of this conversation are left out here because the window was full.]",
        former[:NOTES_CHARACTERS] if former.startswith(NOTES) else first_words(history),
        newest_words(history, count, LATER_WORDS_TOKENS),
        plan_so_far(history),
    ]
    return "\n\n".join(filter(None, parts))


def first_words(history: History) -> str:
    """The person's first request, said again."""
    first = history.messages[history.said[0]].text if history.said else ""
    cut = " [...]" if len(first) > FIRST_WORDS_CHARACTERS else ""
    return f"It began with this request:\n{first[:FIRST_WORDS_CHARACTERS]}{cut}" if first else ""


def newest_words(history: History, end: int, limit_tokens: int) -> str:
    """What the person said later than the first request and before message `end`, as far back as there is room.

    Of the newest there is always something.
    """
    lines: list[str] = []
    room = limit_tokens * CHARACTERS_A_TOKEN
    for place in reversed([place for place in history.said[1:] if place < end]):
        line = f"- {history.messages[place].text}"
        if len(line) > room:
            if not lines:
                lines.append(f"{line[:room]} [...]")
            break
        room -= len(line)
        lines.append(line)
    return "Later the person said, word for word:\n" + "\n".join(reversed(lines)) if lines else ""


def plan_so_far(history: History) -> str:
    """The plan as the model reads it: what is done and what is open."""
    lines = "\n".join(f"- [{task.status}] {task.description}" for task in history.plan)
    return f"The plan so far:\n{lines}" if lines else ""


def _tokens(summary: str) -> int:
    return estimate_tokens(Message.user(summary)) if summary else 0


def _newest(messages: Sequence[Message], sizes: Sequence[int], room: int) -> int:
    """How many of the newest fit, at least one whole step."""
    kept, size, has_step = 0, 0, False
    for count, message in enumerate(reversed(messages), 1):
        size += sizes[-count]
        if size > room and has_step:
            break
        has_step |= message.role == "assistant"
        if message.role != "tool":
            kept = count
    return kept


def _elided(
    messages: Sequence[Message], spared: int, keep: Keep, known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    steps = [place for place, message in enumerate(messages) if message.role == "assistant"]
    end = steps[-spared] if len(steps) >= spared else 0
    for result in (result for message in messages[:end] for result in message.tool_results):
        if len(result.output) > _LONG_CHARACTERS and result.call_id not in known:
            yield result.call_id, _line(result, keep(result))


def _line(result: ToolResult, path: str) -> str:
    lines = result.output.splitlines()
    return f"{lines[0][:200]}\n[{len(lines):,} lines, left out here since; all of it is in {path}]"
