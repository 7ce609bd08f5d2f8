"""Values that are kept between processes, those of shipped YAML files, and the texts of docstrings."""

import json
from pathlib import Path

import pytest
import yaml

from goose_like.agent.toolkit import make_kept_tool
from goose_like.config.kept_values import KeptValues, _open_kept
from goose_like.config.profile_loader import load_profile
from goose_like.config.shipped_yaml import parse_shipped
from goose_like.config.yaml_source import read_yaml
from goose_like.core.errors import ProfileError
from goose_like.core.tool import _describe
from goose_like.toolkit import Toolkit, tool

DAMAGED = [
    "",
    "{",
    "[]",
    '"text"',
    "{}",
    '{"version": null, "entries": {}}',
    '{"version": "0.0.1", "entries": {"a": 1}}',
]


@pytest.fixture
def file(home: Path) -> Path:
    return home / "state/kept/shipped-yaml.json"


def forget() -> None:
    """Do as a new process, which has read nothing."""
    _open_kept.cache_clear()


def test_values_are_kept(home: Path) -> None:
    first = KeptValues("numbers")
    first.put("one", [1, {"a": None}])
    assert KeptValues("numbers").get("one") is None
    first.save()
    assert KeptValues("numbers").get("one") == [1, {"a": None}]
    assert KeptValues("others").get("one") is None
    assert (home / "state/kept/numbers.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_files_and_those_of_other_versions_are_made_again(home: Path, text: str) -> None:
    (home / "state/kept").mkdir(parents=True)
    (home / "state/kept/numbers.json").write_text(text)
    values = KeptValues("numbers")
    assert values.get("a") is None
    values.put("a", 2)
    values.save()
    assert KeptValues("numbers").get("a") == 2


def test_a_shipped_text_is_parsed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    assert parse_shipped("a: [1, x]\nb: {c: true}\n") == {"a": [1, "x"], "b": {"c": True}}
    forget()
    monkeypatch.delattr(yaml, "parse")
    monkeypatch.delattr("goose_like.config.yaml_reader.parse_document")
    assert parse_shipped("a: [1, x]\nb: {c: true}\n") == {"a": [1, "x"], "b": {"c": True}}


def test_another_text_has_other_values(file: Path) -> None:
    forget()
    assert parse_shipped("a: 1") == {"a": 1}
    assert parse_shipped("a: 2") == {"a": 2}
    assert parse_shipped("# nothing\n") == {}
    assert parse_shipped("1: a") == {1: "a"}
    assert len(json.loads(file.read_text())["entries"]) == 3, "a number is no key in JSON"


def test_files_of_the_person_are_not_kept(file: Path, tmp_path: Path) -> None:
    forget()
    own = tmp_path / "own.yaml"
    own.write_text("key: secret-value")
    assert read_yaml(own).data == {"key": "secret-value"}
    load_profile("default")
    assert "secret-value" not in file.read_text()


def test_lines_of_a_kept_file_are_found(file: Path, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped.yaml"
    shipped.write_text("# a comment\none:\n  two: 2\nthree: 3\n")
    for _ in range(2):
        forget()
        source = read_yaml(shipped, is_shipped=True)
        assert source.locate("one", "two") == f"{shipped}, line 3"
        part = next(source.split("names"))
        assert (part.locate("two"), part.locate("none")) == (f"{shipped}, line 3", f"{shipped}, line 3")


def test_an_error_in_a_shipped_file_has_its_line(file: Path, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped.yaml"
    shipped.write_text("a: 1\nb: [\n")
    with pytest.raises(ProfileError, match=r"shipped\.yaml, line 2: this is not valid YAML"):
        read_yaml(shipped, is_shipped=True)


class Counting(Toolkit):
    @tool
    def count_words(self, text: str, least: int = 1) -> int:
        """Count the words of a text.

        Args:
            text: The text.
            least: Minimum number of letters of a word.
        """
        return sum(len(word) >= least for word in text.split())


def test_the_docstring_of_a_tool_is_parsed_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = []
    for _ in range(2):
        forget()
        _describe.cache_clear()
        method = Counting.count_words.__get__(object())
        described.append(make_kept_tool(method).spec)
        monkeypatch.delattr("goose_like.core.docstring.parse_docstring", raising=False)
    assert described[0] == described[1]
    assert described[0].description == "Count the words of a text."
    assert described[0].schema["properties"]["least"]["description"] == "Minimum number of letters of a word."
    assert "Count the words" in (home / "state/kept/docstrings.json").read_text()
