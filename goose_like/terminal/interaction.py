"""The person at the terminal: is one there, what do they answer, and which signal ends what."""

import asyncio
import os
import re
import signal
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

from rich.console import Console

from goose_like.core.events import Answer, Event, Question

from .renderer import Screen

_CHOICES: dict[str, Answer] = {
    "y": Answer(choice="allow", by="person"),
    "s": Answer(choice="allow_session", by="person"),
    "a": Answer(choice="allow_always", by="person"),
    "n": Answer(choice="deny", by="person"),
    "": Answer(choice="deny", by="person"),
}
_NO = re.compile(r"(no|don't|do not|stop)\b", re.IGNORECASE)


def has_person() -> bool:
    """Whether questions can be asked: keys come from a terminal and what is shown goes to one."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether it is one; a stream that was closed before we began is None."""
    return stream is not None and stream.isatty()


class Lines:
    """Standard input by lines, without blocking the loop; cancelling loses nothing and leaves the terminal as it was.

    What was read ahead of a line stays here, so there should be one for each input. A terminal gives one at a time.
    """

    def __init__(self) -> None:
        self._ahead = b""

    async def next(self) -> str:
        """A line with its end; the last one may have none, and after it comes ''."""
        while b"\n" not in self._ahead and (chunk := await _read_chunk(sys.stdin.fileno())):
            self._ahead += chunk
        line, end, self._ahead = self._ahead.partition(b"\n")
        return (line + end).decode(errors="replace")


async def _read_chunk(descriptor: int) -> bytes:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:  # a file, which is always ready
        return os.read(descriptor, 65536)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 65536)


class PersonScreen(Screen):
    """A screen with a person before it, who is asked. What comes up meanwhile is shown after the answer."""

    _held: list[Event] | None = None

    def notify(self, event: Event) -> None:
        if self._held is None:
            super().notify(event)
        else:
            self._held.append(event)

    async def ask(self, question: Question) -> Answer:
        self._held = []
        try:
            return await self._answer(question)
        finally:
            held, self._held = self._held, None
            for event in held:
                self.notify(event)

    async def _answer(self, question: Question) -> Answer:
        self.pause()
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # keys typed before the question are no answer to it
        with echo(True):
            return await decided(question, self._read, self.show_detail)

    async def _read(self, label: str) -> str:
        self.console.print(label, style="bold", markup=False, end="")
        self._is_mid_line = True  # until Enter: what ends the question otherwise ends this line, too
        line = await Lines().next()
        self._is_mid_line = not line.endswith("\n")
        return line


async def decided(
    question: Question,
    read: Callable[[str], Awaitable[str]],
    show_detail: Callable[[Question], None],
    put: Callable[[str], None] | None = None,
) -> Answer:
    """A person's answer: a key and Enter, or words. `read` shows a label and gives the line, '' where there is none.

    What is no key is for the model, where `put` leaves it words, and the question is asked again; but "no, and why"
    is both.
    """
    if question.kind == "words":
        line = await read("  answer: ")
        return Answer(choice="allow", by="person", words=line.strip()) if line else Answer()
    keys = _keys(question)
    words = "  ".join(f"[{'N' if key == 'n' else key}] {word}" for key, word in keys.items())
    while True:
        typed = (await read(f"  {words}: ")).strip()
        key = {"yes": "y", "no": "n"}.get(typed.lower(), typed.lower())
        if key == "t" and "t" in keys:
            show_detail(question)
        elif not key or key in keys:
            return _CHOICES[key]
        elif put:
            put(typed)
            if _NO.match(typed):
                return _CHOICES["n"]


def _keys(question: Question) -> dict[str, str]:
    """What can be typed at a question, and the word for it."""
    if question.kind == "trust":
        return {"y": "this time", "a": "always", "t": "text", "n": "no"}
    always = {"a": "always"} if question.may_last else {}
    return {"y": "once", "s": "session", **always, "n": "no"}


@contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Within the block keys are echoed, or not. Without a terminal there is nothing to do."""
    if not is_terminal(sys.stdin):
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    flags = before[3] | termios.ECHO if is_on else before[3] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, [*before[:3], flags, *before[4:]])
    try:
        yield
    finally:
        with suppress(termios.error):  # it was closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def screen(*, says_answer: bool) -> Screen:
    """What shows progress on stderr, and asks there when somebody is there."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    kind = PersonScreen if has_person() else Screen
    return kind(console, says_answer=says_answer)


@contextmanager
def on_signals(act: Callable[[], object]) -> Iterator[list[signal.Signals]]:
    """Within the block SIGINT, SIGTERM and SIGHUP call `act` on the loop instead of ending the process.

    Gives a list of those that came. The third one ends the process at once, whatever it is doing; the second says so.
    """
    loop = asyncio.get_running_loop()
    terminal = termios.tcgetattr(sys.stdin) if is_terminal(sys.stdin) else None
    came: list[signal.Signals] = []

    # Not by the loop, which a tool may keep from turning.
    def take(number: int, _: FrameType | None) -> None:
        came.append(signal.Signals(number))
        if len(came) == 2:
            with suppress(OSError):
                os.write(2, b"\nstill stopping; once more ends goose-like at once\n")
        if len(came) > 2:
            _leave(terminal, 128 + number)
        loop.call_soon_threadsafe(act)

    # What is ignored stays so: that is what nohup means.
    ours = [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    before = {number: signal.signal(number, take) for number in ours}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(terminal: list[Any] | None, exit_code: int) -> None:
    """Ends the process here and now, with the terminal as it was and its cursor seen."""
    with suppress(OSError, termios.error):
        if terminal and terminal != termios.tcgetattr(sys.stdin):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, terminal)
        if is_terminal(sys.stderr):
            os.write(2, b"\x1b[?25h\n")
    os._exit(exit_code)
