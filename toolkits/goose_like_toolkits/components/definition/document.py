"""YAML files of components as plain values with line numbers. Problems become diagnostics, never exceptions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from goose_like.config.yaml_reader import find_line, get_line
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import NodeError, build_failure, read_yaml_nodes

_MAX_BITS = 4_096  # a larger number could not even be shown
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_SCALARS: Any = yaml.constructor.SafeConstructor()
_CONVERTERS: dict[str, Any] = {
    f"{_TAG}str": lambda node: node.value,
    f"{_TAG}null": lambda node: None,
    f"{_TAG}bool": _SCALARS.construct_yaml_bool,
    f"{_TAG}int": _SCALARS.construct_yaml_int,
    f"{_TAG}float": _SCALARS.construct_yaml_float,
    f"{_TAG}timestamp": lambda node: _SCALARS.construct_yaml_timestamp(node).isoformat(),
    f"{_TAG}value": lambda node: node.value,  # a lone `=`
}


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file whose top is a mapping. `data` holds JSON values: keys are text, dates are ISO text."""

    file: Path
    data: dict[str, Any]
    node: yaml.Node

    def line(self, path: Sequence[str | int] = ()) -> int:
        """Return the line of the value at a path, or of the nearest value around it."""
        return find_line(self.node, path)

    def diagnose(self, path: Sequence[str | int], text: str, *, is_warning: bool = False) -> Diagnostic:
        """Build a diagnostic for the value at a path."""
        return Diagnostic(file=self.file, line=self.line(path), text=text, is_warning=is_warning)


def read_document(file: Path) -> ParseResult[Document]:
    """Read a YAML file. Never raise."""

    def parse(loader: Any, node: yaml.Node) -> ParseResult[Document]:
        if not isinstance(node, yaml.MappingNode):
            return build_failure(file, "a component is described by a mapping, and this is none", get_line(node))
        if repeated := tuple(_find_repeated_keys(loader, node)):
            return ParseResult(
                diagnostics=tuple(Diagnostic(file=file, line=line, text=text) for line, text in sorted(repeated))
            )
        return ParseResult(value=Document(file, convert_node(node), node))

    return read_yaml_nodes(file, "description of a component", "a component is described by a mapping", parse)


def convert_node(node: yaml.Node) -> Any:
    """Convert a node to a plain value. Raise NodeError for values that JSON cannot hold."""
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        return {key.value: convert_node(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [convert_node(item) for item in node.value]
    try:
        value = _CONVERTERS[node.tag](node)
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise ValueError("the number is too large")
        return value
    except KeyError:
        tag = node.tag.replace(_TAG, "!!")
        raise NodeError(node, f"{tag} is not known here; write text, a list or a mapping") from None
    except (ValueError, AttributeError) as error:  # there is no February 30
        raise NodeError(node, f"{node.value[:80]!r} can't be read: {error}; put it in quotes if it is text") from error


def get_entries(node: yaml.Node) -> dict[str, yaml.Node]:
    """Return the value nodes of a mapping by key, and nothing for other nodes."""
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _find_repeated_keys(loader: Any, root: yaml.Node) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each repeated key, and merge `<<` keys."""
    waiting, done, merging = [root], set(), []
    while waiting:
        node = waiting.pop()
        if id(node) in done or isinstance(node, yaml.ScalarNode):
            continue
        done.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        first: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise NodeError(key, "a key is text, and no list or mapping")
            if key.value in first:
                line = get_line(first[key.value])
                yield get_line(key), f"{key.value}: this key is there twice, first in line {line}; remove one"
            first[key.value] = key
            waiting.append(value)
        if any(key.tag == _MERGE for key, _ in node.value):
            merging.append(node)
    for node in merging:  # last, as merged keys are no repetitions
        loader.flatten_mapping(node)
