"""The one-shot run: one turn, the answer on stdout, everything else on stderr, an exit code that tells the truth."""

import asyncio
import json
import signal
import sys
from dataclasses import dataclass
from typing import Literal

from ..build import build_exchange
from ..errors import UsageError
from ..events import Event, MessageCompleted, RunFinished, TurnFinished
from ..exchange import Exchange
from ..message import Usage
from ..notifier import Notifier, Tee
from ..prices import cost_usd
from ..profile import Limits, Profile
from ..session import Session
from .terminal import on_signals, screen

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
    async with build_exchange(run.profile, front, session=run.session, limits=run.limits) as exchange:
        exit_code = await _turn(exchange, run.text)
        usage = sum(exchange.history.turn_usage.values(), Usage())
        end = exchange.history.last_turn
        front.notify(
            RunFinished(
                usage=usage,
                cost_usd=cost_usd(exchange.history.turn_usage),
                reason=end.reason if end else "error",
                exit_code=exit_code,
            )
        )
        out.finish(exchange)
    return exit_code


async def _turn(exchange: Exchange, text: str) -> int:
    """The turn's exit code; SIGINT, SIGTERM and SIGHUP cancel the turn, which is then closed as any other."""
    signals: list[int] = []
    turn = asyncio.create_task(exchange.reply(text))

    def stop(number: signal.Signals) -> None:
        signals.append(number)
        turn.cancel()

    with on_signals(stop):
        try:
            return (await turn).exit_code
        except asyncio.CancelledError:
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

    def notify(self, event: Event) -> None:
        if self._format == "stream-json":
            sys.stdout.write(event.model_dump_json() + "\n")
            sys.stdout.flush()
        match event:
            case MessageCompleted(message=message):
                self._words = "" if message.tool_calls else message.text
            case TurnFinished(detail=detail):
                self._detail = detail
            case RunFinished():
                self._end = event
            case _:
                pass

    def finish(self, exchange: Exchange) -> None:
        if self._format == "text" and self._words:
            sys.stdout.write(self._words.rstrip("\n") + "\n")
        elif self._format == "json" and self._end:
            summary = {
                "result": self._words,
                **json.loads(self._end.model_dump_json(exclude={"type"})),
                "detail": self._detail,
                "session": exchange.session.name,
                "models": exchange.history.header.models if exchange.history.header else {},
                "denied": [question.model_dump() for question in exchange.history.unanswered],
            }
            sys.stdout.write(json.dumps(summary, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def read_task(text: str | None, file: str | None) -> str:
    """The task: the words of the command line, a file's, or standard input's (`-`, or nothing given and no terminal).

    Raises:
        UsageError: nothing given, given twice, empty, unreadable, or no text.
    """
    if text not in (None, "-") and file is not None:
        raise UsageError("give the task as TEXT or with -i FILE, not both")
    try:
        if file is not None:
            with open(file, encoding="utf-8") as source:
                task = source.read()
        elif text not in (None, "-"):
            task = str(text)
        elif text == "-" or not sys.stdin.isatty():
            task = sys.stdin.buffer.read().decode()
        else:
            raise UsageError('give a task: goose-like run "fix the failing test", or -i FILE, or - for standard input')
    except OSError as error:
        raise UsageError(f"can't read the task from {error.filename!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the task is no UTF-8 text ({error.reason} at byte {error.start})") from error
    if not task.strip():
        raise UsageError("the task is empty; say what to do")
    return task
