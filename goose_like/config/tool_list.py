"""Lists of tools in files for other agents, such as `Read, Bash(git log:*)`."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator

_ENTRY = re.compile(r"([A-Za-z_][\w-]*)(?:\((.*)\))?", re.DOTALL)


def split_tools(text: str) -> Iterator[str]:
    """Split a list of tools at commas and blanks outside of parentheses."""
    entry, depth = "", 0
    for letter in f"{text},":
        if depth <= 0 and (letter == "," or letter.isspace()):
            if entry:
                yield entry
            entry, depth = "", 0
        else:
            entry += letter
            depth += (letter == "(") - (letter == ")")
    if entry.removesuffix(","):
        yield entry.removesuffix(",")


def _split_value(value: Any) -> Any:
    texts = value if isinstance(value, list) else [value]
    return [entry for text in texts for entry in split_tools(text)] if all(isinstance(t, str) for t in texts) else value


ToolList = Annotated[tuple[str, ...], BeforeValidator(_split_value)]
"""The value of such a list, in one text or as a YAML list: its entries, for `parse_tool`."""


def parse_tool(entry: str) -> tuple[str, str] | None:
    """Parse `Name` or `Name(PATTERN)` into the name and the pattern. Return None for anything else."""
    if not (match := _ENTRY.fullmatch(entry)):
        return None
    name, pattern = match[1], match[2]
    if pattern is not None and (not pattern.strip() or not _is_balanced(pattern)):
        return None
    return name, (pattern or "").strip()


def _is_balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0
