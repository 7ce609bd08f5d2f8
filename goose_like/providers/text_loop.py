"""Text loops: a small model writes one passage again and again, or counts in it, until its output limit."""

from itertools import pairwise

from goose_like.core.pattern import compile_later

WINDOW_CHARS = 4_000
MIN_LOOP_CHARS = 800
MIN_COUNTING_CHARS = 1_600
"""The length of a loop whose numbers grow: a short table may have such rows. Each number counts as one character."""

MIN_REPETITIONS = 8
_STEP_CHARS = 100
_DIGITS = "0123456789"
_NUMBER = compile_later(r"[0-9]+")
_LETTER = compile_later(r"[^\W\d_]")


class LoopWatch:
    """The watch over one text that grows. `has_found` becomes true at a loop."""

    def __init__(self) -> None:
        self.has_found = False
        self._next_chars = MIN_LOOP_CHARS

    def look(self, text: str) -> None:
        """Look at the text so far, now and then."""
        if len(text) < self._next_chars:
            return
        self._next_chars = len(text) + _STEP_CHARS
        self.has_found = ends_in_loop(text)


def ends_in_loop(text: str) -> bool:
    """Return whether a text ends with the same passage many times in a row.

    Numbers in a long loop with words may grow, each by the same step. Other numbers are data that someone asked for.
    """
    window = text[-WINDOW_CHARS:].rstrip(_DIGITS)  # the last number may be half written
    newest = _NUMBER.sub("0", window)
    numbers = list(map(int, _NUMBER.findall(window)))
    longest = len(newest) // MIN_REPETITIONS
    for size in range(1, longest + 1):
        passage = newest[-size:]
        count = _count_repetitions(size, MIN_LOOP_CHARS)
        if not newest.endswith(passage * count):
            continue
        width = passage.count("0")
        if _are_same(numbers[-width * count :], width):
            return True
        count = _count_repetitions(size, MIN_COUNTING_CHARS)
        is_long = newest.endswith(passage * count)
        if is_long and _LETTER.search(passage) and _grow_evenly(numbers[-width * count :], width):
            return True
    return False


def _count_repetitions(size: int, chars: int) -> int:
    """Count the repetitions of a passage of this size that have at least so many characters."""
    return max(MIN_REPETITIONS, -(-chars // size))


def _are_same(numbers: list[int], width: int) -> bool:
    """Return whether rows of numbers, of which each has this width, are the same. Without a width, there are none."""
    if not width:
        return True
    repetitions = len(numbers) // width
    return numbers == numbers[:width] * repetitions


def _grow_evenly(numbers: list[int], width: int) -> bool:
    """Return whether the numbers at each place of the rows grow by the same step."""
    for place in range(width):
        steps = {after - before for before, after in pairwise(numbers[place::width])}
        if len(steps) > 1:
            return False
    return True
