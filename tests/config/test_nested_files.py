"""The bounded search for files in nested folders."""

from pathlib import Path
from stat import S_ISLNK

import pytest

from goose_like.config import nested_files
from goose_like.config.nested_files import find_nested_files


def write(top: Path, *names: str) -> None:
    for name in names:
        file = top / name / "X.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")


def find(top: Path, *, follows_links: bool = False) -> list[str]:
    found = find_nested_files(str(top), "X.md", follows_links=follows_links)
    return sorted(str(Path(file.path).relative_to(top)) for file in found)


def test_it_finds_files_down_to_six_folders_and_none_below_another(tmp_path: Path) -> None:
    write(tmp_path, "a", "b/c", "a/below", "1/2/3/4/5/6", "1/2/3/4/5/x/7", ".git/x", "node_modules/x")
    assert find(tmp_path) == ["1/2/3/4/5/6/X.md", "a/X.md", "b/c/X.md"]
    assert find(tmp_path / "missing") == []


def test_it_ends_after_a_number_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested_files, "MAX_FOLDERS", 4)  # the top counts
    write(tmp_path, "a", "b", "c", "d")
    assert find(tmp_path) == ["a/X.md", "b/X.md", "c/X.md"]


def test_links_are_named_or_followed_once(tmp_path: Path) -> None:
    top = tmp_path / "top"
    write(tmp_path, "elsewhere/one")
    top.mkdir()
    (top / "all").symlink_to("../elsewhere")
    (top / "again").symlink_to("../elsewhere")
    (top / "round").symlink_to(".")
    assert find(top) == ["again", "all", "round"]
    assert find(top, follows_links=True) == ["again/one/X.md"]
    (file,) = find_nested_files(str(top), "X.md", follows_links=True)
    assert file.is_linked
    assert file.is_file


def test_a_link_may_be_removed_after_it_was_listed(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/usr")
    (tmp_path / "b").symlink_to("/usr")
    found = find_nested_files(str(tmp_path), "X.md")
    link = next(found)
    assert link.path == str(tmp_path / "a")
    assert S_ISLNK(link.status.st_mode)
    assert link.is_linked
    assert not link.is_file
    (tmp_path / "b").unlink()
    assert list(found) == []
