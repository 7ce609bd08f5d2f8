"""Start of a session: the prompt takes keys before the rest of the session is imported.

Every command imports this file, so it imports what a session needs when one starts.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from goose_like.cli.exit import keep_stdout
from goose_like.config.paths import create_private_folder, has_project_files, state_folder

_VALUES = {"--model": "model", "-m": "model", "--profile": "profile", "-P": "profile"}
_LISTS = {"--add-dir": "add_dirs", "--allowed-tools": "allowed_tools"}
_CONTINUE = ("-c", "--continue")
_RESUME = ("-r", "--resume")
_WORKTREE = ("-w", "--worktree")


def has_prompt() -> bool:
    """Return whether a person sits at a terminal that can show a permanent prompt."""
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "")


def name_follows(words: Sequence[str]) -> bool:
    """Check whether the first word can be the name for an option: it is no option and has no blank."""
    return bool(words) and words[0] != "" and not words[0].startswith("-") and len(words[0].split()) == 1


def parse_session_command(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments for `start_session`, or None for a command line that needs the slow import of Typer.

    This knows `session start`, `session resume` and no command, each with the options that people type most. Without a
    command, words with a blank are the first message.
    """
    command = words[:2]
    if command not in (["session", "start"], ["session", "resume"]):
        command = []
    options: dict[str, Any] = {}
    names: list[str] = []
    parsed: dict[str, Any] = {"session": None, "is_resumed": command[1:] == ["resume"]}
    rest = list(words[len(command) :])
    while rest:
        word = rest.pop(0)
        flag, is_joined, value = word.partition("=")
        key = _VALUES.get(flag) or _LISTS.get(flag)
        if word == "--trust":
            options["is_trusted"] = True
        elif word == "--fork":
            parsed["is_forked"] = True
        elif not command and word in _CONTINUE:
            parsed |= {"is_resumed": True, "picks": False}
        elif not command and word in _RESUME:
            parsed["is_resumed"] = True
            if name_follows(rest):
                parsed["session"] = rest.pop(0)
            parsed.setdefault("picks", parsed["session"] is None)
        elif word in _WORKTREE:
            parsed["worktree"] = rest.pop(0) if name_follows(rest) else ""
        elif key and (flag.startswith("--") or not is_joined):
            value = value if is_joined else rest.pop(0) if rest else ""
            if not value or value.startswith("-"):
                return None
            options[key] = [*options.get(key, []), value] if flag in _LISTS else value
        else:
            names.append(word)
    if any(not name or name.startswith("-") for name in names) or len(names) > 1:
        return None
    if ("is_forked" in parsed and not parsed["is_resumed"]) or ("worktree" in parsed and parsed["is_resumed"]):
        return None
    if names and not command and len(names[0].split()) < 2:
        return None
    if command and names:
        parsed["session"] = names[0]
    elif names:
        parsed["first"] = names[0]
    if command[1:] == ["resume"]:
        parsed["picks"] = parsed["session"] is None
    return {"options": options, **parsed}


def start_session(
    options: Any = None,
    *,
    session: str | None = None,
    is_resumed: bool = False,
    is_forked: bool = False,
    picks: bool = False,
    worktree: str | None = None,
    **work: Any,
) -> int:
    """Start or resume a session, run it to its end, and return the exit code.

    `options` are ProfileOptions, or their values by name. With `picks` the person chooses the session to resume from a
    list. `worktree` names a new one for the session; empty for the session's name. `work` goes to `run_chat`: a plan
    and a first message.
    """
    import asyncio

    notes: list[str] = []

    def prepare() -> tuple[Any, Any]:
        from goose_like.cli.launch import open_session
        from goose_like.cli.options import ProfileOptions

        chosen = options if isinstance(options, ProfileOptions) else ProfileOptions(**(options or {}))
        start: dict[str, Any] = {"is_resumed": is_resumed, "is_forked": is_forked, "worktree": worktree}
        return open_session(chosen, session=session, **start, warn=notes.append)

    if picks and has_prompt():
        from .pickers import pick_session_alone

        if (session := pick_session_alone()) is None:
            return 0
    # Files of a project can cause a question, which needs the terminal for itself.
    work |= {"notes": notes, "start": Path.cwd()}
    prepared = prepare() if has_project_files(Path.cwd()) or not has_prompt() else None
    with keep_stdout():
        return asyncio.run(_run(prepared, prepare, work))


async def _run(prepared: tuple[Any, Any] | None, prepare: Callable[[], tuple[Any, Any]], work: dict[str, Any]) -> int:
    import asyncio

    async with AsyncExitStack() as stack:
        prompt, history = None, state_folder() / "history"
        is_first = not history.exists()
        if has_prompt():
            from goose_like.terminal.input import Prompt

            with suppress(OSError):  # the session says what is wrong with the folder
                create_private_folder(state_folder())
            prompt = await stack.enter_async_context(Prompt(history))
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, prompt.close)
        run_chat = await asyncio.to_thread(_import_chat)
        if prompt:
            from goose_like.core.masking import mask_text

            prompt.save_history(mask_text)
        choice, session = prepared if prepared else await asyncio.to_thread(prepare)
        if is_first and prompt:
            from goose_like.cli.launch import describe_start

            work["notes"] += describe_start(choice)
            with suppress(OSError):
                history.touch(0o600)
        return int(await run_chat(choice, session, prompt=prompt, **work))


def _import_chat() -> Any:
    from goose_like.config.secrets import register_keys

    from .loop import run_chat

    register_keys()
    return run_chat
