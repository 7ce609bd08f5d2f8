"""The specification of a plugin: the checked content of its YAML file."""

import keyword
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, JsonValue
from pydantic_core import PydanticCustomError

from goose_like.core.message import FrozenModel

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
    elif keyword.iskeyword(name):
        text = "{name} is a keyword of Python; choose another name"
    else:
        return name
    raise PydanticCustomError("user_message", text, {"name": repr(name)})


def _check_description(text: str) -> str:
    if not text:
        raise PydanticCustomError("user_message", "it is empty; describe the plugin, so that a model can choose it")
    return text


def _normalize_type(value: Any) -> Any:
    """Turn `[str, list]` into `str | list`, and names of other languages into Python's."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return " | ".join(map(_normalize_type, value))
    return PYTHON_TYPES.get(value.strip().lower(), value.strip()) if isinstance(value, str) else value or "Any"


def _normalize_text(value: Any) -> Any:
    """Strip a text; join a list of lines; None is no text."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return "" if value is None else value.strip() if isinstance(value, str) else value


def _to_json(value: Any) -> Any:
    """Convert a YAML value to JSON: keys become text, dates become ISO text."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_to_json(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _normalize_configurations(value: Any) -> Any:
    """Return `{name: value}`, also for a list of `{name, type, default}`."""
    if isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value):
        value = {item["name"]: item.get("default") for item in value}
    return {} if value is None else _to_json(value)


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
    def required_names(self) -> list[str]:
        """Names of the parameters that a call must give."""
        return [parameter.name for parameter in self.parameters if parameter.required]
