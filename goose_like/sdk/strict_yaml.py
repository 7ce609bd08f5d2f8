"""YAML of strangers by PyYAML: bounded, with the line of each value, and what is wrong with it as a fault.

For toolkits whose files others read with PyYAML too, so that what `yes` or `1_000` means is the same. It is no library
of the core: who imports this requires it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from .diagnostics import LIMIT_BYTES, Fault, Reading

T = TypeVar("T")

_LIMIT_VALUES = 20_000
"""Aliases counted each time: a few lines of them can stand for millions of values, or for themselves."""

_LIMIT_DEPTH = 100
_LIMIT_STACK = 3_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a build without libyaml is slow


class Wrong(Exception):
    """Raised by who takes a file's nodes: what is wrong with one of them."""

    def __init__(self, node: yaml.Node, text: str) -> None:
        super().__init__(text)
        self.line = line_of(node)


def read_nodes(file: Path, what: str, empty: str, take: Callable[[Any, yaml.Node], Reading[T]]) -> Reading[T]:
    """What `take` reads of a file, given the loader and the top node; never raises.

    Args:
        what: what the file is, or is not if it is too large: "plugin".
        empty: what is to be said of a file without any value.
    """
    try:
        if file.is_dir():
            return refused(file, "this is a folder; name the file in it")
        if not file.is_file():
            return refused(file, "this is no file that can be read")
        if file.stat().st_size > LIMIT_BYTES:
            return refused(file, f"this is larger than {LIMIT_BYTES:,} bytes, and no {what}")
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return refused(file, "this is no text in UTF-8; save it as such", 1 + error.object.count(b"\n", 0, error.start))
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a circle of links, to Python 3.12
        return refused(file, f"can't be read: {' '.join(str(error).split())}")
    try:
        # libyaml's Python side descends by recursion in C: far enough down that ends the process.
        if _may_be_deep(text) and _is_deep(text):
            return refused(file, "it nests too deep; write it flatter", 1)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return refused(file, f"this file is empty; {empty}", 1)
        if not _is_small(node):
            return refused(file, f"it has more than {_LIMIT_VALUES:,} values, aliases counted, or nests too deep", 1)
        return take(loader, node)
    except Wrong as wrong:
        return refused(file, str(wrong), wrong.line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # At the end of the text libyaml is one line beyond it.
        line = min(mark.line + 1, max(len(text.splitlines()), 1)) if mark else 1
        return refused(file, f"this is no valid YAML: {error.problem or error.context}", line)
    except Exception as error:  # PyYAML lets escape what its own code raises: `!!bool x` is a KeyError
        return refused(file, f"this is no valid YAML: {type(error).__name__}: {' '.join(str(error).split())}", 1)


def refused(file: Path, text: str, line: int | None = None) -> Reading[Any]:
    """Nothing was read, for this reason."""
    return Reading(faults=(Fault(file=file, line=line, text=text),))


def line_of(node: yaml.Node) -> int:
    """Where a node begins; lines count from 1."""
    return int(node.start_mark.line) + 1


def line_at(node: yaml.Node, path: Sequence[Any]) -> int:
    """The line of the key or item at a path, or of the nearest thing around it."""
    line = line_of(node)
    for step in path:
        if isinstance(node, yaml.MappingNode):
            # Of what a merge brings and its holder says again, the latter comes last.
            pair = next((pair for pair in reversed(node.value) if pair[0].value == str(step)), None)
            if pair is None:
                break
            line, node = line_of(pair[0]), pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = line_of(node)
        else:
            break
    return line


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
