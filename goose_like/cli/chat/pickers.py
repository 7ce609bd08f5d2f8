"""Lists to choose a session, a model, a profile or a message from. Each returns None if the person cancels."""

import os
from collections.abc import Sequence
from pathlib import Path

from goose_like.agent.slash_context import SlashContext
from goose_like.cli.commands.session_actions import format_age, format_money
from goose_like.config.paths import shorten_home
from goose_like.config.profile import Profile
from goose_like.config.profile_loader import load_profile
from goose_like.core.errors import GooseLikeError, SessionError, UsageError
from goose_like.core.spelling import format_count
from goose_like.core.threads import run_in_thread
from goose_like.launch.command_line import list_profile_names
from goose_like.launch.modes import MODE_EFFECTS, describe_mode
from goose_like.providers.catalog import ModelOffer, format_window, list_offers, refresh_offers
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.index import SessionInfo, count_totals, list_sessions, read_last_words, read_messages
from goose_like.sessions.transcript import format_time
from goose_like.terminal.escape import to_one_line
from goose_like.terminal.picker import Choice, pick, pick_alone
from goose_like.workspace.permissions.policy import effective_sandbox
from goose_like.workspace.undo.repository import is_of_git

_MAX_WORDS = 240
_MAX_FILES = 5


# --- sessions


def pick_session_alone() -> str | None:
    """Let the person choose a session before the prompt is open. Those of the current folder come first.

    Raises:
        SessionError: there is none.
    """
    choices = _list_session_choices(os.getcwd())
    if not choices:
        raise SessionError("there is no session; start one: goose-like session start")
    chosen = pick_alone("Resume a session", choices, preview=_describe_session)
    return chosen.name if chosen else None


async def pick_session(context: SlashContext) -> str | None:
    """Let the person choose another session. Those of the current folder come first."""
    cwd = str(context.exchange.workspace.root)
    own = context.exchange.session.name
    listed = await run_in_thread(_list_session_choices, cwd)
    choices = [choice for choice in listed if choice.value.name != own]
    if not choices:
        raise UsageError("there is no other session")
    chosen = await pick("Resume a session", choices, preview=_describe_session)
    return chosen.name if chosen else None


def _list_session_choices(cwd: str) -> list[Choice[SessionInfo]]:
    sessions = sorted(list_sessions(), key=lambda info: info.cwd != cwd)  # stable: the newest first
    choices = []
    for info in sessions:
        cells = (format_age(info.changed_at), _shorten(info.cwd))
        keywords = f"{info.name} {info.cwd} {info.first_words}"
        choices.append(Choice(info, info.summary, cells, keywords))
    return choices


async def _describe_session(info: SessionInfo) -> str:
    return await run_in_thread(_format_session, info)


def _format_session(info: SessionInfo) -> str:
    turns, usage = count_totals(info)
    tokens = sum(used.total_tokens for used in usage.values())
    money = format_money(compute_cost_usd(usage))
    asked, answered = read_last_words(info)
    lines = [
        f"{info.name} · {format_time(info.changed_at)} · {_shorten(info.cwd)}",
        f"{format_count(turns, 'turn')} · {tokens:,} tokens · {money}",
        f"> {to_one_line(asked, _MAX_WORDS)}",
        to_one_line(answered, _MAX_WORDS),
    ]
    return "\n".join(lines)


# --- models


async def pick_model(context: SlashContext) -> str | None:
    """Let the person choose a model. The servers are asked for their lists meanwhile."""
    current = context.exchange.models.processor
    own = ModelOffer(current.label, current.window)

    async def reload() -> Sequence[Choice[str]]:
        return _make_model_choices(await refresh_offers(), own)

    choices = _make_model_choices(await run_in_thread(list_offers), own)
    title = "Choose a model (window, $ per million tokens in / out)"
    labels = {choice.value for choice in choices}
    if labels <= {"local", own.label}:
        title = "Choose a model (others need a key: goose-like setup)"
    return await pick(title, choices, current=own.label, reload=reload)


def _make_model_choices(offers: Sequence[ModelOffer], own: ModelOffer) -> list[Choice[str]]:
    """Return a row for each model that is offered. That of the session comes first if nobody offers it."""
    labels = {offer.label for offer in offers}
    if own.label not in labels:
        offers = [own, *offers]
    return [Choice(offer.label, offer.label, (format_window(offer.window), offer.price)) for offer in offers]


# --- profiles


async def pick_profile(context: SlashContext) -> str | None:
    """Let the person choose a profile."""
    choices = await run_in_thread(_list_profile_choices)
    return await pick("Choose a profile", choices, preview=_describe_profile, current=context.profile.name)


def _list_profile_choices() -> list[Choice[str]]:
    return list(map(_make_profile_choice, list_profile_names()))


def _make_profile_choice(name: str) -> Choice[str]:
    try:
        profile, _ = load_profile(name)
    except GooseLikeError as error:
        return Choice(name, name, (str(error),))
    model = profile.processor.model if profile.processor else "any model"
    sandbox = effective_sandbox(profile.sandbox, profile.approval)
    return Choice(name, name, (model, f"{profile.approval} · {sandbox}"))


async def _describe_profile(name: str) -> str:
    profile, source = load_profile(name)
    toolkits = ", ".join(choice.name for choice in profile.toolkits) or "none"
    file = _shorten(str(source.file))
    return f"toolkits  {toolkits}\nfile      {file}"


# --- modes


async def pick_mode(profile: Profile) -> str | None:
    """Let the person choose an approval or a sandbox. The list begins at the approval of `profile`."""
    choices = [Choice(name, name, (effect,)) for name, effect in MODE_EFFECTS.items()]
    return await pick(f"Choose a mode (now {describe_mode(profile)})", choices, current=profile.approval)


# --- efforts


async def pick_effort(levels: Sequence[str], current: str | None) -> str | None:
    """Let the person choose a level of effort."""
    choices = [Choice(level, level) for level in levels]
    present = current or "the default of the vendor"
    return await pick(f"Choose how long the model reasons (now {present})", choices, current=current)


# --- messages


async def pick_turn(context: SlashContext) -> int | None:
    """Let the person choose the number of a turn by its message. The list begins at the newest."""
    changed = await _list_changed_files(context)
    texts = list_messages(context)

    async def describe(number: int) -> str:
        lines = [f"changed files: {_format_files(changed.get(number, []))}"]
        for text in texts[number]:
            lines.append(f"> {to_one_line(text, _MAX_WORDS)}")
        return "\n".join(lines)

    choices = []
    for number, words in texts.items():
        files = changed.get(number)
        count = format_count(len(files), "file") if files else ""
        choices.append(Choice(number, " ⏎ ".join(words), (count,)))
    return await pick("Go back to before a message", choices, preview=describe, current=max(texts))


async def _list_changed_files(context: SlashContext) -> dict[int, list[str]]:
    """Return the files that each turn changed, by the number of the turn, without those of git itself."""
    exchange = context.exchange
    if exchange.undo is None:
        return {}
    changed = {}
    for number, paths in (await exchange.undo.list_turn_changes()).items():
        changed[number] = [_shorten(str(path), exchange.workspace.root) for path in paths if not is_of_git(path)]
    return changed


def _format_files(files: list[str]) -> str:
    if not files:
        return "none"
    shown = files[:_MAX_FILES]
    hidden_count = len(files) - len(shown)
    if hidden_count:
        shown.append(f"and {hidden_count:,} more")
    return ", ".join(shown)


def list_messages(context: SlashContext) -> dict[int, list[str]]:
    """Return the messages of the person by the number of the turn; those sent while it ran follow its first."""
    exchange = context.exchange
    saved = read_messages(exchange.session.folder)
    messages = {}
    for turn in exchange.history.turns:
        if turn.number <= len(saved):
            messages[turn.number] = saved[turn.number - 1]
        else:
            messages[turn.number] = [exchange.history.messages[turn.start].first_text]
    return messages


def _shorten(path: str, root: Path | None = None) -> str:
    """Write a path relative to the root, or to the home folder."""
    if root and Path(path).is_relative_to(root):
        return str(Path(path).relative_to(root))
    return shorten_home(path)
