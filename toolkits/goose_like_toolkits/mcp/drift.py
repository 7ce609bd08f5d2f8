"""The differences between the definitions that a person accepted and those that a server lists now."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .definitions import Definitions


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences between the definitions that a person accepted and those that a server lists now.

    The names of parts are `tool NAME`, `prompt NAME` and `instructions`. `tools` names the tools that are new or
    differ: the model must not see or call these before the person agrees.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def describe(self) -> str:
        """Describe the differences in one line, for a question."""
        parts = []
        for what, names in (("new", self.added), ("changed", self.changed), ("gone", self.removed)):
            if names:
                parts.append(f"{what}: {', '.join(names)}")
        return "; ".join(parts)

    def format(self) -> str:
        """Return the differences as a diff of names, descriptions and schemas."""
        return "\n".join(self.lines)


def find_drift(known: Definitions, new: Definitions) -> Drift:
    """Find the differences in tools, prompts and instructions. Their order does not count.

    Lists of resources are data, which change from day to day, and a person is not asked about them.
    """
    before = _list_parts(known)
    now = _list_parts(new)
    added = tuple(sorted(now.keys() - before.keys()))
    removed = tuple(sorted(before.keys() - now.keys()))
    common = sorted(before.keys() & now.keys())
    changed = tuple(name for name in common if before[name] != now[name])
    lines: list[str] = []
    for name in (*added, *changed, *removed):
        old_lines = _format_part(before.get(name, []))
        new_lines = _format_part(now.get(name, []))
        # All lines of the part: a description means little without its neighbours.
        lines += difflib.unified_diff(old_lines, new_lines, f"accepted {name}", name, lineterm="", n=10_000)
    return Drift(added, changed, removed, _list_tools((*added, *changed), new), tuple(lines))


def _list_tools(parts: Iterable[str], definitions: Definitions) -> frozenset[str]:
    names = set(parts)
    return frozenset(tool.name for tool in definitions.tools if f"tool {tool.name}" in names)


def _list_parts(definitions: Definitions) -> dict[str, list[dict[str, Any]]]:
    """Return the fields of the parts that a model sees, by name. A server may list several parts of one name."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for tool in definitions.tools:
        parts.setdefault(f"tool {tool.name}", []).append(asdict(tool))
    for prompt in definitions.prompts:
        parts.setdefault(f"prompt {prompt.name}", []).append(asdict(prompt))
    if definitions.instructions:
        parts["instructions"] = [{"instructions": definitions.instructions}]
    return parts


def _format_part(part: Iterable[Mapping[str, Any]]) -> list[str]:
    """Format the fields as lines: a schema has one line for each of its values."""
    lines = []
    for fields in part:
        for name, value in fields.items():
            text = value
            if not isinstance(value, str):
                text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
            if text:
                lines += f"{name}: {text}".split("\n")
    return lines
