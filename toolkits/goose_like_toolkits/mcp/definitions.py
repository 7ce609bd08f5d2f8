"""The definitions of a server: its tools, prompts and resources, as the server listed them.

Each start reads them, so that they are dataclasses. Their values are checked where a server lists them.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from goose_like.core.dataclass import dataclass


@dataclass(frozen=True)
class ToolDefinition:
    """A tool of a server. `is_read_only` is a hint of the server, which nobody checks."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    is_read_only: bool = False


@dataclass(frozen=True)
class PromptArgument:
    """An argument of a prompt."""

    name: str
    description: str = ""
    is_required: bool = False


@dataclass(frozen=True)
class PromptDefinition:
    """A prompt of a server, which a person sends as a slash command."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource of a server. In a template, `uri` has places such as `{path}`."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""
    is_template: bool = False


@dataclass(frozen=True)
class Definitions:
    """Everything that a server listed. `era` is the version of the protocol that it speaks, such as `2025-11-25`.

    With `announces_changes` the server says when its list of tools changes.
    """

    era: str = ""
    instructions: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    prompts: tuple[PromptDefinition, ...] = ()
    resources: tuple[ResourceDefinition, ...] = ()
    announces_changes: bool = False


def build_definitions(fields: Mapping[str, Any]) -> Definitions:
    """Build definitions from the fields that `dataclasses.asdict` returned.

    Raises:
        TypeError: these are other fields.
    """
    values = dict(fields)
    values["tools"] = tuple(ToolDefinition(**tool) for tool in values.get("tools", ()))
    values["prompts"] = tuple(_build_prompt(**prompt) for prompt in values.get("prompts", ()))
    values["resources"] = tuple(ResourceDefinition(**resource) for resource in values.get("resources", ()))
    return Definitions(**values)


def _build_prompt(arguments: tuple[Mapping[str, Any], ...] = (), **fields: Any) -> PromptDefinition:
    built = tuple(PromptArgument(**argument) for argument in arguments)
    return PromptDefinition(arguments=built, **fields)
