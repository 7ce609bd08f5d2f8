"""Input and output of a session: lines through a pipe, or a terminal with a prompt."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from typing_extensions import override

from goose_like.agent.inbox import Inbox
from goose_like.agent.mentions import format_pasted_image
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import SessionChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Event, TurnFinished
from goose_like.core.images import save_image
from goose_like.core.message import ToolCall, ToolResult
from goose_like.core.notifier import Notifier, Tee
from goose_like.launch.modes import choose_next_mode
from goose_like.launch.output import StdoutWriter
from goose_like.launch.slash_registry import is_command_line
from goose_like.sessions.session import Session
from goose_like.terminal.input import Prompt
from goose_like.terminal.interaction import LineReader, is_terminal, open_screen
from goose_like.terminal.program_status import ProgramStatus, has_status
from goose_like.terminal.session_screen import SessionScreen

from .clipboard import read_clipboard_image
from .completer import SessionCompleter
from .status_line import format_status

Stop = Callable[[], bool]
Steer = Callable[[str], bool]
"""`ChatLoop.stop` and `ChatLoop.steer`."""


class AnswerWriter(Notifier):
    """Standard output that is no terminal: it gets the answer of each turn when the turn ends."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        """Create the writer. It calls `on_lost` when the reader has exited, or a write failed."""
        self._writer = StdoutWriter("text")
        self._writer.reader_gone.add_done_callback(lambda _: on_lost())

    @override
    def notify(self, event: Event) -> None:
        self._writer.notify(event)
        if isinstance(event, TurnFinished):
            with suppress(OSError):  # `check` raises it
                self._writer.finish(self._writer.answer, {})

    def check(self) -> None:
        """Raise OSError if output was lost."""
        self._writer.finish("", {})


class PipeIO:
    """Input by lines and output as it comes: for pipes and simple terminals.

    With `waits_for_work` the next line is read only when the work of the last one is over. `finished` holds calls
    with their results, in the order of the numbers that `/show` takes.
    """

    waits_for_work = True
    finished: Sequence[tuple[ToolCall, ToolResult]] = ()

    def __init__(self) -> None:
        has_terminal = is_terminal(sys.stdout)
        self._screen = open_screen(shows_answer=has_terminal)
        self._answers: AnswerWriter | None = None
        self.notifier: Notifier = self._screen
        if not has_terminal:
            self._answers = AnswerWriter(self.close)
            self.notifier = Tee(self._screen, self._answers)
        self.show: Callable[[object], None] = self._screen.log
        self._lines = LineReader()
        self._closed = asyncio.Event()

    async def read_line(self) -> str:
        """Return the next input with its line end, or an empty string at the end of input."""
        return await self.ask("goose> " if is_terminal(sys.stdin) else "")

    async def ask(self, label: str) -> str:
        """Return a line in answer to a question."""
        print(label, end="", file=sys.stderr, flush=True)
        line = asyncio.ensure_future(self._lines.read_line())
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait({line, closed}, return_when=asyncio.FIRST_COMPLETED)
            return line.result() if line.done() else ""
        finally:
            line.cancel()
            closed.cancel()

    def prepend_text(self, text: str) -> None:
        """Show text that a prompt would put before the typed text."""
        self.show(f"not sent: {text}")

    def copy_text(self, text: str) -> None:
        """Say that there is no clipboard."""
        self.show("cannot copy: no terminal")

    def close(self) -> None:
        """End the input: `read_line` returns an empty string."""
        self._closed.set()

    async def shut_down(self) -> None:
        """End the output. Raise OSError if answers were lost."""
        self._screen.pause()
        if self._answers:
            self._answers.check()

    def show_startup(self, stop: Stop) -> None:
        """Do nothing: only signals stop a session that is starting."""

    def show_session(self, context: SlashContext, stop: Stop, steer: Steer, is_working: Callable[[], bool]) -> None:
        """Show the end of a resumed session."""
        messages = context.exchange.history.messages
        if not messages:
            return
        last = messages[-1]
        shown = last.text[:200] or last.role
        self.show(f"resumed: {len(messages)} messages; the last: {shown}")


class TerminalIO:
    """A prompt at the bottom of the terminal and a screen above it, with the members of `PipeIO`."""

    waits_for_work = False

    def __init__(self, prompt: Prompt, choice: SessionChoice) -> None:
        screen = SessionScreen(prompt, choice.notify)
        self._prompt = prompt
        self._screen = screen
        self._status = ProgramStatus(prompt.write_raw, Path.cwd())
        self.notifier: Notifier = screen
        if choice.status and has_status():
            self.notifier = Tee(screen, self._status)
        self.finished: Sequence[tuple[ToolCall, ToolResult]] = screen.finished
        self.show = screen.show
        self.close = prompt.close
        self.prepend_text = prompt.prepend_text
        self.copy_text = prompt.copy_text
        self._session: Session | None = None
        self._pasting: asyncio.Task[None] | None = None
        if choice.keys == "vi":
            prompt.use_vi_keys()

    async def read_line(self) -> str:
        """Return the next line, or an empty string at the end of the input."""
        line = await self._prompt.read_line()
        self._screen.hide_panels()  # they would push what the line shows off the screen
        return line

    async def ask(self, label: str) -> str:
        """Return a line in answer to a question, which appears below everything before it."""
        self._screen.draw()
        return await self._prompt.read_answer(label)

    async def shut_down(self) -> None:
        """Draw what is left and remove the prompt."""
        self._screen.draw()
        self._status.close()
        await self._prompt.shut_down()

    def show_startup(self, stop: Stop) -> None:
        """Let Ctrl-C and Ctrl-D stop a session that is still starting."""
        self._prompt.on_interrupt = stop
        self._prompt.on_leave = stop
        self._screen.show_startup()

    def show_session(self, context: SlashContext, stop: Stop, steer: Steer, is_working: Callable[[], bool]) -> None:
        """Draw a session above the prompt, with its earlier events, and connect the prompt's keys to it."""
        self._prompt.on_interrupt = stop
        self._prompt.on_steer = steer
        self._prompt.is_working = is_working
        self._connect_screen(context)
        self._connect_prompt(context)
        session = context.exchange.session
        self._screen.show_session(session.recent, is_new=session is not self._session)
        self._session = session
        session.recent.clear()  # earlier events are drawn once

    def _connect_screen(self, context: SlashContext) -> None:
        """Let the screen read the queue, the plan and the results of a session."""
        screen = self._screen
        inbox = context.exchange.inbox
        history = context.exchange.history
        screen.get_queue = lambda: inbox.pending
        screen.add_to_queue = inbox.put
        screen.describe_wait = lambda: "waits for the next mode" if inbox.is_held else "waits; Ctrl-S sends it now"
        screen.is_command = is_command_line
        screen.find_result = history.find_result
        screen.get_plan = lambda: history.plan

    def _connect_prompt(self, context: SlashContext) -> None:
        """Connect the keys, the status line and the completions of the prompt to a session."""
        prompt = self._prompt
        prompt.on_leave = lambda: None  # `read_line` reports it
        prompt.take_waiting = lambda: self._take_waiting(context.exchange.inbox)
        prompt.on_mode = lambda: self._choose_mode(context)
        prompt.on_unfold = self._screen.toggle_output
        prompt.on_help = self._screen.toggle_keys
        prompt.on_paste = lambda: self._start_paste(context)
        prompt.status = partial(format_status, context)
        prompt.completer = SessionCompleter(context)
        prompt.refresh_completions()

    def _take_waiting(self, inbox: Inbox) -> str:
        text = inbox.take_newest()
        self._screen.draw()
        return text

    def _choose_mode(self, context: SlashContext) -> None:
        choose_next_mode(context)
        self._prompt.redraw()

    def _start_paste(self, context: SlashContext) -> None:
        if self._pasting is None or self._pasting.done():
            self._pasting = asyncio.create_task(self._paste_image(context))

    async def _paste_image(self, context: SlashContext) -> None:
        try:
            data = await read_clipboard_image(context.exchange.workspace)
            image = save_image(data, "in the clipboard", context.exchange.session.outputs)
        except GooseLikeError as error:
            self.show(str(error))
        else:
            self._prompt.insert_word(format_pasted_image(image))
