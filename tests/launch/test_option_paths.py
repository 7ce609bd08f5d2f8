"""Paths in options keep their meaning in another folder."""

import pytest

from goose_like.core.errors import UsageError
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.option_paths import anchor_model, anchor_options


def test_relative_paths(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "style.md").write_text("short")
    options = ProfileOptions(add_dirs=["lib", "lib:rw", str(tmp_path)], appended_prompt="@style.md")
    anchored = anchor_options(options, tmp_path)
    assert anchored.add_dirs == [f"{tmp_path}/lib", f"{tmp_path}/lib:rw", str(tmp_path)]
    assert anchored.appended_prompt == f"@{tmp_path}/style.md"


def test_other_options_stay(tmp_path):
    options = ProfileOptions("mine", model="local", appended_prompt="Be short.")
    assert anchor_options(options, tmp_path) == options


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"add_dirs": ["lib:rw"]}, "--add-dir lib:rw: there is no such folder"),
        ({"appended_prompt": "@style.md"}, "--append-system-prompt @style.md: there is no such file"),
        ({"add_dirs": ["~nobody-x/lib"]}, "--add-dir ~nobody-x/lib: there is no such folder"),
        ({"appended_prompt": "@~nobody-x/a"}, "--append-system-prompt @~nobody-x/a: there is no such file"),
    ],
)
def test_missing_places(tmp_path, options, problem):
    with pytest.raises(UsageError) as caught:
        anchor_options(ProfileOptions(**options), tmp_path)
    assert str(caught.value) == problem


def test_models(tmp_path):
    assert anchor_model("scripted:a/b.yaml", tmp_path) == f"scripted:{tmp_path}/a/b.yaml"
    assert anchor_model("scripted:/b.yaml", tmp_path) == "scripted:/b.yaml"
    assert anchor_model("scripted:~nobody-x/b", tmp_path) == f"scripted:{tmp_path}/~nobody-x/b"
    for label in ("openai:gpt-6", "local", "scripted:", "unknown:a/b"):
        assert anchor_model(label, tmp_path) == label
