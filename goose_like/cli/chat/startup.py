"""Start of a session: the prompt takes keys before the rest of the session is imported."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from goose_like.config.paths import create_private_folder, state_folder


def has_prompt() -> bool:
    """Return whether a person sits at a terminal that can show a permanent prompt."""
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "")


def start_session(options: Any = None, *, session: str | None = None, is_resumed: bool = False, **work: Any) -> int:
    """Start or resume a session, run it to its end, and return the exit code.

    `options` are ProfileOptions (None: the defaults). `work` goes to `run_chat`: a plan and a first message.
    """

    def prepare() -> tuple[Any, Any]:
        from goose_like.cli.launch import open_session
        from goose_like.cli.options import ProfileOptions

        return open_session(options or ProfileOptions(), session=session, is_resumed=is_resumed)

    # A project's own settings can cause a question, which needs the terminal for itself.
    has_settings = any((folder / ".goose-like").exists() for folder in (Path.cwd(), *Path.cwd().parents))
    prepared = prepare() if has_settings or not has_prompt() else None
    return asyncio.run(_run(prepared, prepare, work))


async def _run(prepared: tuple[Any, Any] | None, prepare: Callable[[], tuple[Any, Any]], work: dict[str, Any]) -> int:
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
