"""Copies of files: no link is followed, and odd files have no content."""

import os
from pathlib import Path

import pytest

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.repositories.file_copy import (
    AcceptedFiles,
    FileCopy,
    FileEdit,
    FilePins,
    format_edits,
    list_files,
    read_copy,
    write_copy,
)


def test_odd_files_have_no_content(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "large").write_bytes(b"x" * 1_000_001)
    (root / "folder").mkdir()
    for name in ("pipe", "large", "folder"):
        copy = read_copy(root / name)
        assert copy
        assert copy.data is None
    assert read_copy(root / "missing") is None
    assert read_copy(root / "large/below") is None


def test_a_folder_that_became_a_link_is_neither_read_nor_written(root: Path) -> None:
    (root / "target").mkdir()
    (root / "target/a").write_text("secret")
    (root / "link").symlink_to("target")
    copy = read_copy(root / "link/a")
    assert copy
    assert copy.data is None
    with pytest.raises(GooseLikeError):
        write_copy(root / "link/a", FileCopy(0o100644, b"evil"))
    assert list_files(root / "link") == [root / "link"]
    write_copy(root / "link", None)
    assert (root / "target/a").read_text() == "secret"


def test_a_copy_is_written_with_its_mode_also_in_place(root: Path) -> None:
    file, copy = root / "a", FileCopy(0o100755, b"new")
    write_copy(file, copy)
    pins = FilePins([file])
    write_copy(file, FileCopy(0o100600, b"n"), in_place=True)
    assert read_copy(file) == FileCopy(0o100600, b"n")
    assert not pins.has_moved(file)
    write_copy(file, copy)
    assert read_copy(file) == copy
    assert pins.has_moved(file)
    pins.close()


def test_a_change_of_an_unknown_content_shows(root: Path) -> None:
    files, large = AcceptedFiles(), root / "large"
    large.write_bytes(b"x" * 1_000_001)
    os.mkfifo(root / "pipe")
    for name in ("large", "pipe"):
        (edit,) = files.find_edits(root, [root / name])
        files.accept(root, edit)
    assert files.find_edits(root, []) == []
    large.write_bytes(b"y" * 1_000_001)
    (edit,) = files.find_edits(root, [])
    assert edit.path == large


def test_a_refused_file_with_a_long_name_is_reverted_too(root: Path) -> None:
    file = root / ("é" * 127)
    file.write_text("evil")
    AcceptedFiles().revert(root, FileEdit(file, None, read_copy(file)), None, [root])
    assert not file.exists()
    (kept,) = (root.parent / "goose").rglob("refused/*")
    assert kept.read_text() == "evil"


def test_only_links_below_the_roots_are_removed(root: Path) -> None:
    (root.parent / "link").symlink_to(root)
    (root / "folder").mkdir()
    (root / "below").symlink_to("folder")
    file = root.parent / "link/a"
    file.write_text("evil")
    with pytest.raises(GooseLikeError):
        AcceptedFiles().revert(root, FileEdit(file, None, read_copy(file)), None, [root])
    assert (root.parent / "link").is_symlink()
    mine = FileCopy(0o100644, b"mine")
    AcceptedFiles().revert(root, FileEdit(root / "below/a", mine, None), mine, [root])
    assert (root / "below/a").read_text() == "mine"
    assert not (root / "below").is_symlink()


def test_a_question_says_what_has_no_diff(root: Path) -> None:
    new = [FileCopy(0o120777, b"/etc/passwd"), FileCopy(0, None), FileCopy(0o100755, b"x\n"), None]
    text = format_edits(FileEdit(root / "a", FileCopy(0o100644, b"x\n"), copy) for copy in new)
    assert text.splitlines() == [
        f"{root}/a: a link to /etc/passwd",
        f"{root}/a: it can't be read",
        f"{root}/a: executable",
        f"{root}/a: removed",
    ]
