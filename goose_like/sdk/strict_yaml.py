"""YAML of strangers by PyYAML: bounded, with the line of each value, and what is wrong with it as a fault.

For toolkits whose files others read with PyYAML too, so that what `yes` or `1_000` means is the same. It is no library
of the core: who imports this requires it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from .diagnostics import MAX_FILE_BYTES, Diagnostic, ParseResult

T = TypeVar("T")

_LIMIT_VALUES = 20_000
"""Aliases counted each time: a few lines of them can stand for millions of values, or for themselves."""

_LIMIT_DEPTH = 100
_LIMIT_STACK = 3_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a build without libyaml is slow


class NodeError(Exception):
    """Raised by who takes a file's nodes: what is wrong with one of them."""

    def __init__(self, node: yaml.Node, text: str) -> None:
        super().__init__(text)
        self.line = get_line(node)


def read_yaml_nodes(
    file: Path, kind: str, hint: str, parse: Callable[[Any, yaml.Node], ParseResult[T]]
) -> ParseResult[T]:
    """What `take` reads of a file, given the loader and the top node; never raises.

    Args:
        what: what the file is, or is not if it is too large: "plugin".
        empty: what is to be said of a file without any value.
    """
    try:
        if file.is_dir():
            return build_failure(file, "this is a folder; name the file in it")
        if not file.is_file():
            return build_failure(file, "this is no file that can be read")
        if file.stat().st_size > MAX_FILE_BYTES:
            return build_failure(file, f"this is larger than {MAX_FILE_BYTES:,} bytes, and no {kind}")
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return build_failure(
            file, "this is no text in UTF-8; save it as such", 1 + error.object.count(b"\n", 0, error.start)
        )
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a circle of links, to Python 3.12
        return build_failure(file, f"can't be read: {' '.join(str(error).split())}")
    try:
        # libyaml's Python side descends by recursion in C: far enough down that ends the process.
        if _may_be_deep(text) and _is_deep(text):
            return build_failure(file, "it nests too deep; write it flatter", 1)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return build_failure(file, f"this file is empty; {hint}", 1)
        if not _is_small(node):
            return build_failure(
                file, f"it has more than {_LIMIT_VALUES:,} values, aliases counted, or nests too deep", 1
            )
        return parse(loader, node)
    except NodeError as wrong:
        return build_failure(file, str(wrong), wrong.line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # At the end of the text libyaml is one line beyond it.
        line = min(mark.line + 1, max(len(text.splitlines()), 1)) if mark else 1
        return build_failure(file, f"this is no valid YAML: {error.problem or error.context}", line)
    except Exception as error:  # PyYAML lets escape what its own code raises: `!!bool x` is a KeyError
        return build_failure(file, f"this is no valid YAML: {type(error).__name__}: {' '.join(str(error).split())}", 1)


def build_failure(file: Path, text: str, line: int | None = None) -> ParseResult[Any]:
    """Nothing was read, for this reason."""
    return ParseResult(diagnostics=(Diagnostic(file=file, line=line, text=text),))


def get_line(node: yaml.Node) -> int:
    """Where a node begins; lines count from 1."""
    return int(node.start_mark.line) + 1


def find_line(node: yaml.Node, path: Sequence[Any]) -> int:
    """The line of the key or item at a path, or of the nearest thing around it."""
    line = get_line(node)
    for step in path:
        if isinstance(node, yaml.MappingNode):
            # Of what a merge brings and its holder says again, the latter comes last.
            pair = next((pair for pair in reversed(node.value) if pair[0].value == str(step)), None)
            if pair is None:
                break
            line, node = get_line(pair[0]), pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = get_line(node)
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
