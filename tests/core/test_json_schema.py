"""Tests of JSON schemas of foreign tools. Those of our own tools are tested with the tools."""

import json

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.json_schema import sanitize_schema

DAMAGED_SCHEMAS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["object", "string", "array", "strin", "#/x", "#/$defs/a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "required",
                    "anyOf",
                    "allOf",
                    "enum",
                    "$ref",
                    "$defs",
                    "a",
                    "minimum",
                    "description",
                    "default",
                    "additionalProperties",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(DAMAGED_SCHEMAS)
def test_any_value_becomes_a_valid_object_schema(schema):
    sanitized = sanitize_schema(schema)
    jsonschema.Draft202012Validator.check_schema(sanitized)
    assert sanitized["type"] == "object"
    assert set(sanitized.get("required", ())) <= set(sanitized["properties"])


def test_references_are_inlined_and_recursion_ends():
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}, "n": {"$ref": "#/$defs/n"}}}
    sanitized = sanitize_schema(
        {"$ref": "#/$defs/tree", "$defs": {"tree": tree, "n": {"type": "integer", "minimum": 1}}}
    )
    assert sanitized["properties"]["n"] == {"type": "integer", "minimum": 1}
    assert sanitized["properties"]["child"]["properties"]["n"] == {"type": "integer", "minimum": 1}
    assert "$ref" not in json.dumps(sanitized)


def test_a_short_schema_does_not_grow_forever():
    fields = {f"p{number}": {"$ref": "#/$defs/a"} for number in range(40)}
    schema = {"type": "object", "properties": fields, "$defs": {"a": {"type": "object", "properties": fields}}}
    sanitized = sanitize_schema(schema)
    assert list(sanitized["properties"]) == list(fields)
    assert len(json.dumps(sanitized)) < 200_000
