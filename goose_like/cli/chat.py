"""The session as a plain loop: read a line, reply, again; Ctrl-C stops the turn, Ctrl-D leaves."""

import asyncio
import re
import signal
import sys

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout

from ..build import build_exchange
from ..exchange import Exchange
from ..notifier import Notifier
from ..prices import cost_usd
from ..profile import Profile
from ..session import Session
from .render import spent
from .terminal import Lines, echo, on_signals, screen

LEAVE = ("exit", ":q", "/exit", "quit")
HELP = """Say what you want done.
Enter sends it; Alt-Enter (or Esc, Enter) begins a new line.
Ctrl-C stops a turn; three times ends goose-like at once.
  /help   this
  /exit   leave; so do exit, :q and Ctrl-D"""


async def chat(profile: Profile, session: Session) -> int:
    """Talks until the person leaves; gives the exit code.

    Raises:
        GooseLikeError: what kept the session from starting.
    """
    front = screen(says_answer=True)
    async with build_exchange(profile, front, session=session) as exchange:
        _show_where_we_are(exchange, front)
        read = _Prompt().next if sys.stdin.isatty() else Lines().next
        code = 0
        while code == 0 and (line := await read()):
            said = line.strip()
            if said in LEAVE:
                break
            if re.fullmatch(r"/[\w-]*", said):
                front.log(HELP if said == "/help" else f"no command {said}; there are /help and /exit")
            elif said:
                code = await _turn(exchange, line.rstrip("\n"))
    usage = exchange.history.total_usage
    if usage.total_tokens:
        print(spent(usage, cost_usd(exchange.history.usage)), file=sys.stderr)
    print(f"resume with: goose-like session resume {session.name}", file=sys.stderr)
    return code


def _show_where_we_are(exchange: Exchange, front: Notifier) -> None:
    for damage in exchange.session.damage:
        front.log(damage)
    if sys.stdin.isatty():
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


async def _turn(exchange: Exchange, text: str) -> int:
    """The exit code if the session has to end now, else 0: a person's Ctrl-C ends nothing but the turn."""
    turn = asyncio.create_task(exchange.reply(text))
    with on_signals(turn.cancel) as signals, echo(False):
        await asyncio.wait([turn])
    if not turn.cancelled():
        turn.result()  # the session file could not be written: that ends the session
    last = [number for number in signals if number != signal.SIGINT or not sys.stdin.isatty()]
    return 128 + last[0] if last else 0
