"""The session as a plain loop: read a line, reply, again; Ctrl-C stops the turn, Ctrl-D leaves."""

import asyncio
import sys

from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

from ..build import build_exchange
from ..exchange import Exchange
from ..notifier import Notifier
from ..prices import cost_usd
from ..profile import Profile
from ..session import Session
from .render import spent
from .terminal import on_signals, screen

LEAVE = ("exit", ":q", "/exit", "quit")


async def chat(profile: Profile, session: Session) -> int:
    """Talks until the person leaves; gives the exit code.

    Raises:
        GooseLikeError: what kept the session from starting.
    """
    front = screen(says_answer=True)
    async with build_exchange(profile, front, session=session) as exchange:
        _show_where_we_are(exchange, front)
        prompt: PromptSession[str] | None = PromptSession() if sys.stdin.isatty() else None
        while (line := await _read(prompt)) is not None:
            if line.strip() in LEAVE:
                break
            if line.strip():
                await _turn(exchange, line)
    usage = exchange.history.total_usage
    print(f"{spent(usage, cost_usd(exchange.history.usage))}", file=sys.stderr)
    print(f"resume with: goose-like session resume {session.name}", file=sys.stderr)
    return 0


def _show_where_we_are(exchange: Exchange, front: Notifier) -> None:
    for damage in exchange.session.damage:
        front.log(damage)
    messages = exchange.history.messages
    if messages:
        front.log(f"resumed: {len(messages)} messages; the last: {messages[-1].text[:200] or messages[-1].role}")


async def _read(prompt: PromptSession[str] | None) -> str | None:
    """One input, or None at the end of it. Without a terminal lines are read as they come."""
    if prompt is None:
        line = await asyncio.to_thread(sys.stdin.readline)
        return line.rstrip("\n") if line else None
    with patch_stdout():
        while True:
            try:
                return await prompt.prompt_async("goose> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None


async def _turn(exchange: Exchange, text: str) -> None:
    turn = asyncio.create_task(exchange.reply(text))
    with on_signals(lambda _: turn.cancel()):
        await asyncio.wait([turn])
    if not turn.cancelled():
        turn.result()  # the session file could not be written: that ends the session
