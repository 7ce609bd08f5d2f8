"""Start of a session: the prompt takes keys before the rest of the session is imported.

Every command imports this file, so it imports what a session needs when one starts.
"""

import dataclasses
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goose_like.config.paths import create_private_folder, state_folder
from goose_like.config.project_files import has_project_files
from goose_like.launch.command_line import ProfileOptions, SessionOptions, read_options
from goose_like.launch.exit import keep_stdout

if TYPE_CHECKING:
    from goose_like.launch.start import OpenedSession


def has_prompt() -> bool:
    """Return whether a person sits at a terminal that can show a permanent prompt."""
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "")


def parse_session_command(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments for `start_session`, or None for a command line that Typer has to judge.

    This knows `session start`, `session resume` and no command. Without a command, words with a blank are the first
    message.
    """
    command = list(words[:2])
    if command not in (["session", "start"], ["session", "resume"]):
        command = []
    read = read_options(words[len(command) :], ProfileOptions, SessionOptions)
    if read is None:
        return None
    values, names = read
    fields = {field.name for field in dataclasses.fields(SessionOptions)}
    chosen = SessionOptions(**{name: values.pop(name) for name in fields & values.keys()})
    name = names[0] if names else None
    is_wrong_name = name is not None and (not name or (not command and len(name.split()) < 2))
    if is_wrong_name or len(names) > 1 or _has_wrong_options(command[1:], chosen):
        return None
    arguments: dict[str, Any] = {"options": ProfileOptions(**values), "is_forked": chosen.is_forked}
    arguments["worktree"] = chosen.worktree
    if command == ["session", "resume"]:
        return {**arguments, "session": name, "is_resumed": True, "picks": name is None}
    if command:
        return {**arguments, "session": name}
    picks = chosen.resume == "" and not chosen.is_continued
    session = chosen.resume or None
    return {**arguments, "session": session, "is_resumed": chosen.is_resumed, "picks": picks, "first": name or ""}


def _has_wrong_options(command: Sequence[str], chosen: SessionOptions) -> bool:
    """Return whether options about sessions do not fit a command or each other."""
    if command and (chosen.is_continued or chosen.resume is not None):
        return True
    is_resumed = chosen.is_resumed or "resume" in command
    return (chosen.is_forked and not is_resumed) or (chosen.worktree is not None and is_resumed)


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

    With `picks` the person chooses the session to resume from a
    list. `worktree` names a new one for the session; empty for the session's name. `work` goes to `run_chat`: a plan
    and a first message.
    """
    import asyncio

    if picks and has_prompt():
        from .pickers import pick_session_alone

        if (session := pick_session_alone()) is None:
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
    import asyncio

    from goose_like.core.threads import run_in_thread

    start = Path.cwd()
    notes: list[str] = []
    async with AsyncExitStack() as stack:
        opened = None
        if has_project_files(start) or not has_prompt():
            # Files of a project can cause a question, which needs the terminal for itself.
            opened = await _open(options, wanted, start, notes, stack)
        prompt, history = None, state_folder() / "history"
        is_first = not history.exists()
        if has_prompt():
            from goose_like.terminal.input import Prompt

            with suppress(OSError):  # the session says what is wrong with the folder
                create_private_folder(state_folder())
            prompt = await stack.enter_async_context(Prompt(history))
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, prompt.close)
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
