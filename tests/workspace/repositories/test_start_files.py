"""Start files: changes are found by content, and reverted without following links."""

import os
from pathlib import Path

from goose_like.workspace.repositories.start_files import StartFiles, revert_files


def test_only_changes_of_content_and_mode_are_found(root: Path) -> None:
    (root / ".vscode").mkdir()
    file = root / ".vscode/tasks.json"
    file.write_text("mine")
    watched = [root / ".vscode", root / ".envrc", root / ".claude/commands"]
    files = StartFiles(watched)
    os.utime(file)
    assert files.find_edits() == {}
    file.write_text("evil")
    (root / ".claude/commands").mkdir(parents=True)
    (root / ".claude/commands/a.md").write_text("evil")
    (root / ".envrc").symlink_to("elsewhere")
    found = files.find_edits()
    assert set(found) == set(watched)
    for edits in found.values():
        revert_files(edits)
    assert files.find_edits() == {}
    assert file.read_text() == "mine"
    assert not (root / ".envrc").is_symlink()
    file.unlink()
    revert_files(files.find_edits()[root / ".vscode"])
    assert file.read_text() == "mine"


def test_a_file_that_comes_and_goes_is_found_each_time(root: Path) -> None:
    files = StartFiles([root / ".envrc"])
    for _ in range(3):
        (root / ".envrc").write_text("evil")
        assert len(files.find_edits()) == 1
        (root / ".envrc").unlink()
        assert files.find_edits() == {}


def test_a_folder_with_too_much_content_is_named(root: Path) -> None:
    folder = root / ".idea"
    folder.mkdir()
    files = StartFiles([folder])
    for number in range(600):
        (folder / str(number)).write_text("x")
    assert StartFiles([folder]).find_unreadable() == [folder]
    revert_files(files.find_edits()[folder])  # an attack by too many files is reverted all the same
    assert not folder.exists()
    assert files.find_unreadable() == []
