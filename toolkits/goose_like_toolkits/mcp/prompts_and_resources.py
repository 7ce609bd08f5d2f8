"""The definitions of prompts and resources. Few servers have them: a start imports this module for those alone."""

from collections.abc import Mapping
from typing import Any

from goose_like.core.dataclass import dataclass


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


def build_prompt(fields: Mapping[str, Any]) -> PromptDefinition:
    """Build a prompt from the fields that `dataclasses.asdict` returned.

    Raises:
        TypeError: these are other fields.
    """
    values = dict(fields)
    values["arguments"] = tuple(PromptArgument(**argument) for argument in values.get("arguments", ()))
    return PromptDefinition(**values)
