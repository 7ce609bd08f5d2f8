"""What a component is configured with in the end, where its copy lies, and what a check says of its file."""

import json

import pytest
from concopilot.util import ClassDict
from goose_like_toolkits.components.definition.check import check_file
from goose_like_toolkits.components.definition.config_file import merge_config
from hypothesis import given as for_all
from hypothesis import strategies as st

from tests.toolkits.components.component_files import HEAD, component


@pytest.mark.parametrize(
    ("own", "outer", "value"),
    [
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": 2}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({"a": 2}, {"a": {}}, {"a": {}}),
        ({"a": {}}, {"a": {"b": {}}}, {"a": {"b": {}}}),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, {"a": [{"c": 1}]}),
        ({"a": [1, 2]}, {"a": []}, {"a": []}),
        ({}, {}, {}),
    ],
)
def test_what_merges_and_what_replaces(own, outer, value):
    assert merge_config(own, outer) == value
    theirs = ClassDict.convert(own)
    theirs.update_nested(ClassDict.convert(outer))
    assert theirs == value


GOOD = (
    HEAD
    + """\
commands:
- command_name: count
  description: Counts.
  parameter: {type: {of: {type: string, description: what}}}
  response: {type: {number: {type: int, description: how many, optional: false}}}
url: https://example.org
developers: [{name: Ann}]
licenses: [{name: MIT, url: https://example.org/mit}]
"""
)


def checked(folder, text):
    return [
        (each.line, each.text, each.is_warning)
        for each in check_file(component(folder, head=text))
        if "only your machine" not in each.text
    ]


def test_of_a_good_file_nothing_is_said(tmp_path):
    assert checked(tmp_path, GOOD) == []


def test_what_is_recommended_is_remarked(tmp_path):
    without = GOOD[: GOOD.index("url:")] + "licenses: []\n"
    assert [(line, text.partition(":")[0], is_remark) for line, text, is_remark in checked(tmp_path, without)] == [
        (1, "developers", True),
        (1, "url", True),
        (16, "licenses", True),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("version: 0.1.0", "version: 1.0", 3, "write it in quotes"),
        ("type: int", "type: itn", 15, "there is no type 'itn'; did you mean 'int'?"),
        ("title: Stock", "prompt_file_name: p.md\n  title: Stock", 7, "info.prompt_file_name: "),
        ("setup:", "resource_type: [x]\nsetup:", 9, "resource_type: expected text"),
        ("url:", "config:\n  a:\n  - {group_id: g, artifact_id: a, version: 1.0}\nurl:", 18,
         "config.a[0].version: YAML reads 1.0 as a number"),
        ("url:", "config: {a: {group_id: g, artifact_id: a}}\nurl:", 16, "config.a.version: '' can't be one"),
        ("url:", "config: {a: {group_id: g, artifact_id: a, version: '1', instance_id: ../x}}\nurl:", 16,
         "config.a.instance_id: '../x' can't be one"),
    ],
)  # fmt: skip
def test_a_check_tells_the_line(tmp_path, old, new, line, fault):
    [(at, text, is_remark)] = checked(tmp_path, GOOD.replace(old, new, 1))
    assert (at, is_remark) == (line, False)
    assert fault in text


def test_a_misspelt_key_is_remarked_and_others_are_the_components_own(tmp_path):
    text = GOOD.replace("licenses:", "licences:") + "own_key: 3\n"
    assert [(line, text.partition(":")[0]) for line, text, _ in checked(tmp_path, text)] == [
        (1, "licenses"),
        (18, "licences"),
    ]


@pytest.mark.parametrize("text", ["", "-", "a: &a [*a]", "\t", "a: 1\na: 2"])
def test_a_check_of_what_can_not_be_read(tmp_path, text):
    assert [is_remark for *_, is_remark in checked(tmp_path, text)] == [False]


def test_a_check_of_nothing_but_keys_is_in_sentences(tmp_path):
    for _, text, _ in checked(tmp_path, "a: 1\n"):
        assert "is not valid under any" not in text
        assert "\n" not in text


def test_a_place_left_for_others_is_remarked(tmp_path):
    text = GOOD + "config: {model: {group_id: <whose>, artifact_id: a, version: '1'}}\n"
    [(line, said, is_remark)] = checked(tmp_path, text)
    assert (line, is_remark) == (19, True)
    assert said.startswith("config.model.group_id: ")


KEYS = [
    *(
        "group_id",
        "artifact_id",
        "version",
        "type",
        "as_plugin",
        "info",
        "commands",
        "setup",
        "config",
        "resource_type",
    ),
    *("command_name", "parameter", "name", "package", "pip", "title"),
]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.floats(allow_nan=False) | st.sampled_from(["x", "1.0", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@for_all(st.dictionaries(st.sampled_from(KEYS), ANY, max_size=8))
def test_a_check_never_raises(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "checked.yaml"
    file.write_text(json.dumps(data))
    faults = check_file(file)
    assert faults
    assert all("\n" not in fault.text for fault in faults)
