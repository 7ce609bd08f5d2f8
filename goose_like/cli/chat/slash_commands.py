"""The slash commands that come with goose_like. Each is a function of the desk and the words after its name."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

from goose_like.agent.mentions import format_mention
from goose_like.agent.slash_command import SlashCommand, command
from goose_like.agent.slash_context import SlashContext
from goose_like.cli.commands.inspect import examine
from goose_like.cli.commands.session_actions import write_export
from goose_like.cli.commands.session_list import LISTED, age
from goose_like.config.profile import ModelChoice
from goose_like.config.profile_loader import list_profile_sources, load_profile
from goose_like.core.entry_points import list_entry_points
from goose_like.core.errors import UsageError
from goose_like.core.events import PlanUpdated
from goose_like.core.history import estimate_tokens
from goose_like.providers.prices import compute_cost_usd
from goose_like.providers.registry import open_model
from goose_like.sessions.fork import fork as fork_session
from goose_like.sessions.index import find_session, list_sessions
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.renderer import format_usage

KEYS = (
    "Say what you want done; Enter sends it. While the model works, Enter leaves a message for its next step and "
    "Ctrl-S says it now. Alt-Enter (or Esc, Enter) begins a new line, Ctrl-X Ctrl-E opens your editor, Ctrl-R searches "
    "what you typed before, Tab and the arrows choose a completion, Ctrl-V or Alt-V takes the image in the clipboard.\n"
    "Ctrl-C stops a turn, twice leaves; so do Ctrl-D, exit and :q.\n"
    "!COMMAND runs a command yourself and shows it to the model; @PATH gives it a file."
)


@command(anytime=True)
def show_help(desk: SlashContext, words: str) -> None:
    """Show the keys and commands."""
    table = Table("", Column(overflow="fold"), box=None, pad_edge=False, show_header=False)
    for one in sorted(desk.commands.values(), key=lambda one: one.name):
        table.add_row(Text(f"/{one.name} {one.usage}".rstrip()), _about(one))
    desk.show(KEYS)
    desk.show(table)


def _about(one: SlashCommand) -> Text:
    source = one.source.replace(str(Path.home()), "~", 1) if one.source else ""
    return Text.assemble(escape_controls(one.summary), (f"  {escape_controls(source)}" if source else "", "dim"))


@command(anytime=True)
def plan(desk: SlashContext, words: str) -> None:
    """Show the plan."""
    tasks = desk.exchange.history.plan
    desk.show("\n".join(f"[{task.status}] {escape_controls(task.description)}" for task in tasks) or "there is no plan")


def _model_names(desk: SlashContext) -> Iterable[str]:
    return (f"{name}:" for name in list_entry_points("goose_like.provider"))


@command(usage="[PROVIDER:MODEL]", choices=_model_names)
async def model(desk: SlashContext, words: str) -> None:
    """Show the models, or go on with another one."""
    models = desk.exchange.models
    if not words:
        desk.show(f"processor    {models.processor.label}\naccelerator  {models.accelerator.label}")
        return
    choice = ModelChoice(model=words)
    await open_model(choice).provider.close()  # raises if it can't be used, while the present one still can
    desk.switch_session(profile=desk.profile.model_copy(update={"processor": choice, "accelerator": choice}))


def _profile_names(desk: SlashContext) -> Iterable[str]:
    return sorted({source.name for source in list_profile_sources()})


@command(usage="[NAME]", choices=_profile_names)
def profile(desk: SlashContext, words: str) -> None:
    """Show the profiles, or go on with another one."""
    if words:
        desk.switch_session(profile=load_profile(words)[0])
    else:
        here = desk.profile.name
        desk.show("\n".join(f"{'>' if name == here else ' '} {name}" for name in _profile_names(desk)))


@command(anytime=True)
def toolkits(desk: SlashContext, words: str) -> None:
    """Show the tools that the model has."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for tool in desk.exchange.tools.values():
        table.add_row(tool.name, to_one_line(tool.spec.description, 200))
    desk.show(", ".join(choice.name for choice in desk.profile.toolkits) or "no toolkits")
    desk.show(table)


@command(anytime=True)
def context(desk: SlashContext, words: str) -> None:
    """Draw what fills the model's window."""
    exchange, history = desk.exchange, desk.exchange.history
    window = exchange.models.processor.window
    kinds = {"system prompt": len(exchange.system.encode()) // 4, "tools": 0}
    kinds["tools"] = (
        sum(len(str(tool.spec.schema)) + len(tool.spec.description) for tool in exchange.tools.values()) // 4
    )
    names = {"user": "your messages", "assistant": "answers and calls", "tool": "results of tools"}
    for message in history.context:
        kind = "summary" if message is history.summary else names[message.role]
        kinds[kind] = kinds.get(kind, 0) + estimate_tokens(message)
    whole = window or max(sum(kinds.values()), 1)
    table = Table(box=None, pad_edge=False, show_header=False)
    for kind, tokens in [*kinds.items(), ("all", sum(kinds.values()))]:
        table.add_row(kind, _bar(tokens / whole), f"{tokens:,}", f"{tokens / whole:.0%}")
    desk.show(table)
    desk.show(
        f"tokens, estimated; the window has {window:,}" if window else "tokens, estimated; the window is not known"
    )


def _bar(share: float, width: int = 30) -> Text:
    full = min(width, round(share * width))
    return Text.assemble(("█" * full, "cyan"), ("░" * (width - full), "dim"))


@command(anytime=True)
def cost(desk: SlashContext, words: str) -> None:
    """Show tokens and cost by model, of the last turn and of the session."""
    history = desk.exchange.history
    for title, usage in (("last turn", history.turn_usage), ("session", history.usage)):
        for name, used in usage.items():
            price = compute_cost_usd({name: used})
            money = "cost unknown" if price is None else f"${price:.4f}"
            desk.show(f"{title}  {name}: {format_usage(used, None)} · {money}")
    if not history.usage:
        desk.show("nothing was spent yet")


def _numbers(desk: SlashContext) -> Iterable[str]:
    return (str(number + 1) for number in range(len(desk.finished_calls)))


@command(usage="[N]", anytime=True, choices=_numbers)
def show(desk: SlashContext, words: str) -> None:
    """Show all of a call's output, by its number [the last one]."""
    if not desk.finished_calls:
        raise UsageError("no tool has run yet")
    number = int(words) if words.isdecimal() else 0 if words else len(desk.finished_calls)
    if not 1 <= number <= len(desk.finished_calls):
        raise UsageError(f"{words!r} is none of the numbers 1 to {len(desk.finished_calls)}")
    call, result = desk.finished_calls[number - 1]
    file = desk.exchange.session.output_path(call.id)
    kept = [one for one in (file, file.with_name(f"{file.stem}-shell.txt")) if one.is_file()]
    text = kept[-1].read_text(errors="replace") if kept else result.output
    desk.show(Text(escape_controls(text)))


@command(usage="PATH", anytime=True, choices="files")
def file(desk: SlashContext, words: str) -> None:
    """Name a file in the message that you write."""
    if not words:
        raise UsageError("which file? /file PATH")
    desk.set_input(f"{format_mention(words)} ")


@command(anytime=True)
def copy(desk: SlashContext, words: str) -> None:
    """Copy the last answer to the clipboard."""
    answers = [message.text for message in desk.exchange.history.messages if message.role == "assistant"]
    text = next(filter(None, reversed(answers)), "")
    if not text:
        raise UsageError("there is no answer yet")
    desk.copy_to_clipboard(text)
    desk.show(f"copied {len(text):,} characters, if your terminal lets programs do so")


@command
def clear(desk: SlashContext, words: str) -> None:
    """Begin a new conversation in this session; files stay as they are."""
    desk.exchange.rewind(0)
    if desk.exchange.history.plan:
        desk.exchange.journal.emit(PlanUpdated(tasks=()))
    desk.show("the model has forgotten everything; `session show` still has it")


@command
def retry(desk: SlashContext, words: str) -> str:
    """Take the last answer back and ask again."""
    history = desk.exchange.history
    if not history.turns:
        raise UsageError("nothing was asked yet")
    start = history.turns[-1].start
    said = history.messages[start].first_text
    desk.exchange.rewind(start)
    return said


@command(usage="[FOCUS]")
async def compact(desk: SlashContext, words: str) -> None:
    """Go on with a summary in the place of what was said; with words: what it must not lose."""
    exchange = desk.exchange
    before = exchange.history.context_tokens
    desk.show(f"{exchange.models.accelerator.label} writes a summary")
    await exchange.compact(words)
    desk.show(f"about {before:,} tokens before, {exchange.history.context_tokens:,} now; `/rewind` still goes back")


@command(usage="[NAME]")
def fork(desk: SlashContext, words: str) -> None:
    """Go on in a copy of this session, which stays as it is."""
    copied = fork_session(find_session(desk.exchange.session.name), name=words or None)
    copied.close()
    resumed = Session.resume(copied.name)
    resumed.recent.clear()  # it stands on the screen already
    desk.show(f"this is {resumed.name!r} now")
    desk.switch_session(session=resumed)


@command(usage="[FILE]", anytime=True)
def export(desk: SlashContext, words: str) -> None:
    """Write the session to a file: .md, .html or .json."""
    file = Path(words or f"{desk.exchange.session.name}.md")
    file = desk.exchange.workspace.root / file.expanduser()
    if file.exists():
        raise UsageError(f"{file} is there already; give another name")
    desk.show(write_export(desk.exchange.session.name, file))


def _session_names(desk: SlashContext) -> Iterable[str]:
    return (listed.name for listed in list_sessions())


@command(usage="[NAME]", choices=_session_names)
def resume(desk: SlashContext, words: str) -> None:
    """Go on with another session; without a name: list them."""
    if words:
        desk.switch_session(session=Session.resume(words))
        return
    rows = Table(box=None, pad_edge=False, show_header=False)
    for listed in islice(list_sessions(), LISTED):
        rows.add_row(listed.name, age(listed.changed_at), to_one_line(listed.summary, 60))
    desk.show(rows)


@command
async def doctor(desk: SlashContext, words: str) -> None:
    """Show what is installed and set, and what to do next."""
    rows, next_step, _ = await examine(desk.profile.name)
    desk.show(rows)
    desk.show(f"next: {next_step}")


@command(anytime=True)
def leave(desk: SlashContext, words: str) -> None:
    """Leave; it says how to go on later."""
    desk.end_session()
