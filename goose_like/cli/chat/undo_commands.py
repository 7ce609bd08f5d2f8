"""The slash commands `/undo`, `/rewind` and `/diff`."""

from collections.abc import Iterable
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import UsageError
from goose_like.core.history import Turn
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.renderer import number_diff_lines
from goose_like.workspace.undo.restore import FileChange, RestorePlan

_EFFECTS = {"restore": "is restored", "remove": "is removed", "recreate": "is created again"}
_SCOPES = {"f": "files", "c": "conversation", "b": "both"}
_MAX_LISTED = 30
_NO_RECORD = "file changes of this session are not recorded"


def _list_turn_numbers(context: SlashContext) -> Iterable[str]:
    return (str(turn.number) for turn in context.exchange.history.turns)


@command(usage="[files|conversation|both]", choices=lambda context: _SCOPES.values())
async def undo(context: SlashContext, words: str) -> None:
    """Undo your last message and its effects: files, conversation, or both."""
    if not context.exchange.history.turns:
        raise UsageError("there is nothing to undo")
    await _go_back(context, context.exchange.history.turns[-1], words)


@command(usage="[N [files|conversation|both]]", choices=_list_turn_numbers)
async def rewind(context: SlashContext, words: str) -> None:
    """Go back to before message N; without a number, list your messages."""
    history = context.exchange.history
    number, _, scope = words.partition(" ")
    if not number:
        table = Table(box=None, pad_edge=False, show_header=False)
        for turn in history.turns:
            table.add_row(str(turn.number), to_one_line(_get_message(context, turn), 80))
        context.show(table if history.turns else "there are no messages yet")
        return
    turns = [turn for turn in history.turns if str(turn.number) == number]
    if not turns:
        raise UsageError(f"no message {number!r}; /rewind lists the messages")
    await _go_back(context, turns[0], scope.strip())


@command(usage="[N]", choices=_list_turn_numbers)
async def diff(context: SlashContext, words: str) -> None:
    """Show file changes of this session since message N [since its start]."""
    number = int(words) if words.isdecimal() else 1
    plan = await _plan_restore(context, number)
    if plan is None or not plan.changes:
        context.show("no file has changed" if plan else _NO_RECORD)
        return
    for change in plan.changes:
        done = replace(change, now=change.target, target=change.now)  # the plan describes the way back
        context.show(Text(_format_path(context, change), "bold"))
        for line in number_diff_lines(escape_controls(plan.format_diff(done))):
            context.show(line)


async def _go_back(context: SlashContext, turn: Turn, scope: str) -> None:
    """Show the effects, ask for the scope unless it is given, and go back."""
    if scope and scope not in _SCOPES.values():
        raise UsageError(f"unknown scope {scope!r}; choose one of: {', '.join(_SCOPES.values())}")
    plan = await _plan_restore(context, turn.number)
    context.show(f"back to before: {to_one_line(_get_message(context, turn), 80)}")
    _show_effects(context, plan)
    scope = scope or await _ask_scope(context)
    if not scope:
        context.show("nothing was changed")
        return
    if scope != "conversation" and plan is not None:
        await _restore(context, plan)
    if scope != "files":
        message = _get_message(context, turn)
        context.exchange.rewind(turn.start)
        context.set_input(message)
    context.show(f"back to before message {turn.number}: {scope}")


def _show_effects(context: SlashContext, plan: RestorePlan | None) -> None:
    if plan is None:
        context.show(f"{_NO_RECORD}; only the conversation can go back")
        return
    if not plan.changes:
        context.show("no file would change")
    for change in plan.changes[:_MAX_LISTED]:
        edited = "  (also changed by someone else)" if change.is_edited else ""
        context.show(
            Text(f"  {_format_path(context, change)} {_EFFECTS[change.kind]}{edited}", "yellow" if edited else "")
        )
    if len(plan.changes) > _MAX_LISTED:
        context.show(f"  and {len(plan.changes) - _MAX_LISTED} more")


async def _ask_scope(context: SlashContext) -> str:
    """Return the scope that the person chooses, or an empty string."""
    typed = (await context.ask("  [b]oth  [f]iles  [c]onversation  [N]o: ")).strip().lower()
    return _SCOPES.get(typed, typed if typed in _SCOPES.values() else "")


async def _restore(context: SlashContext, plan: RestorePlan) -> None:
    """Restore the files; ask about each file that someone else changed too, with a diff of what would be lost."""
    overwrite = set()
    for change in plan.changes:
        if change.is_edited and await _confirm_overwrite(context, plan, change):
            overwrite.add(change.path)
    assert context.exchange.undo
    for problem in await context.exchange.undo.restore(plan, frozenset(overwrite)):
        context.show(problem)


async def _confirm_overwrite(context: SlashContext, plan: RestorePlan, change: FileChange) -> bool:
    context.show(Text(f"{_format_path(context, change)} was also changed by someone else:", "bold yellow"))
    for line in number_diff_lines(escape_controls(plan.format_diff(change))):
        context.show(line)
    return (await context.ask("  overwrite it anyway? [y]es  [N]o: ")).strip().lower() in ("y", "yes")


async def _plan_restore(context: SlashContext, number: int) -> RestorePlan | None:
    return await context.exchange.undo.plan_restore(number) if context.exchange.undo else None


def _format_path(context: SlashContext, change: FileChange) -> str:
    """Return a path as the person would write it."""
    root = context.exchange.workspace.root
    return escape_controls(str(change.path.relative_to(root) if change.path.is_relative_to(root) else change.path))


def _get_message(context: SlashContext, turn: Turn) -> str:
    return context.exchange.history.messages[turn.start].first_text
