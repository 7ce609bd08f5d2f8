"""Notes and failures as lines: they wrap at words, and a failure is told once in full."""

import io

from rich.console import Console

from goose_like.core.events import Logged, Retrying, TurnFinished
from goose_like.terminal.lines import LineWriter
from goose_like.terminal.renderer import Renderer
from goose_like.terminal.wrap import ConsoleLines

BODY = "too many requests (HTTP 429: rate limit reached for the organization; request req_{number} at 08:0{number})"


def fail(number: int) -> Retrying:
    return Retrying(text=BODY.format(number=number), wait_s=number, retry=number, max_retries=5)


def test_a_failure_that_repeats_is_told_once_in_full():
    file = io.StringIO()
    renderer = Renderer(LineWriter(file))
    for event in (fail(1), fail(2), Retrying(text="overloaded", wait_s=3), fail(4)):
        renderer.print_event(event)
    renderer.print_turn_end(TurnFinished(reason="cancelled"))
    renderer.print_event(fail(5))
    assert file.getvalue().splitlines() == [
        f"↻ {BODY.format(number=1)} · trying again in 1 s",
        "↻ the same error · trying again in 2 s",
        "↻ overloaded · trying again in 3 s",
        f"↻ {BODY.format(number=4)} · trying again in 4 s",
        "■ cancelled",
        f"↻ {BODY.format(number=5)} · trying again in 5 s",
    ]


def test_a_note_wraps_at_words():
    file = io.StringIO()
    console = Console(file=file, width=30, force_terminal=True, color_system=None, soft_wrap=True)
    Renderer(ConsoleLines(console)).print_event(Logged(text="undo does not cover the long.file.name of this folder"))
    assert file.getvalue().splitlines() == ["  undo does not cover the", "  long.file.name of this", "  folder"]
