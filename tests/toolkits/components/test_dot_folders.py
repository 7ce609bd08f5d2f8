"""Dot folders that configurations of components name."""

from pathlib import Path

import pytest
from goose_like_toolkits.components.host.dot_folders import find_own_dot_folders


def test_a_new_folder_is_a_components_own_and_stays_so(tmp_path: Path) -> None:
    root, record = tmp_path / "work", tmp_path / "record"
    (root / ".theirs").mkdir(parents=True)
    configs = [{"a": {"b": ["web/.pages/dist", {"c": ".cache"}]}, "d": ".theirs", "e": 1, "f": "no folder"}]
    assert find_own_dot_folders(root, configs, record) == [".cache", ".pages"]
    (root / ".cache").mkdir()
    assert find_own_dot_folders(root, configs, record) == [".cache", ".pages"]
    assert find_own_dot_folders(root, configs, tmp_path / "another") == [".pages"]


@pytest.mark.parametrize(
    "text", [".git", ".git/hooks", ".github", ".env", "a/.env.local", "../.a", "/tmp/.a", ".", "a.b"]
)
def test_some_names_are_never_its_own(tmp_path: Path, text: str) -> None:
    assert find_own_dot_folders(tmp_path, [{"folder": text}], tmp_path / "record") == []
