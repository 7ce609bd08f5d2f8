"""A plugin's YAML file: read as TaskWeaver reads it; each fault with its line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.entry_points import did_you_mean, find_nearest_name
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import build_failure, find_line, read_yaml_nodes

from .spec import Definition, Returned

_KEYS = set(Definition.model_fields) - {"file", "line"}
_PART_KEYS = set(Returned.model_fields)


def read_definition(file: Path) -> ParseResult[Definition]:
    """What a YAML file says of a plugin; never raises. Its `code` is beside it."""

    def take(loader: Any, node: yaml.Node) -> ParseResult[Definition]:
        data = loader.construct_document(node)
        if not isinstance(data, dict):
            return build_failure(
                file, "a plugin is a mapping with `name`, `description`, `parameters` and `returns`", 1
            )
        return _checked(file, data, node)

    return read_yaml_nodes(file, "plugin", "a plugin begins with `name: NAME`", take)


def _checked(file: Path, data: dict[Any, Any], node: yaml.Node) -> ParseResult[Definition]:
    unknown = list(_unknown(data))
    faults = [
        Diagnostic(
            file=file,
            line=find_line(node, path),
            text=f"unknown key {str(path[-1])!r} is ignored; {near}",
            is_warning=True,
        )
        for path, near in unknown
    ]
    data = {key: value for key, value in data.items() if key in _KEYS}
    for key in ("parameters", "returns"):
        if isinstance(parts := data.get(key), list):
            data[key] = [_part(part, find_line(node, (key, at)), key) for at, part in enumerate(parts)]
    name = data.get("name")
    code = data.get("code") or (name if isinstance(name, str) else file.stem)
    if isinstance(code, str):
        data["code"] = file.parent / (code if code.endswith(".py") else f"{code}.py")
    try:
        definition = Definition.model_validate({**data, "file": file, "line": find_line(node, ("name",))})
    except ValidationError as error:
        faults += [
            Diagnostic(file=file, line=find_line(node, fault["loc"]), text=describe_field_error(fault, "the plugin"))
            for fault in error.errors()
        ]
        return ParseResult(diagnostics=tuple(faults))
    repeated = list(_repeated(definition))
    return ParseResult(value=None if repeated else definition, diagnostics=(*faults, *repeated))


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
    return did_you_mean(str(key), {near} if (near := find_nearest_name(str(key), known)) else known)


def _repeated(definition: Definition) -> Iterator[Diagnostic]:
    names: set[str] = set()
    for parameter in definition.parameters:
        if parameter.name in names:
            text = f"there are two parameters {parameter.name!r}; remove one"
            yield Diagnostic(file=definition.file, line=parameter.line, text=text)
        names.add(parameter.name)
