"""Lists of tools as other agents write them, such as `Read, Bash(git log:*)`."""

import re
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from goose_like.core.pattern import compile_later

from .rule_topics import COMMAND, split_rule

_SEPARATORS = ", \t\r\n"
_DEPTH_CHANGES = {"(": 1, ")": -1}
_FILE_TOOLS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
_UNASKED_TOOLS = ("Glob", "Grep", "LS", "Read", "Task", "TodoWrite", "WebSearch")
"""Tools that need no rule: they only read, or ask themselves."""

_ANYTHING = compile_later(r":?\*\Z")
_ENTRY = compile_later(r"([A-Za-z_][\w-]*)(?:\((.*)\))?", re.DOTALL)


def split_tools(text: str, separators: str = _SEPARATORS) -> Iterator[str]:
    """Split a list of tools at separators outside of parentheses: at commas and blanks."""
    entry = ""
    depth = 0
    for letter in text:
        if depth <= 0 and letter in separators:
            if entry:
                yield entry
            entry = ""
            depth = 0
        else:
            entry += letter
            depth += _DEPTH_CHANGES.get(letter, 0)
    if entry:
        yield entry


def _split_value(value: Any) -> Any:
    """Return the entries of a text or of a list of texts, and any other value unchanged."""
    texts = value if isinstance(value, list) else [value]
    entries: list[str] = []
    for text in texts:
        if not isinstance(text, str):
            return value
        entries += split_tools(text)
    return entries


ToolList = Annotated[tuple[str, ...], BeforeValidator(_split_value)]
"""The value of such a list, in one text or as a YAML list: its entries, for `parse_tool`."""


def parse_tool(entry: str) -> tuple[str, str] | None:
    """Parse `Name` or `Name(PATTERN)` into the name and the pattern. Return None for anything else."""
    match = _ENTRY.fullmatch(entry)
    if not match:
        return None
    name, pattern = match.groups()
    if pattern is None:
        return name, ""
    pattern = pattern.strip()
    if not pattern or not _is_balanced(pattern):
        return None
    return name, pattern


def make_command_rule(pattern: str) -> str:
    """Return the permission rule of `Bash(PATTERN)`, such as `git log` for `git log:*`.

    Raises:
        ValueError: the pattern is no command.
    """
    rule = _ANYTHING.sub("", pattern).strip() or "*"
    if split_rule(rule)[0] is not COMMAND:
        raise ValueError("it is no command")
    return rule


def make_path_rule(pattern: str, root: Path) -> str:
    """Return the permission rule of `Edit(PATTERN)` in a workspace.

    Raises:
        ValueError: the pattern leads out of the workspace.
    """
    if ".." in pattern or pattern.startswith(("/", "~")):
        raise ValueError("it leads out of the workspace")
    below_root = pattern.removeprefix("./") or "*"
    return f"path:{escape(str(root))}/{below_root}"


def read_rules(text: str, root: Path) -> Iterator[str]:
    """Read permission rules that are separated by commas. Translate tools such as `Bash(git push:*)` and `Edit`.

    Raises:
        ValueError: the pattern of a tool cannot be a rule.
    """
    for part in split_tools(text, ","):
        translated = [translate_entry(entry, root) for entry in split_tools(part)]
        if None in translated:
            yield part.strip()
            continue
        for rules in translated:
            yield from rules or ()


def translate_entry(entry: str, root: Path) -> list[str] | None:
    """Return the rules of a tool of other agents, or None if the entry is none.

    Raises:
        ValueError: its pattern cannot be a rule.
    """
    name, pattern = parse_tool(entry) or ("", "")
    if name == "Bash" or (name.lower() == "bash" and pattern):  # `bash` alone is the command
        return [make_command_rule(pattern)]
    if name in _FILE_TOOLS:
        return [make_path_rule(pattern, root)]
    if name == "WebFetch" and pattern.startswith("domain:"):
        return [pattern]
    return [] if name in _UNASKED_TOOLS else None


def _is_balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += _DEPTH_CHANGES.get(letter, 0)
        if depth < 0:
            return False
    return depth == 0
