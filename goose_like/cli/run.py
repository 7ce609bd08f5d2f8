"""One-shot runs: one turn, the answer on standard output, progress on standard error, an exit code."""

import asyncio
import os
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.turn_request import run_turn
from goose_like.config.profile import Profile
from goose_like.core.errors import GooseLikeError, TimeLimitError
from goose_like.core.events import RunFinished, TurnFinished
from goose_like.core.gc_pause import end_gc_delay
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.notifier import Tee
from goose_like.launch.output import (
    StdoutWriter,
    describe_stop,
    find_structured_answer,
    make_run_finished,
    make_summary,
    report_failure,
    run_until_stopped,
)
from goose_like.launch.run_options import RunOptions
from goose_like.launch.start import OpenedSession, SessionRequest, open_session
from goose_like.launch.start_notifier import StartNotifier, print_warning
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import has_person, open_screen
from goose_like.terminal.program_status import ProgramStatus, has_status, write_to_stderr
from goose_like.terminal.renderer import END_OPENINGS


async def run_command(options: RunOptions, request: SessionRequest) -> int:
    """Open the session in the current folder, run the task in it, and return the exit code."""
    start = Path.cwd()
    async with AsyncExitStack() as stack:
        with report_failure(options.output_format):
            opened = await stack.enter_async_context(open_session(request, StartNotifier(), start))
            if options.change:
                opened = _change_profile(opened, options.change(opened.profile))
        if not has_person() and opened.profile.approval == "auto":
            opened = _change_profile(opened, opened.profile.model_copy(update={"approval": "unattended"}))
        os.chdir(opened.folder)  # code of other packages may use the current folder
        try:
            return await run_once(options, opened)
        finally:
            os.chdir(start)  # a worktree that is removed must not be the current folder
            if request.worktree is not None:
                from goose_like.launch.worktree import leave_worktrees  # imported here: few runs have one

                await leave_worktrees([opened.folder], print_warning, None)


def _change_profile(opened: OpenedSession, profile: Profile) -> OpenedSession:
    """Return the session with another profile, such as one that says that nobody can be asked."""
    return replace(opened, choice=replace(opened.choice, profile=profile))


async def run_once(options: RunOptions, opened: OpenedSession) -> int:
    """Run one turn and return the exit code."""
    out = StdoutWriter(options.output_format)
    status = ProgramStatus(write_to_stderr, opened.folder)
    notifier = _open_notifier(out, status, options, opened)
    history = History()
    code = 1
    failure = ""
    try:
        building = build_exchange(
            opened.profile,
            notifier,
            session=opened.session,
            folder=opened.folder,
            project=opened.choice.project,
            limits=options.limit(opened.profile),
            logs_prints=True,
        )
        async with building as exchange:
            end_gc_delay()
            history = exchange.history
            end, code = await run_until_stopped(_run_task(exchange, options, opened), notifier, out)
            if end:
                code = end.exit_code
            else:
                failure = describe_stop(code)
            if options.receipt_file:
                await _write_receipt(options.receipt_file, exchange)
    except GooseLikeError as error:
        code = error.exit_code
        failure = opened.describe_error(error)
        raise
    finally:  # after the exchange is closed, which can still emit events
        finished = _make_last_event(history, code, failure)
        notifier.notify(finished)
        status.close()
        answer = out.answer
        structured = None
        if options.answer_schema:
            answer, structured = find_structured_answer(history, options.answer_schema)
        out.finish(answer, make_summary(answer, structured, finished, history))
    if options.answer_file and answer:
        _write_answer(options.answer_file, answer)
    if options.is_quiet and finished.detail:
        # No screen has shown why the turn failed.
        opening = END_OPENINGS.get(finished.reason, "")
        print_warning(f"{opening} {escape_controls(finished.detail)}".strip())
    return code


async def _write_receipt(file: Path, exchange: Exchange) -> None:
    from goose_like.agent.receipt import make_receipt, write_receipt  # few runs have one

    write_receipt(file, await make_receipt(exchange))


def _write_answer(file: Path, answer: str) -> None:
    try:
        file.write_text(answer.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as error:
        raise GooseLikeError(f"the answer cannot be written to {file}: {error.strerror}") from error


def _open_notifier(
    out: StdoutWriter, status: ProgramStatus, options: RunOptions, opened: OpenedSession
) -> StdoutWriter | Tee:
    """Return the notifier of a run: standard output, and on standard error the progress and the terminal's status."""
    if options.is_quiet:
        return out
    screen = open_screen(shows_answer=False)
    if has_status() and opened.profile.session.status:
        return Tee(screen, status, out)
    return Tee(screen, out)


def _make_last_event(history: History, code: int, failure: str) -> RunFinished:
    last = history.last_turn
    if last is None or (failure and last.reason == "stop"):  # the work failed before the turn, or after it
        return make_run_finished(history.usage.turn_by_model, "error", code, failure)
    return make_run_finished(history.usage.turn_by_model, last.reason, code, failure or last.detail)


async def _run_task(exchange: Exchange, options: RunOptions, opened: OpenedSession) -> TurnFinished:
    if not (options.is_typed and options.text.startswith("/")):
        task = Message.user(options.text) if options.is_plain else options.text
        return await replace(exchange, answer_schema=options.answer_schema).reply(task)
    from goose_like.launch.slash_message import expand_command  # slash commands are slow to import

    budget = exchange.budget
    started_at = time.monotonic()
    try:
        async with asyncio.timeout(budget.time_left_s) as limit:
            turn = await expand_command(options.text, exchange, opened.profile, opened.choice.project)
    except TimeoutError:
        if not limit.expired():
            raise
        detail = budget.describe_timeout().detail
        raise TimeLimitError(f"the command took all of {detail}; allow more with --timeout") from None
    turn = replace(turn, answer_schema=options.answer_schema)
    budget.spent_s = time.monotonic() - started_at
    return await run_turn(exchange, turn, opened.profile.processor)
