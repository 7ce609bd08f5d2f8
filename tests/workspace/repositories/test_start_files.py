"""Start files: changes are found by content, and reverted without following links."""

import os
from pathlib import Path

from goose_like.workspace.repositories.file_copy import AcceptedFiles, FileEdit
from goose_like.workspace.repositories.start_files import list_start_files, list_watched_paths
from goose_like.workspace.sandbox.path_rules import Rules


class Watch:
    """Watched paths, and the files there when the test began."""

    def __init__(self, *paths: Path) -> None:
        self.paths = paths
        self.files = AcceptedFiles()
        for path, edits in self.find_edits().items():
            for edit in edits:
                self.files.accept(path, edit)

    def find_edits(self) -> dict[Path, list[FileEdit]]:
        found = {path: self.files.find_edits(path, list_start_files(path)) for path in self.paths}
        return {path: edits for path, edits in found.items() if edits}

    def revert(self) -> None:
        for path, edits in self.find_edits().items():
            for edit in edits:
                self.files.revert(path, edit, edit.old, ())
        assert self.find_edits() == {}


def test_only_changes_of_content_and_mode_are_found(root: Path) -> None:
    (root / ".vscode").mkdir()
    file = root / ".vscode/tasks.json"
    file.write_text("mine")
    watch = Watch(root / ".vscode", root / ".envrc", root / ".claude/commands")
    os.utime(file)
    assert watch.find_edits() == {}
    file.write_text("evil")
    (root / ".claude/commands").mkdir(parents=True)
    (root / ".claude/commands/a.md").write_text("evil")
    (root / ".envrc").symlink_to("elsewhere")
    assert set(watch.find_edits()) == set(watch.paths)
    watch.revert()
    assert file.read_text() == "mine"
    assert not (root / ".envrc").is_symlink()
    file.unlink()
    watch.revert()
    assert file.read_text() == "mine"


def test_a_file_that_comes_and_goes_is_found_each_time(root: Path) -> None:
    watch = Watch(root / ".envrc")
    for _ in range(3):
        (root / ".envrc").write_text("evil")
        assert len(watch.find_edits()) == 1
        (root / ".envrc").unlink()
        assert watch.find_edits() == {}


def test_an_attack_by_too_many_files_is_reverted_all_the_same(root: Path) -> None:
    folder = root / ".idea"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    watch = Watch(folder)
    for number in range(600):
        (folder / str(number)).write_text("x")
    watch.revert()
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_only_paths_that_commands_can_write_are_watched(root: Path) -> None:
    (root / "dotfiles").mkdir()
    (root / ".claude").symlink_to("dotfiles")
    rules = Rules({root: "write", root / ".husky": "protected", root / "absent": "protected"}, root / "tmp")
    watched = list_watched_paths([root], rules, [root])
    assert {root / ".envrc", root / "absent", root / ".claude", root / "dotfiles/settings.json"} <= set(watched)
    assert {root / ".claude/settings.json", root / ".vscode"} & set(watched) == {root / ".vscode"}
    assert list_watched_paths([root], rules, [root / "below"])[0] != root / "absent"
