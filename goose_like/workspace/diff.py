"""What a change does to a file, word for word, as a person reads it before allowing it."""

from difflib import unified_diff

_COMPARED_LINES = 4_000


def difference(old: bytes | None, new: bytes) -> str:
    """All of the change as a diff, however long; of what is no UTF-8 text only the sizes. `old` is None for a new file.

    Carriage returns stay in it, for the screen to show.
    """
    try:
        before, after = (old or b"").decode(), new.decode()
    except UnicodeDecodeError:
        before = after = "\0"
    if "\0" in before + after:
        return f"binary: {len(new):,} bytes" + ("" if old is None else f", before {len(old):,}")
    one, two = _lines(before), _lines(after)
    start = _alike(one, two)
    end = _alike(one[start:][::-1], two[start:][::-1])
    gone, come = one[start : len(one) - end], two[start : len(two) - end]
    if len(gone) + len(come) <= _COMPARED_LINES:
        return "\n".join(list(unified_diff(one, two, lineterm=""))[2:])
    # To find what is alike in between would take minutes.
    return "\n".join([f"@@ from line {start + 1} @@", *(f"-{line}" for line in gone), *(f"+{line}" for line in come)])


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ no newline at the end"] if last else lines


def _alike(one: list[str], two: list[str]) -> int:
    """How many lines both begin with."""
    pairs = zip(one, two, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))
