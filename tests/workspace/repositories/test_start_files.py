"""Start files: changes are found by content, and reverted without following links."""

import os
from pathlib import Path

import pytest

from goose_like.workspace.repositories.file_copy import AcceptedFiles, FileCopy, FileEdit
from goose_like.workspace.repositories.scanner import RepositoryScanner
from goose_like.workspace.repositories.start_files import (
    find_start_place,
    is_ci_file,
    is_harmless_module_list,
    is_in_packages,
    list_absent_paths,
    list_start_files,
)
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


def test_rules_of_paths_that_do_not_exist_are_watched(root: Path) -> None:
    rules = Rules({root: "write", root / ".husky": "protected", root / "absent": "protected"}, root / "tmp")
    assert set(list_absent_paths(rules, [root])) == {root / ".husky", root / "absent"}
    (root / ".husky").mkdir()
    assert list_absent_paths(rules, [root]) == [root / "absent"]
    assert list_absent_paths(rules, [root / "below"]) == []


NAMES = (
    *(".vimrc", ".exrc", "lefthook.yaml", "lefthook-local.toml", ".lefthook.json", ".dir-locals-2.el", ".mcp.json"),
    *("mise.local.toml", ".mise.production.local.toml", ".helix", ".Rprofile", ".pdbrc", ".pnpmfile.cjs", ".npmrc"),
    *(".yarnrc.yml", ".agents", ".claude", "a.code-workspace", ".goose-like/commands", ".cargo/config.toml"),
    *(".config/mise", ".yarn/releases", ".jj/repo/config.toml", ".github/workflows", ".gitlab-ci.yml", "Jenkinsfile"),
)
OTHERS = (
    "README.md",
    "src",
    "commands",
    "config.toml",
    "workflows",
    "vimrc",
    ".gitignore",
    ".github/CODEOWNERS",
    ".env",
)


@pytest.mark.parametrize("folder", [".", "sub", "a/b/c"])
def test_a_search_finds_start_files_at_any_depth(root: Path, folder: str) -> None:
    for name in (*NAMES, *OTHERS):
        (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
        (root / folder / name).touch()
    scanner = RepositoryScanner([root])
    scanner.scan()
    assert scanner.start_files == {root / folder / name for name in NAMES}


def test_start_files_near_the_top_are_found_without_a_scan(root: Path) -> None:
    scanner = RepositoryScanner([root])
    scanner.scan()
    (root / "sub").mkdir()
    for name in (*NAMES, "sub/.envrc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    assert set(scanner.list_top_start_files()) == {root / name for name in NAMES}
    assert scanner.start_files == set()


@pytest.mark.parametrize("name", [name for name in NAMES if not is_ci_file(Path("/x", name))])
def test_a_path_belongs_to_the_start_file_above(root: Path, name: str) -> None:
    place = root / "sub" / name
    assert find_start_place(place) == place
    assert find_start_place(place / "a/b") == place


def test_working_trees_below_a_start_file_are_no_part_of_it(root: Path) -> None:
    tree = root / ".claude/worktrees/one"
    tree.mkdir(parents=True)
    (tree / "a.py").touch()
    (root / ".claude/settings.json").touch()
    (root / ".claude/skills/worktrees").mkdir(parents=True)
    (root / ".claude/skills/worktrees/run.sh").touch()
    found = list_start_files(root / ".claude", [root])
    assert sorted(found) == [root / ".claude/settings.json", root / ".claude/skills/worktrees/run.sh"]
    assert find_start_place(tree / "a.py") is None
    assert find_start_place(tree / ".envrc") == tree / ".envrc"


def test_targets_of_links_count(root: Path, tmp_path: Path) -> None:
    (root / "shared").mkdir()
    (root / "shared/run.sh").touch()
    (root / ".claude").mkdir()
    (root / ".claude/skills").symlink_to("../shared")
    (root / ".claude/around").symlink_to("..")
    (root / ".claude/elsewhere").symlink_to(tmp_path)
    found = list_start_files(root / ".claude", [root])
    assert root / "shared/run.sh" in found
    assert len(found) == 4


def test_folders_of_packages_are_left_out(root: Path) -> None:
    assert is_in_packages(root / "node_modules/a/.vscode", [root])
    assert not is_in_packages(root / ".vscode", [root])
    assert not is_in_packages(root / "node_modules/a/.vscode", [root / "node_modules/a"])


@pytest.mark.parametrize(
    ("text", "is_harmless"),
    [
        ('[submodule "a"]\n\tpath = a\n\turl = ../a\n\tbranch = main\n', True),
        ('[submodule "a"]\n\tpath = a\n\turl = ext::sh -c evil\n', False),
        ('[submodule "a"]\n\tpath = a\n\turl = --upload-pack=evil\n', False),
        ('[submodule "a"]\n\tupdate = !evil\n', False),
        ("[core]\n\tfsmonitor = evil\n", False),
        ("broken", False),
    ],
)
def test_a_usual_list_of_submodules_is_harmless(root: Path, text: str, is_harmless: bool) -> None:
    copy = FileCopy(0o100644, text.encode())
    assert is_harmless_module_list(root / ".gitmodules", copy) is is_harmless
    assert not is_harmless_module_list(root / ".envrc", copy)
