"""The input loop of a session: read a line, run it as a turn or a command, repeat."""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from goose_like.agent.slash_context import SlashContext, SwitchSession
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.paths import find_worktree
from goose_like.config.private_folder import remove_abandoned_folders
from goose_like.config.profile import ApprovalMode
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import UsageError
from goose_like.core.events import PlanUpdated, Task, TurnFinished
from goose_like.core.gc_pause import end_gc_delay
from goose_like.launch.modes import record_restriction
from goose_like.launch.scheduler import StartStoppedError, TurnScheduler
from goose_like.launch.slash_registry import complete_name, is_command_line, split_command_line
from goose_like.launch.start import OpenedSession
from goose_like.launch.worktree import leave_worktrees
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.input import Prompt
from goose_like.terminal.interaction import handle_signals, is_terminal
from goose_like.terminal.renderer import format_usage

from .io import PipeIO, TerminalIO
from .shell_escape import run_shell_escape

EXIT_WORDS = ("exit", ":q", "quit")
RUN_PLAN = "Carry out the plan."
_LIST_ITEM = re.compile(r"^ {0,3}(?:\d+[.)]|[-*+])\s", re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#+ .*", re.MULTILINE)
_PLAN_WORD = re.compile(r"\bplan\b", re.IGNORECASE)
_PLAN_ANSWERS: dict[str, ApprovalMode] = {"y": "auto", "yes": "auto", "q": "ask"}


async def run_chat(
    opened: OpenedSession,
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
    is_person = is_terminal(sys.stdin)
    start = start or Path.cwd()
    io = TerminalIO(prompt, opened.profile.session) if prompt else PipeIO()
    chat = ChatLoop(io, opened.choice.project, notes)
    target = SwitchSession(opened.profile, opened.session, opened.folder)
    try:
        with handle_signals(chat.on_signal) as chat.signals:
            last = await chat.run(target, plan, first)
    except StartStoppedError:
        number = chat.signals[0] if chat.signals else signal.SIGINT
        return 128 + number
    finally:
        await io.shut_down()
        opened.session.close()
        with suppress(OSError):  # somebody may have removed the folder
            os.chdir(start)  # a worktree that is removed must not be the current folder
        own = find_worktree(start)
        worktrees = [folder for folder in chat.folders if find_worktree(folder) != own]
        is_left = is_person and set(chat.signals) <= {signal.SIGINT}
        can_ask = is_left and opened.profile.approval != "unattended"
        await leave_worktrees(worktrees, _print_line, _ask_line if can_ask else None)
    _print_summary(last)
    for number in chat.signals:
        # A person's Ctrl-C stops work; the end of the session is then their own choice.
        if number != signal.SIGINT or not is_person:
            return 128 + number
    return 0 if is_person else chat.scheduler.exit_code


def _print_summary(session: Session) -> None:
    history = session.history
    with suppress(OSError):  # the session can end because the terminal is gone
        usage = history.usage.total
        if usage.total_tokens:
            print(format_usage(usage, compute_cost_usd(history.usage.by_model)), file=sys.stderr)
        if history.messages and history.header and os.path.isdir(history.header.cwd):
            print(f"resume with: goose-like session resume {shlex.quote(session.name)}", file=sys.stderr)


def _print_line(text: str) -> None:
    with suppress(OSError):
        print(escape_controls(text), file=sys.stderr)


async def _ask_line(label: str) -> str:
    io = PipeIO()
    with handle_signals(io.close):
        return await io.ask(label)


class ChatLoop:
    """Input lines and the work that they start: one turn or command at a time, which the person can stop.

    `signals` are those that arrived, without Ctrl-C of finished work. `folders` are those of the sessions.
    """

    def __init__(
        self, io: PipeIO | TerminalIO, project: ProjectConfig | None = None, notes: Sequence[str] = ()
    ) -> None:
        self.signals: list[signal.Signals] = []
        self.folders = [Path.cwd()]
        self.scheduler = TurnScheduler(
            io.notifier,
            project=project,
            show=io.show,
            ask=self._ask,
            return_messages=self._return_messages,
            logs_prints=True,
        )
        self._io = io
        self._notes = notes
        self._problems: set[str] = set()
        self._reading: asyncio.Task[str] | None = None
        self._next_line = ""
        self._is_plan_open = False
        self._wanted_approval: ApprovalMode | None = None

    async def run(self, target: SwitchSession, plan: tuple[Task, ...], first: str) -> Session:
        """Run one session after another until the person leaves; return the last one."""
        async with self.scheduler as scheduler:
            self._enter_folder(target)
            await scheduler.open(target)
            end_gc_delay()
            if first:
                scheduler.exchange.inbox.put(first)
            while next_session := await self._read_lines(plan):
                plan = ()
                if not scheduler.can_continue(next_session):
                    self._enter_folder(next_session)
                await scheduler.switch(next_session)
                os.chdir(scheduler.current.folder)  # another one if the switch failed
            return scheduler.current.session

    def _enter_folder(self, target: SwitchSession) -> None:
        """Show that a session starts, and make its folder the current one, which code of other packages may use."""
        self._io.show_startup(self.stop)
        os.chdir(target.folder)
        self.folders.append(target.folder)

    async def _read_lines(self, plan: tuple[Task, ...]) -> SwitchSession | None:
        """Handle lines until the person leaves or a command switches to another session. Return that session."""
        scheduler = self.scheduler
        context = self._open_context()
        if plan:
            context.exchange.journal.emit(PlanUpdated(tasks=plan))
        scheduler.send_waiting()
        try:
            while not context.is_ending and (scheduler.work or not context.next_session):
                await asyncio.wait(self._list_awaited(), return_when=asyncio.FIRST_COMPLETED)
                if scheduler.work and scheduler.work.done():
                    self._finish_work(context, scheduler.work)
                    text = self._next_line
                    self._next_line = ""
                    if text:
                        await self._handle_line(text, context)
                elif self._reading and self._reading.done():
                    text = self._reading.result()
                    self._reading = None
                    if not text:
                        break
                    await self._handle_line(text.rstrip(), context)
        finally:
            await self._stop_reading()
            await scheduler.end_work()
        self._keep_wanted_approval(context)
        return context.next_session

    def _list_awaited(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that can end next: the running work, and the next line, if it may come now.

        Lines typed during a turn are handled at once, lines typed during a command after its end.
        """
        awaited: list[asyncio.Task[Any]] = []
        work = self.scheduler.work
        if work:
            awaited.append(work)
        takes_lines = self.scheduler.is_in_turn and not self._io.waits_for_work
        if work is None or takes_lines:
            if self._reading is None:  # not earlier: a question can read the same terminal
                self._reading = asyncio.create_task(self._io.read_line())
            awaited.append(self._reading)
        return awaited

    async def _stop_reading(self) -> None:
        if self._reading:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._reading = None

    def _keep_wanted_approval(self, context: SlashContext) -> None:
        """Keep the mode that a key has chosen for the next exchange of this session, or save a stricter one."""
        if context.wanted_approval is None:
            return
        if context.next_session and context.next_session.session is context.exchange.session:
            self._wanted_approval = context.wanted_approval
        else:
            record_restriction(context, context.profile.sandbox, context.wanted_approval)

    def _open_context(self) -> SlashContext:
        io = self._io
        scheduler = self.scheduler
        context = scheduler.context
        context.set_input = io.prepend_text
        context.copy_to_clipboard = io.copy_text
        context.finished_calls = io.finished
        context.wanted_approval = self._wanted_approval
        self._wanted_approval = None
        io.show_session(context, self.stop, self.steer, lambda: scheduler.is_working)
        new = [problem for problem in scheduler.command_problems if problem not in self._problems]
        self._problems.update(new)
        for note in (*self._notes, *scheduler.exchange.session.damage, *new):
            io.show(note)
        self._notes = ()
        return context

    def _return_messages(self, messages: list[str]) -> None:
        self._io.prepend_text("\n".join(messages))

    # --- running work

    def stop(self) -> bool:
        """Stop the running work, or a session that is starting. Return False if there is none, or it stops already."""
        return self.scheduler.stop()

    def steer(self, words: str) -> bool:
        """Send words and waiting messages now. Return False if no turn is running, or if the words are a command."""
        return words[:1] not in ("/", "!") and self.scheduler.steer(words)

    def on_signal(self) -> None:
        """Stop the running work; any signal but a person's Ctrl-C also ends the session."""
        self.stop()
        if self.signals[-1] != signal.SIGINT or not is_terminal(sys.stdin):
            self._io.close()

    def _finish_work(self, context: SlashContext, work: "asyncio.Task[TurnFinished | None]") -> None:
        """Send the messages that waited for the work; without any, ask how to go on after a turn that only planned."""
        if is_terminal(sys.stdin):  # Ctrl-C has stopped the work and must not end the session too
            self.signals[:] = [number for number in self.signals if number != signal.SIGINT]
        end = self.scheduler.settle()
        if work.cancelled() or self.scheduler.work or self._next_line:
            return
        if self._offers_plan(context, end):
            self.scheduler.start(self._offer_plan(context))

    def _offers_plan(self, context: SlashContext, end: TurnFinished | None) -> bool:
        """Return whether the last turn planned, the session stays in mode `plan`, and the question is still open."""
        if end:
            has_person = not self._io.waits_for_work
            self._is_plan_open = has_person and end.reason == "stop" and self._has_planned(context)
        is_leaving = context.next_session or context.is_ending or context.wanted_approval
        if is_leaving or context.exchange.workspace.approval != "plan":
            return False
        return self._is_plan_open

    def _has_planned(self, context: SlashContext) -> bool:
        """Return whether the last answer looks like a plan, and not like that of a review."""
        last = self.scheduler.last_request
        if last is not None and last.is_read_only:
            return False
        return _looks_like_plan(context.exchange.history.messages[-1].text)

    async def _ask(self, label: str) -> str:
        """Return a line in answer to a question. A slash command is no answer: it runs after the work that asks.

        In approval mode `unattended` the answer is an empty line, which means no.
        """
        if self.scheduler.exchange.workspace.is_unattended:
            self._io.show(f"{label.rstrip()} no, as the mode is unattended")
            return "\n"
        answer = await self._io.ask(label)
        if not is_command_line(answer.strip()):
            return answer
        self._next_line = answer.strip()
        return "\n"

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
            await self.scheduler.send_in_new_mode(TurnRequest(RUN_PLAN))
        elif typed in EXIT_WORDS:
            self._next_line = typed
        elif typed.lower() not in ("", "n", "no"):
            context.exchange.inbox.put(typed)

    # --- lines

    async def _handle_line(self, line: str, context: SlashContext) -> None:
        typed = line.strip()
        if typed in EXIT_WORDS:
            context.end_session()
        elif typed in ("/", "!"):
            context.show("type a command behind it; /help lists the commands, !COMMAND runs one of the shell")
        elif line.startswith("!"):
            if self.scheduler.work:
                context.show("!COMMAND waits for the end of the turn; Ctrl-C stops the turn")
            else:
                self.scheduler.start(run_shell_escape(context, typed[1:].strip()))
        elif typed:
            await self._submit(line, context)

    async def _submit(self, line: str, context: SlashContext) -> None:
        """Run a slash command, which the screen repeats, or send a message."""
        found = split_command_line(line, context.commands)
        if found and not self._io.waits_for_work:
            typed, words = found
            name = complete_name(typed, context.commands)
            context.show(f"> /{name} {words}".rstrip())
        try:
            await self.scheduler.submit(line)
        except UsageError as error:
            context.show(str(error))


def _looks_like_plan(answer: str) -> bool:
    """Return whether an answer may be a plan: it has steps in a list, or its first line or a heading calls it one."""
    if len(_LIST_ITEM.findall(answer)) > 1:
        return True
    first_line, _, _ = answer.strip().partition("\n")
    headings = " ".join([first_line, *_HEADING.findall(answer)])
    return _PLAN_WORD.search(headings) is not None
