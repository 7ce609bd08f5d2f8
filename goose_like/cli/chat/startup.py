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
from goose_like.config.paths import create_private_folder, state_folder

_OPTIONS = {"--model": "model", "-m": "model", "--profile": "profile", "-p": "profile"}


def has_prompt() -> bool:
    """Return whether a person sits at a terminal that can show a permanent prompt."""
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "")


def parse_session_command(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments for `start_session`, or None for a command line that needs the slow import of Typer.

    This knows `session start`, `session resume` and no command, with a name and the options about the model, the
    profile and trust.
    """
    command, rest = words[:2], iter(words[2:])
    if command not in (["session", "start"], ["session", "resume"]):
        command, rest = [], iter(words)
    options: dict[str, Any] = {}
    names: list[str] = []
    for word in rest:
        flag, _, value = word.partition("=")
        if word == "--trust":
            options["is_trusted"] = True
        elif word in _OPTIONS:
            options[_OPTIONS[word]] = next(rest, "")
        elif flag.startswith("--") and flag in _OPTIONS:
            options[_OPTIONS[flag]] = value
        else:
            names.append(word)
    is_known = not any(word.startswith("-") or not word for word in [*names, *options.values()] if word is not True)
    if not is_known or len(names) > (1 if command else 0):
        return None
    return {"options": options, "session": names[0] if names else None, "is_resumed": command[1:] == ["resume"]}


def start_session(options: Any = None, *, session: str | None = None, is_resumed: bool = False, **work: Any) -> int:
    """Start or resume a session, run it to its end, and return the exit code.

    `options` are ProfileOptions, or their values by name. `work` goes to `run_chat`: a plan and a first message.
    """
    import asyncio

    def prepare() -> tuple[Any, Any]:
        from goose_like.cli.launch import open_session
        from goose_like.cli.options import ProfileOptions

        chosen = options if isinstance(options, ProfileOptions) else ProfileOptions(**(options or {}))
        return open_session(chosen, session=session, is_resumed=is_resumed)

    # A project's own settings can cause a question, which needs the terminal for itself.
    has_settings = any((folder / ".goose-like").exists() for folder in (Path.cwd(), *Path.cwd().parents))
    prepared = prepare() if has_settings or not has_prompt() else None
    with keep_stdout():
        return asyncio.run(_run(prepared, prepare, work))


async def _run(prepared: tuple[Any, Any] | None, prepare: Callable[[], tuple[Any, Any]], work: dict[str, Any]) -> int:
    import asyncio

    async with AsyncExitStack() as stack:
        prompt = None
        if has_prompt():
            from goose_like.terminal.input import Prompt

            with suppress(OSError):  # the session says what is wrong with the folder
                create_private_folder(state_folder())
            prompt = await stack.enter_async_context(Prompt(state_folder() / "history"))
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, prompt.close)
        run_chat = await asyncio.to_thread(_import_chat)
        if prompt:
            from goose_like.core.masking import mask_text

            prompt.save_history(mask_text)
        choice, session = prepared if prepared else await asyncio.to_thread(prepare)
        return int(await run_chat(choice, session, prompt=prompt, **work))


def _import_chat() -> Any:
    from goose_like.config.secrets import register_keys

    from .loop import run_chat

    register_keys()
    return run_chat
