"""The session: what is done with each line that is typed. Turns are the exchange's, drawing is the seat's."""

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
from goose_like.agent.compaction.summarize import title
from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import Command
from goose_like.agent.slash_context import Desk, Reopen
from goose_like.config.profile import Profile
from goose_like.config.trust import Project
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import PlanUpdated, Status, Task
from goose_like.core.history import History
from goose_like.providers.prices import cost_usd
from goose_like.sessions.index import write_title
from goose_like.sessions.session import Session
from goose_like.terminal.input import Prompt
from goose_like.terminal.interaction import is_terminal, on_signals
from goose_like.terminal.renderer import spent

from .io import LineSeat, LiveSeat, Seat
from .shell_escape import run_own_command
from .slash_registry import slash_commands

LEAVE = ("exit", ":q", "quit")
_COMMAND = re.compile(r"/([\w-]+)(?:[:\s]\s*(.*))?", re.DOTALL)


async def chat(
    profile: Profile,
    session: Session,
    *,
    plan: tuple[Task, ...] = (),
    first: str = "",
    project: Project | None = None,
    prompt: Prompt | None = None,
) -> int:
    """Talks until the person leaves; gives the exit code. `plan` and `first` are begun with, before a line is read.

    Without a `prompt`, which must be open, lines are read from standard input. `project` is what of it is trusted: its
    commands count.

    Raises:
        GooseLikeError: what kept the session from starting, or from being kept.
    """
    is_person = is_terminal(sys.stdin)
    async with _seated(profile, prompt) as seat:
        chat = Chat(seat, project)
        with on_signals(lambda: chat.signalled(signals)) as signals:
            last = await chat.run(Reopen(profile, session), plan, first)
    _tell_the_end(last.history, last.name)
    if ends := [number for number in signals if number != signal.SIGINT or not is_person]:
        return 128 + ends[0]
    if chat.is_given_up:
        return 128 + signal.SIGINT
    return 0 if is_person else chat.exit_code


@asynccontextmanager
async def _seated(profile: Profile, prompt: Prompt | None) -> AsyncIterator[Seat]:
    if prompt is None:
        plain = LineSeat()
        try:
            yield plain
        finally:
            plain.front.pause()
        return
    seat = LiveSeat(prompt, profile.session)
    try:
        yield seat
    finally:
        seat.screen.draw()
        await prompt.gone()


def _tell_the_end(history: History, name: str) -> None:
    with suppress(OSError):  # the terminal that is gone may be why the session ends
        if history.total_usage.total_tokens:
            print(spent(history.total_usage, cost_usd(history.usage)), file=sys.stderr)
        if history.messages:
            print(f"resume with: goose-like session resume {shlex.quote(name)}", file=sys.stderr)


class _GivenUp(Exception):
    """The person did not wait for a conversation to begin."""


class Chat:
    """What a person types, line by line, and the work that comes of it: one piece at a time, which can be stopped."""

    def __init__(self, seat: Seat, project: Project | None = None) -> None:
        self.exit_code = 0
        self.is_given_up = False
        self._is_stopped = False
        self._opening: asyncio.Task[Any] | None = None
        self._seat = seat
        self._project = project
        self._exchange: Exchange | None = None
        self._work: asyncio.Task[None] | None = None
        self._naming: asyncio.Task[None] | None = None
        self._is_turn = False
        self._signals: list[signal.Signals] = []

    async def run(self, wanted: Reopen | None, plan: tuple[Task, ...], first: str) -> Session:
        """Talks in one exchange after another, until the person leaves; gives the session that was the last.

        One that can't be built is told, and the one before goes on.
        """
        opened: Reopen | None = None
        is_back = False
        while wanted:
            before, opened, is_built = opened, wanted, False
            try:
                async with self._built(opened) as exchange:
                    is_built, is_back = True, False
                    if before and before.session is not opened.session:
                        before.session.close()
                    wanted = await self._talk(exchange, opened.profile, plan, first)
            except GooseLikeError as error:
                if is_built or before is None or is_back:
                    raise
                self._seat.show(str(error))
                wanted, is_back = before, True
            except _GivenUp:
                self.is_given_up = before is None or is_back
                wanted, is_back = (None, False) if self.is_given_up else (before, True)
            plan, first = (), ""
        assert opened
        opened.session.close()
        return opened.session

    @asynccontextmanager
    async def _built(self, wanted: Reopen) -> AsyncIterator[Exchange]:
        """Its exchange. While that is built, what would stop work stops that.

        Raises:
            _GivenUp: it was stopped.
        """
        self._opening = task = asyncio.current_task()
        self._seat.begin(self)
        try:
            async with build_exchange(wanted.profile, self._seat.front, session=wanted.session) as exchange:
                self._opening = None
                yield exchange
        except asyncio.CancelledError:
            if self._opening is None or not self._is_stopped:
                raise
            raise _GivenUp from None
        finally:
            self._opening = None
            if self._is_stopped and task:  # whatever became of that
                self._is_stopped = False
                task.uncancel()

    async def _talk(self, exchange: Exchange, profile: Profile, plan: tuple[Task, ...], first: str) -> Reopen | None:
        """Takes lines until the person leaves, or a command wants to go on elsewhere."""
        self._exchange, seat = exchange, self._seat
        commands, left_out = slash_commands(exchange.commands, self._project)
        desk = Desk(exchange, profile, commands, seat.show, seat.ask, seat.put, seat.copy, seat.finished)
        seat.open(desk, self)
        for sentence in left_out:
            seat.show(sentence)
        if plan:
            exchange.journal.emit(PlanUpdated(tasks=plan))
        if first:
            self._say(exchange, first)
        line: asyncio.Task[str] | None = None
        try:
            while not (desk.is_over or desk.next):
                # Beside a turn lines are taken at once; what is typed beside a command waits for its end.
                takes_lines = self._work is None or (self._is_turn and not seat.waits)
                if takes_lines and line is None:  # not sooner: a question may read the same terminal
                    line = asyncio.create_task(seat.next())
                awaited = [task for task in (self._work, line if takes_lines else None) if task]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if self._work and self._work.done():
                    self._end(exchange, self._work)
                elif line and line.done():
                    said, line = line.result(), None
                    if not said:
                        break
                    await self._take(said.rstrip("\n"), desk)
        finally:
            if line:
                line.cancel()
            self._exchange = None
            if self._naming:
                self._naming.cancel()
                await asyncio.wait([self._naming])
            if self.stop() and self._work:
                await asyncio.wait([self._work])
            self._work = None
        return desk.next

    # --- while something runs

    def stop(self) -> bool:
        """Stops what runs, or what is waited for before anything can; whether something was."""
        if self._opening and not self._is_stopped:
            self._is_stopped = True
            self._opening.cancel()
            return True
        if self._work is None or self._work.done():
            return False
        self._seat.front.notify(Status(text="stopping"))
        self._work.cancel()
        return True

    def steer(self, words: str) -> bool:
        """Says the words, and what waits, in place of the step that runs. False: no turn runs, or it is a command."""
        if self._exchange is None or not (self._work and self._is_turn) or words[:1] in ("/", "!"):
            return False
        if words:
            self._exchange.inbox.put(words)
        self._exchange.inbox.steer()
        return True

    def signalled(self, signals: list[signal.Signals]) -> None:
        """Stops what runs; what is no Ctrl-C of a person ends the session as well."""
        self._signals = signals
        self.stop()
        if signals[-1] != signal.SIGINT or not is_terminal(sys.stdin):
            self._seat.leave()

    def _begin(self, work: Coroutine[Any, Any, None], *, is_turn: bool = False) -> None:
        self._work, self._is_turn = asyncio.create_task(work), is_turn

    def _end(self, exchange: Exchange, work: "asyncio.Task[None]") -> None:
        """What was typed meanwhile is said now; after work that was stopped it comes back into the input.

        Raises: whatever nobody foresaw, and SessionError where the file can't be written: they end the session.
        """
        self._work = None
        if is_terminal(sys.stdin):
            self._signals[:] = [one for one in self._signals if one != signal.SIGINT]  # it has stopped what it should
        if not work.cancelled():
            work.result()
        if words := "\n".join(exchange.inbox.take()):
            if work.cancelled():
                self._seat.put(words)
            else:
                self._say(exchange, words)

    # --- what a line means

    async def _take(self, line: str, desk: Desk) -> None:
        if line.strip() in LEAVE:
            desk.leave()
        elif line.startswith("!") and line[1:].strip():
            if self._work:
                desk.show("a command of yours waits for the end of the turn; Ctrl-C stops it")
            else:
                self._begin(run_own_command(desk, line[1:].strip()))
        elif found := _COMMAND.fullmatch(line):
            await self._command(desk, found[1], (found[2] or "").strip())
        elif line.strip():
            self._say(desk.exchange, line)

    async def _command(self, desk: Desk, name: str, words: str) -> None:
        if not self._seat.waits:
            desk.show(f"> /{name} {words}".rstrip())
        command = desk.commands.get(name)
        if command is None:
            near = did_you_mean(name, desk.commands)
            desk.show(f"no command /{name}; {near} a space before the / makes it a message")
        elif command.anytime:
            await self._run(desk, command, words)
        elif self._work:
            desk.show(f"/{name} waits for the end of the turn; Ctrl-C stops it")
        else:
            self._begin(self._run(desk, command, words))

    async def _run(self, desk: Desk, command: Command, words: str) -> None:
        try:
            said = command.run(desk, words)
            said = await said if inspect.isawaitable(said) else said
        except GooseLikeError as error:
            desk.show(f"/{command.name}: {error}")
        except Exception as error:  # a package's command must not end the session
            desk.show(f"/{command.name} failed: {type(error).__name__}: {error}")
        else:
            if said:
                self._say(desk.exchange, said)

    def _say(self, exchange: Exchange, words: str) -> None:
        """Begins a turn, or leaves the words for the next step of the one that runs."""
        if self._work:
            exchange.inbox.put(words)
            self._seat.front.notify(Status(text=""))
        else:
            self._begin(self._turn(exchange, words), is_turn=True)

    async def _turn(self, exchange: Exchange, words: str) -> None:
        self.exit_code = (await exchange.reply(words)).exit_code
        if exchange.history.turn_count == 1 and exchange.session.is_kept and exchange.view.has_own_accelerator:
            self._naming = asyncio.create_task(_name(exchange))


async def _name(exchange: Exchange) -> None:
    """Asks the fast model for a title, for lists of sessions; without an answer they show the first words."""
    with suppress(GooseLikeError):
        write_title(exchange.session.folder, await title(exchange.history, exchange.view.accelerator))
