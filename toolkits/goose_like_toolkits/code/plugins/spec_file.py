"""Reading of a plugin's YAML file as TaskWeaver reads it, with the line of each error."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from goose_like.config.yaml_reader import find_line
from goose_like.config.yaml_source import describe_field_error
from goose_like.core.entry_points import did_you_mean, find_nearest_name
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import build_failure, read_yaml_nodes

from .spec import PluginSpec, ReturnValue

_KEYS = set(PluginSpec.model_fields) - {"file", "line"}
_PART_KEYS = set(ReturnValue.model_fields)


def read_plugin_spec(file: Path) -> ParseResult[PluginSpec]:
    """Read a YAML file without raising; its Python file is in the same folder."""

    def parse(loader: Any, node: yaml.Node) -> ParseResult[PluginSpec]:
        data = loader.construct_document(node)
        if isinstance(data, dict):
            return _parse(file, data, node)
        text = "a plugin is a mapping with `name`, `description`, `parameters` and `returns`"
        return build_failure(file, text, 1)

    return read_yaml_nodes(file, "plugin", "a plugin begins with `name: NAME`", parse)


def _parse(file: Path, data: dict[Any, Any], node: yaml.Node) -> ParseResult[PluginSpec]:
    diagnostics = list(_warn_about_unknown_keys(file, data, node))
    data = {key: value for key, value in data.items() if key in _KEYS}
    for key in ("parameters", "returns"):
        if isinstance(parts := data.get(key), list):
            data[key] = [_prepare_part(part, find_line(node, (key, at)), key) for at, part in enumerate(parts)]
    name = data.get("name")
    code = data.get("code") or (name if isinstance(name, str) else file.stem)
    if isinstance(code, str):
        data["code"] = file.parent / (code if code.endswith(".py") else f"{code}.py")
    try:
        spec = PluginSpec.model_validate({**data, "file": file, "line": find_line(node, ("name",))})
    except ValidationError as error:
        diagnostics += [
            Diagnostic(file=file, line=find_line(node, each["loc"]), text=describe_field_error(each, "the plugin"))
            for each in error.errors()
        ]
        return ParseResult(diagnostics=tuple(diagnostics))
    repeated = list(_find_repeated_parameters(spec))
    return ParseResult(value=None if repeated else spec, diagnostics=(*diagnostics, *repeated))


def _prepare_part(part: Any, line: int, key: str) -> Any:
    if not isinstance(part, dict):
        return part
    known = {name: value for name, value in part.items() if name in _PART_KEYS}
    return {**known, "line": line} if key == "parameters" else known


def _warn_about_unknown_keys(file: Path, data: Mapping[Any, Any], node: yaml.Node) -> Iterator[Diagnostic]:
    """Yield a warning for each unknown key; TaskWeaver ignores them silently."""
    places: list[tuple[tuple[Any, ...], set[str]]] = [((key,), _KEYS) for key in data]
    for key in ("parameters", "returns"):
        parts = data.get(key)
        for at, part in enumerate(parts if isinstance(parts, list) else ()):
            places += [((key, at, name), _PART_KEYS) for name in (part if isinstance(part, dict) else ())]
    for path, known in places:
        key = path[-1]
        if key not in known:
            nearest = find_nearest_name(str(key), known)
            hint = did_you_mean(str(key), {nearest} if nearest else known)
            text = f"unknown key {str(key)!r} is ignored; {hint}"
            yield Diagnostic(file=file, line=find_line(node, path), text=text, is_warning=True)


def _find_repeated_parameters(spec: PluginSpec) -> Iterator[Diagnostic]:
    names: set[str] = set()
    for parameter in spec.parameters:
        if parameter.name in names:
            text = f"there are two parameters {parameter.name!r}; remove one"
            yield Diagnostic(file=spec.file, line=parameter.line, text=text)
        names.add(parameter.name)
