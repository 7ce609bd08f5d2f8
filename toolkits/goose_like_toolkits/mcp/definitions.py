"""The definitions of a server: its tools, prompts and resources, as the server listed them, kept between sessions.

Their values are checked where a server lists them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from goose_like.config.paths import create_private_folder, replace_private_file
from goose_like.core.dataclass import dataclass

from .places import StoredFile, find_stored_file
from .server import ServerConfig

if TYPE_CHECKING:
    from .prompts_and_resources import PromptDefinition, ResourceDefinition

_FORMAT = 1


@dataclass(frozen=True)
class ToolDefinition:
    """A tool of a server. `is_read_only` is a hint of the server, which nobody checks."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    is_read_only: bool = False


@dataclass(frozen=True)
class Definitions:
    """Everything that a server listed. `era` is the version of the protocol that it speaks, such as `2025-11-25`.

    With `announces_changes` the server says when its list of tools changes.
    """

    era: str = ""
    instructions: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    prompts: "tuple[PromptDefinition, ...]" = ()
    resources: "tuple[ResourceDefinition, ...]" = ()
    announces_changes: bool = False


class DefinitionStore:
    """The definitions of each server by the fingerprint of its configuration, as the person last accepted them.

    A server with another command or address is another one: it starts without definitions. Give the configuration as
    `load_servers` returns it, not the expanded one.
    """

    def load(self, server: ServerConfig) -> Definitions | None:
        """Load the definitions of a server; None if there are none, or none that this version can read."""
        return parse_definitions(StoredFile(server.fingerprint).data)

    def save(self, server: ServerConfig, definitions: Definitions) -> None:
        """Save the definitions of a server, for its owner alone.

        Raises:
            OSError: the folder is not writable.
        """
        # The name is for a person who looks at the file.
        stored = {"version": _FORMAT, "server": server.name, "definitions": asdict(definitions)}
        file = find_stored_file(server.fingerprint)
        create_private_folder(file.parent)
        replace_private_file(file, json.dumps(stored, indent=1))

    def forget(self, server: ServerConfig) -> bool:
        """Remove the definitions of a server. Return whether there were any."""
        file = find_stored_file(server.fingerprint)
        has_file = file.exists()
        file.unlink(missing_ok=True)
        return has_file


def parse_definitions(data: bytes | None) -> Definitions | None:
    """Parse the content of a stored file; None if there is none, or none that this version can read."""
    if data is None:
        return None
    try:
        stored = from_json(data)
        if stored["version"] == _FORMAT:
            return build_definitions(stored["definitions"])
    except (ValueError, TypeError, LookupError):  # then the server is asked again, as a new one
        pass
    return None


def build_definitions(fields: Mapping[str, Any]) -> Definitions:
    """Build definitions from the fields that `dataclasses.asdict` returned.

    Raises:
        TypeError: these are other fields.
    """
    values = dict(fields)
    values["tools"] = tuple(ToolDefinition(**tool) for tool in values.get("tools", ()))
    for name in ("prompts", "resources"):
        values[name] = tuple(values.get(name, ()))
    if values["prompts"] or values["resources"]:
        from .prompts_and_resources import ResourceDefinition, build_prompt

        values["prompts"] = tuple(map(build_prompt, values["prompts"]))
        values["resources"] = tuple(ResourceDefinition(**resource) for resource in values["resources"])
    return Definitions(**values)
