"""Tests of the YAML reader: scalars of YAML 1.2, lines, repeated keys, and limits."""

import math

import pytest
import yaml
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
    "012": "012",
    "0o14": "0o14",
    "0x1F": 31,
    "-0b11": -3,
    "1_000": 1000,
    "1e3": 1000.0,
    "-.5": -0.5,
    ".inf": math.inf,
    "1:30": "1:30",
    "1.2.3": "1.2.3",
    "2024-01-02": "2024-01-02",
    "=": "=",
    '"12"': "12",
}


@pytest.mark.parametrize("text", SCALARS)
def test_scalars_are_those_of_yaml_1_2(text):
    data, _ = parse_document(f"key: {text}")
    value = data["key"]
    assert (value, type(value)) == (SCALARS[text], type(SCALARS[text]))


@pytest.mark.parametrize(
    "text",
    [
        "key: yes",
        "a: {b: {c: [d, {e: 1}]}}\na: {2: {f: g}}",
        "a: &a {b: c}\nd: *a\ne: {<<: *a, b: f}\ng: [*a, {<<: [*a, {h: i}]}]",
        "=: a\n? !!str b\n: !!set {c}\nd: !!omap [e: f]",
    ],
)
def test_the_standard_loader_reads_as_pyyaml(text):
    loader, node = compose_document(text, StandardLoader)
    assert loader.construct_document(node) == yaml.safe_load(text)


@pytest.mark.parametrize("text", ["? [a]\n: b", "? {a: b}\n: c", "a: {? !!str [b]\n: c}", "a: !!map [b]"])
def test_the_standard_loader_refuses_as_pyyaml(text):
    loader, node = compose_document(text, StandardLoader)
    for read in (lambda: loader.construct_document(node), lambda: yaml.safe_load(text)):
        with pytest.raises(yaml.YAMLError):
            read()


def test_a_merge_adds_the_keys_that_are_missing():
    data, node = parse_document("a: &a {b: 1, c: 2}\nd:\n  <<: *a\n  c: 3")
    assert data["d"] == {"b": 1, "c": 3}
    assert find_line(node, ["d", "c"]) == 4


def test_merged_keys_are_not_repeated_ones():
    data, _ = parse_document("a: &a {c: 1}\nx:\n  y: &b {<<: *a, c: 3}\nd: {<<: *b}")
    assert (data["x"]["y"], data["d"]) == ({"c": 3}, {"c": 3})


def test_find_line_of_the_nearest_parent():
    _, node = parse_document("a:\n  b:\n    - c\n    - d\n  -1: {f: g}")
    paths = ([], ["a", "b", 1], ["a", "b", 7], ["a", "x"], ["a", -1], ["a", -1, "f", "h"])
    assert [find_line(node, path) for path in paths] == [1, 4, 2, 1, 5, 5]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "found duplicate key 'a'; remove one"),
        ("a:\n  b: [1", 2, "did not find expected ',' or ']'"),
        ("a: !unknown x", 1, "could not determine a constructor for the tag '!unknown'"),
        ("a: *b", 1, "found undefined alias"),
        ("- &a [*a]", 1, "repeat more than 10,000 values"),
        ("[" * 5_000, 1, "nests too deep"),
        ("a: \x01", None, "control characters are not allowed"),
        ("a: !!timestamp 2024-13-45", 1, "could not determine a constructor"),
        ("a: !!bool maybe", None, "KeyError: 'maybe'"),
    ],
)
def test_invalid_texts(text, line, words):
    with pytest.raises(YamlError) as caught:
        parse_document(text)
    assert caught.value.line == line
    assert words in str(caught.value)


@pytest.mark.parametrize("value", ["!!binary aGk=", "!!set {a}", "!!timestamp 2001-01-01", "!!omap [a: 1]"])
def test_values_that_json_lacks_are_refused(value):
    with pytest.raises(YamlError, match="could not determine a constructor") as caught:
        parse_document(f"a: 1\nb: {value}")
    assert caught.value.line == 2


@pytest.mark.parametrize("text", ["a: !!{} x", "a: *{}", "{0}: 1\n{0}: 2", "a: !<{}> x", "%TAG ! {}"])
def test_errors_about_long_words_are_short(text):
    with pytest.raises(YamlError) as caught:
        parse_document(text.format("set" * 5_000))
    assert len(str(caught.value)) < 600


def test_aliases_count_each_time():
    text = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30))])
    with pytest.raises(YamlError, match="repeat more than 10,000 values"):
        parse_document(text)


TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from(" \n\x85\u2028\u2029"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.sampled_from(list(SCALARS)),
    lambda children: st.lists(children) | st.dictionaries(TEXTS, children),
    max_leaves=20,
)


@given(VALUES)
def test_written_values_are_read_back_unchanged(value):
    assert parse_document(format_document({"value": value}))[0] == {"value": value}


@given(st.text("[]{}:,-? \na'\"|&!%", max_size=40))
def test_short_texts_stay_within_bounds(text):
    """`compose_document` checks neither the size of short texts nor the depth of those with few of these marks."""
    try:
        node = yaml.compose(text, StandardLoader)
    except yaml.YAMLError:
        return

    def measure(node):
        if isinstance(node, yaml.ScalarNode):
            return 1, 0
        parts = [measure(each) for each in (sum(node.value, ()) if isinstance(node, yaml.MappingNode) else node.value)]
        return 1 + sum(size for size, _ in parts), 1 + max((depth for _, depth in parts), default=0)

    if node is not None:
        count, depth = measure(node)
        assert count <= 4 * len(text)
        assert depth <= sum(map(text.count, "[{-?:"))
