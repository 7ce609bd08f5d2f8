"""Diffs of file changes for people."""

from difflib import unified_diff
from itertools import takewhile

_MAX_COMPARED_LINES = 4_000


def format_diff(old: bytes | None, new: bytes) -> str:
    """Format the whole change of a file as a diff; only the sizes if the content is not UTF-8 text.

    `old` is None for a new file. Carriage returns stay in the text, and the screen shows them.
    """
    try:
        before, after = (old or b"").decode(), new.decode()
    except UnicodeDecodeError:
        before = after = "\0"
    if "\0" in before + after:
        return f"binary: {len(new):,} bytes" + ("" if old is None else f", before {len(old):,}")
    one, two = _split_lines(before), _split_lines(after)
    start = _count_equal(one, two)
    end = _count_equal(one[start:][::-1], two[start:][::-1])
    removed, added = one[start : len(one) - end], two[start : len(two) - end]
    if len(removed) + len(added) <= _MAX_COMPARED_LINES:
        return "\n".join(list(unified_diff(one, two, lineterm=""))[2:])
    # Searching for equal lines inside would take minutes.
    lines = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return "\n".join([f"@@ from line {start + 1} @@", *lines])


def _split_lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ no newline at the end"] if last else lines


def _count_equal(one: list[str], two: list[str]) -> int:
    """Count the equal lines at the start."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False))))
