"""Where a person or a program sits: what lines come from, and where everything is shown."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Protocol

from goose_like.agent.mentions import pasted
from goose_like.agent.slash_context import Desk
from goose_like.config.profile import SessionChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.images import keep_image
from goose_like.core.message import ToolCall, ToolResult
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.terminal.input import Prompt
from goose_like.terminal.interaction import Lines, is_terminal, screen
from goose_like.terminal.live import LiveScreen

from .clipboard import clipboard_image
from .completer import SessionCompleter
from .status_line import StatusLine


class Work(Protocol):
    """What runs because of the lines that were typed."""

    def stop(self) -> bool:
        """Stops what runs; whether something did."""

    def steer(self, words: str) -> bool:
        """Says the words now, in place of what the running step would do; false where no turn runs."""


class Seat(Protocol):
    """Lines in, everything else out. `waits`: a line is read only when what the last one began is over."""

    waits: bool

    @property
    def front(self) -> Notifier: ...

    @property
    def finished(self) -> Sequence[tuple[ToolCall, ToolResult]]:
        """The calls that are shown by number, with their results."""

    async def next(self) -> str:
        """The next input with its line end; '' when there is none any more."""

    async def ask(self, label: str) -> str:
        """A line in answer to a question."""

    def show(self, renderable: object) -> None:
        """Shows text or a Rich renderable."""

    def put(self, text: str) -> None:
        """Puts words into the input, before what is there."""

    def copy(self, text: str) -> None:
        """Puts text into the clipboard, where there is one."""

    def leave(self) -> None:
        """Lets `next` give ''."""

    def begin(self, work: Work) -> None:
        """Lets the person stop what a conversation is waiting for before it is there."""

    def open(self, desk: Desk, work: Work) -> None:
        """Shows a conversation from now on, with what it was before; `work` can be stopped."""


class LineSeat:
    """Input by lines, output as it comes: for pipes, and terminals that can do no more."""

    waits = True
    finished: Sequence[tuple[ToolCall, ToolResult]] = ()

    def __init__(self) -> None:
        self.front = screen(says_answer=True)
        self._lines = Lines()
        self._left = asyncio.Event()

    async def next(self) -> str:
        return await self.ask("goose> " if is_terminal(sys.stdin) else "")

    async def ask(self, label: str) -> str:
        print(label, end="", file=sys.stderr, flush=True)
        line, left = asyncio.ensure_future(self._lines.next()), asyncio.ensure_future(self._left.wait())
        try:
            await asyncio.wait({line, left}, return_when=asyncio.FIRST_COMPLETED)
            return line.result() if line.done() else ""
        finally:
            line.cancel()
            left.cancel()

    def show(self, renderable: object) -> None:
        self.front.log(renderable)

    def put(self, text: str) -> None:
        self.show(f"not said: {text}")

    def begin(self, work: Work) -> None:
        """Signals are all that stops something here."""

    def open(self, desk: Desk, work: Work) -> None:
        for damage in desk.exchange.session.damage:
            self.show(damage)
        if messages := desk.exchange.history.messages:
            last = messages[-1].text[:200] or messages[-1].role
            self.show(f"resumed: {len(messages)} messages; the last: {last}")

    def copy(self, text: str) -> None:
        self.show("there is no terminal to copy by")

    def leave(self) -> None:
        self._left.set()


class LiveSeat:
    """The prompt at the bottom, and the screen above it."""

    waits = False

    def __init__(self, prompt: Prompt, choice: SessionChoice) -> None:
        self.prompt = prompt
        self._session: Session | None = None
        self._pasting: asyncio.Task[None] | None = None
        prompt.completer = self._completer = SessionCompleter()
        if choice.keys == "vi":
            prompt.use_vi_keys()
        self.front = self.screen = LiveScreen(self.prompt, choice.notify)
        self.next, self.ask = self.prompt.next, self.prompt.answer
        self.put, self.copy, self.leave = self.prompt.put_back, self.prompt.copy, self.prompt.close

    @property
    def finished(self) -> Sequence[tuple[ToolCall, ToolResult]]:
        return self.screen.finished

    def begin(self, work: Work) -> None:
        self.prompt.on_interrupt = self.prompt.on_leave = work.stop
        self.screen.begin()

    def open(self, desk: Desk, work: Work) -> None:
        self.prompt.on_leave = lambda: None  # who leaves is waited for by `next`
        inbox, session = desk.exchange.inbox, desk.exchange.session
        self.screen.queued, self.screen.put = lambda: inbox.words, inbox.put
        self.prompt.on_interrupt, self.prompt.on_steer = work.stop, work.steer
        self.prompt.on_paste = lambda: self._paste(desk)
        self.prompt.status = StatusLine(desk.exchange, desk.profile).text
        self._completer.open(desk)
        self.prompt.complete()
        for damage in session.damage:
            self.show(damage)
        self.screen.open(session.recent, desk.exchange.history.plan, is_new=session is not self._session)
        self._session = session
        session.recent.clear()  # drawn once, however often it is opened

    def show(self, renderable: object) -> None:
        self.screen.show(renderable)

    def _paste(self, desk: Desk) -> None:
        if self._pasting is None or self._pasting.done():
            self._pasting = asyncio.create_task(self._take_image(desk))

    async def _take_image(self, desk: Desk) -> None:
        """Keeps the clipboard's image with the session, and names it in the input."""
        try:
            data = await clipboard_image(desk.exchange.workspace)
            image = keep_image(data, "in the clipboard", desk.exchange.session.outputs)
        except GooseLikeError as error:
            self.show(str(error))
        else:
            self.prompt.insert(pasted(image))
