"""The one-shot run: one turn, the answer on stdout, everything else on stderr, an exit code that tells the truth."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..build import build_exchange
from ..errors import GooseLikeError, UsageError
from ..events import Event, MessageCompleted, RunFinished, Status, TurnFinished
from ..exchange import Exchange
from ..history import History
from ..message import Usage
from ..notifier import Notifier, Tee
from ..prices import cost_usd
from ..profile import Limits, Profile
from ..session import Session
from .terminal import is_terminal, on_signals, screen

OutputFormat = Literal["text", "json", "stream-json"]


@dataclass(frozen=True, slots=True)
class Run:
    """What a one-shot run was asked to do. `session` is None when nothing is to be kept."""

    text: str
    profile: Profile
    limits: Limits
    session: Session | None
    output_format: OutputFormat = "text"
    is_quiet: bool = False


async def run_once(run: Run) -> int:
    """Runs one turn and gives the exit code.

    Raises:
        GooseLikeError: what kept the turn from starting.
    """
    out = _Answer(run.output_format)
    front = out if run.is_quiet else Tee(screen(says_answer=False), out)
    history, code = History(), 1
    try:
        async with build_exchange(run.profile, front, session=run.session, limits=run.limits) as exchange:
            history = exchange.history
            code = await _turn(exchange, run.text, out, front)
    except GooseLikeError as error:
        code = error.exit_code
        raise
    finally:  # the last word, after all that closing still had to say
        reason = history.last_turn.reason if history.last_turn else "error"
        usage = sum(history.turn_usage.values(), Usage())
        cost = cost_usd(history.turn_usage)
        front.notify(RunFinished(usage=usage, cost_usd=cost, reason=reason, exit_code=code))
        out.finish(history)
    return code


async def _turn(exchange: Exchange, text: str, out: "_Answer", front: Notifier) -> int:
    """The turn's exit code; SIGINT, SIGTERM and SIGHUP cancel the turn, which is then closed as any other.

    So does a reader of stdout that has gone: nobody is left who would see what is spent.
    """
    turn = asyncio.create_task(exchange.reply(text))

    def stop(*_: object) -> None:
        front.notify(Status(text="stopping"))
        turn.cancel()

    out.gone.add_done_callback(stop)
    with on_signals(stop) as signals:
        try:
            return (await turn).exit_code
        except asyncio.CancelledError:
            if out.gone.done():
                return 1
            if not signals:
                raise
            return 128 + signals[0]


class _Answer(Notifier):
    """What goes to stdout: the last words, one JSON object, or every event as a line."""

    def __init__(self, output_format: OutputFormat) -> None:
        self._format = output_format
        self._words = ""
        self._detail = ""
        self._end: RunFinished | None = None
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def notify(self, event: Event) -> None:
        if self._format == "stream-json":
            self._write(event.model_dump_json() + "\n")
        match event:
            case MessageCompleted(message=message):
                self._words = "" if message.tool_calls else message.text
            case TurnFinished(detail=detail):
                self._detail = detail
            case RunFinished():
                self._end = event
            case _:
                pass

    def finish(self, history: History) -> None:
        """Writes what comes at the end."""
        if self._format == "text" and self._words:
            self._write(self._words.rstrip("\n") + "\n")
        elif self._format == "json" and self._end:
            summary = {
                "result": self._words,
                **json.loads(self._end.model_dump_json(exclude={"type"})),
                "detail": self._detail,
                "session": history.header.name if history.header else None,
                "models": history.header.models if history.header else {},
                "denied": [question.model_dump() for question in history.unanswered],
            }
            self._write(json.dumps(summary, ensure_ascii=False) + "\n")

    def _write(self, text: str) -> None:
        if self.gone.done():
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            self.gone.set_result(None)
            # What is still in the buffer must not be complained about when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_task(words: Sequence[str], file: str | None) -> str:
    """The task: the words of the command line, a file's text, or standard input's.

    Standard input is read for a `-` (after words it is added to them), or when nothing else is given.

    Raises:
        UsageError: nothing given, given twice, empty, unreadable, or no text.
    """
    if words and file is not None:
        raise UsageError("give the task as TEXT or with -i FILE, not both")
    is_piped = words[-1:] == ["-"] or not (words or file or is_terminal(sys.stdin))
    parts = [" ".join(words[:-1] if is_piped else words)]
    try:
        if is_piped:
            parts.append(sys.stdin.buffer.read().decode())
        elif file is not None:
            with open(file, encoding="utf-8") as source:
                parts.append(source.read())
        elif not words:
            raise UsageError('give a task: goose-like run "fix the failing test", or -i FILE, or - for standard input')
    except OSError as error:
        raise UsageError(f"can't read the task from {error.filename!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the task is no UTF-8 text ({error.reason} at byte {error.start})") from error
    task = "\n\n".join(filter(None, parts))
    if not task.strip():
        raise UsageError("the task is empty; say what to do")
    return task
