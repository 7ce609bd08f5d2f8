"""Definition: what a plugin's YAML says, checked."""

import keyword
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, JsonValue
from pydantic_core import PydanticCustomError

from goose_like.core.message import FrozenModel

PYTHON = {
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
"""Python's names for types that are called otherwise."""


def _identifier(name: str) -> str:
    if not name.isidentifier():
        raise PydanticCustomError(
            "told", "{name} is no name in Python; use letters, digits and '_'", {"name": repr(name)}
        )
    if keyword.iskeyword(name):
        raise PydanticCustomError("told", "{name} is a word of Python's own; choose another name", {"name": repr(name)})
    return name


def _telling(words: str) -> str:
    if not words:
        raise PydanticCustomError("told", "it is empty, and all that a model chooses by; say what the plugin does")
    return words


def _type(value: Any) -> Any:
    """`[str, list]` is `str | list`; other languages' names become Python's, unknown ones stay."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " | ".join(map(_type, value))
    return PYTHON.get(value.strip().lower(), value.strip()) if isinstance(value, str) else value or "Any"


def _words(value: Any) -> Any:
    """Text without blanks around it. None is no text; a list is a line each."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return "" if value is None else value.strip() if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """The value as JSON can say it: keys as text, dates as YAML writes them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _configurations(value: Any) -> Any:
    """`{name: value}`, also where it is written as a list of `{name, type, default}`."""
    if isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value):
        value = {item["name"]: item.get("default") for item in value}
    return {} if value is None else _plain(value)


Identifier = Annotated[str, AfterValidator(_identifier)]
Words = Annotated[str, BeforeValidator(_words)]
Plain = Annotated[JsonValue, BeforeValidator(_plain)]


class Returned(FrozenModel):
    """A value that a plugin gives, the only one or one of a tuple."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    name: str = ""
    type: Annotated[str, BeforeValidator(_type)] = "Any"
    description: Words = ""
    required: bool | None = None
    default: Plain = None


class Parameter(Returned):
    """What a plugin is called with.

    `required` is None where nobody says so; `default` counts only if it is among `model_fields_set`. `line` is where
    it is written.
    """

    name: Identifier
    line: int = 1


def _listed(value: Any) -> Any:
    return () if value is None else value


class Definition(FrozenModel):
    """A plugin as its YAML describes it. `code` is the Python file, which need not be there; `line` that of `name`."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    name: Identifier
    description: Annotated[Words, AfterValidator(_telling)]
    parameters: Annotated[tuple[Parameter, ...], BeforeValidator(_listed)] = ()
    returns: Annotated[tuple[Returned, ...], BeforeValidator(_listed)] = ()
    examples: Words = ""
    enabled: bool = True
    required: bool = False
    plugin_only: bool = False
    configurations: Annotated[dict[str, JsonValue], BeforeValidator(_configurations)] = {}
    allow_drift: bool = False
    code: Path
    file: Path
    line: int = 1

    @property
    def required_names(self) -> list[str]:
        """The parameters that a call must give."""
        return [parameter.name for parameter in self.parameters if parameter.required]
