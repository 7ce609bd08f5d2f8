"""Start of a session: the prompt takes keys before the rest of the session is imported.

Every command imports this file, so it imports what a session needs when one starts.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goose_like.config.paths import create_private_folder, state_folder
from goose_like.config.personal_files import may_ask_about_places
from goose_like.config.project_check import may_ask_about_check
from goose_like.config.project_files import has_project_files
from goose_like.launch.command_line import (
    ProfileOptions,
    SessionOptions,
    find_session_conflict,
    read_options,
    take_fields,
)
from goose_like.launch.exit import keep_stdout

if TYPE_CHECKING:
    from goose_like.launch.start import OpenedSession
    from goose_like.terminal.input import Prompt

_START = ("session", "start")
_RESUME = ("session", "resume")


def has_prompt() -> bool:
    """Return whether a person sits at a terminal that can show a permanent prompt."""
    for stream in (sys.stdin, sys.stderr):
        if stream is None or not stream.isatty():
            return False
    return os.environ.get("TERM", "dumb") not in ("dumb", "")


def parse_session_command(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments for `start_session`, or None for a command line that Typer has to judge.

    This knows `session start`, `session resume` and no command. Without a command, words with a blank are the first
    message.
    """
    command = tuple(words[:2])
    if command not in (_START, _RESUME):
        command = ()
    read = read_options(words[len(command) :], ProfileOptions, SessionOptions)
    if read is None:
        return None
    values, names = read
    if len(names) > 1 or "" in names:
        return None
    name = names[0] if names else None
    chosen = take_fields(SessionOptions, values)
    if command == _START:
        arguments = _read_start(chosen, name)
    elif command == _RESUME:
        arguments = _read_resumption(chosen, name)
    else:
        arguments = _read_options_only(chosen, name)
    if arguments is None:
        return None
    return {**arguments, "options": ProfileOptions(**values)}


def _read_start(chosen: SessionOptions, name: str | None) -> dict[str, Any] | None:
    if chosen.is_resumed or chosen.is_forked:
        return None
    return {"session": name, "worktree": chosen.worktree}


def _read_resumption(chosen: SessionOptions, name: str | None) -> dict[str, Any] | None:
    if chosen.is_resumed or chosen.worktree is not None:
        return None
    return {"session": name, "is_resumed": True, "is_forked": chosen.is_forked, "picks": name is None}


def _read_options_only(chosen: SessionOptions, message: str | None) -> dict[str, Any] | None:
    """Return the arguments of a command line without a command. A message of one word may be a misspelt command."""
    if message is not None and len(message.split()) < 2:
        return None
    if find_session_conflict(chosen):
        return None
    return {
        "session": chosen.resume or None,
        "is_resumed": chosen.is_resumed,
        "is_forked": chosen.is_forked,
        "picks": chosen.resume == "" and not chosen.is_continued,
        "worktree": chosen.worktree,
        "first": message or "",
    }


def start_session(
    options: ProfileOptions | None = None,
    *,
    session: str | None = None,
    is_resumed: bool = False,
    is_forked: bool = False,
    picks: bool = False,
    worktree: str | None = None,
    **work: Any,
) -> int:
    """Start or resume a session, run it to its end, and return the exit code.

    With `picks` the person chooses the session to resume from a list. `worktree` names a new one for the session; empty
    for the session's name. `work` goes to `run_chat`: a plan and a first message.
    """
    import asyncio

    if picks and has_prompt():
        from .pickers import pick_session_alone

        session = pick_session_alone()
        if session is None:
            return 0
    wanted = {
        "name": session,
        "is_resumed": is_resumed,
        "is_forked": is_forked,
        "worktree": worktree,
    }
    with keep_stdout():
        return asyncio.run(_run(options or ProfileOptions(), wanted, work))


async def _run(options: ProfileOptions, wanted: dict[str, Any], work: dict[str, Any]) -> int:
    """Open the session that `wanted` describes, as in `SessionRequest`, and run it."""
    from goose_like.core.threads import run_in_thread

    start = Path.cwd()
    notes: list[str] = []
    async with AsyncExitStack() as stack:
        opened = None
        may_ask = has_project_files(start) or may_ask_about_places() or may_ask_about_check(start)
        if may_ask or not has_prompt():
            # Files of a project or of other agents can cause a question, which needs the terminal for itself.
            opened = await _open(options, wanted, start, notes, stack)
        history = state_folder() / "history"
        is_first = not history.exists()
        prompt = None
        if has_prompt():
            prompt = await _open_prompt(history, stack)
        run_chat = await run_in_thread(_import_chat)
        if prompt:
            from goose_like.core.masking import mask_text

            prompt.save_history(mask_text)
        if opened is None:
            opened = await _open(options, wanted, start, notes, stack)
        if is_first and prompt:
            from .welcome import describe_start

            notes += describe_start(opened.choice)
            with suppress(OSError):
                history.touch(0o600)
        return int(await run_chat(opened, prompt=prompt, notes=notes, start=start, **work))


async def _open_prompt(history: Path, stack: AsyncExitStack) -> "Prompt":
    """Open the prompt. From then on, a signal closes it."""
    import asyncio

    from goose_like.terminal.input import Prompt

    with suppress(OSError):  # the session says what is wrong with the folder
        create_private_folder(state_folder())
    prompt = await stack.enter_async_context(Prompt(history))
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, prompt.close)
    return prompt


async def _open(
    options: ProfileOptions, wanted: dict[str, Any], start: Path, notes: list[str], stack: AsyncExitStack
) -> "OpenedSession":
    from goose_like.launch.start import SessionRequest, open_session
    from goose_like.launch.start_notifier import StartNotifier

    request = SessionRequest(options, **wanted)
    return await stack.enter_async_context(open_session(request, StartNotifier(notes.append), start))


def _import_chat() -> Any:
    from goose_like.config.secrets import register_keys

    from .loop import run_chat

    register_keys()
    return run_chat
