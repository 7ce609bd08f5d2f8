"""Document: a YAML file as plain values, with the line of each; nothing that a file holds raises."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from goose_like.config.yaml_reader import find_line, get_line
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import NodeError, build_failure, read_yaml_nodes

_LIMIT_BITS = 4_096  # a larger number could not even be shown

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"

_SCALARS: Any = yaml.constructor.SafeConstructor()
_READ: dict[str, Any] = {
    f"{_TAG}str": lambda node: node.value,
    f"{_TAG}null": lambda node: None,
    f"{_TAG}bool": _SCALARS.construct_yaml_bool,
    f"{_TAG}int": _SCALARS.construct_yaml_int,
    f"{_TAG}float": _SCALARS.construct_yaml_float,
    f"{_TAG}timestamp": lambda node: _date(_SCALARS.construct_yaml_timestamp(node)),
    f"{_TAG}value": lambda node: node.value,  # a lone `=`
}


@dataclass(frozen=True, slots=True)
class Document:
    """A file whose top is a mapping. `data` holds what JSON can say: keys are text, dates are as ISO writes them."""

    file: Path
    data: dict[str, Any]
    node: yaml.Node

    def line(self, path: Sequence[str | int] = ()) -> int:
        """The line of the key or item at the path, or of the nearest thing around it; lines count from 1."""
        return find_line(self.node, path)

    def fault(self, path: Sequence[str | int], text: str, *, is_remark: bool = False) -> Diagnostic:
        return Diagnostic(file=self.file, line=self.line(path), text=text, is_warning=is_remark)


def read_document(file: Path, what: str = "a component") -> ParseResult[Document]:
    """What a YAML file says; never raises. `what` is what such a file is called in a fault."""

    def take(loader: Any, node: yaml.Node) -> ParseResult[Document]:
        if not isinstance(node, yaml.MappingNode):
            return build_failure(file, f"{what} is described by a mapping, and this is none", get_line(node))
        if repeated := tuple(_settled(loader, node)):
            return ParseResult(
                diagnostics=tuple(Diagnostic(file=file, line=line, text=text) for line, text in sorted(repeated))
            )
        return ParseResult(value=Document(file, plain(node), node))

    return read_yaml_nodes(file, f"description of {what}", f"{what} is described by a mapping", take)


def plain(node: yaml.Node) -> Any:
    """A node as a plain value."""
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        return {key.value: plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [plain(item) for item in node.value]
    try:
        value = _READ[node.tag](node)
        if isinstance(value, int) and value.bit_length() > _LIMIT_BITS:
            raise ValueError("the number is too large")
        return value
    except KeyError:
        raise NodeError(
            node, f"{node.tag.replace(_TAG, '!!')} is not known here; write text, a list or a mapping"
        ) from None
    except (ValueError, AttributeError) as error:  # there is no February 30
        raise NodeError(node, f"{node.value[:80]!r} can't be read: {error}; put it in quotes if it is text") from error


def entries(node: yaml.Node) -> dict[str, yaml.Node]:
    """The values of a mapping by their keys; of anything else there are none."""
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _settled(loader: Any, root: yaml.Node) -> Iterator[tuple[int, str]]:
    """Makes keys text and merges what `<<` brings; gives the lines where a key stands a second time."""
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
                yield (
                    get_line(key),
                    f"{key.value}: this key is there twice, first in line {get_line(first[key.value])}; remove one",
                )
            first[key.value] = key
            waiting.append(value)
        if any(key.tag == _MERGE for key, _ in node.value):
            merging.append(node)
    for node in merging:  # not before: what is merged is no repetition
        loader.flatten_mapping(node)


def _date(value: date) -> str:
    return value.isoformat()
