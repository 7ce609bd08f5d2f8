"""Document: a YAML file as plain values, with the line of each; nothing that a file holds raises."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from goose_like.fault import LIMIT_BYTES, Fault, Reading

_LIMIT_VALUES = 20_000
"""Aliases counted each time: a few lines of them can stand for millions of values, or for themselves."""

_LIMIT_DEPTH = 100
_LIMIT_STACK = 3_000
_LIMIT_BITS = 4_096  # a larger number could not even be shown

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"

# The originals read with PyYAML, so that what `yes` or `1_000` means is the same here. A build without libyaml is slow.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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


class _Wrong(Exception):
    """What can't be a plain value, and in which line."""

    def __init__(self, node: yaml.Node, text: str) -> None:
        super().__init__(text)
        self.fault_line = line_of(node)


@dataclass(frozen=True, slots=True)
class Document:
    """A file whose top is a mapping. `data` holds what JSON can say: keys are text, dates are as ISO writes them."""

    file: Path
    data: dict[str, Any]
    node: yaml.Node

    def line(self, path: Sequence[str | int] = ()) -> int:
        """The line of the key or item at the path, or of the nearest thing around it; lines count from 1."""
        node = self.node
        line = line_of(node)
        for step in path:
            if isinstance(node, yaml.MappingNode):
                # Of what a merge brings and its holder says again, the latter comes last.
                pair = next((pair for pair in reversed(node.value) if pair[0].value == step), None)
                if pair is None:
                    break
                line, node = line_of(pair[0]), pair[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = line_of(node)
            else:
                break
        return line

    def fault(self, path: Sequence[str | int], text: str, *, is_remark: bool = False) -> Fault:
        return Fault(file=self.file, line=self.line(path), text=text, is_remark=is_remark)


def read_document(file: Path, what: str = "a component") -> Reading[Document]:
    """What a YAML file says; never raises. `what` is what such a file is called in a fault."""
    try:
        if file.is_dir():
            return _refused(file, "this is a folder; name the file in it")
        if not file.is_file():
            return _refused(file, "this is no file that can be read")
        if file.stat().st_size > LIMIT_BYTES:
            return _refused(file, f"this is larger than {LIMIT_BYTES:,} bytes, and no description of {what}")
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a circle of links, to Python 3.12
        return _refused(file, f"can't be read: {' '.join(str(error).split())}")
    try:
        return _document(file, text, what)
    except _Wrong as wrong:
        return _refused(file, str(wrong), wrong.fault_line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # At the end of the text libyaml is one line beyond it.
        line = min(mark.line + 1, max(len(text.splitlines()), 1)) if mark else 1
        return _refused(file, f"this is no valid YAML: {error.problem or error.context}", line)
    except Exception as error:  # PyYAML lets escape what its own code raises: `!!bool x` is a KeyError
        return _refused(file, f"this is no valid YAML: {type(error).__name__}: {' '.join(str(error).split())}", 1)


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
        raise _Wrong(
            node, f"{node.tag.replace(_TAG, '!!')} is not known here; write text, a list or a mapping"
        ) from None
    except (ValueError, AttributeError) as error:  # there is no February 30
        raise _Wrong(node, f"{node.value[:80]!r} can't be read: {error}; put it in quotes if it is text") from error


def entries(node: yaml.Node) -> dict[str, yaml.Node]:
    """The values of a mapping by their keys; of anything else there are none."""
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def line_of(node: yaml.Node) -> int:
    """Where a node begins; lines count from 1."""
    return int(node.start_mark.line) + 1


def _document(file: Path, text: str, what: str) -> Reading[Document]:
    # libyaml's Python side descends by recursion in C: far enough down that ends the process.
    if _may_be_deep(text) and _is_deep(text):
        return _refused(file, "it nests too deep; write it flatter", 1)
    loader = _Loader(text)
    node = loader.get_single_node()
    if node is None:
        return _refused(file, f"this file is empty; {what} is described by a mapping", 1)
    if not _is_small(node):
        return _refused(file, f"it has more than {_LIMIT_VALUES:,} values, aliases counted, or nests too deep", 1)
    if not isinstance(node, yaml.MappingNode):
        return _refused(file, f"{what} is described by a mapping, and this is none", line_of(node))
    if repeated := tuple(_settled(loader, node)):
        return Reading(faults=tuple(Fault(file=file, line=line, text=text) for line, text in sorted(repeated)))
    return Reading(value=Document(file, plain(node), node))


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
                raise _Wrong(key, "a key is text, and no list or mapping")
            if key.value in first:
                yield (
                    line_of(key),
                    f"{key.value}: this key is there twice, first in line {line_of(first[key.value])}; remove one",
                )
            first[key.value] = key
            waiting.append(value)
        if any(key.tag == _MERGE for key, _ in node.value):
            merging.append(node)
    for node in merging:  # not before: what is merged is no repetition
        loader.flatten_mapping(node)


def _may_be_deep(text: str) -> bool:
    """Whether it can nest deeper than is safe: each level takes a bracket, or a column more than the one around it."""
    if len(text) <= _LIMIT_STACK:
        return False
    return text.count("[") + text.count("{") + 2 * max(map(len, text.splitlines()), default=0) > _LIMIT_STACK


def _is_deep(text: str) -> bool:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _LIMIT_DEPTH:
            return True
    return False


def _is_small(node: yaml.Node) -> bool:
    count, waiting = 0, [(node, 0)]
    while waiting:
        within, depth = waiting.pop()
        count += 1
        if count > _LIMIT_VALUES or depth > _LIMIT_DEPTH:
            return False
        if isinstance(within, yaml.MappingNode):
            waiting += [(part, depth + 1) for pair in within.value for part in pair]
        elif isinstance(within, yaml.SequenceNode):
            waiting += [(part, depth + 1) for part in within.value]
    return True


def _date(value: date) -> str:
    return value.isoformat()


def _refused(file: Path, text: str, line: int | None = None) -> Reading[Document]:
    return Reading(faults=(Fault(file=file, line=line, text=text),))
