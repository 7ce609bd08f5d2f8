"""Parameters and responses of commands: their schemas for a model, and checks of values by jsonschema."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .document import Place, format_place
from .references import read_reference
from .type_names import ASSET, FOREIGN, Schema

WRAPPED = "param"
"""The argument of a tool in which a model gives a parameter that is no plain object."""

_MAX_PROBLEMS = 20
_MAX_CHARACTERS = 200
_REFERENCE_URL: Schema = {
    "type": "string",
    "pattern": r"^asset://[^/\s]",
    "description": "a reference: asset://ID, or asset://ID/KEY/0 for the value at this place in the asset",
}
_REFERENCE_OBJECT: Schema = {
    "type": "object",
    "properties": {"asset_id": {"type": "string"}, "field_path": {"type": "array", "items": {"type": "string"}}},
    "required": ["asset_id"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class CheckedValue:
    """A value as a command receives it, with its problems and the places of its references to assets."""

    value: Any
    problems: tuple[str, ...] = ()
    references: tuple[Place, ...] = ()


# --- schemas for models


def is_wrapped(schema: Schema, is_required: bool) -> bool:
    """Check whether a model gives a parameter as the argument `param`.

    The arguments of a tool are an object without alternatives. They are the parameter itself if it is a record that no
    reference may replace, and that can be empty if it may be left out.
    """
    if schema.get("additionalProperties") is not False or ASSET in schema or "enum" in schema:
        return True
    return not is_required and bool(schema.get("required"))


def build_arguments(schema: Schema | None, is_required: bool) -> Schema:
    """Build the JSON schema of the arguments with which a model gives a parameter; None takes none."""
    if schema is None:
        return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    if not is_wrapped(schema, is_required):
        return to_standard(schema)
    required = [WRAPPED] if is_required else []
    properties = {WRAPPED: to_standard(schema)}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def to_standard(schema: Schema, is_item: bool = False) -> Schema:
    """Convert our own keys of a schema to standard ones."""
    made = {key: value for key, value in schema.items() if key not in (ASSET, FOREIGN, "not")}
    if FOREIGN in schema:
        made.setdefault("description", f"a {schema[FOREIGN]} of Python, as JSON")
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = to_standard(made[key], is_item=True)
    if "properties" in made:
        made["properties"] = {name: to_standard(inner) for name, inner in made["properties"].items()}
    if "anyOf" in made:
        made["anyOf"] = [to_standard(inner) for inner in made["anyOf"]]
    if ASSET not in schema:
        return made
    return _add_references(made, is_item)


def _add_references(schema: Schema, is_item: bool) -> Schema:
    """Add references as alternatives; as an object only where this is no item, and has no own `asset_id`."""
    references = [{**_REFERENCE_URL}]
    if not is_item and "asset_id" not in schema.get("properties", {}):
        references.append({**_REFERENCE_OBJECT})
    joined: Schema = {}
    if "description" in schema:
        joined["description"] = schema.pop("description")
    alternatives = schema["anyOf"] if set(schema) == {"anyOf"} else [schema]
    joined["anyOf"] = [*alternatives, *references]
    return joined


# --- values


def get_parameter(schema: Schema | None, is_required: bool, arguments: Mapping[str, Any]) -> Any:
    """Return the parameter in the arguments of a tool call, None where it is absent.

    A wrapped parameter that is a mapping may also be given without `param`.
    """
    given = dict(arguments)
    if schema is None:
        return given or None
    if not is_wrapped(schema, is_required):
        return given
    if set(given) == {WRAPPED}:
        return given[WRAPPED]
    return given or None


def check_parameter(schema: Schema | None, is_required: bool, value: Any) -> CheckedValue:
    """Check the parameter of a command. Never raise.

    Null for an optional value is dropped, and 1.0 becomes 1 where a whole number is wanted.
    """
    if schema is None:
        if value is None or value == {}:
            return CheckedValue(None)
        return CheckedValue(None, ("the command takes no parameter; leave it out",))
    if value is None and not is_required:
        return CheckedValue(None)
    if value is None and find_problems(schema, None) and not find_problems(schema, {}):
        value = {}
    walk = _Walk()
    value = walk.clean(schema, value, ())
    problems = [*walk.refused, *find_problems(schema, value, walk.accepted)]
    return CheckedValue(value, tuple(problems), tuple(walk.accepted))


def check_response(schema: Schema | None, value: Any) -> list[str]:
    """Return the problems of a response; anything is right where nothing is promised, and so are references."""
    if schema is None:
        return []
    walk = _Walk(accepts_all=True)
    value = walk.clean(schema, value, ())
    problems = find_problems(schema, value, walk.accepted)
    return [problem.replace("the parameter", "the response") for problem in problems]


def find_problems(schema: Schema, value: Any, references: Sequence[Place] = ()) -> list[str]:
    """Return what is wrong with a value, each with its place; values at the places of `references` are right."""
    problems = []
    try:
        for error in _load_validator()(schema).iter_errors(value):
            place = tuple(error.absolute_path)
            if any(place[: len(each)] == each for each in references):
                continue
            best = _choose_best(error)
            where = format_place(tuple(best.absolute_path)) or "the parameter"
            text = best.message
            if len(text) > _MAX_CHARACTERS:
                text = f"{text[:_MAX_CHARACTERS]}..."
            problems.append(f"{where}: {text}")
            if len(problems) > _MAX_PROBLEMS:
                return [*problems[:_MAX_PROBLEMS], "and more of that kind"]
    except RecursionError:
        return ["the parameter: it nests too deep"]
    return problems


class _Walk:
    """A walk through a value beside its schema; collects the places of references, and refuses them elsewhere."""

    def __init__(self, accepts_all: bool = False) -> None:
        self.accepted: list[Place] = []
        self.refused: list[str] = []
        self._accepts_all = accepts_all

    def clean(self, schema: Schema, value: Any, place: Place) -> Any:
        """Return the value as a command receives it."""
        if _is_reference(value, schema) and self._note_reference(schema, place):
            return value
        if "anyOf" in schema:
            fitting = (each for each in schema["anyOf"] if not find_problems(each, value))
            return self.clean(next(fitting, {}), value, place)
        kind = schema.get("type")
        if kind == "array" and isinstance(value, list):
            return [self.clean(schema["items"], each, (*place, at)) for at, each in enumerate(value)]
        if kind == "object" and isinstance(value, Mapping):
            return self._clean_mapping(schema, value, place)
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    def _note_reference(self, schema: Schema, place: Place) -> bool:
        """Accept or refuse a reference. Return False if the schema says nothing of the value."""
        if self._accepts_all or ASSET in schema:
            self.accepted.append(place)
            return True
        if {"type", "enum"}.isdisjoint(schema):
            return False
        where = format_place(place) or "the parameter"
        self.refused.append(f"{where}: a reference to an asset is not accepted here; give the value itself")
        return True

    def _clean_mapping(self, schema: Schema, value: Mapping[str, Any], place: Place) -> dict[str, Any]:
        fields = schema["properties"]
        rest = schema["additionalProperties"] or {}
        optional = fields.keys() - schema.get("required", ())
        cleaned = {}
        for key, each in value.items():
            if each is None and key in optional and find_problems(fields[key], None):
                continue
            cleaned[key] = self.clean(fields.get(key, rest), each, (*place, key))
        return cleaned


def _is_reference(value: Any, schema: Schema) -> bool:
    """Check for a reference to an asset. A mapping is none where the value itself has an `asset_id`."""
    if isinstance(value, Mapping) and "asset_id" in schema.get("properties", {}):
        return False
    return read_reference(value) is not None


@cache
def _load_validator() -> Any:
    """Import jsonschema with the first use, as it takes a while."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator


def _choose_best(error: Any) -> Any:
    from jsonschema.exceptions import best_match

    return best_match([error])
