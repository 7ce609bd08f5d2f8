"""Standard output of a run, its last event, and what stops it."""

import asyncio
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Event, MessageCompleted, RunFinished, Status, TurnFinished
from goose_like.core.history import History
from goose_like.core.masking import mask_text
from goose_like.core.message import Message, Usage, join_answers
from goose_like.core.notifier import Notifier
from goose_like.providers.prices import compute_cost_usd
from goose_like.terminal.escape import escape_for
from goose_like.terminal.interaction import handle_signals

from .command_line import OutputFormat

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema

T = TypeVar("T")
SUMMARY_VERSION = 1
"""The version of the object of the format `json`. It grows when a key is renamed or removed."""


def make_run_finished(usage: Mapping[str, Usage], reason: str, exit_code: int, detail: str) -> RunFinished:
    """Return the last event of a run, with the sum of tokens and the cost of all models."""
    total = sum(usage.values(), Usage())
    return RunFinished(usage=total, cost_usd=compute_cost_usd(usage), reason=reason, exit_code=exit_code, detail=detail)


def describe_stop(exit_code: int) -> str:
    """Describe why work was stopped that ended with this exit code."""
    if exit_code > 128:
        return f"stopped by {signal.Signals(exit_code - 128).name}"
    return "stopped, as the reader of standard output has exited"


@contextmanager
def report_failure(output_format: OutputFormat) -> Iterator[None]:
    """Write an error of the block to standard output, if the format is JSON: a run that cannot start has an end too."""
    try:
        yield
    except GooseLikeError as error:
        write_failure(output_format, mask_text(str(error)), error.exit_code)
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):  # an event loop cancels its work at Ctrl-C
        write_failure(output_format, describe_stop(128 + signal.SIGINT), 128 + signal.SIGINT)
        raise


def write_failure(output_format: OutputFormat, detail: str, exit_code: int) -> None:
    """Write the end of a run that could not start. The format `text` has nothing for standard output."""
    finished = make_run_finished({}, "error", exit_code, detail)
    if output_format == "stream-json":
        print(finished.model_dump_json())
    elif output_format == "json":
        print(json.dumps(make_summary("", None, finished, History()), ensure_ascii=False))


def make_summary(result: str, structured: Any, finished: RunFinished, history: History) -> dict[str, Any]:
    """Return the object of the format `json`. `structured` is the value of an answer in JSON, else None."""
    return {
        "schema_version": SUMMARY_VERSION,
        "result": result,
        "structured": structured,
        **json.loads(finished.model_dump_json(exclude={"type"})),
        "session": history.header.name if history.header else None,
        "models": history.header.models if history.header else {},
        "denied": [question.model_dump() for question in history.unanswered_questions],
    }


def find_structured_answer(history: History, schema: "AnswerSchema") -> tuple[str, Any]:
    """Find the answer of a turn that had to fit a schema, as JSON text and as a value. No answer is an empty text."""
    if history.last_turn is None or history.last_turn.reason != "stop":
        return "", None
    value, _ = schema.read_last_answer(history.messages)
    return json.dumps(value, ensure_ascii=False), value


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
    if not is_stopped:
        return result, 0
    exit_code = 128 + signals[0] if signals else 1
    return result, exit_code


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
        if not self.reader_gone.done() and self._has_lost_reader():
            self.reader_gone.set_result(None)
        self._has_started = self._has_started or not isinstance(event, Status)
        if self._format == "stream-json" and self._has_started:  # the first line is SessionStarted
            self._write(event.model_dump_json() + "\n")
        if isinstance(event, MessageCompleted):
            self._messages.append(event.message)
        elif isinstance(event, TurnFinished) and event.answer:
            self._messages.append(Message.assistant(event.answer))

    def _has_lost_reader(self) -> bool:
        return any(state & select.POLLERR for _, state in self._poll.poll(0))

    @property
    def answer(self) -> str:
        """The answer so far: all that the model said without calling a tool, or with its last calls."""
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
