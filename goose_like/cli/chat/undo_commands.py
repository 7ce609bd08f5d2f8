"""Slash commands that go back: undo, rewind, and the changes since a message."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions
from rich.text import Text

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import UsageError
from goose_like.core.history import Turn
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.renderer import number_diff_lines
from goose_like.terminal.wrap import ConsoleLines
from goose_like.workspace.undo.restore import FileChange, RestorePlan

from .slash_commands import show_rows
from .startup import has_prompt

_EFFECTS = {
    "restore": "is restored",
    "remove": "is removed",
    "recreate": "is created again",
    "lost": "can't be put back: its content was not kept, it was too large or unreadable",
}
_UNDO_THE_UNDO = "undo the undo"
_SCOPES = {"f": "files", "c": "conversation", "b": "both"}
_ANSWERS = {**_SCOPES, "u": _UNDO_THE_UNDO}
_MAX_ASKED = 5  # more files than this share one question
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


@command
async def redo(context: SlashContext, words: str) -> None:
    """Undo the last undo: bring back the files that /undo or /rewind changed."""
    plan = await _plan_redo(context)
    if plan is None:
        raise UsageError("there is no undo to take back since your last message")
    await _undo_the_undo(context, plan)


@command(usage="[N [files|conversation|both]]", choices=_list_turn_numbers)
async def rewind(context: SlashContext, words: str) -> None:
    """Go back to before message N; without a number, choose a message from a list."""
    turns = {str(turn.number): turn for turn in context.exchange.history.turns}
    number, _, scope = words.partition(" ")
    if not number and turns and has_prompt():
        from .pickers import pick_turn  # imported here: few sessions use it

        number = str(await pick_turn(context) or "")
        if not number:
            return
    if not number:
        rows = []
        for number, turn in turns.items():
            rows.append((number, to_one_line(_get_message(context, turn), 80)))
        show_rows(context, rows, "there are no messages yet")
    elif number in turns:
        await _go_back(context, turns[number], scope.strip())
    else:
        raise UsageError(f"no message {number!r}; /rewind lists the messages")


@command(usage="[N]", choices=_list_turn_numbers)
async def diff(context: SlashContext, words: str) -> None:
    """Show file changes of this session since message N [since its start]."""
    number = int(words) if words.isdecimal() else 1
    plan = await _plan_restore(context, number)
    if plan is None:
        context.show(_NO_RECORD)
        return
    if head := await plan.describe_head():
        context.show(head)
    changes = [change for change in plan.changes if not change.is_of_git]
    if not changes:
        context.show("no file has changed")
    for change in changes:
        done = replace(change, now=change.target, target=change.now)  # the plan describes the way back
        await _show_change(context, plan, done, Text(_format_path(context, change), "bold"))


async def _go_back(context: SlashContext, turn: Turn, scope: str) -> None:
    if scope and scope not in _SCOPES.values():
        raise UsageError(f"unknown scope {scope!r}; choose one of: {', '.join(_SCOPES.values())}")
    plan = await _plan_restore(context, turn.number)
    redo = None
    if plan and not plan.changes:
        redo = await _plan_redo(context)
    message = _get_message(context, turn)
    context.show(f"back to before: {to_one_line(message, 80)}")
    if scope != "conversation":
        _show_effects(context, plan)
    if not scope or (scope == "files" and redo):
        scope = await _choose_scope(context, scope, plan, redo)
    if scope == _UNDO_THE_UNDO and redo:
        await _undo_the_undo(context, redo)
        return
    if scope not in _SCOPES.values():
        context.show("nothing was changed")
        return
    await _apply_scope(context, scope, turn, plan)


async def _apply_scope(context: SlashContext, scope: str, turn: Turn, plan: RestorePlan | None) -> None:
    """Take back the files, the conversation, or both."""
    takes_files = scope != "conversation"
    if takes_files and plan is not None:
        await _restore(context, plan)
    if scope != "files":
        _rewind_conversation(context, turn)
    done = f"back to before message {turn.number}: {scope}"
    if takes_files and await _plan_redo(context):
        done += "; /redo undoes the undo"
    context.show(done)


def _rewind_conversation(context: SlashContext, turn: Turn) -> None:
    """Take back the conversation from a turn on, and put its message into the input line, as the person typed it."""
    message = _get_message(context, turn)
    context.exchange.rewind(turn.start)
    last = context.last_request
    if last and last.line and last.text == message:
        context.set_input(last.line)
    else:
        context.set_input(message)


async def _choose_scope(context: SlashContext, scope: str, plan: RestorePlan | None, redo: RestorePlan | None) -> str:
    """Ask what goes back. Where the files are back already, offer to undo that."""
    keys = []
    if redo:
        keys.append("[u]ndo the undo")
    elif plan and plan.changes:
        keys += ["[b]oth", "[f]iles"]
    if not scope:
        keys.append("[c]onversation")
    label = "  ".join([*keys, "[N]o"])
    answer = await context.ask(f"  {label}: ")
    typed = answer.strip().lower()
    return _ANSWERS.get(typed, typed)


async def _plan_redo(context: SlashContext) -> RestorePlan | None:
    """Plan to undo the last undo; None if there is nothing to bring back."""
    if context.exchange.undo is None:
        return None
    plan = await context.exchange.undo.plan_redo()
    if plan is None or not plan.changes:
        return None
    return plan


async def _undo_the_undo(context: SlashContext, plan: RestorePlan) -> None:
    _show_effects(context, plan)
    await _restore(context, plan)
    context.show("the files are as before the undo; /redo switches again")


def _show_effects(context: SlashContext, plan: RestorePlan | None) -> None:
    if plan is None:
        context.show(f"{_NO_RECORD}; only the conversation can go back")
        return
    if not plan.changes:
        context.show("no file would change")
    for change in plan.changes[:_MAX_LISTED]:
        effect = f"  {_format_path(context, change)} {_EFFECTS[change.kind]}"
        if change.is_edited:
            context.show(Text(f"{effect}  (also changed by someone else)", "yellow"))
        else:
            context.show(Text(effect))
    _show_rest(context, plan.changes)


async def _restore(context: SlashContext, plan: RestorePlan) -> None:
    """Restore the files, also those that someone else changed too if the person says so."""
    edited = [change for change in plan.changes if change.is_edited]
    if len(edited) > _MAX_ASKED:
        overwritten = await _ask_about_all(context, edited)
    else:
        overwritten = await _ask_about_each(context, plan, edited)
    assert context.exchange.undo
    paths = frozenset(change.path for change in overwritten)
    problems = await context.exchange.undo.restore(plan, paths)
    for problem in problems[:_MAX_LISTED]:
        context.show(problem)
    _show_rest(context, problems)


async def _ask_about_all(context: SlashContext, changes: list[FileChange]) -> list[FileChange]:
    """Return the changes, if the person allows to overwrite all of these files."""
    context.show(Text(f"{len(changes):,} files were also changed by someone else:", "bold yellow"))
    for change in changes[:_MAX_LISTED]:
        context.show(f"  {_format_path(context, change)}")
    _show_rest(context, changes)
    if not await _may_overwrite(context, "them all"):
        return []
    return changes


async def _ask_about_each(context: SlashContext, plan: RestorePlan, changes: list[FileChange]) -> list[FileChange]:
    """Show the diff of each file, and return the changes whose files the person allows to overwrite."""
    allowed = []
    for change in changes:
        title = f"{_format_path(context, change)} was also changed by someone else:"
        await _show_change(context, plan, change, Text(title, "bold yellow"))
        if await _may_overwrite(context, "it"):
            allowed.append(change)
    return allowed


async def _may_overwrite(context: SlashContext, what: str) -> bool:
    typed = await context.ask(f"  overwrite {what} anyway? [y]es  [N]o: ")
    return typed.strip().lower() in ("y", "yes")


def _show_rest(context: SlashContext, listed: Sequence[object]) -> None:
    hidden_count = len(listed) - _MAX_LISTED
    if hidden_count > 0:
        context.show(f"  and {hidden_count:,} more")


@dataclass(frozen=True)
class _NumberedDiff:
    """A unified diff with line numbers, which Rich renders for the width of its console."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for line in number_diff_lines(self.text, ConsoleLines(console)):
            yield Text.assemble(*line)


async def _show_change(context: SlashContext, plan: RestorePlan, change: FileChange, title: Text) -> None:
    context.show(title)
    text = await plan.format_diff(change)
    context.show(_NumberedDiff(escape_controls(text)))


async def _plan_restore(context: SlashContext, number: int) -> RestorePlan | None:
    if context.exchange.undo is None:
        return None
    return await context.exchange.undo.plan_restore(number)


def _format_path(context: SlashContext, change: FileChange) -> str:
    """Return the path of a file, relative to the workspace if the file is in it."""
    path = change.path
    root = context.exchange.workspace.root
    if path.is_relative_to(root):
        path = path.relative_to(root)
    return escape_controls(str(path)).replace("\n", r"\n")


def _get_message(context: SlashContext, turn: Turn) -> str:
    return context.exchange.history.messages[turn.start].first_text
