"""`/undo`, `/rewind` and `/diff`: back to before a message, for files, for the conversation, or for both."""

from collections.abc import Iterable
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import Desk
from goose_like.core.errors import UsageError
from goose_like.core.history import Turn
from goose_like.terminal.escape import one_line, visible
from goose_like.terminal.renderer import numbered
from goose_like.workspace.undo.restore import Change, Reversal

_KINDS = {"restore": "is put back", "remove": "is removed", "recreate": "is made again"}
_SCOPES = {"f": "files", "c": "conversation", "b": "both"}
_SHOWN = 30


def _turn_numbers(desk: Desk) -> Iterable[str]:
    return (str(turn.number) for turn in desk.exchange.history.turns)


@command(usage="[files|conversation|both]", choices=lambda desk: _SCOPES.values())
async def undo(desk: Desk, words: str) -> None:
    """Take back your last message and what came of it: files, conversation, or both."""
    if not desk.exchange.history.turns:
        raise UsageError("there is nothing to take back")
    await _go_back(desk, desk.exchange.history.turns[-1], words)


@command(usage="[N [files|conversation|both]]", choices=_turn_numbers)
async def rewind(desk: Desk, words: str) -> None:
    """Go back to before message N; without a number: list your messages."""
    history = desk.exchange.history
    number, _, scope = words.partition(" ")
    if not number:
        table = Table(box=None, pad_edge=False, show_header=False)
        for turn in history.turns:
            table.add_row(str(turn.number), one_line(_words_of(desk, turn), 80))
        desk.show(table if history.turns else "nothing was said yet")
        return
    found = [turn for turn in history.turns if str(turn.number) == number]
    if not found:
        raise UsageError(f"no message {number!r} stands; `/rewind` lists them")
    await _go_back(desk, found[0], scope.strip())


@command(usage="[N]", choices=_turn_numbers)
async def diff(desk: Desk, words: str) -> None:
    """Show what this session changed of files, since message N [since its beginning]."""
    number = int(words) if words.isdecimal() else 1
    plan = await _plan(desk, number)
    if plan is None or not plan.changes:
        desk.show("no file stands otherwise" if plan else "what this session changed of files is not kept")
        return
    for change in plan.changes:
        done = replace(change, now=change.target, target=change.now)  # what is kept is the way back
        desk.show(Text(_name(desk, change), "bold"))
        for line in numbered(visible(plan.difference(done))):
            desk.show(line)


async def _go_back(desk: Desk, turn: Turn, scope: str) -> None:
    """Shows what would change, asks, and does it."""
    if scope and scope not in _SCOPES.values():
        raise UsageError(f"{scope!r} is none of: {', '.join(_SCOPES.values())}")
    plan = await _plan(desk, turn.number)
    desk.show(f"back to before: {one_line(_words_of(desk, turn), 80)}")
    _show(desk, plan)
    scope = scope or await _scope(desk)
    if not scope:
        desk.show("nothing was changed")
        return
    if scope != "conversation" and plan is not None:
        await _restore(desk, plan)
    if scope != "files":
        said = _words_of(desk, turn)
        desk.exchange.rewind(turn.start)
        desk.put(said)
    desk.show(f"back to before message {turn.number}: {scope}")


def _show(desk: Desk, plan: Reversal | None) -> None:
    if plan is None:
        desk.show("what this session changed of files is not kept; only the conversation can go back")
        return
    if not plan.changes:
        desk.show("no file would change")
    for change in plan.changes[:_SHOWN]:
        edited = "  (somebody else changed it, too)" if change.is_edited else ""
        desk.show(Text(f"  {_name(desk, change)} {_KINDS[change.kind]}{edited}", "yellow" if edited else ""))
    if len(plan.changes) > _SHOWN:
        desk.show(f"  and {len(plan.changes) - _SHOWN} more")


async def _scope(desk: Desk) -> str:
    """What the person wants to go back; empty for nothing."""
    typed = (await desk.ask("  [b]oth  [f]iles  [c]onversation  [N]o: ")).strip().lower()
    return _SCOPES.get(typed, typed if typed in _SCOPES.values() else "")


async def _restore(desk: Desk, plan: Reversal) -> None:
    """Files that somebody else changed are asked about, one by one, with what would be lost."""
    overwrite = set()
    for change in plan.changes:
        if change.is_edited and await _is_given_up(desk, plan, change):
            overwrite.add(change.path)
    assert desk.exchange.undo
    for sentence in await desk.exchange.undo.restore(plan, frozenset(overwrite)):
        desk.show(sentence)


async def _is_given_up(desk: Desk, plan: Reversal, change: Change) -> bool:
    desk.show(Text(f"{_name(desk, change)} was changed by somebody else, too:", "bold yellow"))
    for line in numbered(visible(plan.difference(change))):
        desk.show(line)
    return (await desk.ask("  overwrite it all the same? [y]es  [N]o: ")).strip().lower() in ("y", "yes")


async def _plan(desk: Desk, number: int) -> Reversal | None:
    return await desk.exchange.undo.plan(number) if desk.exchange.undo else None


def _name(desk: Desk, change: Change) -> str:
    """A path as the person would write it."""
    root = desk.exchange.workspace.root
    return visible(str(change.path.relative_to(root) if change.path.is_relative_to(root) else change.path))


def _words_of(desk: Desk, turn: Turn) -> str:
    return desk.exchange.history.messages[turn.start].first_text
