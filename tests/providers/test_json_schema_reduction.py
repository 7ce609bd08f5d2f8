"""Tests of reduced schemas: what vendors refuse is gone, and what they take still accepts the same answers."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from anthropic.lib._parse._transform import SupportedStringFormats, transform_schema
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from goose_like.providers.base import SchemaDialect
from goose_like.providers.json_answer import AnswerSchema
from goose_like.providers.json_schema_reduction import _RULES, find_target, reduce_schema

DIALECTS: tuple[SchemaDialect, ...] = get_args(SchemaDialect)
VENDORS = [dialect for dialect in DIALECTS if dialect != "llguidance"]
KEPT_EVERYWHERE = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "$defs"}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
}


def person(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def list_nodes(schema: Any, is_names: bool = False) -> Iterator[dict[str, Any]]:
    """Yield a reduced schema and all schemas in it."""
    if isinstance(schema, list):
        for entry in schema:
            yield from list_nodes(entry)
    elif isinstance(schema, dict):
        if not is_names:
            yield schema
        for key, value in schema.items():
            if is_names or key in ("items", "anyOf", "properties", "$defs"):
                yield from list_nodes(value, key in ("properties", "$defs") and not is_names)


# --- one keyword at a time


@pytest.mark.parametrize("dialect", VENDORS)
def test_limits_that_a_vendor_refuses_become_hints(dialect: SchemaDialect) -> None:
    reduced = reduce_schema(person(a={"type": "string", "minLength": 3, "pattern": "^a", "description": "A."}), dialect)
    assert reduced is not None
    field = find_target(reduced, "#/properties/a")
    if dialect != "anthropic":
        field = field["anyOf"][0]
    assert field == {"type": "string", "description": 'A.\n\n(minLength: 3, pattern: "^a")'}


@pytest.mark.parametrize(
    ("dialect", "kept"),
    [
        ("openai", {"minimum": 1, "maximum": 5}),
        ("anthropic", {"description": "(minimum: 1, maximum: 5)"}),
        ("portable", {"description": "(minimum: 1, maximum: 5)"}),
        ("llguidance", {"minimum": 1, "maximum": 5}),
    ],
)
def test_limits_that_a_vendor_takes_stay(dialect: SchemaDialect, kept: dict[str, Any]) -> None:
    schema = {**person(a={"type": "integer", "minimum": 1, "maximum": 5}), "required": ["a"]}
    reduced = reduce_schema(schema, dialect)
    assert reduced is not None
    assert reduced["properties"]["a"] == {"type": "integer", **kept}


@pytest.mark.parametrize(
    ("pattern", "is_kept"),
    [(r"^[A-Z]{2}-\d+$", True), (r"^(?:a|b)\.$", True), (r"^(?!a)b", False), (r"(a)\1", False), (r"\bx", False)],
)
def test_a_grammar_follows_patterns_that_an_automaton_can(pattern: str, is_kept: bool) -> None:
    schema = {**person(a={"type": "string", "pattern": pattern, "maxLength": 9}), "required": ["a"]}
    reduced = reduce_schema(schema, "llguidance")
    assert reduced is not None
    field = reduced["properties"]["a"]
    assert field["maxLength"] == 9
    assert ("pattern" in field) == is_kept


@pytest.mark.parametrize(("dialect", "required"), [("openai", ["a", "b"]), ("anthropic", ["b"])])
def test_optional_properties(dialect: SchemaDialect, required: list[str]) -> None:
    reduced = reduce_schema({**person(a={"type": "string"}, b={"type": "null"}), "required": ["b"]}, dialect)
    assert reduced is not None
    assert reduced["required"] == required
    assert reduced["additionalProperties"] is False
    is_nullable = reduced["properties"]["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert is_nullable == (dialect == "openai")


def test_one_of_becomes_any_of_and_types_are_split() -> None:
    schema = {**person(a={"oneOf": [{"const": 1}, {"type": ["integer", "null"]}]}), "required": ["a"]}
    reduced = reduce_schema(schema, "portable")
    assert reduced is not None
    first, second = reduced["properties"]["a"]["anyOf"]
    assert first == {"type": "number", "enum": [1]}
    assert second == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_a_recursive_schema_gets_definitions() -> None:
    reduced = reduce_schema(TREE, "openai")
    assert reduced is not None
    children = reduced["properties"]["children"]["anyOf"][0]
    assert children["items"] == {"$ref": "#/$defs/root"}
    assert reduced["$defs"]["root"]["properties"].keys() == {"name", "children"}
    assert reduce_schema(TREE, "anthropic") is None


def test_two_definitions_with_one_name_stay_apart() -> None:
    schema = {
        **person(a={"$ref": "#/$defs/x"}, b={"$ref": "#/definitions/x"}),
        "$defs": {"x": {"type": "string"}},
        "definitions": {"x": {"type": "number"}},
    }
    reduced = reduce_schema(schema, "anthropic")
    assert reduced is not None
    types = [find_target(reduced, reduced["properties"][name]["$ref"])["type"] for name in ("a", "b")]
    assert types == ["string", "number"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "node",
    [
        {},
        True,
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]},
        {"type": "object", "patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "null"}]},
        {"enum": [{"a": 1}]},
        {"allOf": [{"type": "object", "properties": {}}, {"type": "object", "properties": {}}]},
        {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]},
    ],
)
def test_schemas_that_no_closed_object_can_express(node: Any, dialect: SchemaDialect) -> None:
    assert reduce_schema({**person(a=node), "required": ["a"]}, dialect) is None


def test_the_formats_are_those_of_the_sdk() -> None:
    assert _RULES["anthropic"].formats == SupportedStringFormats


# --- any schema of kept keywords, with an answer that fits


def _join(drawn: dict[str, tuple[Any, Any]], required: set[str], given: set[str]) -> tuple[Any, Any]:
    schema = {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in drawn.items()},
        "required": sorted(required & drawn.keys()),
        "additionalProperties": False,
    }
    value = {name: value for name, (_, value) in drawn.items() if name in given | required}
    return schema, value


NAMES = st.sampled_from(["a", "b", "c d", "é"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
LEAVES = st.one_of(
    st.integers().map(lambda value: ({"type": "integer", "minimum": value - 1}, value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: ({"type": "number"}, value)),
    st.text().map(lambda value: ({"type": "string", "minLength": len(value)}, value)),
    st.just(({"type": ["boolean", "null"]}, None)),
    st.lists(SCALARS, min_size=1, max_size=4).map(lambda values: ({"enum": values}, values[0])),
    SCALARS.map(lambda value: ({"const": value}, value)),
)
PAIRS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(_join, st.dictionaries(NAMES, inner, max_size=3), st.sets(NAMES), st.sets(NAMES)),
        inner.map(lambda pair: ({"type": "array", "items": pair[0], "minItems": 1}, [pair[1]])),
        st.tuples(inner, inner).map(lambda pairs: ({"anyOf": [pairs[0][0], pairs[1][0]]}, pairs[1][1])),
        inner.map(lambda pair: ({"$ref": "#/$defs/x", "$defs": {"x": pair[0]}}, pair[1])),
    ),
    max_leaves=8,
)
"""Schemas, each with a value that is valid for it."""


def lift(schema: Any) -> Any:
    """Move definitions inside of a schema to its top, each under a name of its own."""
    found: dict[str, Any] = {}

    def move(node: Any) -> Any:
        if isinstance(node, list):
            return [move(entry) for entry in node]
        if not isinstance(node, dict):
            return node
        if "$defs" in node and isinstance(node["$defs"].get("x"), dict):
            target = move(node["$defs"]["x"])
            name = f"x{len(found)}"
            found[name] = target
            return {"$ref": f"#/$defs/{name}"}
        return {key: value if key in ("enum", "const") else move(value) for key, value in node.items()}

    moved = move(schema)
    return {**moved, "$defs": found} if found else moved


def fill(value: Any, schema: Any, root: Any) -> Any:
    """Write null for each missing property, as a model does that must write all of them."""
    while "$ref" in schema:
        schema = find_target(root, schema["$ref"])
    for choice in schema.get("anyOf", ()):
        if Draft202012Validator({**choice, "$defs": root.get("$defs", {})}).is_valid(value):
            return fill(value, choice, root)
    if isinstance(value, list):
        return [fill(entry, schema["items"], root) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        name: fill(value[name], child, root) if name in value else None for name, child in schema["properties"].items()
    }


@pytest.mark.parametrize("dialect", DIALECTS)
@given(PAIRS)
def test_valid_answers_stay_valid_and_come_back(dialect: SchemaDialect, pair: tuple[Any, Any]) -> None:
    schema, value = lift(pair[0]), pair[1]
    assert Draft202012Validator(schema).is_valid(value)
    wanted = AnswerSchema.read(schema)
    reduced = reduce_schema(wanted.parameters, dialect)
    assert reduced is not None
    sent = value if wanted.parameters == wanted.schema else {"answer": value}
    if dialect != "anthropic":
        sent = fill(sent, wanted.parameters, wanted.parameters)
    problems = [error.message for error in Draft202012Validator(reduced).iter_errors(sent)]
    assert problems == []
    found, problems = wanted.parse(json.dumps(sent))
    assert problems == []
    assert Draft202012Validator(schema).is_valid(found)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(PAIRS)
def test_reduced_schemas_have_kept_keywords_only(dialect: SchemaDialect, pair: tuple[Any, Any]) -> None:
    reduced = reduce_schema(AnswerSchema.read(lift(pair[0])).parameters, dialect)
    assert reduced is not None
    rules = _RULES[dialect]
    allowed = KEPT_EVERYWHERE | {"description", "format"} | rules.limits | {"minItems"}
    for node in list_nodes(reduced):
        assert node.keys() <= allowed
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            is_complete = set(node["required"]) == node["properties"].keys()
            assert is_complete or not rules.requires_all
        assert node.keys() == {"$ref"} or "$ref" not in node
    if dialect == "anthropic":
        transform_schema(reduced)  # the SDK raises for a part that the API cannot read
