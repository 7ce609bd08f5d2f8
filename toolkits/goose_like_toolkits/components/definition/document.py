"""YAML files of components as plain values with line numbers. Problems become diagnostics, never exceptions."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from goose_like.config.yaml_reader import find_line, follow_path, reject_repeated_keys
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import build_failure, read_yaml_nodes

Place = tuple[str | int, ...]
"""The keys and indexes from the top of a file to a value."""

_MAX_BITS = 4_096  # a larger number could not even be shown


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file whose top is a mapping. `data` holds JSON values: keys are text, dates are ISO text."""

    file: Path
    data: dict[str, Any]
    node: yaml.Node

    def diagnose(self, place: Sequence[str | int], text: str, *, is_warning: bool = False) -> Diagnostic:
        """Build a diagnostic for the value at a place, or for the nearest value around it."""
        line = find_line(self.node, place)
        return Diagnostic(file=self.file, line=line, text=text, is_warning=is_warning)

    def get_text(self, place: Place, value: Any) -> str:
        """Return a single value as it is written: `yes` and `1.10` too."""
        nodes = [node for _, node in follow_path(self.node, place)]
        if len(nodes) == len(place) + 1 and isinstance(nodes[-1], yaml.ScalarNode):
            return str(nodes[-1].value)
        return str(value)


def read_document(file: Path) -> ParseResult[Document]:
    """Read a YAML file as PyYAML does. Never raise."""

    def parse(loader: Any, node: yaml.Node) -> ParseResult[Document]:
        if not isinstance(node, yaml.MappingNode):
            return build_failure(file, "a component is described by a mapping, such as `group_id: org.example`", 1)
        reject_repeated_keys(node)
        return ParseResult(value=Document(file, _to_json(loader.construct_document(node)), node))

    return read_yaml_nodes(file, "description of a component", "a component is described by a mapping", parse)


def format_place(place: Sequence[str | int]) -> str:
    """Format a place for a message: `commands[0].parameter`."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}"
    return text.removeprefix(".")


def _to_json(value: Any) -> Any:
    """Convert a value of YAML. Raise ValueError for one that JSON cannot hold."""
    if isinstance(value, dict):
        return {str(key): _to_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_to_json(each) for each in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    is_too_large = isinstance(value, int) and value.bit_length() > _MAX_BITS
    if is_too_large or not isinstance(value, str | int | float | None):
        raise ValueError(f"a value of type {type(value).__name__} can't be used; write text, a list or a mapping")
    return value
