"""The slash command `/tasks`: processes and subagents that run beside the conversation."""

import asyncio
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.toolkit import RunningTask
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.terminal.escape import escape_controls, to_one_line

_LISTED_LINES = 3
_SHOWN_LINES = 20
_MAX_CHARS = 200


def _list_choices(context: SlashContext) -> Iterable[tuple[str, str]]:
    tasks = context.exchange.hooks.list_running_tasks()
    for start in ("", "stop "):
        for task in tasks:
            yield f"{start}{task.name}", to_one_line(task.title, 60)


@command(usage="[NAME | stop NAME]", anytime=True, choices=_list_choices)
async def tasks(context: SlashContext, words: str) -> None:
    """Show running processes and subagents with their last output, or stop one."""
    running = {task.name: task for task in context.exchange.hooks.list_running_tasks()}
    action, _, rest = words.partition(" ")
    name = rest.strip() if action == "stop" else words
    if not running:
        context.show("nothing runs in the background")
    elif not words:
        for task in running.values():
            _show_task(context, task, _LISTED_LINES)
        context.show("/tasks NAME shows more, /tasks stop NAME ends it")
    elif name not in running:
        raise UsageError(f"nothing named {name!r} runs; {did_you_mean(name, running)}")
    elif action == "stop":
        await running[name].stop()
        context.show(f"stopped {name}: {to_one_line(running[name].title, _MAX_CHARS)}")
    else:
        _show_task(context, running[name], _SHOWN_LINES)


def _show_task(context: SlashContext, task: RunningTask, line_count: int) -> None:
    now = asyncio.get_running_loop().time()
    age = _format_age(now - task.started_at)
    title = to_one_line(task.title, _MAX_CHARS)
    rows = Table.grid()
    rows.add_column(no_wrap=True, overflow="ellipsis")
    head = Text.assemble((task.name, "bold"), (f" · {age}", "dim"))
    rows.add_row(head.append(f"  {title}"))
    lines = escape_controls(task.get_tail()).rstrip("\n").split("\n")
    for line in lines[-line_count:]:
        if line:
            rows.add_row(Text(f"  │ {to_one_line(line, _MAX_CHARS)}", "dim"))
    context.show(rows)


def _format_age(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
