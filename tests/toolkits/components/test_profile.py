"""What a profile says of components, and what its writer is told: the key, its place, and what is expected."""

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
        ("instance_id", " ", "' ' can't be one; write the name of one folder"),
        ("instance_id", True, "'True' can't be one; write the name of one folder"),
        ("instance_id", 1.5, 'YAML reads 1.5 as a number; write it in quotes: instance_id: "1.5"'),
        ("instance_id", "../x", "'../x' can't be one; write the name of one folder"),
        ("group_id", "", "'' can't be one; write names with dots between, such as org.example"),
        ("artifact_id", [], "'[]' can't be one; write one name, such as ocr-detection"),
        ("version", 1.5, 'YAML reads 1.5 as a number; write it in quotes: version: "1.5"'),
        ("version", 2, "'2' can't be one; write numbers with dots between, such as 0.1.0"),
        ("config", [1], "expected a mapping, not '(not shown)'"),
        ("config_file", " ", "expected pattern "),
        ("confg", {}, "did you mean 'config'?"),
        (3, 1, "unknown key 3"),
    ],
)
def test_a_key_of_a_component_is_told_with_what_to_write(key, value, words):
    path, text = told({"use": [{"path": "x"}, NAMED | {key: value}]})
    assert path == ("config", "use", 1, key)
    assert words.lower() in text.lower()


@pytest.mark.parametrize("item", [{}, {"group_id": "a"}, NAMED | {"version": None}, NAMED | {"path": "x"}])
def test_which_component_must_be_clear(item):
    path, text = told({"use": [item]})
    assert path == ("config", "use", 0)
    assert "by group_id, artifact_id and version, or by the `path` of its folder" in text


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("use", "x", "use: expected a list, not 'x'"),
        ("path", [3], "path.0: expected text, not 3"),
        ("pip_params", "-i http://a:pw@x", "pip_params: expected a list, not '(not shown)'"),
        ("network", "yes", "network: expected a valid boolean, not 'yes'"),
        ("llm", "Processor", "llm: expected 'processor' or 'accelerator', not 'Processor'"),
        ("timeout_s", math.inf, "timeout_s: expected less than or equal to 3600, not inf"),
        ("timeout_s", "3", "timeout_s: expected a valid number, not '3'"),
        ("asset_characters", True, "asset_characters: expected a valid integer, not True"),
        ("network_", True, "unknown key 'network_'; did you mean 'network'?"),
    ],
)
def test_a_key_is_told_with_what_to_write(key, value, words):
    path, text = told({key: value})
    assert path[:2] == ("config", key)
    assert text == words


@pytest.mark.parametrize("instance", [None, 0, -1, 3, "notes", "a b"])
def test_what_an_instance_may_be_called(instance):
    (used,) = Config.read({"use": [NAMED | {"instance_id": instance}]}).use
    assert used.instance_id == instance
