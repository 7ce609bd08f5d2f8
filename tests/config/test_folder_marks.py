"""Marks of folders change with any file in them, and only then."""

import os
from pathlib import Path

import pytest

from goose_like.config import folder_marks
from goose_like.config.folder_marks import describe_difference, mark_folder
from goose_like.core.errors import GooseLikeError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "pdf"
    (top / "scripts").mkdir(parents=True)
    (top / "SKILL.md").write_text("x")
    (top / "scripts/a b.sh").write_text("echo 1")
    (top / "link").symlink_to("scripts")
    return top


def test_any_change_beside_the_file_changes_the_mark(folder: Path) -> None:
    before = mark_folder(folder, "SKILL.md")
    (folder / "SKILL.md").write_text("another text counts by itself")
    (folder / "scripts/__pycache__").mkdir()
    (folder / "scripts/__pycache__/a.pyc").write_text("made by running it")
    assert mark_folder(folder, "SKILL.md") == before

    status = (folder / "scripts/a b.sh").stat()
    (folder / "scripts/a b.sh").write_text("echo 2")
    os.utime(folder / "scripts/a b.sh", ns=(status.st_atime_ns, status.st_mtime_ns))  # same size, same time
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc")
    (folder / "new").write_text("")
    after = mark_folder(folder, "SKILL.md")
    assert describe_difference(before, after) == "link (changed), new (new), scripts/a b.sh (changed)"
    assert describe_difference(after, before) == "link (changed), new (deleted), scripts/a b.sh (changed)"


def test_a_pipe_is_not_opened_and_a_huge_folder_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe")
    assert "no-file 0 pipe" in mark_folder(folder, "SKILL.md")
    monkeypatch.setattr(folder_marks, "_MAX_FILES", 2)
    with pytest.raises(GooseLikeError, match="more than 2 files"):
        mark_folder(folder, "SKILL.md")
