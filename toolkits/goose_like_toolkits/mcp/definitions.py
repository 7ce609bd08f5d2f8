"""The definitions of a server: its tools, prompts and resources, as the server listed them."""

from typing import Any

from goose_like.core.message import FrozenModel


class ToolDefinition(FrozenModel):
    """A tool of a server. `is_read_only` is a hint of the server, which nobody checks."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    is_read_only: bool = False


class PromptArgument(FrozenModel):
    """An argument of a prompt."""

    name: str
    description: str = ""
    is_required: bool = False


class PromptDefinition(FrozenModel):
    """A prompt of a server, which a person sends as a slash command."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ResourceDefinition(FrozenModel):
    """A resource of a server. In a template, `uri` has places such as `{path}`."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""
    is_template: bool = False


class Definitions(FrozenModel):
    """Everything that a server listed. `era` is the version of the protocol that it speaks, such as `2025-11-25`.

    With `announces_changes` the server says when its list of tools changes.
    """

    era: str = ""
    instructions: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    prompts: tuple[PromptDefinition, ...] = ()
    resources: tuple[ResourceDefinition, ...] = ()
    announces_changes: bool = False
