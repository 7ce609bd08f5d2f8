"""The specification of a plugin, read from its YAML file as TaskWeaver reads it, with the line of each error."""

import keyword
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BeforeValidator, ConfigDict, JsonValue, ValidationError
from pydantic_core import PydanticCustomError

from goose_like.config.yaml_reader import find_line
from goose_like.config.yaml_source import describe_field_error
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean, find_nearest_name
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import build_failure, read_yaml_nodes

PYTHON_TYPES = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "boolean": "bool",
    "number": "float",
    "double": "float",
    "array": "list",
    "null": "None",
    "any": "Any",
}
"""Python's names for types of other languages."""


def _check_identifier(name: str) -> str:
    if not name.isidentifier():
        text = "{name} is not a Python name; use letters, digits and '_'"
        raise PydanticCustomError("user_message", text, {"name": repr(name)})
    if keyword.iskeyword(name):
        text = "{name} is a keyword of Python; choose another name"
        raise PydanticCustomError("user_message", text, {"name": repr(name)})
    return name


def _check_description(text: str) -> str:
    if not text:
        raise PydanticCustomError("user_message", "it is empty; describe the plugin, so that a model can choose it")
    return text


def _normalize_type(value: Any) -> Any:
    """Turn `[str, list]` into `str | list`, and names of other languages into Python's."""
    if _is_list_of_texts(value):
        return " | ".join(map(_normalize_type, value))
    if isinstance(value, str):
        name = value.strip()
        return PYTHON_TYPES.get(name.lower(), name)
    return value or "Any"


def _normalize_text(value: Any) -> Any:
    """Strip a text; join a list of lines; None is no text."""
    if value is None:
        return ""
    if _is_list_of_texts(value):
        return "\n".join(value)
    return value.strip() if isinstance(value, str) else value


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _to_json(value: Any) -> Any:
    """Convert a YAML value to JSON: keys become text, dates become ISO text."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return list(map(_to_json, value))
    return value.isoformat() if isinstance(value, date) else value


def _normalize_configurations(value: Any) -> Any:
    """Return `{name: value}`, also for a list of `{name, type, default}`."""
    if value is None:
        return {}
    if isinstance(value, list) and all(map(_is_named, value)):
        value = {item["name"]: item.get("default") for item in value}
    return _to_json(value)


def _is_named(item: Any) -> bool:
    return isinstance(item, Mapping) and "name" in item


def _none_to_empty(value: Any) -> Any:
    return () if value is None else value


Identifier = Annotated[str, AfterValidator(_check_identifier)]
Prose = Annotated[str, BeforeValidator(_normalize_text)]
YamlValue = Annotated[JsonValue, BeforeValidator(_to_json)]


class ReturnValue(FrozenModel):
    """A return value of a plugin: the only one, or one of a tuple."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    name: str = ""
    type: Annotated[str, BeforeValidator(_normalize_type)] = "Any"
    description: Prose = ""
    required: bool | None = None
    default: YamlValue = None


class Parameter(ReturnValue):
    """A parameter of a plugin.

    `required` is None if the YAML does not contain it. `default` counts only if it is in `model_fields_set`. `line` is
    the line in the YAML file.
    """

    name: Identifier
    line: int = 1


class PluginSpec(FrozenModel):
    """A plugin as its YAML file describes it. `code` is the Python file, which may be missing; `line` has `name`."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    name: Identifier
    description: Annotated[Prose, AfterValidator(_check_description)]
    parameters: Annotated[tuple[Parameter, ...], BeforeValidator(_none_to_empty)] = ()
    returns: Annotated[tuple[ReturnValue, ...], BeforeValidator(_none_to_empty)] = ()
    examples: Prose = ""
    enabled: bool = True
    required: bool = False
    plugin_only: bool = False
    configurations: Annotated[dict[str, JsonValue], BeforeValidator(_normalize_configurations)] = {}
    allow_drift: bool = False
    code: Path
    file: Path
    line: int = 1

    @property
    def parameter_names(self) -> list[str]:
        """Names of all parameters, in their order."""
        return [parameter.name for parameter in self.parameters]

    @property
    def required_names(self) -> list[str]:
        """Names of the parameters that a call must give."""
        return [parameter.name for parameter in self.parameters if parameter.required]


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
    known = {key: value for key, value in data.items() if key in _KEYS}
    known["file"] = file
    known["line"] = find_line(node, ("name",))
    known["code"] = _find_code(known, file)
    for key in ("parameters", "returns"):
        parts = known.get(key)
        if isinstance(parts, list):
            known[key] = list(map(_drop_unknown_keys, parts))
    _add_lines(known.get("parameters"), node)
    try:
        spec = PluginSpec.model_validate(known)
    except ValidationError as error:
        for each in error.errors():
            text = describe_field_error(each, "the plugin")
            line = find_line(node, each["loc"])
            diagnostics.append(Diagnostic(file=file, line=line, text=text))
        return ParseResult(diagnostics=tuple(diagnostics))
    repeated = list(_find_repeated_parameters(spec))
    diagnostics += repeated
    return ParseResult(value=None if repeated else spec, diagnostics=tuple(diagnostics))


def _find_code(data: Mapping[Any, Any], file: Path) -> Any:
    """Return the path of the Python file, which has the name of the plugin unless `code` names another one."""
    code = data.get("code")
    if not code:
        name = data.get("name")
        code = name if isinstance(name, str) else file.stem
    if not isinstance(code, str):
        return code
    if not code.endswith(".py"):
        code += ".py"
    return file.parent / code


def _drop_unknown_keys(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {name: value for name, value in part.items() if name in _PART_KEYS}


def _add_lines(parameters: Any, node: yaml.Node) -> None:
    """Add the line in the YAML file to each parameter."""
    if not isinstance(parameters, list):
        return
    for at, part in enumerate(parameters):
        if isinstance(part, dict):
            part["line"] = find_line(node, ("parameters", at))


def _warn_about_unknown_keys(file: Path, data: Mapping[Any, Any], node: yaml.Node) -> Iterator[Diagnostic]:
    """Yield a warning for each unknown key; TaskWeaver ignores them silently."""
    for key in data:
        if key not in _KEYS:
            yield _warn(file, find_line(node, (key,)), key, _KEYS)
    for key in ("parameters", "returns"):
        parts = data.get(key)
        if not isinstance(parts, list):
            continue
        for at, part in enumerate(parts):
            if not isinstance(part, dict):
                continue
            for name in part:
                if name not in _PART_KEYS:
                    yield _warn(file, find_line(node, (key, at, name)), name, _PART_KEYS)


def _warn(file: Path, line: int, key: Any, known: set[str]) -> Diagnostic:
    name = str(key)
    nearest = find_nearest_name(name, known)
    hint = did_you_mean(name, {nearest} if nearest else known)
    text = f"unknown key {name!r} is ignored; {hint}"
    return Diagnostic(file=file, line=line, text=text, is_warning=True)


def _find_repeated_parameters(spec: PluginSpec) -> Iterator[Diagnostic]:
    names: set[str] = set()
    for parameter in spec.parameters:
        if parameter.name in names:
            text = f"there are two parameters {parameter.name!r}; remove one"
            yield Diagnostic(file=spec.file, line=parameter.line, text=text)
        names.add(parameter.name)
