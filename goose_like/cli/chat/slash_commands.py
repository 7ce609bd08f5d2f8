"""The built-in slash commands. To add one, write a function here and a line in `config/entry_points.py`."""

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from goose_like.agent.mentions import format_mention
from goose_like.agent.profile_choice import keep_folders, keep_instructions, keep_modes, restrict_profile
from goose_like.agent.slash_command import SlashCommand, command
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.turn_request import TurnRequest
from goose_like.cli.commands.doctor import diagnose
from goose_like.cli.commands.session_actions import MAX_LISTED, format_age, write_export
from goose_like.config.paths import expand_home, find_main_folder, shorten_home
from goose_like.config.profile_loader import load_profile
from goose_like.core.errors import UsageError
from goose_like.core.events import PlanUpdated
from goose_like.core.history import History
from goose_like.core.message import Usage, join_answers
from goose_like.core.spelling import format_count
from goose_like.launch.command_line import list_profile_names
from goose_like.launch.modes import choose_model, confirm_mode, describe_mode
from goose_like.launch.worktree import find_session_folder
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.fork import fork as fork_session
from goose_like.sessions.index import find_session, list_sessions, rename_session
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.input import KEY_HELP
from goose_like.terminal.renderer import format_usage

from .completer import list_model_choices, list_session_choices
from .startup import has_prompt

_PATH_AND_REST = re.compile(r'(?:"(?P<quoted>[^"\n]+)"|(?P<bare>\S+))\s*(?P<rest>.*)', re.DOTALL)


@command(anytime=True)
def show_help(context: SlashContext, words: str) -> None:
    """Show the keys and commands."""
    show_rows(context, KEY_HELP)
    rows = []
    for _, listed in sorted(context.commands.items()):
        usage = f"/{listed.name} {listed.usage}".rstrip()
        rows.append((usage, _describe_command(listed)))
    show_rows(context, rows)


def _describe_command(listed: SlashCommand) -> Text:
    text = Text(escape_controls(listed.summary), overflow="fold")
    if listed.source:
        text.append(f"  {escape_controls(shorten_home(listed.source))}", "dim")
    return text


def show_rows(context: SlashContext, rows: Iterable[Sequence[str | Text]], otherwise: str = "") -> None:
    """Show a table without a head, or the text `otherwise` if there are no rows."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in rows:
        table.add_row(*row)
    context.show(table if table.rows else otherwise)


@command(anytime=True)
def plan(context: SlashContext, words: str) -> None:
    """Show the plan."""
    lines = []
    for task in context.exchange.history.plan:
        lines.append(f"{task.mark} {escape_controls(task.description)}")
    context.show("\n".join(lines) or "there is no plan; /mode plan starts with one")


@command(usage="[PROVIDER:MODEL]", choices=list_model_choices)
async def model(context: SlashContext, words: str) -> None:
    """Switch to another model; without a name, choose one from a list."""
    models = context.exchange.models
    if not words and has_prompt():
        from .pickers import pick_model  # imported here, like all lists: few sessions use them

        words = await pick_model(context) or ""
        if words in ("", models.processor.label):
            return
    if words:
        context.switch_session(profile=await choose_model(context, words))
    else:
        context.show(f"processor    {models.processor.label}\naccelerator  {models.accelerator.label}")
        show_rows(context, list_model_choices(context))


@command(usage="[NAME]", choices=lambda context: list_profile_names())
async def profile(context: SlashContext, words: str) -> None:
    """Switch to another profile; without a name, choose one from a list."""
    current = context.profile.name
    if not words and has_prompt():
        from .pickers import pick_profile

        words = await pick_profile(context) or ""
        if words in ("", current):
            return
    if words:
        chosen, _ = load_profile(words)
        session = context.exchange.session
        kept = keep_folders(restrict_profile(chosen, context.profile), session)
        if not chosen.instructions:
            kept = keep_instructions(kept, session)
        if kept.approval != chosen.approval or kept.sandbox != chosen.sandbox:
            context.show(f"the stricter mode stays: {describe_mode(kept)}; /mode changes it")
        context.switch_session(profile=kept)
    else:
        lines = []
        for name in list_profile_names():
            mark = ">" if name == current else " "
            lines.append(f"{mark} {name}")
        context.show("\n".join(lines))


@command(anytime=True)
def toolkits(context: SlashContext, words: str) -> None:
    """Show the toolkits and the tools of the model."""
    context.show(", ".join(choice.name for choice in context.profile.toolkits) or "no toolkits")
    rows = []
    deferred_count = 0
    for tool in context.exchange.tools.values():
        if tool.spec.deferred_group:
            deferred_count += 1
        else:
            rows.append((tool.name, to_one_line(tool.spec.description, 200)))
    show_rows(context, rows)
    if deferred_count:
        context.show(f"and {format_count(deferred_count, 'deferred tool')}, which the model's server searches")
    for name, needs in context.exchange.hooks.list_missing_tools().items():
        context.show(f"{name} is off: it needs {needs}")


def _describe_cache(usage: Usage) -> str:
    """Describe how much of the input the server's cache held, and how much was written into it."""
    if not usage.cache_read_tokens and not usage.cache_write_tokens:
        return ""
    share = 0.0
    if usage.input_tokens:
        share = usage.cache_read_tokens / usage.input_tokens
    return f" · cache: {share:.0%} of the input read, {usage.cache_write_tokens:,} tokens written"


@command(anytime=True)
def cost(context: SlashContext, words: str) -> None:
    """Show tokens and cost by model for the last turn and the session."""
    usage = context.exchange.history.usage
    _show_costs(context, "last turn", usage.turn_by_model)
    _show_costs(context, "session", usage.by_model)
    if not usage.by_model:
        context.show("no tokens were used yet")


def _show_costs(context: SlashContext, title: str, by_model: Mapping[str, Usage]) -> None:
    for name, used in by_model.items():
        price = compute_cost_usd({name: used})
        money = "cost unknown"
        if price is not None:
            money = f"${price:.4f}"
        facts = f"{format_usage(used, None)} · {money}{_describe_cache(used)}"
        context.show(f"{title}  {name}: {facts}")


def _list_call_numbers(context: SlashContext) -> Iterable[str]:
    return map(str, range(1, len(context.finished_calls) + 1))


@command(usage="[N]", anytime=True, choices=_list_call_numbers)
def show(context: SlashContext, words: str) -> None:
    """Show the whole output of a tool call by its number [the last call]."""
    calls = context.finished_calls
    if not calls:
        raise UsageError("no tool was called yet")
    number = len(calls)
    if words:
        number = int(words) if words.isdecimal() else 0
    if not 1 <= number <= len(calls):
        raise UsageError(f"no call {words!r}; choose a number from 1 to {len(calls)}")
    call, result = calls[number - 1]
    file = context.exchange.session.output_path(call.id)
    shell_file = file.with_name(f"{file.stem}-shell.txt")
    text = result.output
    if shell_file.is_file():
        text = shell_file.read_text(errors="replace")
    elif file.is_file():
        text = file.read_text(errors="replace")
    context.show(Text(escape_controls(text)))


@command(usage="PATH", anytime=True, choices="files")
def file(context: SlashContext, words: str) -> str | None:
    """Attach a file to the message that you are writing. Words after the path are the message."""
    match = _PATH_AND_REST.fullmatch(words)
    if not match:
        raise UsageError("which file? /file PATH")
    message = match["rest"]
    is_path = (context.exchange.workspace.root / words).exists()
    if message and not is_path:
        mention = format_mention(match["quoted"] or match["bare"])
        return f"{mention} {message}"
    mention = format_mention(match["quoted"] or words)
    context.set_input(f"{mention} ")
    return None


@command(anytime=True)
def copy(context: SlashContext, words: str) -> None:
    """Copy the last answer to the clipboard."""
    text = _find_last_answer(context.exchange.history)
    if not text:
        raise UsageError("there is no answer yet")
    context.copy_to_clipboard(text)
    context.show(f"copied {len(text):,} characters, if your terminal allows it")


def _find_last_answer(history: History) -> str:
    """Return the last answer of the model, or an empty text."""
    if history.last_turn and history.last_turn.answer:
        return history.last_turn.answer
    end = None
    for turn in reversed(history.turns):
        answer = join_answers(history.messages[turn.start : end])
        if answer:
            return answer
        end = turn.start
    return ""


@command
def clear(context: SlashContext, words: str) -> None:
    """Start a new conversation in this session; files stay unchanged."""
    context.exchange.rewind(0)
    if context.exchange.history.plan:
        context.exchange.journal.emit(PlanUpdated(tasks=()))
    context.show("the model has forgotten the conversation; `session show` still has it")


@command
def retry(context: SlashContext, words: str) -> TurnRequest:
    """Undo the last turn and send its message again."""
    history = context.exchange.history
    last = context.last_request
    if not history.turns:
        raise UsageError("there is no turn to retry")
    turn = history.turns[-1]
    message = history.messages[turn.start]
    context.exchange.rewind(turn.start)
    if last and last.text == message.first_text:
        return last
    # The message of a former process is sent as it is: output of a command in it must not name files.
    return TurnRequest(message, is_read_only=turn.is_read_only, is_fresh=turn.is_fresh)


@command(usage="[FOCUS]")
async def compact(context: SlashContext, words: str) -> None:
    """Replace the conversation by a summary; FOCUS names what the summary must keep."""
    exchange = context.exchange
    before = exchange.history.context.tokens
    context.show("shortening the conversation")
    event = await exchange.compact(words)
    by = f"{exchange.models.accelerator.label} wrote a summary"
    if event.verbatim:
        by = f"the server of {exchange.models.processor.label} shortened it"
    after = exchange.history.context.tokens
    context.show(f"{by}: about {before:,} tokens before, {after:,} now; `/rewind` still goes back")


@command(usage="[NAME]")
def fork(context: SlashContext, words: str) -> None:
    """Continue in a copy of this session."""
    if not context.exchange.history.turns:
        raise UsageError("there is nothing to copy yet; /clear starts a new conversation")
    copied = fork_session(find_session(context.exchange.session.name), name=words or None)
    copied.close()
    resumed = Session.resume(copied.name)
    resumed.recent.clear()  # the screen shows these events already
    context.show(f"this is now {resumed.name!r}")
    context.switch_session(session=resumed)


@command(usage="NAME", anytime=True)
def rename(context: SlashContext, words: str) -> None:
    """Give this session another name, or a title of several words."""
    session = context.exchange.session
    if not words:
        raise UsageError(f"write the new name or title of {session.name!r} behind /rename")
    if not context.exchange.history.turns:
        raise UsageError("there is nothing to name yet; send a message first")
    new = rename_session(session.name, words)
    context.show(f"renamed to {new!r}; resume with: goose-like session resume {shlex.quote(new)}")


@command(usage="[FILE]", anytime=True)
def export(context: SlashContext, words: str) -> None:
    """Export the session to a file: .md, .html, .ipynb or .json."""
    if not context.exchange.history.messages:
        raise UsageError("there is nothing to export yet")
    file = context.exchange.workspace.root / expand_home(words or f"{context.exchange.session.name}.md")
    if os.path.lexists(file):
        raise UsageError(f"{file} already exists; choose another name")
    context.show(write_export(context.exchange.session.name, file))


@command(usage="[NAME]", choices=list_session_choices)
async def resume(context: SlashContext, words: str) -> None:
    """Switch to another session and its mode; without a name, choose one from a list."""
    if not words and has_prompt():
        from .pickers import pick_session

        words = await pick_session(context) or ""
        if not words:
            return
    if words:
        await _resume_session(context, words)
        return
    rows = []
    for info in list_sessions()[:MAX_LISTED]:
        rows.append((info.name, format_age(info.changed_at), to_one_line(info.summary, 60)))
    show_rows(context, rows)


async def _resume_session(context: SlashContext, name: str) -> None:
    """Switch to a session, unless the person refuses its mode."""
    own = context.exchange.session.folder
    if find_session(name).folder == own:
        raise UsageError(f"{name!r} is this session; see the others with: goose-like session list")
    session = Session.resume(name)
    try:
        folder = find_session_folder(session, find_main_folder(Path.cwd()))
        changed = keep_modes(context.profile, session)
        changed = changed.model_copy(update={"folders": (), "instructions": ""})
        changed = keep_instructions(keep_folders(changed, session), session)
        if await confirm_mode(context, changed):
            context.switch_session(changed, session, folder)
    finally:
        is_next = context.next_session and context.next_session.session is session
        if not is_next:
            session.close()


@command
async def doctor(context: SlashContext, words: str) -> None:
    """Show what is installed and configured, and what to do next."""
    rows, next_step, _ = await diagnose(context.profile.name, context.profile)
    context.show(rows)
    context.show(f"next: {next_step}")


@command(anytime=True)
def leave(context: SlashContext, words: str) -> None:
    """Leave; the session can be resumed later."""
    context.end_session()
