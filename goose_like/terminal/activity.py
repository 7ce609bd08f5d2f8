"""Work in progress in one line: a subagent, or all running calls."""

from collections import Counter
from collections.abc import Iterable

from rich.text import Text

from goose_like.core.spelling import format_count

from .escape import to_one_line
from .tool_call import RunningCall, describe_call

_MIN_STEP_COLUMNS = 10


def format_subagent(running: RunningCall, width: int) -> Text:
    """Return one line for a subagent: its task, the number of its calls, and the newest one."""
    mark = f"▸{running.number} "
    name = running.call.name
    room = width - len(mark) - len(name) - 4
    steps = _describe_steps(running)
    task = describe_call(running.call, max(room // 2, room - len(steps) - 3))
    line = Text.assemble((mark, "cyan"), (name, "bold"), f"  {task}")
    if steps:
        step_room = max(room - len(task) - 3, _MIN_STEP_COLUMNS)
        line.append(f" · {to_one_line(steps, step_room)}", "dim")
    return line


def _describe_steps(running: RunningCall) -> str:
    """Return the number of a subagent's calls, and the newest one or the thing that the subagent waits for."""
    lines = [*running.head, *running.newest]
    newest = lines[-1] if lines else ""
    if running.status:
        newest = running.status
    if running.is_asking:
        newest = running.state
    calls = ""
    if running.call_count:
        calls = format_count(running.call_count, "call")
    return " · ".join(filter(None, [calls, newest]))


def describe_calls(calls: Iterable[RunningCall]) -> str:
    """Return the thing that each call waits for. Calls of one tool are counted."""
    counts = Counter(f"{running.state}: {running.call.name}" for running in calls)
    parts = []
    for text, count in counts.items():
        if count > 1:
            text = f"{text} ({count})"
        parts.append(text)
    return ", ".join(parts)
