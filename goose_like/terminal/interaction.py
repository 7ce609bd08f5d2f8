"""The person at the terminal: questions and answers, typed lines, and signals."""

import asyncio
import getpass
import os
import re
import signal
import sys
import termios
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

from typing_extensions import override

from goose_like.core.events import Answer, AnswerChoice, Event, Question
from goose_like.core.pattern import compile_later

from .escape import escape_controls, escape_invisible, to_one_line
from .lines import LineWriter
from .program_status import CLEAR
from .renderer import MAX_LABEL_CHARS
from .run_screen import RunScreen, Screen

_KEYS: dict[AnswerChoice, str] = {
    "allow": "y",
    "allow_prefix": "p",
    "allow_always": "a",
    "deny": "n",
}
_CHOICES = {key: choice for choice, key in _KEYS.items()}
_WORDS = {"yes": "y", "no": "n"}
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_LOCAL_MODES = 3
"""The index of the flags such as ECHO in the settings of a terminal."""
_MAX_TEXT_CHARS = 60
_NO = compile_later(r"(?:no?\b[\s,.:;-]*|(?=(?:don't|do not|stop)\b))(?P<reason>.*)", re.IGNORECASE | re.DOTALL)


def has_person() -> bool:
    """Return whether a person can be asked: input and error output are terminals."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def confirm(question: str) -> bool:
    """Ask a person a question whose default is no. Without a terminal the answer is no."""
    if not is_terminal(sys.stdin):
        return False
    print(escape_controls(f"{question} [y]es  [N]o: "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def read_answer(prompt: str) -> str:
    """Ask a person for a line. The end of the input is an empty line."""
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def read_secret(name: str) -> str:
    """Read a line that the terminal does not show, or the first line of standard input without a terminal."""
    if not is_terminal(sys.stdin):
        return sys.stdin.readline()
    with exit_on_signals():
        return getpass.getpass(f"{name} (not shown): ")


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; a stream that was closed at start is None."""
    return stream is not None and stream.isatty()


class LineReader:
    """Lines of standard input, read without blocking the event loop.

    Use one reader for one input: it keeps what it has read beyond a line. Cancelling a read loses nothing.
    """

    def __init__(self) -> None:
        self._buffer = b""

    async def read_line(self) -> str:
        """Return a line with its end. The last line may have no end, and after it comes an empty string."""
        while b"\n" not in self._buffer:
            chunk = await _read_chunk(sys.stdin.fileno())
            if not chunk:
                break
            self._buffer += chunk
        line, end, self._buffer = self._buffer.partition(b"\n")
        return (line + end).decode(errors="replace")


async def _read_chunk(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    with suppress(PermissionError):  # a file is always ready
        loop.add_reader(descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(descriptor)
    return os.read(descriptor, 65536)


class AskingScreen(Screen):
    """A screen whose questions a person answers at the terminal, one question at a time.

    Events that arrive during a question are shown after the answer.
    """

    def __init__(self, screen: Screen) -> None:
        self.renderer = screen.renderer
        self._screen = screen
        self._held: list[Event] | None = None
        self._asking = asyncio.Lock()

    @override
    def notify(self, event: Event) -> None:
        if self._held is None:
            self._screen.notify(event)
        else:
            self._held.append(event)

    @override
    def pause(self) -> None:
        self._screen.pause()

    @override
    async def ask(self, question: Question) -> Answer:
        async with self._asking:
            self._held = []
            asked_at = time.monotonic()
            try:
                self.pause()
                termios.tcflush(sys.stdin, termios.TCIFLUSH)  # keys typed before the question do not answer it
                with set_echo(True):
                    show = self.renderer.lines.write_line
                    return await ask_person(question, self._read_line, self.renderer.print_detail, show)
            finally:
                self._screen.skip_time(time.monotonic() - asked_at)
                held = self._held or []
                self._held = None
                for event in held:
                    self.notify(event)

    async def _read_line(self, label: str) -> str:
        lines = self.renderer.lines
        lines.write_text(label, "bold")
        line = await LineReader().read_line()
        lines.is_mid_line = not line.endswith("\n")
        return line


async def ask_person(
    question: Question,
    read_line: Callable[[str], Awaitable[str]],
    show_detail: Callable[[Question], None],
    show: Callable[[str], None],
    send_to_model: Callable[[str], None] | None = None,
) -> Answer:
    """Return a person's answer: a key and Enter, or words.

    `read_line` shows a label and returns the typed line, or an empty string at the end of input. Text that begins with
    "no" denies and gives the reason. Other words go to the model with `send_to_model`, and the question is asked again.
    A single letter is never a message: it may answer another question. A cancelled question is shown as not answered:
    its command has ended, or the turn was stopped.
    """
    try:
        return await _read_answer(question, read_line, show_detail, show, send_to_model)
    except asyncio.CancelledError:
        show(f"  not answered: {to_one_line(question.text, _MAX_TEXT_CHARS)}")
        raise


async def _read_answer(
    question: Question,
    read_line: Callable[[str], Awaitable[str]],
    show_detail: Callable[[Question], None],
    show: Callable[[str], None],
    send_to_model: Callable[[str], None] | None,
) -> Answer:
    if question.kind == "text":
        line = await read_line("  answer: ")
        if not line:
            return Answer()
        return Answer(choice="allow", by="person", text=line.strip())
    keys = _list_keys(question)
    label = _format_label(keys)
    while True:
        line = await read_line(label)
        if not line and question.kind == "trust":
            return Answer()  # the terminal was closed: nobody refused anything for good
        typed = line.strip()
        key = _WORDS.get(typed.lower(), typed.lower())
        if key == "t" and "t" in keys:
            show_detail(question)
            continue
        if not key or key in keys:
            return Answer(choice=_CHOICES.get(key, "deny"), by="person")
        refusal = _NO.fullmatch(typed)
        if refusal:
            return Answer(choice="deny", by="person", text=refusal["reason"])
        if send_to_model and len(typed) > 1:
            send_to_model(typed)
        else:
            *others, last = keys
            show(f"  '{escape_invisible(typed)}' is no answer; type {', '.join(others)} or {last}")


def _list_keys(question: Question) -> dict[str, str]:
    """Return the keys that answer a question, with a word for each."""
    keys: dict[str, str] = {}
    for option in question.options:
        if option.choice == "deny" and question.kind == "trust":
            keys["t"] = "text"
        label = option.label
        if option.choice == "allow_prefix" and len(question.prefix) > MAX_LABEL_CHARS:
            label = "session"  # the question shows the long prefix
        key = _KEYS[option.choice]
        keys[key] = label
    return keys


def _format_label(keys: dict[str, str]) -> str:
    """Return the keys with their words. The key that Enter alone stands for is in upper case."""
    parts = []
    for key, word in keys.items():
        shown = "N" if key == "n" else key
        parts.append(f"[{shown}] {word}")
    return f"  {'  '.join(parts)}: "


@contextmanager
def set_echo(is_on: bool) -> Iterator[None]:
    """Turn the echo of keys on or off within the block; without a terminal do nothing."""
    if not is_terminal(sys.stdin):
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    changed = before.copy()
    if is_on:
        changed[_LOCAL_MODES] |= termios.ECHO
    else:
        changed[_LOCAL_MODES] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal was closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def open_lines() -> LineWriter:
    """Return a writer of lines on standard error. Only a terminal needs Rich."""
    if not is_terminal(sys.stderr):
        return LineWriter(sys.stderr)
    from .wrap import ConsoleLines, open_console

    return ConsoleLines(open_console())


def add_person(screen: Screen) -> Screen:
    """Return a screen that asks the person at the terminal, or the same screen if there is none."""
    return AskingScreen(screen) if has_person() else screen


def open_screen(*, shows_answer: bool) -> Screen:
    """Return a screen for progress on standard error, with questions if a person is there."""
    return add_person(RunScreen(open_lines(), shows_answer=shows_answer))


@contextmanager
def handle_signals(act: Callable[[], object]) -> Iterator[list[signal.Signals]]:
    """Call `act` on the event loop for SIGINT, SIGTERM and SIGHUP instead of ending the process.

    Yields the list of received signals. The second signal prints a warning; the third ends the process at once.
    """
    loop = asyncio.get_running_loop()
    terminal = None
    if is_terminal(sys.stdin):
        terminal = termios.tcgetattr(sys.stdin)
    received: list[signal.Signals] = []

    # A plain handler, not one of the loop: a tool can keep the loop busy.
    def handle(number: int, _: FrameType | None) -> None:
        received.append(signal.Signals(number))
        if len(received) == 2:
            with suppress(OSError):
                os.write(2, b"\nstill stopping; press Ctrl-C once more to exit at once\n")
        if len(received) > 2:
            _exit_now(terminal, 128 + number)
        loop.call_soon_threadsafe(act)

    with _set_handlers((signal.SIGINT, *_END_SIGNALS), handle):
        yield received


@contextmanager
def _set_handlers(numbers: Iterable[signal.Signals], handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle signals within the block, except those that are ignored: nohup relies on this."""
    before = {}
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Raise SystemExit for SIGTERM and SIGHUP within the block, so that code within it can restore the terminal.

    The process would end at once otherwise, with a terminal that shows no typed keys.
    """
    received: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise SystemExit(128 + number)

    with _set_handlers(_END_SIGNALS, handle):
        try:
            yield
        except BaseException:  # the terminal may be gone, which causes other errors
            if not received:
                raise
    if received:
        raise SystemExit(128 + received[0])


def _exit_now(terminal: list[Any] | None, exit_code: int) -> None:
    """End the process at once, after restoring the terminal's settings and its cursor."""
    with suppress(OSError, termios.error):
        if terminal and terminal != termios.tcgetattr(sys.stdin):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, terminal)
        if is_terminal(sys.stderr):
            os.write(2, f"{CLEAR}\x1b[?25h\n".encode())
    os._exit(exit_code)
