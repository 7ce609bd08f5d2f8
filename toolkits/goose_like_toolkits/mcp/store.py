"""Definitions of servers that are kept between sessions, and what changed since."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from goose_like.config.paths import create_private_folder, read_user_file, replace_private_file, state_folder
from goose_like.core.message import FrozenModel

from .definitions import Definitions
from .server import ServerConfig

_FORMAT = 1


class _Stored(FrozenModel):
    """The content of a file. `server` is the name at the time, for a person who looks at the file."""

    version: Literal[1] = 1
    server: str
    definitions: Definitions


class DefinitionStore:
    """The definitions of each server by the fingerprint of its configuration, as the person last accepted them.

    A server with another command or address is another one: it starts without definitions. Give the configuration as
    `load_servers` returns it, not the expanded one. Commands in the sandbox cannot see the folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_folder() / "mcp"

    def load(self, server: ServerConfig) -> Definitions | None:
        """Load the definitions of a server; None if there are none, or none that this version can read."""
        try:
            text = read_user_file(self._get_file(server))
            return _Stored.model_validate_json(text).definitions
        except (OSError, ValueError, ValidationError):  # then the server is asked again, as a new one
            return None

    def save(self, server: ServerConfig, definitions: Definitions) -> None:
        """Save the definitions of a server, for its owner alone.

        Raises:
            OSError: the folder is not writable.
        """
        stored = _Stored(server=server.name, definitions=definitions)
        create_private_folder(self._folder)
        replace_private_file(self._get_file(server), stored.model_dump_json(indent=1))

    def forget(self, server: ServerConfig) -> bool:
        """Remove the definitions of a server. Return whether there were any."""
        file = self._get_file(server)
        has_file = file.exists()
        file.unlink(missing_ok=True)
        return has_file

    def _get_file(self, server: ServerConfig) -> Path:
        return self._folder / f"{server.fingerprint}.json"


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
        parts.setdefault(f"tool {tool.name}", []).append(tool.model_dump())
    for prompt in definitions.prompts:
        parts.setdefault(f"prompt {prompt.name}", []).append(prompt.model_dump())
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
