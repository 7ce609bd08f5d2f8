"""The session as a plain loop: read a line, reply, again; Ctrl-C stops the turn, Ctrl-D leaves."""

import asyncio
import re
import shlex
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from ..build import build_exchange
from ..events import PlanUpdated, Status, Task
from ..exchange import Exchange
from ..notifier import Notifier
from ..prices import cost_usd
from ..profile import Profile
from ..session import Session
from .render import spent
from .terminal import Lines, echo, is_terminal, on_signals, screen

T = TypeVar("T")

LEAVE = ("exit", ":q", "/exit", "quit")
HELP = """Say what you want done.
Enter sends it; Alt-Enter (or Esc, Enter) begins a new line.
Ctrl-C stops a turn; three times ends goose-like at once.
  /help   this
  /exit   leave; so do exit, :q and Ctrl-D"""
_NO_COMMAND = "no command {}; there are /help and /exit, and a space before the / makes it a message"


async def chat(profile: Profile, session: Session, *, plan: tuple[Task, ...] = (), first: str = "") -> int:
    """Talks until the person leaves; gives the exit code. Planned work begins with `plan` on the screen and `first`.

    Raises:
        GooseLikeError: what kept the session from starting.
    """
    front = screen(says_answer=True)
    async with build_exchange(profile, front, session=session) as exchange:
        _show_where_we_are(exchange, front)
        if plan:
            exchange.journal.emit(PlanUpdated(tasks=plan))
        code = await _talk(exchange, front, first)
    history = exchange.history
    with suppress(OSError):  # the terminal that is gone may be why the session ends
        if history.total_usage.total_tokens:
            print(spent(history.total_usage, cost_usd(history.usage)), file=sys.stderr)
        if history.messages:
            print(f"resume with: goose-like session resume {shlex.quote(session.name)}", file=sys.stderr)
    return code


async def _talk(exchange: Exchange, front: Notifier, first: str) -> int:
    """The exit code: 128 and the signal that ended it, else 0 for a person and the last turn's for a program."""
    is_person = is_terminal(sys.stdin)
    read = _Prompt().next if is_person else Lines().next
    code = 0
    while True:
        line: str | None
        line, end = (first, 0) if first else await _stoppable(read(), front)
        first = ""
        if end or not line or line.strip() in LEAVE:
            return end or code
        if command := re.match(r"/[\w-]*(?!\S)", line):
            front.log(HELP if command[0] == "/help" else _NO_COMMAND.format(command[0]))
        elif line.strip():
            with echo(False):
                finished, end = await _stoppable(exchange.reply(line.rstrip("\n")), front)
            if end:
                return end
            code = finished.exit_code if finished and not is_person else 0


def _show_where_we_are(exchange: Exchange, front: Notifier) -> None:
    for damage in exchange.session.damage:
        front.log(damage)
    if is_terminal(sys.stdin):
        front.log("Ctrl-D or /exit leaves, /help tells more")
    messages = exchange.history.messages
    if messages:
        front.log(f"resumed: {len(messages)} messages; the last: {messages[-1].text[:200] or messages[-1].role}")


class _Prompt:
    """Input with editing: Enter sends, Alt-Enter begins a new line."""

    def __init__(self) -> None:
        keys = KeyBindings()

        @keys.add("enter", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        self._session: PromptSession[str] = PromptSession(
            "goose> ", multiline=True, key_bindings=keys, prompt_continuation="     … "
        )

    async def next(self) -> str:
        """One input and a line end, '' when the person leaves: as `Lines.next`."""
        with patch_stdout():
            while True:
                try:
                    return await self._session.prompt_async() + "\n"
                except KeyboardInterrupt:
                    continue
                except EOFError:
                    return ""


async def _stoppable(work: Coroutine[Any, Any, T], front: Notifier) -> tuple[T | None, int]:
    """What comes of the work, which a signal cancels; the exit code if that one ends the session, else 0.

    A person's Ctrl-C ends nothing but the work.
    """
    task = asyncio.create_task(work)

    def stop() -> None:
        front.notify(Status(text="stopping"))
        task.cancel()

    with on_signals(stop) as signals:
        await asyncio.wait([task])
    ends = [number for number in signals if number != signal.SIGINT or not is_terminal(sys.stdin)]
    return None if task.cancelled() else task.result(), 128 + ends[0] if ends else 0
