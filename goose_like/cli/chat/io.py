"""Input and output of a session: lines through a pipe, or a terminal with a prompt."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Protocol

from typing_extensions import override

from goose_like.agent.mentions import format_pasted_image
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import SessionChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.images import save_image
from goose_like.core.message import ToolCall, ToolResult
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.terminal.input import Prompt
from goose_like.terminal.interaction import LineReader, is_terminal, open_screen
from goose_like.terminal.live import LiveScreen

from .clipboard import read_clipboard_image
from .completer import SessionCompleter
from .status_line import StatusLine


class Work(Protocol):
    """Running work that the person can stop or steer."""

    def stop(self) -> bool:
        """Stop the work; return whether any was running."""

    def steer(self, words: str) -> bool:
        """Send words now instead of finishing the running step; return False if no turn is running."""


class ChatIO(Protocol):
    """Input lines and output of a session.

    With `waits_for_work` the next line is read only when the work of the last one is over.
    """

    waits_for_work: bool
    notifier: Notifier
    finished: Sequence[tuple[ToolCall, ToolResult]]
    """Finished calls with their results, in the order of the numbers that `/show` takes."""

    async def read_line(self) -> str:
        """Return the next input with its line end, or an empty string at the end of input."""

    async def ask(self, label: str) -> str:
        """Return a line in answer to a question."""

    def show(self, renderable: object) -> None:
        """Show text or a Rich renderable."""

    def prepend_text(self, text: str) -> None:
        """Put text into the input, before the typed text."""

    def copy_text(self, text: str) -> None:
        """Copy text to the clipboard."""

    def close(self) -> None:
        """End the input: `read_line` returns an empty string."""

    def show_startup(self, work: Work) -> None:
        """Let the person stop a session that is still starting."""

    def show_session(self, context: SlashContext, work: Work) -> None:
        """Show a session, beginning with its earlier events, and let the person stop its work."""


class PipeIO(ChatIO):
    """Input by lines and output as it comes: for pipes and simple terminals."""

    waits_for_work = True

    def __init__(self) -> None:
        self.notifier = self.screen = open_screen(shows_answer=True)
        self.finished = ()
        self._lines = LineReader()
        self._closed = asyncio.Event()

    @override
    async def read_line(self) -> str:
        return await self.ask("goose> " if is_terminal(sys.stdin) else "")

    @override
    async def ask(self, label: str) -> str:
        print(label, end="", file=sys.stderr, flush=True)
        line, closed = asyncio.ensure_future(self._lines.read_line()), asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait({line, closed}, return_when=asyncio.FIRST_COMPLETED)
            return line.result() if line.done() else ""
        finally:
            line.cancel()
            closed.cancel()

    @override
    def show(self, renderable: object) -> None:
        self.screen.log(renderable)

    @override
    def prepend_text(self, text: str) -> None:
        self.show(f"not sent: {text}")

    @override
    def show_startup(self, work: Work) -> None:
        pass  # only signals stop work here

    @override
    def show_session(self, context: SlashContext, work: Work) -> None:
        for damage in context.exchange.session.damage:
            self.show(damage)
        if messages := context.exchange.history.messages:
            last = messages[-1].text[:200] or messages[-1].role
            self.show(f"resumed: {len(messages)} messages; the last: {last}")

    @override
    def copy_text(self, text: str) -> None:
        self.show("cannot copy: no terminal")

    @override
    def close(self) -> None:
        self._closed.set()


class TerminalIO:
    """A prompt at the bottom of the terminal and a screen above it."""

    waits_for_work = False

    def __init__(self, prompt: Prompt, choice: SessionChoice) -> None:
        self.prompt = prompt
        self.screen = LiveScreen(prompt, choice.notify)
        self.notifier: Notifier = self.screen
        self.finished: Sequence[tuple[ToolCall, ToolResult]] = self.screen.finished
        self.show = self.screen.show
        self.read_line, self.ask, self.close = prompt.read_line, prompt.read_answer, prompt.close
        self.prepend_text, self.copy_text = prompt.prepend_text, prompt.copy_text
        self._session: Session | None = None
        self._pasting: asyncio.Task[None] | None = None
        prompt.completer = self._completer = SessionCompleter()
        if choice.keys == "vi":
            prompt.use_vi_keys()

    def show_startup(self, work: Work) -> None:
        """Let Ctrl-C and Ctrl-D stop a session that is still starting."""
        self.prompt.on_interrupt = self.prompt.on_leave = work.stop
        self.screen.show_startup()

    def show_session(self, context: SlashContext, work: Work) -> None:
        """Draw a session above the prompt and connect the prompt's keys to it."""
        prompt, screen = self.prompt, self.screen
        inbox, session = context.exchange.inbox, context.exchange.session
        prompt.on_leave = lambda: None  # `read_line` reports it
        prompt.on_interrupt, prompt.on_steer = work.stop, work.steer
        prompt.on_paste = lambda: self._start_paste(context)
        prompt.status = StatusLine(context.exchange, context.profile).format
        screen.get_queue, screen.add_to_queue = lambda: inbox.pending, inbox.put
        self._completer.open(context)
        prompt.refresh_completions()
        for damage in session.damage:
            self.show(damage)
        screen.show_session(session.recent, context.exchange.history.plan, is_new=session is not self._session)
        self._session = session
        session.recent.clear()  # earlier events are drawn once

    def _start_paste(self, context: SlashContext) -> None:
        if self._pasting is None or self._pasting.done():
            self._pasting = asyncio.create_task(self._paste_image(context))

    async def _paste_image(self, context: SlashContext) -> None:
        """Save the clipboard's image with the session and mention it in the input."""
        try:
            data = await read_clipboard_image(context.exchange.workspace)
            image = save_image(data, "in the clipboard", context.exchange.session.outputs)
        except GooseLikeError as error:
            self.show(str(error))
        else:
            self.prompt.insert_word(format_pasted_image(image))
