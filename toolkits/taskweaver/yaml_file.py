"""A plugin's YAML file: read as TaskWeaver reads it; each fault with its line."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from goose_like.fault import LIMIT_BYTES, Fault, Reading
from goose_like.plugins import did_you_mean, nearest
from goose_like.source import in_words

from .definition import Definition, Returned

_LIMIT_VALUES = 20_000
"""Aliases counted each time: a few lines of them can stand for millions of values, or for themselves."""

_LIMIT_DEPTH = 100
_LIMIT_STACK = 3_000  # each level takes a character at least

# TaskWeaver reads with PyYAML, so that what `yes` or `1_000` means is the same here. A build without libyaml is slow.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_KEYS = set(Definition.model_fields) - {"file", "line"}
_PART_KEYS = set(Returned.model_fields)


def read_definition(file: Path) -> Reading[Definition]:
    """What a YAML file says of a plugin; never raises. Its `code` is beside it."""
    try:
        if not file.is_file():
            return _refused(file, "this is no file that can be read")
        if file.stat().st_size > LIMIT_BYTES:
            return _refused(file, f"this is larger than {LIMIT_BYTES:,} bytes, and no plugin")
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        return _refused(file, f"can't be read: {' '.join(str(error).split())}")
    try:
        # libyaml's Python side descends by recursion in C: far enough down that ends the process.
        if len(text) > _LIMIT_STACK and _is_deep(text):
            return _refused(file, "it nests too deep; write it flatter", 1)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return _refused(file, "this file is empty; a plugin begins with `name: NAME`", 1)
        if not _is_small(node):
            return _refused(file, f"it has more than {_LIMIT_VALUES:,} values, aliases counted, or nests too deep", 1)
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # At the end of the text libyaml is one line beyond it.
        line = min(mark.line + 1, max(len(text.splitlines()), 1)) if mark else 1
        return _refused(file, f"this is no valid YAML: {error.problem or error.context}", line)
    except Exception as error:  # PyYAML lets escape what its own code raises: `!!bool x` is a KeyError
        return _refused(file, f"this is no valid YAML: {type(error).__name__}: {' '.join(str(error).split())}", 1)
    if not isinstance(data, dict):
        return _refused(file, "a plugin is a mapping with `name`, `description`, `parameters` and `returns`", 1)
    return _checked(file, data, node)


def _refused(file: Path, text: str, line: int | None = None) -> Reading[Definition]:
    return Reading(faults=(Fault(file=file, line=line, text=text),))


def _checked(file: Path, data: dict[Any, Any], node: yaml.Node) -> Reading[Definition]:
    unknown = list(_unknown(data))
    faults = [
        Fault(
            file=file, line=_line(node, path), text=f"unknown key {str(path[-1])!r} is ignored; {near}", is_remark=True
        )
        for path, near in unknown
    ]
    data = {key: value for key, value in data.items() if key in _KEYS}
    for key in ("parameters", "returns"):
        if isinstance(parts := data.get(key), list):
            data[key] = [_part(part, _line(node, (key, at)), key) for at, part in enumerate(parts)]
    name = data.get("name")
    code = data.get("code") or (name if isinstance(name, str) else file.stem)
    if isinstance(code, str):
        data["code"] = file.parent / (code if code.endswith(".py") else f"{code}.py")
    try:
        definition = Definition.model_validate({**data, "file": file, "line": _line(node, ("name",))})
    except ValidationError as error:
        faults += [
            Fault(file=file, line=_line(node, fault["loc"]), text=in_words(fault, "the plugin"))
            for fault in error.errors()
        ]
        return Reading(faults=tuple(faults))
    repeated = list(_repeated(definition))
    return Reading(value=None if repeated else definition, faults=(*faults, *repeated))


def _part(part: Any, line: int, key: str) -> Any:
    if not isinstance(part, dict):
        return part
    known = {name: value for name, value in part.items() if name in _PART_KEYS}
    return {**known, "line": line} if key == "parameters" else known


def _unknown(data: Mapping[Any, Any]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The path of each key that means nothing, and what was probably meant. TaskWeaver takes no notice of them."""
    for key in data:
        if key not in _KEYS:
            yield (key,), _near(key, _KEYS)
    for key in ("parameters", "returns"):
        parts = data.get(key)
        for at, part in enumerate(parts if isinstance(parts, list) else ()):
            for name in part if isinstance(part, dict) else ():
                if name not in _PART_KEYS:
                    yield (key, at, name), _near(name, _PART_KEYS)


def _near(key: Any, known: set[str]) -> str:
    return did_you_mean(str(key), {near} if (near := nearest(str(key), known)) else known)


def _repeated(definition: Definition) -> Iterator[Fault]:
    names: set[str] = set()
    for parameter in definition.parameters:
        if parameter.name in names:
            text = f"there are two parameters {parameter.name!r}; remove one"
            yield Fault(file=definition.file, line=parameter.line, text=text)
        names.add(parameter.name)


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


def _line(node: yaml.Node, path: Sequence[Any]) -> int:
    """The line of the value at the path, or of the nearest thing around it."""
    line = node.start_mark.line
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == str(step)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return int(line) + 1
