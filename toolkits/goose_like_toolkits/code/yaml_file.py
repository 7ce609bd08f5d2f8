"""A plugin's YAML file: read as TaskWeaver reads it; each fault with its line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from goose_like.config.yaml_source import in_words
from goose_like.core.entry_points import did_you_mean, nearest
from goose_like.sdk.diagnostics import Fault, Reading
from goose_like.sdk.strict_yaml import line_at, read_nodes, refused

from .definition import Definition, Returned

_KEYS = set(Definition.model_fields) - {"file", "line"}
_PART_KEYS = set(Returned.model_fields)


def read_definition(file: Path) -> Reading[Definition]:
    """What a YAML file says of a plugin; never raises. Its `code` is beside it."""

    def take(loader: Any, node: yaml.Node) -> Reading[Definition]:
        data = loader.construct_document(node)
        if not isinstance(data, dict):
            return refused(file, "a plugin is a mapping with `name`, `description`, `parameters` and `returns`", 1)
        return _checked(file, data, node)

    return read_nodes(file, "plugin", "a plugin begins with `name: NAME`", take)


def _checked(file: Path, data: dict[Any, Any], node: yaml.Node) -> Reading[Definition]:
    unknown = list(_unknown(data))
    faults = [
        Fault(
            file=file,
            line=line_at(node, path),
            text=f"unknown key {str(path[-1])!r} is ignored; {near}",
            is_remark=True,
        )
        for path, near in unknown
    ]
    data = {key: value for key, value in data.items() if key in _KEYS}
    for key in ("parameters", "returns"):
        if isinstance(parts := data.get(key), list):
            data[key] = [_part(part, line_at(node, (key, at)), key) for at, part in enumerate(parts)]
    name = data.get("name")
    code = data.get("code") or (name if isinstance(name, str) else file.stem)
    if isinstance(code, str):
        data["code"] = file.parent / (code if code.endswith(".py") else f"{code}.py")
    try:
        definition = Definition.model_validate({**data, "file": file, "line": line_at(node, ("name",))})
    except ValidationError as error:
        faults += [
            Fault(file=file, line=line_at(node, fault["loc"]), text=in_words(fault, "the plugin"))
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
