"""Kinds: what the values of a command's parameter and response are, and how that is told a model."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

WRAPPED = "param"
"""The argument in which a model gives a parameter that is no plain object."""


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; 1.0 is one."""


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number."""


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false, and no number."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Only null."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value of JSON's."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A type of Python's that JSON has no word for, such as numpy.ndarray. Any value passes."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of any length."""

    item: "Kind"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping with any keys, which are text."""

    value: "Kind"


@dataclass(frozen=True, slots=True)
class OneOf:
    """Of values that several take, the first of these kinds decides."""

    kinds: tuple["Kind", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Of the kind only these values, each of which is of it: what `enum` says."""

    kind: "Kind"
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """`accepts_asset`: a reference may stand in place of the value, or in place of each item where that is a list.

    `example` is None where there is none that fits.
    """

    name: str
    kind: "Kind"
    description: str = ""
    is_required: bool = True
    accepts_asset: bool = False
    example: Any = None


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with these keys and no others."""

    fields: tuple[Field, ...]


Kind: TypeAlias = (
    Text | Whole | Number | Truth | Nothing | Anything | Foreign | ListOf | MapOf | OneOf | Choice | Record
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """All that a command takes, as one value of any kind."""

    kind: Kind
    description: str = ""
    is_required: bool = True
    accepts_asset: bool = False
    example: Any = None

    @property
    def is_wrapped(self) -> bool:
        """Whether a model gives it as the argument `param`.

        The arguments of a call are an object that has no alternatives: they are the parameter itself only where this is
        a record that no reference may replace, and that can't be left out if there is something in it which can't.
        """
        if not isinstance(self.kind, Record) or self.accepts_asset:
            return True
        return not self.is_required and any(field.is_required for field in self.kind.fields)


@dataclass(frozen=True, slots=True)
class Response:
    """What a command gives. A field that is not required may be absent."""

    kind: Kind
    description: str = ""


REFERENCE_URL: dict[str, Any] = {
    "type": "string",
    "pattern": r"^asset://[^/\s]",
    "description": "a reference: asset://ID, or asset://ID/KEY/0 for what stands in that asset",
}
REFERENCE_OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "asset_id": {"type": "string"},
        "field_path": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["asset_id"],
    "additionalProperties": False,
}
REFERENCE_ITEM = {key: value for key, value in REFERENCE_URL.items() if key != "description"}
"""What a model is told of references in place of items: the short form only, since each list would say it again."""

_PLAIN = {Text: "string", Whole: "integer", Number: "number", Truth: "boolean", Nothing: "null"}


def schema(of: Kind | Parameter | None) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a kind, or of the arguments with which a model gives a parameter.

    The latter is an object without alternatives at the top, as vendors require; None takes none.
    """
    if of is None:
        return _object({}, [])
    if not isinstance(of, Parameter):
        return _schema(of, 0)
    if not of.is_wrapped:
        return _described(_schema(of.kind, 0), of.description, of.example)
    inner = _described(_schema(of.kind, levels(of.accepts_asset)), of.description, of.example)
    return _object({WRAPPED: inner}, [WRAPPED] if of.is_required else [])


def levels(accepts_asset: bool) -> int:
    """At how many levels references may stand in place of values: the value itself, and the items of a list."""
    return 2 if accepts_asset else 0


def takes_mapping(kind: Kind, keys: set[str]) -> bool:
    """Whether a record of this kind has any of the keys, so that a mapping with them is no reference."""
    match kind:
        case Record(fields):
            return any(field.name in keys for field in fields)
        case Choice(inner, _):
            return takes_mapping(inner, keys)
        case OneOf(kinds):
            return any(takes_mapping(each, keys) for each in kinds)
    return False


def parts(kind: Kind) -> Iterator[Kind]:
    """The kinds from which a kind is made, one step down."""
    match kind:
        case ListOf(inner) | MapOf(inner) | Choice(inner, _):
            yield inner
        case OneOf(kinds):
            yield from kinds
        case Record(fields):
            yield from (field.kind for field in fields)


def named(kind: Kind) -> str:
    """The kind in words, for a sentence that begins with "expected"."""
    match kind:
        case Choice(inner, _):
            return named(inner)
        case OneOf(kinds):
            return " or ".join(dict.fromkeys(map(named, kinds)))
        case Foreign(name):
            return f"a {name}"
    return _WORDS[type(kind)]


_WORDS: dict[type, str] = {
    Text: "text",
    Whole: "a whole number",
    Number: "a number",
    Truth: "true or false",
    Nothing: "null",
    Anything: "any value",
    ListOf: "a list",
    MapOf: "a mapping",
    Record: "a mapping",
}


def _schema(kind: Kind, levels_left: int) -> dict[str, Any]:
    made = _bare(kind, levels_left)
    if not levels_left:
        return made
    if levels_left == 1:
        return {"anyOf": [*_alternatives(made), dict(REFERENCE_ITEM)]}
    references = [REFERENCE_URL] if takes_mapping(kind, {"asset_id"}) else [REFERENCE_URL, REFERENCE_OBJECT]
    return {"anyOf": [*_alternatives(made), *deepcopy(references)]}


def _bare(kind: Kind, levels_left: int) -> dict[str, Any]:
    match kind:
        case Foreign(name):
            return {"description": f"a {name} of Python, as JSON says it"}
        case ListOf(item):
            return {"type": "array", "items": _schema(item, max(levels_left - 1, 0))}
        case MapOf(value):
            return {"type": "object", "properties": {}, "additionalProperties": _schema(value, 0)}
        case Choice(inner, values):
            return {**_bare(inner, levels_left), "enum": list(values)}
        case OneOf(kinds):
            made = [_bare(each, levels_left) for each in kinds]
            return {"anyOf": [alternative for one in made for alternative in _alternatives(one)]}
        case Record(fields):
            properties = {
                field.name: _described(
                    _schema(field.kind, levels(field.accepts_asset)), field.description, field.example
                )
                for field in fields
            }
            return _object(properties, [field.name for field in fields if field.is_required])
    return {"type": _PLAIN[type(kind)]} if type(kind) in _PLAIN else {}


def _alternatives(made: dict[str, Any]) -> list[dict[str, Any]]:
    return made["anyOf"] if set(made) == {"anyOf"} else [made]


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _described(made: dict[str, Any], description: str, example: Any) -> dict[str, Any]:
    more: dict[str, Any] = {"description": description} if description else {}
    return made | more | ({} if example is None else {"examples": [example]})
