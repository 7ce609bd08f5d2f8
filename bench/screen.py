"""Compare a frame of a session with ten running subagents with Rich printing as many lines.

`python bench/screen.py [--rounds N]`. Each subagent starts a command before each frame and sends a line of its output.
"""

import argparse
import asyncio
import io
import statistics
import time

from prompt_toolkit.data_structures import Size
from rich.console import Console
from rich.text import Text

from goose_like.core import events
from goose_like.core.message import Message, ToolCall
from goose_like.terminal.session_screen import SessionScreen

SUBAGENTS = 10
WIDTH = 120
TARGET_MS = 10


class PromptStub:
    """A prompt that renders the rows above the input, as the real one does once per frame."""

    size = Size(rows=40, columns=WIDTH)
    live = staticmethod(lambda width: "")

    def print(self, text: str) -> None:
        """Render a frame with text above it."""
        self.redraw()

    def redraw(self) -> None:
        """Render a frame."""
        self.live(WIDTH)

    def alert(self, how: str) -> None:
        """Do nothing."""


def start_subagents() -> SessionScreen:
    """Return a screen in a turn with running subagents."""
    screen = SessionScreen(PromptStub())
    calls = [
        ToolCall(id=f"d{number}", name="delegate", arguments=f'{{"task": "Find what calls function {number}"}}')
        for number in range(SUBAGENTS)
    ]
    screen.notify(events.TurnStarted(message=Message.user("go")))
    screen.notify(events.MessageCompleted(message=Message(role="assistant", parts=tuple(calls))))
    for call in calls:
        screen.notify(events.ToolStarted(call=call))
    return screen


def measure_frames(count: int) -> list[float]:
    """Return the seconds that each frame takes, with the events before it."""
    screen, taken = start_subagents(), []
    for frame in range(count):
        began = time.perf_counter()
        for number in range(SUBAGENTS):
            call = ToolCall(id=f"c{frame}", name="shell", arguments=f'{{"command": "rg -n name_{frame} src | head"}}')
            screen.notify(events.SubagentEvent(call_id=f"d{number}", event=events.ToolStarted(call=call)))
            progress = events.ToolProgress(call_id=call.id, text=f"src/file.py:{frame}: a line of output\n")
            screen.notify(events.SubagentEvent(call_id=f"d{number}", event=progress))
        screen.draw()
        taken.append(time.perf_counter() - began)
    return taken


def measure_floor(count: int) -> list[float]:
    """Return the seconds that Rich takes to print as many lines."""
    taken = []
    for frame in range(count):
        began = time.perf_counter()
        console = Console(file=io.StringIO(), force_terminal=True, width=WIDTH, highlight=False, markup=False)
        for number in range(SUBAGENTS + 1):
            console.print(Text(f"▸{number} delegate  Find what calls function {number} · {frame} calls", "dim"))
        taken.append(time.perf_counter() - began)
    return taken


async def main(rounds: int) -> None:
    """Print the medians."""
    floor, ours = measure_floor(rounds), measure_frames(rounds)
    middle = statistics.median(floor)
    print(f"a frame with {SUBAGENTS} running subagents, median of {rounds}; at most {TARGET_MS} ms")
    for label, times in (("Rich", floor), ("goose-like", ours)):
        value = statistics.median(times)
        print(f"  {label:<12} {value * 1000:6.2f} ms  {value / middle:5.2f}x  (slowest {max(times) * 1000:.2f} ms)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    asyncio.run(main(parser.parse_args().rounds))
