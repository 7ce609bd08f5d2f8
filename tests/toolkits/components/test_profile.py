"""What a profile says of components, and what its writer is told: the key, its place, and what to write."""

import math
from typing import Any

import pytest
from goose_like_toolkits.components.config import Config

from goose_like.core.errors import ProfileError

NAMED = {"group_id": "org.a", "artifact_id": "b", "version": "1.0"}


def told(data: dict[Any, Any]) -> tuple[tuple[str | int, ...], str]:
    with pytest.raises(ProfileError) as raised:
        Config.read(data)
    return raised.value.path, str(raised.value)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("instance_id", "", "instance_id: '' can't be one; write the name of one folder"),
        ("instance_id", " ", "instance_id: ' ' can't be one; write the name of one folder"),
        ("instance_id", [1], "instance_id: expected text, not [1]; write the name of one folder"),
        ("instance_id", True, "instance_id: expected text, not true; write the name of one folder"),
        ("instance_id", {}, "instance_id: expected text, not {}; write the name of one folder"),
        ("instance_id", 1.5, 'instance_id: YAML reads 1.5 as a number; write it in quotes: instance_id: "1.5"'),
        ("instance_id", "../x", "instance_id: '../x' can't be one; write the name of one folder"),
        ("group_id", "", "group_id: '' can't be one; write names with dots between, such as org.example"),
        ("group_id", True, "group_id: expected text, not true; write names with dots between, such as org.example"),
        ("artifact_id", " ", "artifact_id: ' ' can't be one; write one name, such as ocr-detection"),
        ("artifact_id", [], "artifact_id: expected text, not []; write one name, such as ocr-detection"),
        ("version", "", "version: '' can't be one; write numbers with dots between, such as 0.1.0"),
        ("version", 1.5, 'version: YAML reads 1.5 as a number; write it in quotes: version: "1.5"'),
        ("version", 2, "version: expected text, not 2; write numbers with dots between"),
        ("config", [1], "config: expected input should be a valid dictionary, not list"),
        ("config_file", " ", "config_file: expected string should match pattern"),
    ],
)
def test_a_key_of_a_component_is_told_with_what_to_write(key, value, words):
    path, text = told({"use": [{"path": "x"}, NAMED | {key: value}]})
    assert path == ("config", "use", 1, key)
    assert text.startswith(words)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({}, "a component without group_id and artifact_id and version; give all three, or the `path`"),
        ({"group_id": "a"}, "a component without artifact_id and version; give all three"),
        (NAMED | {"version": None}, "a component without version; give all three"),
        (NAMED | {"path": "x"}, "a component by its path and its coordinates at once; leave one of the two out"),
    ],
)
def test_which_component_must_be_clear(item, words):
    path, text = told({"use": [item]})
    assert path == ("config", "use", 0)
    assert text.startswith(words)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("use", "x", "use: expected a list of components, e.g. [{path: word_count}], not 'x'"),
        ("path", "src", "path: expected a list of folders, e.g. [src], not 'src'"),
        ("path", [3], "path: expected a list of folders, e.g. [src], not 3"),
        ("pip_params", "-i http://a:pw@x", "pip_params: expected a list of words for pip, e.g. [--no-index], not str"),
        ("tools", "x", "tools: expected a list of names of tools, e.g. [list_assets], not 'x'"),
        ("network", "yes", "network: expected input should be a valid boolean, not 'yes'"),
        ("llm", "Processor", "llm: expected processor or accelerator, not 'Processor'"),
        ("timeout_s", 0, "timeout_s: expected a number of seconds above 0 and up to 3600, not 0"),
        ("timeout_s", math.inf, "timeout_s: expected a number of seconds above 0 and up to 3600, not inf"),
        ("timeout_s", "3", "timeout_s: expected a number of seconds above 0 and up to 3600, not '3'"),
        ("asset_characters", 1.5, "asset_characters: expected a whole number from 200 on, not 1.5"),
        ("asset_characters", True, "asset_characters: expected a whole number from 200 on, not True"),
    ],
)  # fmt: skip
def test_a_key_is_told_with_what_to_write(key, value, words):
    path, text = told({key: value})
    assert path[:2] == ("config", key)
    assert text == words


def test_a_key_that_is_no_text():
    assert told({3: 1})[1].startswith("toolkit components has no '3'; ")
    assert told({"use": [NAMED | {3: 1}]})[1].startswith("a component has no '3'; ")


@pytest.mark.parametrize("instance", [None, 0, -1, 3, "notes", "a b"])
def test_what_an_instance_may_be_called(instance):
    (used,) = Config.read({"use": [NAMED | {"instance_id": instance}]}).use
    assert used.instance_id == instance
