"""Diffs of file changes for people."""

from difflib import unified_diff

_MAX_COMPARED_LINES = 4_000


def format_diff(old: bytes | None, new: bytes) -> str:
    """Format the whole change of a file as a diff; only the sizes if the content is not UTF-8 text.

    `old` is None for a new file. Carriage returns stay in the text, and the screen shows them.
    """
    try:
        before = (old or b"").decode()
        after = new.decode()
    except UnicodeDecodeError:
        return _describe_sizes(old, new)
    if "\0" in before or "\0" in after:
        return _describe_sizes(old, new)
    one = _split_lines(before)
    two = _split_lines(after)
    start = _count_equal(one, two)
    end = _count_equal(one[start:][::-1], two[start:][::-1])
    removed = one[start : len(one) - end]
    added = two[start : len(two) - end]
    if len(removed) + len(added) <= _MAX_COMPARED_LINES:
        lines = list(unified_diff(one, two, lineterm=""))
        return "\n".join(lines[2:])  # without the names of the files
    # Searching for equal lines inside would take minutes.
    lines = [f"@@ from line {start + 1} @@"]
    lines += [f"-{line}" for line in removed]
    lines += [f"+{line}" for line in added]
    return "\n".join(lines)


def _describe_sizes(old: bytes | None, new: bytes) -> str:
    text = f"binary: {len(new):,} bytes"
    if old is not None:
        text += f", before {len(old):,}"
    return text


def _split_lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    if last:
        lines.append(f"{last}\n\\ no newline at the end")
    return lines


def _count_equal(one: list[str], two: list[str]) -> int:
    """Count the equal lines at the start."""
    count = 0
    for line, other in zip(one, two, strict=False):
        if line != other:
            break
        count += 1
    return count
