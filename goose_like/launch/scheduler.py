"""The work of a conversation: turns and commands one at a time, messages that wait, and changes of the session."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from goose_like.agent.build import ClientPart, build_exchange, can_keep_toolkits, change_profile
from goose_like.agent.compaction.summary import suggest_title
from goose_like.agent.exchange import Exchange
from goose_like.agent.profile_choice import check_mode, keep_modes, restrict_profile, set_effort
from goose_like.agent.slash_command import SlashCommand, run_command
from goose_like.agent.slash_context import SlashContext, SwitchSession, ask_nobody
from goose_like.agent.turn_request import TurnRequest, run_turn
from goose_like.config.profile import Effort, Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError, PromptBlockedError, TimeLimitError, UsageError
from goose_like.core.events import Reminded, Status, TurnFinished
from goose_like.core.notifier import Notifier
from goose_like.sessions.index import read_label, write_label
from goose_like.terminal.escape import to_one_line
from goose_like.terminal.plain_text import render_plain_text
from goose_like.workspace.permissions.policy import APPROVALS, MODES

from .modes import EFFORTS, apply_wanted_mode, change_mode, choose_model, get_next_profile, has_new_mode
from .slash_registry import collect_commands, complete_name, describe_unknown, split_command_line
from .start import SessionRequest, open_session
from .worktree import hold_worktree

_MAX_TITLE_CHARS = 60

Work = Coroutine[Any, Any, TurnFinished | None]
"""A turn, or a command, which has no end of a turn."""


class StartStoppedError(GooseLikeError):
    """The person stopped a session that was still starting."""


class TurnScheduler:
    """A conversation: its exchange, the work that runs in it, and the messages that wait for that work.

    One turn or command runs at a time. `send` starts a turn, or leaves a message for the running one. `steer` sends
    messages at once, and `stop` cancels the work. `open` and `switch` change the session, the mode or the model.

    `show` tells the person something, `ask` asks for one line, and `return_messages` takes back messages that were not
    sent. `context` is what slash commands get, anew after each `open` and `switch`, and `command_problems` says which
    commands cannot be used. `exit_code` is the one of the last turn. With `logs_prints` code that prints writes to the
    log instead; a front-end that prints itself must not use it. `client` adds tools and a text to the profile.
    """

    def __init__(
        self,
        notifier: Notifier,
        *,
        project: ProjectConfig | None = None,
        show: Callable[[object], object] | None = None,
        ask: Callable[[str], Awaitable[str]] = ask_nobody,
        return_messages: Callable[[list[str]], object] | None = None,
        logs_prints: bool = False,
        client: ClientPart = ClientPart(),
    ) -> None:
        self.exit_code = 0
        self.command_problems: list[str] = []
        self.work: asyncio.Task[TurnFinished | None] | None = None
        self.last_request: TurnRequest | None = None
        self._notifier = notifier
        self._project = project
        self._show = show or self._log
        self._ask = ask
        self._logs_prints = logs_prints
        self._client = client
        self._return_messages = return_messages or self._show_unsent
        self._is_turn = False
        self._end_count = 0
        self._last_end: TurnFinished | None = None
        self._changing = asyncio.Lock()  # a change of the session begins after the one before
        self._is_switching = False
        self._late_messages: list[str] = []  # came while one exchange closed and the next one started
        self._waiting: TurnRequest | None = None  # of a command, or for the exchange in another mode
        self._naming: asyncio.Task[None] | None = None
        self._start: asyncio.Timeout | None = None
        self._current: SwitchSession | None = None
        self._exchange: Exchange | None = None
        self._context: SlashContext | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end_work()
        await self._stack.aclose()
        if self._current:
            self._current.session.close()

    @property
    def exchange(self) -> Exchange:
        """The exchange of the open session. Call `open` first."""
        assert self._exchange is not None
        return self._exchange

    @property
    def current(self) -> SwitchSession:
        """The profile, session and folder that are open. Call `open` first."""
        assert self._current is not None
        return self._current

    @property
    def context(self) -> SlashContext:
        """The context of slash commands. Call `open` first."""
        assert self._context is not None
        return self._context

    @property
    def is_working(self) -> bool:
        """True while a turn or a command runs."""
        return self.work is not None and not self.work.done()

    @property
    def is_in_turn(self) -> bool:
        """True from the start of a turn until `settle` takes note of its end."""
        return self.work is not None and self._is_turn

    # --- the session

    async def open(self, target: SwitchSession) -> None:
        """Build the exchange of a session. `stop` cancels that.

        Raises:
            StartStoppedError: `stop` was called.
            GooseLikeError: the exchange cannot be built.
        """
        self._exchange = await self._build(target)
        self._current = target
        self._open_context()

    async def switch(self, target: SwitchSession) -> None:
        """Go on with another profile, session or folder; the messages that wait move along.

        If that fails, tell the person, take the messages back, and go on as before, but never in a looser mode. The
        processes survive where only the models or the approval change.

        Raises:
            GooseLikeError: neither the new exchange nor the one before can be built.
        """
        async with self._changing:
            await self._switch(target)

    async def _switch(self, target: SwitchSession) -> None:
        self._is_switching = True
        try:
            await self._leave_and_enter(target)
        finally:
            self._is_switching = False
        self.exchange.inbox.pending += self._late_messages
        self._late_messages = []

    async def _leave_and_enter(self, target: SwitchSession) -> None:
        await self.end_work()
        before = self.current
        inbox = self.exchange.inbox
        unsent = [*inbox.take_refused(), *inbox.take()]
        if self.can_continue(target):
            self._change_profile(target)
            self._open_context()
            self.exchange.inbox.pending += unsent
            return
        self._report_ended_tasks()
        await self._stack.aclose()
        last_request = self.last_request
        try:
            if target.session is not before.session:
                self.last_request = None
            await self.open(target)
        except GooseLikeError as error:
            self._show(str(error))
            self._return_to_input(unsent)
            if target.session is not before.session:
                target.session.close()
            kept = restrict_profile(before.profile, keep_modes(before.profile, before.session))
            self.last_request = last_request
            await self.open(replace(before, profile=kept))
            return
        if target.session is not before.session:
            before.session.close()
        self.exchange.inbox.pending += unsent

    async def _build(self, target: SwitchSession) -> Exchange:
        async with AsyncExitStack() as stack:
            stack.enter_context(hold_worktree(target.folder))
            try:
                async with asyncio.timeout(None) as start:  # without a limit, until `stop` sets one
                    self._start = start
                    building = build_exchange(
                        target.profile,
                        self._notifier,
                        session=target.session,
                        folder=target.folder,
                        project=self._project,
                        client=self._client,
                        logs_prints=self._logs_prints,
                    )
                    exchange = await stack.enter_async_context(building)
            except TimeoutError:
                if not start.expired():
                    raise
                raise StartStoppedError("the start was stopped") from None
            finally:
                self._start = None
            self._stack = stack.pop_all()
        return exchange

    def can_continue(self, target: SwitchSession) -> bool:
        """Return whether the exchange can go on with other models or another approval, and with its processes."""
        before = self.current
        is_same_place = before.session is target.session and before.folder == target.folder
        return is_same_place and can_keep_toolkits(before.profile, target.profile)

    def _change_profile(self, target: SwitchSession) -> None:
        """Change the models and the modes of the exchange. If that fails, tell the person and keep the current ones."""
        try:
            self._exchange = change_profile(self.exchange, target.profile, self._stack)
            self._current = target
        except GooseLikeError as error:
            self._show(str(error))

    def _report_ended_tasks(self) -> None:
        """Tell the person and the model which processes end with this exchange."""
        tasks = self.exchange.hooks.list_running_tasks()
        if not tasks:
            return
        names = ", ".join(f"{task.name} ({to_one_line(task.title, _MAX_TITLE_CHARS)})" for task in tasks)
        self._show(f"ended by this change: {names}")
        note = f"The person's change of the session ended: {names}"
        self.exchange.journal.emit(Reminded(text=note, reason="shown"))

    def _open_context(self) -> None:
        """Make the context of slash commands for the exchange that is open now."""
        hooks = self.exchange.hooks
        commands, self.command_problems = collect_commands(hooks.commands, self._project, hooks.yielding_commands)
        self._context = SlashContext(
            self.exchange,
            self.current.profile,
            commands,
            show=self._show,
            ask=self._ask,
            is_in_turn=lambda: self.is_in_turn,
            last_request=self.last_request,
        )

    # --- messages

    def send(self, words: str) -> None:
        """Start a turn with a message, or leave the message for the next step of the running turn."""
        if self._is_switching:
            self._late_messages.append(words)
            return
        if self.work and self.work.done():
            self.settle()
        self.exchange.inbox.put(words)
        if self.work:
            self._notifier.notify(Status(text=""))
        else:
            self.send_waiting()

    def send_waiting(self) -> bool:
        """Start a turn with what waits: the request of a command, else all messages. Return False if nothing does."""
        request = self._waiting
        self._waiting = None
        if request is None:
            messages = self.exchange.inbox.take()
            if not messages:
                return False
            request = TurnRequest("\n".join(messages))
        if has_new_mode(self.context):
            self.start(self.send_in_new_mode(request))
        else:
            self.context.wanted_approval = None
            self.start(self._run_turn(request), is_turn=True)
        return True

    async def send_in_new_mode(self, request: TurnRequest) -> None:
        """Leave a request for the exchange in another mode, or return it to the input if the person declines."""
        is_confirmed = await apply_wanted_mode(self.context)
        self._waiting = request
        if not is_confirmed:
            self._return_to_input([])

    def steer(self, words: str) -> bool:
        """Send words and the waiting messages now: they cut the running step short. Return False without a turn."""
        if self._exchange is None or not self.is_in_turn:
            return False
        inbox = self.exchange.inbox
        if words:
            inbox.put(words)
        inbox.steer()
        return True

    def _return_to_input(self, messages: list[str]) -> None:
        """Give the request that waits and messages back to the person, who can send them again."""
        texts = list(messages)
        if self._waiting:
            texts.insert(0, self._waiting.line or self._waiting.text)
        self._waiting = None
        if texts:
            self._return_messages(texts)

    # --- work

    def start(self, work: Work, *, is_turn: bool = False) -> None:
        """Start work. Only one piece of work may run; check `work` first."""
        self.work = asyncio.create_task(work)
        self._is_turn = is_turn

    def stop(self) -> bool:
        """Stop the running work, or a session that is starting. Return False if there is none, or it stops already."""
        if self._start and not self._start.expired():
            self._start.reschedule(0)
            return True
        if self.work is None or self.work.done() or self.work.cancelling():
            return False
        self._notifier.notify(Status(text="stopping"))
        self.work.cancel()
        return True

    def settle(self) -> TurnFinished | None:
        """Take note of work that is done, and send what waited for it, unless a command switches to another session.

        Work that was stopped gives the waiting messages back to the person. Return the end of a turn.

        Raises:
            Exception: the work failed, for example with a SessionError. The session then ends.
        """
        work = self.work
        assert work is not None
        self.work = None
        inbox = self.exchange.inbox
        refused = inbox.take_refused()
        if work.cancelled():
            self._return_to_input([*refused, *inbox.take()])
            has_begun = self._is_turn and not refused
            end = self.exchange.history.last_turn if has_begun else None
            self._note_end(end)
            return end
        end = work.result()
        self._note_end(end)
        if refused:
            self._return_messages(refused)
        if not self.context.next_session:
            self.send_waiting()
        return end

    async def finish(self) -> TurnFinished | None:
        """Wait until no work runs and no message waits for it; make the switches that commands wanted.

        Return the end of the last turn, if there was one. A turn that was stopped has the reason `cancelled`.

        Raises:
            Exception: the work failed, as in `settle`.
        """
        end_count = self._end_count
        while self.work or self._changing.locked():
            work = self.work
            if work:
                await asyncio.wait([work])
            async with self._changing:
                if self.work is work and work:  # else another caller has settled it
                    self.settle()
                if not self.work:
                    await self._make_switch()
        return self._last_end if self._end_count > end_count else None

    def _note_end(self, end: TurnFinished | None) -> None:
        """Note how a turn ended, for those that wait in `finish`. A command has no such end."""
        if self._is_turn:
            self._end_count += 1
            self._last_end = end

    async def _catch_up(self) -> None:
        """Take note of work that is done and make its switch: what follows must not meet the modes of before."""
        if self.work and self.work.done():
            self.settle()
        if not self.work:
            await self._make_switch()

    async def _make_switch(self) -> None:
        """Switch to the session that a command wanted, and send what waited for it."""
        target = self.context.next_session
        if target:
            await self._switch(target)
            self.send_waiting()

    async def submit(self, line: str) -> None:
        """Take a line as a session does: run a slash command, or send a message.

        The next call, or `finish`, makes the switch that a command wants.

        Raises:
            UsageError: the line is a command that nobody knows, or that has to wait for the end of the turn.
        """
        async with self._changing:
            await self._submit(line)

    async def _submit(self, line: str) -> None:
        await self._catch_up()
        found = split_command_line(line, self.context.commands)
        if found is None:
            self.send(line)
            return
        typed, words = found
        name = complete_name(typed, self.context.commands)
        command = self.context.commands.get(name)
        if command is None:
            raise UsageError(describe_unknown(name, self.context.commands))
        if self.work is None:
            self.start(self.run_command(command, words))
        elif command.anytime:
            await self.run_command(command, words)
        else:
            raise UsageError(f"/{name} waits for the end of the turn; Ctrl-C stops the turn")

    async def start_turn(self, request: TurnRequest) -> None:
        """Start a turn with a message that is no line, such as one with images or with a schema for the answer.

        Raises:
            UsageError: a turn or a command runs.
        """
        async with self._changing:
            await self._catch_up()
            if self.work:
                raise UsageError("a turn runs; wait for its end, or stop it")
            self._waiting = request
            self.send_waiting()

    async def set_mode(self, *, approval: str | None = None, sandbox: str | None = None) -> Profile:
        """Change the approval or the sandbox like `/mode`, and return the profile that holds then.

        Without `ask`, nobody confirms a change to `yolo`, or to a sandbox that allows more than the workspace.

        Raises:
            UsageError: there is no such mode, or it is looser than now during a turn.
        """
        changes = {}
        if approval is not None:
            check_mode("approval mode", approval, APPROVALS)
            changes["approval"] = approval
        if sandbox is not None:
            check_mode("sandbox", sandbox, MODES)
            changes["sandbox"] = sandbox
        async with self._changing:
            await self._catch_up()
            changed = await change_mode(self.context, get_next_profile(self.context), changes)
            if not self.work:
                await self._make_switch()
        return changed

    async def set_model(self, name: str) -> Profile:
        """Change the model like `/model`, and return the profile that holds then.

        Raises:
            UsageError: a turn runs.
            GooseLikeError: nobody knows the model, or it cannot be used.
        """
        async with self._changing:
            await self._catch_up()
            if self.work:
                raise UsageError("another model waits for the end of the turn")
            changed = await choose_model(self.context, name)
            await self._switch(replace(self.current, profile=changed))
            self.send_waiting()
        return self.current.profile

    async def set_effort(self, effort: Effort) -> Profile:
        """Change the effort like `/effort`, and return the profile that holds then.

        Raises:
            UsageError: a turn runs, there is no such effort, or the model does not know it.
        """
        check_mode("effort", effort, EFFORTS)
        async with self._changing:
            await self._catch_up()
            if self.work:
                raise UsageError("another effort waits for the end of the turn")
            changed = set_effort(self.context.profile, effort)
            await self._switch(replace(self.current, profile=changed))
            self.send_waiting()
        return self.current.profile

    async def run_command(self, command: SlashCommand, words: str) -> None:
        """Run a slash command. The message that it sends goes to the running turn, or waits for the next one."""
        try:
            message = await run_command(command, self.context, words)
        except GooseLikeError as error:
            self.context.show(f"/{command.name}: {error}")
            return
        if not message:
            return
        if isinstance(message, str) and self._is_turn:
            self.send(message)
            return
        request = message if isinstance(message, TurnRequest) else TurnRequest(message)
        line = f"/{command.name} {words}".rstrip()
        self._waiting = replace(request, line=request.line or line)

    async def _run_turn(self, request: TurnRequest) -> TurnFinished | None:
        """Run a turn. If toolkits do not let its message through, give it back to the person, and return None."""
        exchange = self.exchange
        self.last_request = request
        self.context.last_request = request
        turn_count = exchange.history.turn_count
        try:
            end = await run_turn(exchange, request, self.context.profile.processor)
        except (PromptBlockedError, TimeLimitError) as error:
            self.context.show(str(error))
            self.exit_code = error.exit_code
            exchange.inbox.refused.append(request.line or request.text)
            return None
        except asyncio.CancelledError:
            if exchange.history.turn_count == turn_count:  # a toolkit was judging the message
                exchange.inbox.refused.append(request.line or request.text)
            raise
        self.exit_code = end.exit_code
        is_first = exchange.history.turn_count == 1 and exchange.session.is_kept
        if is_first and exchange.view.has_own_accelerator:
            self._naming = asyncio.create_task(_write_title(exchange))
        return end

    def _log(self, content: object) -> None:
        """Log a text, or the text of a Rich renderable, which slash commands show."""
        self._notifier.log(render_plain_text(content))

    def _show_unsent(self, messages: list[str]) -> None:
        for message in messages:
            self._show(f"not sent: {message}")

    async def end_work(self) -> None:
        """Stop the work and the search for a title, and wait for their ends."""
        self.stop()
        tasks: list[Awaitable[object]] = []
        for task in (self._naming, self.work):
            if task:
                task.cancel()
                tasks.append(task)
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        self.work = None
        self._naming = None


async def _write_title(exchange: Exchange) -> None:
    """Ask the accelerator for a title; without one, lists show the first words of the session.

    A title of the person, also one that is given meanwhile, stays. A failure is silent, since nobody asked for a title.
    """
    folder = exchange.session.folder
    try:
        title = await suggest_title(exchange.history, exchange.view.accelerator)
        if not read_label(folder, "title"):
            write_label(folder, "title", title)
    except GooseLikeError as error:
        logging.getLogger(__name__).info("the session %s has no title: %s", exchange.session.name, error)


@asynccontextmanager
async def open_conversation(
    request: SessionRequest,
    notifier: Notifier,
    folder: Path | None = None,
    *,
    ask: Callable[[str], Awaitable[str]] = ask_nobody,
    return_messages: Callable[[list[str]], object] | None = None,
    change: Callable[[Profile], Profile] = lambda profile: profile,
    client: ClientPart = ClientPart(),
) -> AsyncIterator[TurnScheduler]:
    """Open a session as `open_session` does, and a scheduler with its exchange. The end of the block closes both.

    `change` changes the profile for this session, for example its limits.
    """
    async with open_session(request, notifier, folder) as opened:
        project = opened.choice.project
        scheduler = TurnScheduler(notifier, project=project, ask=ask, return_messages=return_messages, client=client)
        async with scheduler:
            await scheduler.open(SwitchSession(change(opened.profile), opened.session, opened.folder))
            yield scheduler
