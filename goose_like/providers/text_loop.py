"""Text loops: a small model writes one passage again and again, also with other numbers, until its output limit."""

from goose_like.core.pattern import compile_later

WINDOW_CHARS = 4_000
MIN_LOOP_CHARS = 800
MIN_REPETITIONS = 8
_STEP_CHARS = 100
_NUMBER = compile_later(r"\d+")


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
    """Return whether a text ends with the same passage many times in a row. Any number is equal to any other."""
    newest = _NUMBER.sub("0", text[-WINDOW_CHARS:])
    longest = len(newest) // MIN_REPETITIONS
    for size in range(1, longest + 1):
        count = max(MIN_REPETITIONS, -(-MIN_LOOP_CHARS // size))
        if newest.endswith(newest[-size:] * count):
            return True
    return False
