"""The input loop of a session: read a line, run it as a turn or a command, repeat."""

import asyncio
import inspect
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from goose_like.agent.build import build_exchange
from goose_like.agent.compaction.summarize import suggest_title
from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.slash_context import SlashContext, SwitchSession
from goose_like.config.profile import Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import PlanUpdated, Status, Task
from goose_like.core.history import History
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.index import write_label
from goose_like.sessions.session import Session
from goose_like.terminal.input import Prompt
from goose_like.terminal.interaction import handle_signals, is_terminal
from goose_like.terminal.renderer import format_usage

from .io import ChatIO, PipeIO, TerminalIO
from .shell_escape import run_shell_escape
from .slash_registry import collect_commands

EXIT_WORDS = ("exit", ":q", "quit")
_COMMAND = re.compile(r"/([\w-]+)(?:[:\s]\s*(.*))?", re.DOTALL)


async def run_chat(
    profile: Profile,
    session: Session,
    *,
    plan: tuple[Task, ...] = (),
    first: str = "",
    project: ProjectConfig | None = None,
    prompt: Prompt | None = None,
) -> int:
    """Run a session until the person leaves, and return the exit code.

    The session begins with `plan` and the message `first`. `prompt` must be open; without it lines come from standard
    input. `project` holds the trusted files of the project, such as its commands.

    Raises:
        GooseLikeError: The session cannot start or cannot be saved.
    """
    is_person = is_terminal(sys.stdin)
    async with _open_io(profile, prompt) as io:
        chat = ChatLoop(io, project)
        with handle_signals(lambda: chat.on_signal(signals)) as signals:
            last = await chat.run(SwitchSession(profile, session), plan, first)
    _print_summary(last.history, last.name)
    if ends := [number for number in signals if number != signal.SIGINT or not is_person]:
        return 128 + ends[0]
    if chat.is_start_cancelled:
        return 128 + signal.SIGINT
    return 0 if is_person else chat.exit_code


@asynccontextmanager
async def _open_io(profile: Profile, prompt: Prompt | None) -> AsyncIterator[ChatIO]:
    if prompt is None:
        pipe = PipeIO()
        try:
            yield pipe
        finally:
            pipe.screen.pause()
        return
    terminal = TerminalIO(prompt, profile.session)
    try:
        yield terminal
    finally:
        terminal.screen.draw()
        await prompt.shut_down()


def _print_summary(history: History, name: str) -> None:
    with suppress(OSError):  # the session can end because the terminal is gone
        if history.total_usage.total_tokens:
            print(format_usage(history.total_usage, compute_cost_usd(history.usage)), file=sys.stderr)
        if history.messages:
            print(f"resume with: goose-like session resume {shlex.quote(name)}", file=sys.stderr)


class _StartCancelledError(Exception):
    """The person stopped a session that was still starting."""


class ChatLoop:
    """Input lines and the work that they start: one turn or command at a time, which the person can stop."""

    def __init__(self, io: ChatIO, project: ProjectConfig | None = None) -> None:
        self.exit_code = 0
        self.is_start_cancelled = False
        self._io = io
        self._project = project
        self._starting: asyncio.Task[Any] | None = None
        self._is_start_stopped = False
        self._exchange: Exchange | None = None
        self._work: asyncio.Task[None] | None = None
        self._is_turn = False
        self._naming: asyncio.Task[None] | None = None
        self._signals: list[signal.Signals] = []

    async def run(self, target: SwitchSession | None, plan: tuple[Task, ...], first: str) -> Session:
        """Run one exchange after another until the person leaves; return the last session.

        If an exchange cannot be built, show the error and return to the exchange before.
        """
        current: SwitchSession | None = None
        is_fallback = False
        while target:
            before, current, is_built = current, target, False
            try:
                async with self._start_exchange(current) as exchange:
                    is_built, is_fallback = True, False
                    if before and before.session is not current.session:
                        before.session.close()
                    target = await self._read_lines(exchange, current.profile, plan, first)
            except GooseLikeError as error:
                if is_built or before is None or is_fallback:
                    raise
                self._io.show(str(error))
                target, is_fallback = before, True
            except _StartCancelledError:
                self.is_start_cancelled = before is None or is_fallback
                target, is_fallback = (None, False) if self.is_start_cancelled else (before, True)
            plan, first = (), ""
        assert current
        current.session.close()
        return current.session

    @asynccontextmanager
    async def _start_exchange(self, target: SwitchSession) -> AsyncIterator[Exchange]:
        """Build an exchange. Until it is built, `stop` cancels the start."""
        self._starting = task = asyncio.current_task()
        self._io.show_startup(self)
        try:
            async with build_exchange(target.profile, self._io.notifier, session=target.session) as exchange:
                self._starting = None
                yield exchange
        except asyncio.CancelledError:
            if self._starting is None or not self._is_start_stopped:
                raise
            raise _StartCancelledError from None
        finally:
            self._starting = None
            if self._is_start_stopped and task:  # also if the start failed otherwise
                self._is_start_stopped = False
                task.uncancel()

    async def _read_lines(
        self, exchange: Exchange, profile: Profile, plan: tuple[Task, ...], first: str
    ) -> SwitchSession | None:
        """Handle lines until the person leaves or a command switches to another session."""
        self._exchange = exchange
        context = self._open_context(exchange, profile)
        if plan:
            exchange.journal.emit(PlanUpdated(tasks=plan))
        if first:
            self._send(exchange, first)
        line: asyncio.Task[str] | None = None
        try:
            while not (context.is_ending or context.next_session):
                # Lines typed during a turn are handled at once, lines typed during a command after its end.
                reads_lines = self._work is None or (self._is_turn and not self._io.waits_for_work)
                if reads_lines and line is None:  # not earlier: a question can read the same terminal
                    line = asyncio.create_task(self._io.read_line())
                awaited = [task for task in (self._work, line if reads_lines else None) if task]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if self._work and self._work.done():
                    self._finish_work(exchange, self._work)
                elif line and line.done():
                    text, line = line.result(), None
                    if not text:
                        break
                    await self._handle_line(text.rstrip("\n"), context)
        finally:
            if line:
                line.cancel()
            await self._stop_everything()
        return context.next_session

    def _open_context(self, exchange: Exchange, profile: Profile) -> SlashContext:
        io = self._io
        commands, problems = collect_commands(exchange.hooks.commands, self._project)
        context = SlashContext(exchange, profile, commands, io.show, io.ask, io.prepend_text, io.copy_text, io.finished)
        io.show_session(context, self)
        for problem in problems:
            io.show(problem)
        return context

    async def _stop_everything(self) -> None:
        self._exchange = None
        if self._naming:
            self._naming.cancel()
            await asyncio.wait([self._naming])
        if self.stop() and self._work:
            await asyncio.wait([self._work])
        self._work = None

    # --- running work

    def stop(self) -> bool:
        """Stop the running work, or a session that is starting; return whether there was any."""
        if self._starting and not self._is_start_stopped:
            self._is_start_stopped = True
            self._starting.cancel()
            return True
        if self._work is None or self._work.done():
            return False
        self._io.notifier.notify(Status(text="stopping"))
        self._work.cancel()
        return True

    def steer(self, words: str) -> bool:
        """Send words and waiting messages now, interrupting the running step.

        Return False if no turn is running, or if the words are a command.
        """
        if self._exchange is None or not (self._work and self._is_turn) or words[:1] in ("/", "!"):
            return False
        if words:
            self._exchange.inbox.put(words)
        self._exchange.inbox.steer()
        return True

    def on_signal(self, signals: list[signal.Signals]) -> None:
        """Stop the running work; any signal but a person's Ctrl-C also ends the session."""
        self._signals = signals
        self.stop()
        if signals[-1] != signal.SIGINT or not is_terminal(sys.stdin):
            self._io.close()

    def _start_work(self, work: Coroutine[Any, Any, None], *, is_turn: bool = False) -> None:
        self._work, self._is_turn = asyncio.create_task(work), is_turn

    def _finish_work(self, exchange: Exchange, work: "asyncio.Task[None]") -> None:
        """Send the messages that waited for the work, or put them back into the input if the work was stopped.

        Raises:
            Exception: The work failed, for example with a SessionError. The session then ends.
        """
        self._work = None
        if is_terminal(sys.stdin):  # Ctrl-C has stopped the work and must not end the session too
            self._signals[:] = [number for number in self._signals if number != signal.SIGINT]
        if not work.cancelled():
            work.result()
        if words := "\n".join(exchange.inbox.take()):
            if work.cancelled():
                self._io.prepend_text(words)
            else:
                self._send(exchange, words)

    # --- lines

    async def _handle_line(self, line: str, context: SlashContext) -> None:
        if line.strip() in EXIT_WORDS:
            context.end_session()
        elif line.startswith("!") and line[1:].strip():
            if self._work:
                context.show("!COMMAND waits for the end of the turn; Ctrl-C stops the turn")
            else:
                self._start_work(run_shell_escape(context, line[1:].strip()))
        elif match := _COMMAND.fullmatch(line):
            await self._handle_command(context, match[1], (match[2] or "").strip())
        elif line.strip():
            self._send(context.exchange, line)

    async def _handle_command(self, context: SlashContext, name: str, words: str) -> None:
        if not self._io.waits_for_work:
            context.show(f"> /{name} {words}".rstrip())
        command = context.commands.get(name)
        if command is None:
            hint = did_you_mean(name, context.commands)
            context.show(f"no command /{name} (to send it as a message, put a space before the /); {hint}")
        elif command.anytime:
            await self._run_command(context, command, words)
        elif self._work:
            context.show(f"/{name} waits for the end of the turn; Ctrl-C stops the turn")
        else:
            self._start_work(self._run_command(context, command, words))

    async def _run_command(self, context: SlashContext, command: SlashCommand, words: str) -> None:
        try:
            result = command.run(context, words)
            message = await result if inspect.isawaitable(result) else result
        except GooseLikeError as error:
            context.show(f"/{command.name}: {error}")
        except Exception as error:  # a package's command must not end the session
            context.show(f"/{command.name} failed: {type(error).__name__}: {error}")
        else:
            if message:
                self._send(context.exchange, message)

    def _send(self, exchange: Exchange, words: str) -> None:
        """Start a turn with a message, or leave the message for the next step of the running turn."""
        if self._work:
            exchange.inbox.put(words)
            self._io.notifier.notify(Status(text=""))
        else:
            self._start_work(self._run_turn(exchange, words), is_turn=True)

    async def _run_turn(self, exchange: Exchange, words: str) -> None:
        self.exit_code = (await exchange.reply(words)).exit_code
        if exchange.history.turn_count == 1 and exchange.session.is_kept and exchange.view.has_own_accelerator:
            self._naming = asyncio.create_task(_write_title(exchange))


async def _write_title(exchange: Exchange) -> None:
    """Ask the accelerator for a title; without one, lists show the first words of the session."""
    with suppress(GooseLikeError):
        write_label(exchange.session.folder, "title", await suggest_title(exchange.history, exchange.view.accelerator))
