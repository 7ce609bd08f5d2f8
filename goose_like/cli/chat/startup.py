"""A session's first moment: the prompt takes keys before what the session needs is imported."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from goose_like.config.paths import state_folder

How = tuple[str | None, str | None, str | None, str | None]
"""Profile, model, sandbox and approval, as the options say."""


def has_prompt() -> bool:
    """Whether a person sits at a terminal that can show a prompt which stays."""
    is_there = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return is_there and os.environ.get("TERM", "dumb") not in ("dumb", "")


def open_session(
    how: How = (None, None, None, None),
    *,
    session: str | None = None,
    is_resumed: bool = False,
    is_trusted: bool = False,
    **work: Any,
) -> int:
    """Begins a session, or goes on with one, and talks; gives the exit code. `work` is as for `chat`.

    Raises:
        GooseLikeError: what kept it from starting.
    """
    settle = partial(_settled, how, session=session, is_resumed=is_resumed, is_trusted=is_trusted)
    # A project that brings something may be asked about, which needs the terminal to itself.
    is_asked = any((folder / ".goose-like").exists() for folder in (Path.cwd(), *Path.cwd().parents))
    return asyncio.run(_opened(settle() if is_asked or not has_prompt() else None, settle, work))


def _settled(how: How, **which: Any) -> tuple[Any, Any]:
    from goose_like.cli.options import begin

    return begin(*how, **which)


async def _opened(settled: tuple[Any, Any] | None, settle: Callable[[], tuple[Any, Any]], work: dict[str, Any]) -> int:
    if not has_prompt():
        chat, closing = _imported()
        chosen, kept = settled or settle()
        return int(await closing(chat(chosen.profile, kept, project=chosen.project, **work), chosen, kept))
    from goose_like.terminal.input import Prompt

    async with Prompt(state_folder() / "history") as prompt:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, prompt.close)
        chat, closing = await asyncio.to_thread(_imported)
        if settled is None:
            settled = await asyncio.to_thread(settle)
        chosen, kept = settled
        talk = chat(chosen.profile, kept, project=chosen.project, prompt=prompt, **work)
        return int(await closing(talk, chosen, kept))


def _imported() -> tuple[Any, Any]:
    from goose_like.cli.options import closing

    from .loop import chat

    return chat, closing
