"""The person at the terminal: is one there, what do they answer, and which signal ends what."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from ..events import Answer, Question
from ..notifier import Notifier
from .render import Screen

_CHOICES: dict[str, Answer] = {
    "y": Answer(choice="allow", by="person"),
    "s": Answer(choice="allow_session", by="person"),
    "n": Answer(choice="deny", by="person"),
    "": Answer(choice="deny", by="person"),
}


def has_person() -> bool:
    """Whether questions can be asked: keys come from a terminal and what is shown goes to one."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class PersonScreen(Screen):
    """A screen with a person before it, who is asked."""

    async def ask(self, question: Question) -> Answer:
        self.pause()
        while True:
            self.console.print("  [y] once  [s] for this session  [N] no: ", style="bold", markup=False, end="")
            key = (await _read_line()).strip().lower()
            if key[:1] in _CHOICES:
                return _CHOICES[key[:1]]


async def _read_line() -> str:
    """A line from the terminal without blocking the loop; cancelling it leaves the terminal as it was."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not line.done():
            line.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin.fileno(), read)
    try:
        return await line
    finally:
        loop.remove_reader(sys.stdin.fileno())


def screen(*, says_answer: bool) -> Notifier:
    """What shows progress on stderr, and asks there when somebody is there."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    kind = PersonScreen if has_person() else Screen
    return kind(console, says_answer=says_answer)


@contextmanager
def on_signals(act: Callable[[signal.Signals], object]) -> Iterator[None]:
    """Within the block SIGINT, SIGTERM and SIGHUP call `act` on the loop instead of ending the process."""
    loop = asyncio.get_running_loop()
    ours = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in ours:
        loop.add_signal_handler(number, act, number)
    try:
        yield
    finally:
        for number in ours:
            loop.remove_signal_handler(number)
