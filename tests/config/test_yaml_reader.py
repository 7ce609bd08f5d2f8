"""Tests of the YAML reader: scalars of YAML 1.2, lines, repeated keys, and limits."""

import math
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.config.yaml_reader import (
    StandardLoader,
    YamlError,
    compose_document,
    find_line,
    format_document,
    parse_document,
)

SCALARS = {
    "yes": "yes",
    "on": "on",
    "True": True,
    "~": None,
    "": None,
    "012": 12,
    "0o14": 12,
    "0x1F": 31,
    "-0b11": -3,
    "1_000": 1000,
    "1e3": 1000.0,
    "-.5": -0.5,
    ".inf": math.inf,
    "1:30": "1:30",
    "1.2.3": "1.2.3",
    "2024-01-02": date(2024, 1, 2),
    "=": "=",
    '"12"': "12",
}


@pytest.mark.parametrize("text", SCALARS)
def test_scalars_are_those_of_yaml_1_2(text):
    value = parse_document(f"key: {text}")["key"]
    assert (value, type(value)) == (SCALARS[text], type(SCALARS[text]))


def test_the_standard_loader_reads_as_pyyaml():
    loader, node = compose_document("key: yes", StandardLoader)
    assert loader.construct_document(node) == {"key": True}


def test_lines_of_keys_and_items():
    data = parse_document("a:\n  - b\n  -\n    c: d\ne: {f: g}")
    assert (data.line, data.child_lines) == (1, {"a": 1, "e": 5})
    assert (data["a"].line, data["a"].child_lines) == (2, [2, 4])
    assert data["a"][1].child_lines == {"c": 4}


def test_a_merge_adds_the_keys_that_are_missing():
    data = parse_document("a: &a {b: 1, c: 2}\nd:\n  <<: *a\n  c: 3")
    assert data["d"] == {"b": 1, "c": 3}
    assert data["d"].child_lines["c"] == 4


def test_find_line_of_the_nearest_parent():
    _, node = compose_document("a:\n  b:\n    - c\n    - d", StandardLoader)
    assert [find_line(node, path) for path in ([], ["a", "b", 1], ["a", "b", 7], ["a", "x"])] == [1, 4, 2, 1]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "found duplicate key 'a'; remove one"),
        ("a:\n  b: [1", 2, "did not find expected ',' or ']'"),
        ("a: !unknown x", 1, "could not determine a constructor for the tag '!unknown'"),
        ("a: *b", 1, "found undefined alias"),
        ("- &a [*a]", 1, "nests too deep"),
        ("[" * 5_000, 1, "nests too deep"),
        ("a: \x01", None, "control characters are not allowed"),
        ("a: 2024-13-45", None, "month must be in 1..12"),
    ],
)
def test_invalid_texts(text, line, words):
    with pytest.raises(YamlError) as caught:
        parse_document(text)
    assert caught.value.line == line
    assert words in str(caught.value)


def test_aliases_count_each_time():
    text = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30))])
    with pytest.raises(YamlError, match="more than 1,000,000 values"):
        parse_document(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(list(SCALARS)),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(VALUES)
def test_written_values_are_read_back_unchanged(value):
    assert parse_document(format_document({"value": value})) == {"value": value}
