"""Parameters and responses of commands: validated against their JSON schemas, and described to a model.

Two keys are our own: `{ASSET: schema}` also accepts a reference to an asset, and `FOREIGN` names a Python class.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

from goose_like.core.spelling import did_you_mean

from .references import read_reference
from .type_names import ASSET, FOREIGN, Schema, list_parts

WRAPPED = "param"
"""The argument of a tool in which a model gives a parameter that is no plain object."""

_MAX_PROBLEMS = 20
_SIMPLE = re.compile(r"[^\W\d][\w-]*")
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
_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "a mapping",
}


@dataclass(frozen=True, slots=True)
class CheckedValue:
    """A value as a command receives it, with its problems and the paths of its references to assets."""

    value: Any
    problems: tuple[str, ...] = ()
    references: tuple[tuple[str | int, ...], ...] = ()


# --- schemas for models


def is_wrapped(schema: Schema, is_required: bool) -> bool:
    """Check whether a model gives a parameter as the argument `param`.

    The arguments of a tool are an object without alternatives. They are the parameter itself if it is a record that no
    reference may replace, and that can be empty if it may be left out.
    """
    if schema.get("additionalProperties") is not False or "enum" in schema:
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
    if ASSET in schema:
        inner = to_standard(schema[ASSET])
        rest = {key: value for key, value in schema.items() if key != ASSET}
        references = [_REFERENCE_URL, _REFERENCE_OBJECT]
        if is_item or "asset_id" in schema[ASSET].get("properties", {}):
            references = [{key: value for key, value in _REFERENCE_URL.items() if key != "description"}]
        alternatives = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
        return {**rest, "anyOf": [*alternatives, *deepcopy(references)]}
    made = {key: value for key, value in schema.items() if key != FOREIGN}
    if FOREIGN in schema:
        made.setdefault("description", f"a {schema[FOREIGN]} of Python, as JSON")
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = to_standard(made[key], is_item=True)
    if "properties" in made:
        made["properties"] = {name: to_standard(inner) for name, inner in made["properties"].items()}
    if "anyOf" in made:
        made["anyOf"] = [to_standard(inner) for inner in made["anyOf"]]
    return made


# --- values


def get_parameter(schema: Schema | None, is_required: bool, arguments: Mapping[str, Any]) -> Any:
    """Return the parameter in the arguments of a tool call, None where it is absent.

    A wrapped parameter that is a mapping may also be given without `param`.
    """
    if schema is None:
        return dict(arguments) or None
    if not is_wrapped(schema, is_required):
        return dict(arguments)
    return arguments[WRAPPED] if set(arguments) == {WRAPPED} else dict(arguments) or None


def check_parameter(schema: Schema | None, is_required: bool, value: Any) -> CheckedValue:
    """Check the parameter of a command. Never raise.

    Null for an optional value is dropped, and 1.0 becomes 1 where a whole number is wanted.
    """
    if schema is None:
        problem = "the command takes no parameter; leave it out"
        return CheckedValue(None, () if value is None or value == {} else (problem,))
    if value is None and find_problems(schema, None):
        if not is_required:
            return CheckedValue(None)
        if find_problems(schema, {}):
            return CheckedValue(None, (f"the parameter is missing; expected {describe_type(schema)}",))
        value = {}
    references: list[tuple[str | int, ...]] = []
    value = _clean(schema, value, (), references)
    return CheckedValue(value, tuple(find_problems(schema, value)), tuple(references))


def check_response(schema: Schema | None, value: Any) -> list[str]:
    """Return the problems of a response; anything is right where nothing is promised, and so are references."""
    return [] if schema is None else find_problems(schema, _clean(schema, value, (), []), is_response=True)


def find_problems(schema: Schema, value: Any, is_response: bool = False) -> list[str]:
    """Return what is wrong with a value, each with its place."""
    whole = "the response" if is_response else "the parameter"
    problems = []
    try:
        for error in _validator(is_response)(schema).iter_errors(value):
            problems.append(f"{_format_place(error.absolute_path) or whole}: {error.message}")
            if len(problems) > _MAX_PROBLEMS:
                return [*problems[:_MAX_PROBLEMS], "and more of that kind"]
    except RecursionError:
        return [f"{whole}: it nests too deep"]
    return problems


def _clean(schema: Schema, value: Any, path: tuple[str | int, ...], references: list[tuple[str | int, ...]]) -> Any:
    """Return the value as a command receives it, and collect the paths of references."""
    if ASSET in schema:
        if _is_reference(schema[ASSET], value):
            references.append(path)
            return value
        return _clean(schema[ASSET], value, path, references)
    if "anyOf" in schema:
        fitting = (each for each in schema["anyOf"] if not find_problems(each, value))
        return _clean(next(fitting, {}), value, path, references)
    if schema.get("type") == "array" and isinstance(value, list):
        return [_clean(schema["items"], each, (*path, at), references) for at, each in enumerate(value)]
    if schema.get("type") == "object" and isinstance(value, Mapping):
        fields, rest = schema["properties"], schema["additionalProperties"] or {}
        required = schema.get("required", ())
        return {
            key: _clean(fields.get(key, rest), each, (*path, key), references)
            for key, each in value.items()
            if each is not None or key not in fields or key in required or not find_problems(fields[key], None)
        }
    if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _is_reference(schema: Schema, value: Any) -> bool:
    """Check whether a value is a reference, and no mapping that the schema wants."""
    if isinstance(value, Mapping) and any(
        "asset_id" in each.get("properties", {}) for each in (schema, *list_parts(schema))
    ):
        return False
    return read_reference(value) is not None


@cache
def _validator(is_response: bool) -> Any:
    """Build the validator class; jsonschema is imported with the first use, as it takes a while."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    def fail(text: str, *path: str) -> Any:
        return ValidationError(text, path=path)

    def check_asset(validator: Any, inner: Schema, value: Any, schema: Schema) -> Iterator[Any]:
        if not _is_reference(inner, value):
            yield from validator.descend(value, inner)

    def check_type(validator: Any, kind: str, value: Any, schema: Schema) -> Iterator[Any]:
        is_text = kind == "string" and isinstance(value, str)
        if is_text or not validator.is_type(value, kind) or (kind == "object" and "field_path" in value):
            if _is_reference(schema, value):
                if not is_response:
                    yield fail("a reference to an asset is not accepted here; give the value itself")
            elif not validator.is_type(value, kind):
                yield fail(f"expected {describe_type(schema)}, not {format_value(value)}")

    def check_required(validator: Any, names: Sequence[str], value: Any, schema: Schema) -> Iterator[Any]:
        if isinstance(value, Mapping) and not _is_reference(schema, value):
            for name in names:
                if name not in value:
                    yield fail(f"this is missing; expected {describe_type(schema['properties'][name])}", name)

    def check_others(validator: Any, rest: Any, value: Any, schema: Schema) -> Iterator[Any]:
        if isinstance(value, Mapping) and not _is_reference(schema, value):
            for key in value.keys() - schema["properties"].keys():
                if rest is False:
                    yield fail(f"there is no such key; {did_you_mean(str(key), schema['properties'])}", key)
                else:
                    yield from validator.descend(value[key], rest, path=key)

    def check_enum(validator: Any, values: Sequence[Any], value: Any, schema: Schema) -> Iterator[Any]:
        if not any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in values):
            known = [each if isinstance(each, str) else format_value(each) for each in values]
            near = did_you_mean(value if isinstance(value, str) else "", known)
            yield fail(f"{format_value(value)} is none of its values; {near}")

    def check_foreign(validator: Any, name: str, value: Any, schema: Schema) -> Iterator[Any]:
        if value is None:
            yield fail(f"expected a {name}, not null")

    def check_any(validator: Any, schemas: Sequence[Schema], value: Any, schema: Schema) -> Iterator[Any]:
        failures = [list(validator.descend(value, each)) for each in schemas]
        if all(failures):
            deeper = [errors for errors in failures if any(error.path for error in errors)]
            if len(deeper) == 1:  # only one alternative could be meant
                yield from deeper[0]
            else:
                yield fail(f"expected {describe_type(schema)}, not {format_value(value)}")

    checks: dict[str, Any] = {"type": check_type, "required": check_required, "additionalProperties": check_others}
    checks |= {"enum": check_enum, "anyOf": check_any, ASSET: check_asset, FOREIGN: check_foreign}
    return validators.extend(Draft202012Validator, checks)


def describe_type(schema: Schema) -> str:
    """Describe a schema in a few words, for a sentence that begins with "expected"."""
    if ASSET in schema:
        return describe_type(schema[ASSET])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(describe_type, schema["anyOf"])))
    if "type" not in schema and "enum" in schema:
        return " or ".join(map(format_value, schema["enum"]))
    return f"a {schema[FOREIGN]}" if FOREIGN in schema else _WORDS.get(schema.get("type", ""), "any value")


def format_value(value: Any) -> str:
    """Format a value for a sentence, with the words of JSON and no long texts."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return repr(value if len(value) <= 60 else value[:57] + "...")
        case int() | float():
            return repr(value) if abs(value) < 10**30 else "a huge number"
        case list():
            return "a list"
        case Mapping():
            return "a mapping"
    return f"a {type(value).__name__}"


def _format_place(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        if isinstance(step, str) and _SIMPLE.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{format_value(step)}]"
    return text
