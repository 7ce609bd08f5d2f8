"""The one-shot run: one turn, the answer on stdout, everything else on stderr, an exit code that tells the truth."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Limits, Profile
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.events import Event, MessageCompleted, RunFinished, Status
from goose_like.core.history import History
from goose_like.core.message import Usage
from goose_like.core.notifier import Notifier, Tee
from goose_like.providers.prices import cost_usd
from goose_like.sessions.session import Session
from goose_like.terminal.interaction import is_terminal, on_signals, screen

T = TypeVar("T")

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
    out = Stdout(run.output_format)
    front = out if run.is_quiet else Tee(screen(says_answer=False), out)
    history, code = History(), 1
    try:
        async with build_exchange(run.profile, front, session=run.session, limits=run.limits) as exchange:
            history = exchange.history
            end, code = await stoppable(exchange.reply(run.text), front, out)
            code = end.exit_code if end else code
    except GooseLikeError as error:
        code = error.exit_code
        raise
    finally:  # the last word, after all that closing still had to say
        last = history.last_turn
        told = run_finished(history.turn_usage, last.reason if last else "error", code)
        front.notify(told)
        summary = {
            "result": out.words,
            **json.loads(told.model_dump_json(exclude={"type"})),
            "detail": last.detail if last else "",
            "session": history.header.name if history.header else None,
            "models": history.header.models if history.header else {},
            "denied": [question.model_dump() for question in history.unanswered],
        }
        out.finish(out.words, summary)
    return code


def run_finished(usage: Mapping[str, Usage], reason: str, exit_code: int) -> RunFinished:
    """The last event, for tokens by model."""
    spent = sum(usage.values(), Usage())
    return RunFinished(usage=spent, cost_usd=cost_usd(usage), reason=reason, exit_code=exit_code)


async def stoppable(
    work: Coroutine[Any, Any, T], front: Notifier, out: "Stdout", on_interrupt: Callable[[], bool] = lambda: False
) -> tuple[T | None, int]:
    """What the work gives, if anything, and the exit code of what stopped it; 0 where nothing did.

    SIGINT, SIGTERM and SIGHUP cancel the work, whose turn is then closed as any other; not so a SIGINT that
    `on_interrupt` takes for something else. A reader of stdout that has gone cancels it, too: nobody is left who would
    see what is spent.
    """
    doing = asyncio.create_task(work)
    is_stopped = False

    def stop(*_: object) -> None:
        nonlocal is_stopped
        if not doing.done():
            is_stopped = True
            front.notify(Status(text="stopping"))
            doing.cancel()

    def take() -> None:
        if signals[-1] == signal.SIGINT and not is_stopped and on_interrupt():
            signals.pop()
        else:
            stop()

    out.gone.add_done_callback(stop)
    with on_signals(take) as signals:
        done = None
        try:
            done = await doing
        except asyncio.CancelledError:
            if not is_stopped:
                raise
    return done, (128 + signals[0] if signals else 1) if is_stopped else 0


class Stdout(Notifier):
    """What goes to stdout: the last words, one JSON object, or every event as a line.

    `words` are those of the answer so far; `gone` is done when nobody reads any more.
    """

    def __init__(self, output_format: OutputFormat) -> None:
        self.words = ""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._format = output_format
        self._has_begun = False

    def notify(self, event: Event) -> None:
        self._has_begun = self._has_begun or not isinstance(event, Status)
        if self._format == "stream-json" and self._has_begun:  # the first line is that of the session's start
            self._write(event.model_dump_json() + "\n")
        if isinstance(event, MessageCompleted):
            self.words = "" if event.message.tool_calls else event.message.text

    def finish(self, words: str, summary: Mapping[str, Any]) -> None:
        """Writes what comes at the end: the words, or the object."""
        if self._format == "text" and words:
            self._write(words.rstrip("\n") + "\n")
        elif self._format == "json":
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


def read_task(words: Sequence[str], file: str | None, example: str = 'run "fix the failing test"') -> str:
    """The task: the words of the command line, a file's text, or standard input's. `example` is told to who gave none.

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
            raise UsageError(f"give a task: goose-like {example}, or -i FILE, or - for standard input")
    except OSError as error:
        raise UsageError(f"can't read the task from {error.filename!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the task is no UTF-8 text ({error.reason} at byte {error.start})") from error
    task = "\n\n".join(filter(None, parts))
    if not task.strip():
        raise UsageError("the task is empty; say what to do")
    return task
