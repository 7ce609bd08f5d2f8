"""The input loop of a session: read a line, run it as a turn or a command, repeat."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from goose_like.agent.build import build_exchange
from goose_like.agent.compaction.summary import suggest_title
from goose_like.agent.exchange import Exchange
from goose_like.agent.profile_choice import ProfileChoice, keep_modes, restrict_profile
from goose_like.agent.slash_command import SlashCommand, run_command
from goose_like.agent.slash_context import SlashContext, SwitchSession
from goose_like.agent.turn_request import TurnRequest, run_turn
from goose_like.cli.worktree import hold_worktree, leave_worktrees
from goose_like.config.paths import find_worktree
from goose_like.config.private_folder import remove_abandoned_folders
from goose_like.config.profile import ApprovalMode, Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.events import PlanUpdated, Status, Task, TurnFinished
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.index import write_label
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.input import Prompt
from goose_like.terminal.interaction import handle_signals, is_terminal
from goose_like.terminal.renderer import format_usage

from .io import PipeIO, TerminalIO
from .modes import apply_wanted_mode, has_new_mode, record_restriction
from .shell_escape import run_shell_escape
from .slash_registry import collect_commands, complete_name, describe_unknown, is_command_line, split_command_line

EXIT_WORDS = ("exit", ":q", "quit")
RUN_PLAN = "Carry out the plan."
_PLAN_ANSWERS: dict[str, ApprovalMode] = {"y": "auto", "yes": "auto", "q": "ask"}


async def run_chat(
    choice: ProfileChoice,
    session: Session,
    *,
    plan: tuple[Task, ...] = (),
    first: str = "",
    notes: Sequence[str] = (),
    prompt: Prompt | None = None,
    start: Path | None = None,
) -> int:
    """Run a session until the person leaves, close it, and return the exit code.

    The session begins with `notes` to the person, `plan` and the message `first`. `prompt` must be open; without it
    lines come from standard input. `start` is the folder of the person's shell: its worktree stays.
    """
    remove_abandoned_folders()
    is_person, start = is_terminal(sys.stdin), start or Path.cwd()
    io = TerminalIO(prompt, choice.profile.session) if prompt else PipeIO()
    chat = ChatLoop(io, choice.project, notes)
    try:
        with handle_signals(chat.on_signal) as chat.signals:
            last = await chat.run(SwitchSession(choice.profile, session), plan, first)
    except _StartStoppedError:
        return 128 + (chat.signals or [signal.SIGINT])[0]
    except ProfileError as error:
        raise choice.locate_error(error) from None
    finally:
        await io.shut_down()
        session.close()
        own = find_worktree(start)
        worktrees = [folder for folder in chat.folders if find_worktree(folder) != own]
        is_left = is_person and set(chat.signals) <= {signal.SIGINT}
        await leave_worktrees(worktrees, _print_line, _ask_line if is_left else None)
    _print_summary(last)
    if ends := [number for number in chat.signals if number != signal.SIGINT or not is_person]:
        return 128 + ends[0]
    return 0 if is_person else chat.exit_code


def _print_summary(session: Session) -> None:
    history = session.history
    with suppress(OSError):  # the session can end because the terminal is gone
        if history.total_usage.total_tokens:
            print(format_usage(history.total_usage, compute_cost_usd(history.usage)), file=sys.stderr)
        if history.messages and history.header and os.path.isdir(history.header.cwd):
            print(f"resume with: goose-like session resume {shlex.quote(session.name)}", file=sys.stderr)


def _print_line(text: str) -> None:
    with suppress(OSError):
        print(escape_controls(text), file=sys.stderr)


async def _ask_line(label: str) -> str:
    io = PipeIO()
    with handle_signals(io.close):
        return await io.ask(label)


class _StartStoppedError(GooseLikeError):
    """The person stopped a session that was still starting."""


class ChatLoop:
    """Input lines and the work that they start: one turn or command at a time, which the person can stop.

    `exit_code` is the one of the last turn. `signals` are those that arrived, without Ctrl-C of finished work.
    `folders` are those of the sessions.
    """

    def __init__(
        self, io: PipeIO | TerminalIO, project: ProjectConfig | None = None, notes: Sequence[str] = ()
    ) -> None:
        self.exit_code = 0
        self.signals: list[signal.Signals] = []
        self.folders = [Path.cwd()]
        self._io = io
        self._project = project
        self._notes = notes
        self._start: asyncio.Timeout | None = None
        self._exchange: Exchange | None = None
        self._work: asyncio.Task[TurnFinished | None] | None = None
        self._is_turn = False
        self._naming: asyncio.Task[None] | None = None
        self._waiting: TurnRequest | None = None  # of a command, or for the exchange in another mode
        self._last_request: TurnRequest | None = None
        self._problems: set[str] = set()
        self._next_line = ""
        self._is_plan_open = False
        self._wanted_approval: ApprovalMode | None = None

    async def run(self, target: SwitchSession | None, plan: tuple[Task, ...], first: str) -> Session:
        """Run one exchange after another until the person leaves; return the last session.

        If an exchange cannot be built, show the error and return to the exchange before.
        """
        current: SwitchSession | None = None
        while target:
            async with AsyncExitStack() as stack:
                try:
                    exchange = await self._start_exchange(target, stack)
                except GooseLikeError as error:
                    if current is None or target is current:
                        raise
                    self._io.show(str(error))
                    self._return_to_input([first] if first else [])
                    _close_left_session(target, current)
                    kept = restrict_profile(current.profile, keep_modes(current.profile, current.session))
                    current = target = replace(current, profile=kept)  # a stricter mode that was chosen stays
                    first = ""
                    continue
                if current:
                    _close_left_session(current, target)
                if current and current.session is not target.session:
                    self._last_request = None
                current = target
                if first:
                    exchange.inbox.put(first)
                target, unsent = await self._read_lines(exchange, current.profile, plan)
            plan, first = (), unsent
        assert current
        current.session.close()
        return current.session

    async def _start_exchange(self, target: SwitchSession, stack: AsyncExitStack) -> Exchange:
        """Build an exchange, which `stack` closes. Until it is built, `stop` cancels the start."""
        self._io.show_startup(self.stop)
        os.chdir(target.folder)
        self.folders.append(target.folder)
        stack.enter_context(hold_worktree(target.folder))
        try:
            async with asyncio.timeout(None) as start:  # without a limit, until `stop` sets one
                self._start = start
                building = build_exchange(
                    target.profile, self._io.notifier, session=target.session, project=self._project, logs_prints=True
                )
                return await stack.enter_async_context(building)
        except TimeoutError:
            if not start.expired():
                raise
            raise _StartStoppedError("the start was stopped") from None
        finally:
            self._start = None

    async def _read_lines(
        self, exchange: Exchange, profile: Profile, plan: tuple[Task, ...]
    ) -> tuple[SwitchSession | None, str]:
        """Handle lines until the person leaves or a command switches to another session.

        Return that session, and the messages that were not sent.
        """
        self._exchange = exchange
        context = self._open_context(exchange, profile)
        if plan:
            exchange.journal.emit(PlanUpdated(tasks=plan))
        self._send_waiting(context)
        line: asyncio.Task[str] | None = None
        try:
            while not context.is_ending and (self._work or not context.next_session):
                # Lines typed during a turn are handled at once, lines typed during a command after its end.
                reads_lines = self._work is None or (self._is_turn and not self._io.waits_for_work)
                if reads_lines and line is None:  # not earlier: a question can read the same terminal
                    line = asyncio.create_task(self._io.read_line())
                awaited = [task for task in (self._work, line if reads_lines else None) if task]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if self._work and self._work.done():
                    self._finish_work(context, self._work)
                    if self._next_line:
                        text, self._next_line = self._next_line, ""
                        await self._handle_line(text, context)
                elif line and line.done():
                    text, line = line.result(), None
                    if not text:
                        break
                    await self._handle_line(text.rstrip("\n"), context)
        finally:
            self._exchange = None
            self.stop()
            tasks = [task for task in (line, self._naming, self._work) if task]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            self._work = None
        if context.next_session and context.next_session.session is exchange.session:
            self._wanted_approval = context.wanted_approval
        elif context.wanted_approval:
            record_restriction(context, profile.sandbox, context.wanted_approval)
        return context.next_session, "\n".join(exchange.inbox.take())

    def _open_context(self, exchange: Exchange, profile: Profile) -> SlashContext:
        io = self._io
        commands, problems = collect_commands(exchange.hooks.commands, self._project)
        context = SlashContext(
            *(exchange, profile, commands, io.show, self._ask, io.prepend_text, io.copy_text, io.finished),
            is_in_turn=lambda: self._work is not None and self._is_turn,
            wanted_approval=self._wanted_approval,
            last_request=self._last_request,
        )
        self._wanted_approval = None
        io.show_session(context, self.stop, self.steer, lambda: self._work is not None)
        new = [problem for problem in problems if problem not in self._problems]
        self._problems.update(new)
        for note in (*self._notes, *exchange.session.damage, *new):
            io.show(note)
        self._notes = ()
        return context

    # --- running work

    def stop(self) -> bool:
        """Stop the running work, or a session that is starting; return whether there was any."""
        if self._start and not self._start.expired():
            self._start.reschedule(0)
            return True
        if self._work is None or self._work.done():
            return False
        if self._work.cancelling():
            return True
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

    def on_signal(self) -> None:
        """Stop the running work; any signal but a person's Ctrl-C also ends the session."""
        self.stop()
        if self.signals[-1] != signal.SIGINT or not is_terminal(sys.stdin):
            self._io.close()

    def _start_work(self, work: Coroutine[Any, Any, TurnFinished | None], *, is_turn: bool = False) -> None:
        self._work, self._is_turn = asyncio.create_task(work), is_turn

    def _finish_work(self, context: SlashContext, work: "asyncio.Task[TurnFinished | None]") -> None:
        """Send the messages that waited for the work, or put them back into the input if the work was stopped.

        Without such messages, ask how to go on after a turn that only planned. If a command switches to another
        session, the messages are sent there.

        Raises:
            Exception: The work failed, for example with a SessionError. The session then ends.
        """
        self._work = None
        if is_terminal(sys.stdin):  # Ctrl-C has stopped the work and must not end the session too
            self.signals[:] = [number for number in self.signals if number != signal.SIGINT]
        end = None if work.cancelled() else work.result()
        if work.cancelled():
            self._return_to_input(context.exchange.inbox.take())
        elif not context.next_session and self._send_waiting(context):
            pass
        elif not self._next_line and self._offers_plan(context, end):
            self._start_work(self._offer_plan(context))

    def _offers_plan(self, context: SlashContext, end: TurnFinished | None) -> bool:
        """Return whether the last turn planned, the session stays in mode `plan`, and the question is still open."""
        if end:
            is_plan = not (self._last_request and self._last_request.is_read_only)
            self._is_plan_open = end.reason == "stop" and is_plan and not self._io.waits_for_work
        is_leaving = context.next_session or context.is_ending or context.wanted_approval
        return self._is_plan_open and context.exchange.workspace.approval == "plan" and not is_leaving

    async def _ask(self, label: str) -> str:
        """Return a line in answer to a question. A slash command is no answer: it runs after the work that asks."""
        answer = await self._io.ask(label)
        if is_command_line(answer.strip()):
            self._next_line, answer = answer.strip(), "\n"
        return answer

    async def _offer_plan(self, context: SlashContext) -> None:
        """Ask whether to carry out the plan of the last turn. Other words are a message about the plan.

        The question comes again after a slash command.
        """
        answer = await self._ask("  [y] run it  [q] run it with questions  [N] keep planning, or type a change: ")
        typed = answer.strip()
        self._is_plan_open = bool(self._next_line)
        if not answer:  # Ctrl-D
            context.end_session()
        elif approval := _PLAN_ANSWERS.get(typed.lower()):
            context.wanted_approval = approval
            await self._send_in_new_mode(context, TurnRequest(RUN_PLAN))
        elif typed in EXIT_WORDS:
            self._next_line = typed
        elif typed.lower() not in ("", "n", "no"):
            context.exchange.inbox.put(typed)

    # --- lines

    async def _handle_line(self, line: str, context: SlashContext) -> None:
        if line.strip() in EXIT_WORDS:
            context.end_session()
        elif line.strip() in ("/", "!"):
            context.show("type a command behind it; /help lists the commands, !COMMAND runs one of the shell")
        elif line.startswith("!") and line[1:].strip():
            if self._work:
                context.show("!COMMAND waits for the end of the turn; Ctrl-C stops the turn")
            else:
                self._start_work(run_shell_escape(context, line[1:].strip()))
        elif found := split_command_line(line, context.commands):
            await self._handle_command(context, *found)
        elif line.strip():
            self._send(context, line)

    async def _handle_command(self, context: SlashContext, typed: str, words: str) -> None:
        name = complete_name(typed, context.commands)
        if not self._io.waits_for_work:
            context.show(f"> /{name} {words}".rstrip())
        command = context.commands.get(name)
        if command is None:
            context.show(describe_unknown(name, context.commands))
        elif self._work is None:
            self._start_work(self._run_command(context, command, words))
        elif command.anytime:
            await self._run_command(context, command, words)
        else:
            context.show(f"/{name} waits for the end of the turn; Ctrl-C stops the turn")

    async def _run_command(self, context: SlashContext, command: SlashCommand, words: str) -> None:
        try:
            message = await run_command(command, context, words)
        except GooseLikeError as error:
            context.show(f"/{command.name}: {error}")
        else:
            if isinstance(message, str) and message and self._is_turn:
                self._send(context, message)
            elif message:
                request = message if isinstance(message, TurnRequest) else TurnRequest(message)
                self._waiting = replace(request, line=request.line or f"/{command.name} {words}".rstrip())

    def _send(self, context: SlashContext, words: str) -> None:
        """Start a turn with a message, or leave the message for the next step of the running turn."""
        context.exchange.inbox.put(words)
        if self._work:
            self._io.notifier.notify(Status(text=""))
        else:
            self._send_waiting(context)

    def _send_waiting(self, context: SlashContext) -> bool:
        """Start a turn with what waits: the request of a command, else all messages. Return False if nothing does."""
        inbox = context.exchange.inbox
        if self._waiting:
            request, self._waiting = self._waiting, None
        elif inbox.pending:
            request = TurnRequest("\n".join(inbox.take()))
        else:
            return False
        if has_new_mode(context):
            self._start_work(self._send_in_new_mode(context, request))
        else:
            context.wanted_approval = None
            self._start_work(self._run_turn(context, request), is_turn=True)
        return True

    def _return_to_input(self, messages: list[str]) -> None:
        """Put the request that waits and messages into the input, so that the person can send them again."""
        request, self._waiting = self._waiting, None
        if texts := [*([request.line or request.text] if request else []), *messages]:
            self._io.prepend_text("\n".join(texts))

    async def _send_in_new_mode(self, context: SlashContext, request: TurnRequest) -> None:
        """Leave a request for the exchange in another mode, or return it to the input if the person declines."""
        if await apply_wanted_mode(context):
            self._waiting = request
        else:
            self._waiting = request
            self._return_to_input([])

    async def _run_turn(self, context: SlashContext, request: TurnRequest) -> TurnFinished:
        exchange = context.exchange
        self._last_request = context.last_request = request
        end = await run_turn(exchange, request, context.profile.processor)
        self.exit_code = end.exit_code
        if exchange.history.turn_count == 1 and exchange.session.is_kept and exchange.view.has_own_accelerator:
            self._naming = asyncio.create_task(_write_title(exchange))
        return end


def _close_left_session(left: SwitchSession, entered: SwitchSession) -> None:
    if left.session is not entered.session:
        left.session.close()


async def _write_title(exchange: Exchange) -> None:
    """Ask the accelerator for a title; without one, lists show the first words of the session."""
    with suppress(GooseLikeError):
        write_label(exchange.session.folder, "title", await suggest_title(exchange.history, exchange.view.accelerator))
