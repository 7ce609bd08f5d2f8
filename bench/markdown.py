"""Compare showing an answer as Markdown with printing it. `python bench/markdown.py [--rounds N]`.

`MarkdownStream` shows an answer of 100,000 deltas on a terminal of 200x50, one frame per 50 ms of the model's time. The
floor is Rich, which prints the text of the same frames.
"""

import argparse
import random
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from io import TextIOBase

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from goose_like.terminal.markdown_stream import MarkdownStream
from goose_like.terminal.rows import Rows

DELTAS, FRAMES_PER_S = 100_000, 20
WIDTH, HEIGHT, LIVE_ROWS = 200, 50, 20
RATES = (100, 1_000, 10_000)
"""Deltas per second: a hosted model, a very fast one, and a replay."""
TARGET_RATIO, TARGET_MS = 2, 100
WORDS = [*("the", "file", "test", "of", "a", "function", "returns", "and", "so", "it", "was", "changed", "to", "where")]


class Terminal(TextIOBase):
    """A terminal that ignores its input."""

    def write(self, text: str) -> int:
        return len(text)


def stream_document(chance: random.Random) -> Iterator[str]:
    """Yield the words of paragraphs, lists, code and tables in turn, as a model sends them."""

    def words(count: int) -> str:
        return " ".join(
            f"**{word}**" if chance.random() < 0.04 else f"`{word}`" if chance.random() < 0.04 else word
            for word in chance.choices(WORDS, k=count)
        )

    while True:
        yield from f"## {words(4)}\n\n{words(90)}.\n\n{words(60)}.\n\n".split(" ")
        yield from "".join(f"{number}. {words(14)}\n" for number in range(1, 7)).split(" ")
        yield from f"\n{words(40)}:\n\n```python\n".split(" ")
        for number in range(15):
            head = f"def call_{number}(self, value: int = {number}) -> str:\n"
            yield from f"{head}    return f'{words(3)}'  # one\n".split(" ")
        rows = "".join(f"| {words(2)} | {words(3)} | {number} |\n" for number in range(8))
        yield from f"```\n\n| Name | Purpose | Count |\n|---|---|--:|\n{rows}\n".split(" ")


def make_frames(rate: int) -> list[list[str]]:
    """Return the deltas of each frame."""
    chance = random.Random(4)
    words = stream_document(chance)
    deltas = [next(words) + " " for _ in range(DELTAS)]
    deltas = [delta.removesuffix(" ") if delta.endswith("\n ") else delta for delta in deltas]
    size = max(rate // FRAMES_PER_S, 1)
    return [deltas[start : start + size] for start in range(0, DELTAS, size)]


def open_console() -> Console:
    return Console(
        file=Terminal(), width=WIDTH, height=HEIGHT, force_terminal=True, color_system="256", legacy_windows=False
    )


def print_plain(frames: list[list[str]]) -> list[float]:
    """Print each frame unchanged, and return the seconds that each takes."""
    out = open_console()
    taken = []
    for deltas in frames:
        before = time.process_time()
        out.print("".join(deltas), end="", markup=False, highlight=False, emoji=False)
        taken.append(time.process_time() - before)
    return taken


def print_markdown(frames: list[list[str]]) -> list[float]:
    """Print each frame as Markdown, redraw its open end, and return the seconds that each takes."""
    out = open_console()
    stream = MarkdownStream()
    taken = []
    drawn = 0
    for deltas in frames:
        before = time.process_time()
        for delta in deltas:
            stream.feed(delta)
        final, end = stream.take_final(WIDTH), stream.render_open(WIDTH, LIVE_ROWS)
        with out:  # one write for each frame
            out.control(Control((ControlType.CURSOR_UP, drawn), (ControlType.ERASE_IN_LINE, 2)))
            out.print(Rows(final + end), soft_wrap=True)
        drawn = len(end)
        taken.append(time.process_time() - before)
    out.print(stream.finish(WIDTH))
    return taken


def measure_peak_bytes(frames: list[list[str]]) -> int:
    """Return the peak of the memory that the frames need."""
    tracemalloc.start()
    print_markdown(frames)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    for rate in RATES:
        frames = make_frames(rate)
        ratios, longest = [], []
        for _ in range(rounds):
            bare, markdown = print_plain(frames), print_markdown(frames)
            ratios.append(sum(markdown) / sum(bare))
            longest.append(max(markdown) * 1000)
        size = sum(len(delta) for deltas in frames for delta in deltas)
        print(
            f"{rate:,} deltas/s, {len(frames):,} frames, {size / 1000:,.0f} kB: "
            f"{statistics.median(ratios):.2f}x Rich's own print (target: {TARGET_RATIO}x; {sum(bare):.1f} s), "
            f"longest frame {statistics.median(longest):.0f} ms (at most {TARGET_MS})",
            flush=True,
        )
    fast = make_frames(RATES[-1])
    half, full = measure_peak_bytes(fast[: len(fast) // 2]), measure_peak_bytes(fast)
    print(f"memory at most {half / 1000:,.0f} kB in the first half, {full / 1000:,.0f} kB in all (target: no growth)")


if __name__ == "__main__":
    main()
