"""The hash of a tree: equal hashes mean equal files, and looking again gives the same hash as looking anew."""

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goose_like.workspace.evidence.tree_hash import TreeHash, get_files_hash
from goose_like.workspace.undo.snapshot import take_snapshot
from goose_like.workspace.undo.tracked import TrackedFiles

NAMES = ["a", "b.log", "sub/c", "sub/d.log", "e"]
TEXTS = ["", "one\n", "two\n", "one\ntwo\n"]


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def list_ignored(root: Path) -> set[str]:
    out = git(root, "ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z")
    return {str(root / name.rstrip("/")) for name in out.split("\0") if name}


class Tree:
    """A repository with a hash that follows its changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        git(root, "init", "-q")
        self.hash = self.load()

    def load(self) -> TreeHash:
        """Hash the folder anew."""
        tracked = TrackedFiles(self.root, lambda folder: frozenset())
        ignored = list_ignored(self.root)
        snapshot, is_complete = take_snapshot(self.root, ignored, lambda data: "stored", {}, tracked)
        assert is_complete
        fresh = TreeHash([self.root], [self.root / ".git"], lambda: list_ignored(self.root))
        fresh.load(snapshot, ignored, frozenset())
        return fresh

    def change(self, act: str, name: str, text: str) -> None:
        file = self.root / name
        with suppress(OSError, subprocess.CalledProcessError):
            match act:
                case "write":
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text)
                case "remove":
                    file.unlink()
                case "link":
                    file.unlink(missing_ok=True)
                    file.symlink_to(text or "nowhere")
                case "chmod":
                    file.chmod(0o755 if text else 0o644)
                case "ignore":
                    (self.root / ".gitignore").write_text("*.log\n" if text else "")
                case "move":
                    os.rename(file.parent if "/" in name else file, self.root / "moved")
                case "add":
                    git(self.root, "add", "-A" if text else "--", *([] if text else [name]))
                case "commit":
                    git(self.root, "commit", "-qm", "x")
                case "status":
                    git(self.root, "status")

    def read_state(self) -> str:
        """Return all that `git diff` shows, with the contents of untracked files."""
        names = git(self.root, "ls-files", "-o", "--exclude-standard", "-z").split("\0")
        untracked = []
        for name in filter(None, names):
            file = self.root / name
            content = os.readlink(file) if file.is_symlink() else file.read_text()
            untracked.append((name, content, os.access(file, os.X_OK)))
        return git(self.root, "diff") + repr(sorted(untracked)) + git(self.root, "ls-files", "-s")


ACTS = st.sampled_from(["write", "write", "remove", "link", "chmod", "ignore", "move", "add", "commit", "status"])


@settings(deadline=None)
@given(st.lists(st.tuples(ACTS, st.sampled_from(NAMES), st.sampled_from(TEXTS)), max_size=12))
def test_equal_hashes_mean_an_equal_diff(changes):
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        states = {tree.hash.value: tree.read_state()}
        for change in changes:
            tree.change(*change)
            tree.hash.rescan()
            assert tree.hash.value == tree.load().value, f"as if it was read anew: {changes}"
            state = tree.read_state()
            assert states.setdefault(tree.hash.value, state) == state


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path)
    tree.change("write", "sub/c", "one\n")
    tree.change("add", "a", "all")
    tree.change("commit", "", "")
    tree.hash.rescan()
    return tree


def test_what_goes_back_has_the_hash_of_before(tree):
    before = tree.hash.value
    for change in (("write", "sub/c", "two\n"), ("write", "new", "x"), ("remove", "sub/c", ""), ("link", "sub/c", "x")):
        tree.change(*change)
        tree.hash.rescan()
        assert get_files_hash(tree.hash.value) != get_files_hash(before)
        tree.change("remove", "new", "")
        tree.change("remove", "sub/c", "")
        tree.change("write", "sub/c", "one\n")
        tree.hash.rescan()
        assert tree.hash.value == before


def test_caches_and_ignored_files_do_not_count_and_a_commit_leaves_the_files(tree):
    tree.change("ignore", "", "yes")
    tree.hash.rescan()
    before = tree.hash.value
    for name in ("__pycache__/x.pyc", ".pytest_cache/v/x", "sub/__pycache__/y.pyc", "test.log", "sub/x.log"):
        tree.change("write", name, "x")
    tree.hash.rescan()
    assert tree.hash.value == before
    tree.change("add", "", "all")
    tree.hash.rescan()
    assert tree.hash.value != before
    assert get_files_hash(tree.hash.value) == get_files_hash(before)
    tree.change("commit", "", "")
    tree.hash.rescan()
    assert get_files_hash(tree.hash.value) == get_files_hash(before)


def test_a_link_in_place_of_a_folder_replaces_its_files(tree, tmp_path):
    (tmp_path / "sub").rename(tmp_path / "other")
    (tmp_path / "sub").symlink_to("other")
    tree.hash.rescan()
    assert tree.hash.value == tree.load().value


def test_without_git_all_files_count(tmp_path):
    (tmp_path / "a").write_text("one")
    plain = TreeHash([tmp_path], [], lambda: ())
    snapshot, _ = take_snapshot(tmp_path, (), lambda data: "stored", {})
    plain.load(snapshot, (), frozenset())
    before = plain.value
    assert ":" not in before
    (tmp_path / "b").write_text("two")
    plain.rescan()
    assert plain.value != before
    (tmp_path / "b").unlink()
    plain.rescan()
    assert plain.value == before
