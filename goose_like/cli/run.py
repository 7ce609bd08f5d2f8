"""One-shot runs: one turn, the answer on standard output, progress on standard error, an exit code."""

import asyncio
import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.turn_request import run_turn
from goose_like.config.profile import Limits, Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError, TimeLimitError, UsageError
from goose_like.core.events import Event, MessageCompleted, RunFinished, Status, TurnFinished
from goose_like.core.history import History
from goose_like.core.message import Message, Usage, join_answers
from goose_like.core.notifier import Notifier, Tee
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls, escape_for
from goose_like.terminal.interaction import handle_signals, is_terminal, open_screen

from .options import OutputFormat

T = TypeVar("T")
_FILE_NAME = re.compile(r"\S+\.(md|txt|prompt)")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A one-shot run. Without `session` nothing is saved. `project` has trusted files with slash commands.

    Only a text that `is_typed`, on the command line, can be a slash command.
    """

    text: str
    profile: Profile
    limits: Limits
    session: Session | None
    output_format: OutputFormat = "text"
    is_quiet: bool = False
    project: ProjectConfig | None = None
    is_typed: bool = False


async def run_once(request: RunRequest) -> int:
    """Run one turn and return the exit code."""
    out = StdoutWriter(request.output_format)
    notifier = out if request.is_quiet else Tee(open_screen(shows_answer=False), out)
    history, code = History(), 1
    try:
        building = build_exchange(
            request.profile,
            notifier,
            session=request.session,
            project=request.project,
            limits=request.limits,
            logs_prints=True,
        )
        async with building as exchange:
            history = exchange.history
            end, code = await run_until_stopped(_run_task(exchange, request), notifier, out)
            code = end.exit_code if end else code
    except GooseLikeError as error:
        code = error.exit_code
        raise
    finally:  # after the exchange is closed, which can still emit events
        last = history.last_turn
        finished = make_run_finished(history.turn_usage, last.reason if last else "error", code)
        notifier.notify(finished)
        summary = {
            "result": out.answer,
            **json.loads(finished.model_dump_json(exclude={"type"})),
            "detail": last.detail if last else "",
            "session": history.header.name if history.header else None,
            "models": history.header.models if history.header else {},
            "denied": [question.model_dump() for question in history.unanswered_questions],
        }
        out.finish(out.answer, summary)
    return code


async def _run_task(exchange: Exchange, request: RunRequest) -> TurnFinished:
    if not (request.is_typed and request.text.startswith("/")):
        return await exchange.reply(request.text)
    from .run_command import expand_command  # slash commands are slow to import

    limits, started_at = exchange.limits, time.monotonic()
    try:
        async with asyncio.timeout(limits.time_left_s) as limit:
            turn = await expand_command(request.text, exchange, request.profile, request.project)
    except TimeoutError:
        if not limit.expired():
            raise
        detail = limits.describe_timeout().detail
        raise TimeLimitError(f"the command took all of {detail}; allow more with --timeout") from None
    limits = replace(limits, spent_s=time.monotonic() - started_at)
    return await run_turn(replace(exchange, limits=limits), turn, request.profile.processor)


def make_run_finished(usage: Mapping[str, Usage], reason: str, exit_code: int) -> RunFinished:
    """Return the last event of a run, with the sum of tokens and the cost of all models."""
    total = sum(usage.values(), Usage())
    return RunFinished(usage=total, cost_usd=compute_cost_usd(usage), reason=reason, exit_code=exit_code)


async def run_until_stopped(
    work: Coroutine[Any, Any, T],
    notifier: Notifier,
    out: "StdoutWriter",
    on_interrupt: Callable[[], bool] = lambda: False,
) -> tuple[T | None, int]:
    """Run work until it ends, a signal arrives, or the reader of standard output is gone.

    Return the result of the work, if any, and the exit code of the stop, or 0. `on_interrupt` can handle a SIGINT in
    another way: it then returns True.
    """
    task = asyncio.create_task(work)
    is_stopped = False

    def stop(*_: object) -> None:
        nonlocal is_stopped
        if not task.done():
            is_stopped = True
            notifier.notify(Status(text="stopping"))
            task.cancel()

    def handle_signal() -> None:
        if signals[-1] == signal.SIGINT and not is_stopped and on_interrupt():
            signals.pop()
        else:
            stop()

    out.reader_gone.add_done_callback(stop)
    with handle_signals(handle_signal) as signals:
        result = None
        try:
            result = await task
        except asyncio.CancelledError:
            if not is_stopped:
                raise
    return result, (128 + signals[0] if signals else 1) if is_stopped else 0


class StdoutWriter(Notifier):
    """Standard output of a run: the answer as text, one JSON object, or every event as a line of JSON.

    `reader_gone` is done when the reader has exited, or when a write fails since the disk is full or the output closed.
    """

    def __init__(self, output_format: OutputFormat) -> None:
        self._stream = sys.stdout  # an exchange redirects what toolkits print
        self._messages: list[Message] = []
        self.reader_gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._format = output_format
        self._has_started = False
        self._error: OSError | None = None
        self._poll = select.poll()
        with suppress(OSError, ValueError):  # the output is closed
            if not self._stream.isatty():  # a disowned run goes on when its terminal is gone
                self._poll.register(self._stream.fileno(), 0)

    @override
    def notify(self, event: Event) -> None:
        if not self.reader_gone.done() and any(state & select.POLLERR for _, state in self._poll.poll(0)):
            self.reader_gone.set_result(None)
        self._has_started = self._has_started or not isinstance(event, Status)
        if self._format == "stream-json" and self._has_started:  # the first line is SessionStarted
            self._write(event.model_dump_json() + "\n")
        if isinstance(event, MessageCompleted):
            self._messages.append(event.message)

    @property
    def answer(self) -> str:
        """The answer so far: all that the model said without calling a tool."""
        return join_answers(self._messages)

    def finish(self, answer: str, summary: Mapping[str, Any]) -> None:
        """Write the answer, or the summary as JSON, and forget the answer. Raise OSError if output was lost."""
        self._messages.clear()
        if self._format == "text" and answer:
            self._write(answer.rstrip("\n") + "\n")
        elif self._format == "json":
            self._write(json.dumps(summary, ensure_ascii=False) + "\n")
        if self._error:
            raise self._error

    def _write(self, text: str) -> None:
        if self.reader_gone.done():
            return
        try:
            self._stream.write(escape_for(self._stream, text))
            self._stream.flush()
        except OSError as error:
            self.reader_gone.set_result(None)
            if isinstance(error, BrokenPipeError):
                # The rest of the buffer must not cause an error at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            else:
                self._error = error


def read_task(words: Sequence[str], file: str | None, example: str = 'run "fix the failing test"') -> tuple[str, bool]:
    """Return the task from the command line, a file, or standard input, and whether it begins with typed words.

    `example` appears in the error message.

    A single word that names a file stands for its text, as in goose 0.9. Standard input is read for `-`, which adds it
    to the words before, or if there is nothing else.
    """
    if words and file is not None:
        raise UsageError("give the task as TEXT or with -i FILE, not both")
    if file is None and len(words) == 1 and os.path.isfile(words[0]):
        words, file = [], words[0]
        print(f"goose-like: the task is the text of the file {escape_controls(file)}", file=sys.stderr)
    if file is None and len(words) == 1 and _FILE_NAME.fullmatch(words[0]) and not words[0].startswith("@"):
        raise UsageError(f"there is no file {words[0]!r}; a task has more than one word")
    is_piped = words[-1:] == ["-"] or not (words or file or is_terminal(sys.stdin))
    parts = [" ".join(words[:-1] if is_piped else words)]
    try:
        if is_piped:
            parts.append(sys.stdin.buffer.read().decode())
        elif file is not None:
            parts.append(Path(file).read_text(encoding="utf-8"))
        elif not words:
            raise UsageError(f"give a task: goose-like {example}, or -i FILE, or - for standard input")
    except OSError as error:
        raise UsageError(f"cannot read the task from {error.filename!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the task is not UTF-8 text ({error.reason} at byte {error.start})") from error
    task = "\n\n".join(filter(None, parts))
    if not task.strip():
        raise UsageError('the task is empty; say what to do, such as "continue" after --resume')
    return task, parts[0] != ""
