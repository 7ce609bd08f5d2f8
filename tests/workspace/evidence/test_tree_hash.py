"""The hash of a tree: equal hashes mean equal files, and looking again gives the same hash as looking anew."""

import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goose_like.workspace.evidence.folder_watch import FolderWatch
from goose_like.workspace.evidence.tree_hash import TreeHash, get_files_hash
from goose_like.workspace.repositories.ignore_check import IgnoreCheck
from goose_like.workspace.undo import trees
from goose_like.workspace.undo.trees import Trees

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

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.state = folder / "state"
        self.count = 0
        self.root.mkdir(parents=True, exist_ok=True)
        git(self.root, "init", "-q")
        self.load_first()

    def load_first(self) -> None:
        self.trees, self.hash = self.load()

    def load(self, watch: FolderWatch | None = None, checks: Sequence[IgnoreCheck] = ()) -> tuple[Trees, TreeHash]:
        """Hash the folder anew."""
        self.count += 1
        found = Trees(self.state / str(self.count), [str(self.root)], lambda folder: frozenset())
        fresh = TreeHash([self.root], found, [self.root / ".git"], lambda: list_ignored(self.root), watch, checks)
        self.begin_turn(found, fresh)
        return found, fresh

    def begin_turn(self, found: Trees, tree: TreeHash) -> None:
        ignored = frozenset(list_ignored(self.root))
        assert not found.look_before(lambda: ignored, lambda data: "stored").large
        tree.load(found.known, ignored, frozenset())

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
                case "notice":
                    (self.root / ".gitignore").unlink()
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


CHANGES_OF_FILES = ["write", "write", "remove", "link", "chmod", "move"]
ACTS = st.sampled_from([*CHANGES_OF_FILES, "ignore", "notice", "add", "commit", "status"])


CHANGES = st.lists(st.tuples(ACTS, st.sampled_from(NAMES), st.sampled_from(TEXTS)), max_size=12)


def check_changes(tree: Tree, changes: list[tuple[str, str, str]]) -> None:
    with closing(FolderWatch()) as watch, start_check(tree.root) as check:
        tree.trees, tree.hash = tree.load(watch, [check])
        check_watched_changes(tree, changes, watch)


@contextmanager
def start_check(root: Path) -> Iterator[IgnoreCheck]:
    """Check new files without a sandbox."""
    processes = []

    def serve(argv: list[str], descriptors: Mapping[int, int]) -> None:
        line = ["bash", "-c", 'exec "$@" 3>&1', "bash", *argv]
        processes.append(subprocess.Popen(line, stdin=descriptors[0], stdout=descriptors[3]))
        for descriptor in descriptors.values():
            os.close(descriptor)

    check = IgnoreCheck(str(root), serve, limit_s=60)
    assert check.find_ignored([]) is None  # the first question starts the process
    yield check
    check.stop()
    for process in processes:
        process.wait(60)


def check_watched_changes(tree: Tree, changes: list[tuple[str, str, str]], watch: FolderWatch) -> None:
    states = {tree.hash.value: tree.read_state()}
    for number, change in enumerate(changes):
        before = get_files_hash(tree.hash.value)
        tree.change(*change)
        signs = watch.take_signs()
        named = None if signs is None else tree.hash.name_signs(signs)
        tree.hash.rescan()
        is_changed = get_files_hash(tree.hash.value) != before
        assert signs != set() or not is_changed, f"no change without a sign: {changes}"
        found = tree.hash.take_changes()
        assert bool(found) == is_changed, changes
        assert named in (None, found), f"signs tell what the look tells: {changes}"
        _, fresh = tree.load()
        assert tree.hash.value == fresh.value, f"as if it was read anew: {changes}"
        state = tree.read_state()
        assert states.setdefault(tree.hash.value, state) == state
        if number % 4 == 3:
            tree.begin_turn(tree.trees, tree.hash)
            assert tree.hash.value == fresh.value, f"as if no turn had begun: {changes}"


@settings(deadline=None)
@given(CHANGES)
@example([("ignore", "", "yes"), ("write", "sub/d.log", ""), ("write", "sub/c", "")])
@example([("write", "sub/d.log", ""), ("ignore", "", "yes"), ("write", "sub/c", "")])
def test_equal_hashes_mean_an_equal_diff(changes):
    with tempfile.TemporaryDirectory() as folder:
        check_changes(Tree(Path(folder)), changes)


@pytest.fixture(scope="module")
def old_trees(tmp_path_factory):
    """Make trees with files that are old enough for git to tell all their changes, by whole seconds."""
    folder = tmp_path_factory.mktemp("old")

    def make() -> Iterator[Tree]:
        for batch in itertools.count():
            made = [folder / f"{batch}-{number}" for number in range(20)]
            for place in made:
                fill_tree(Tree(place))
            time.sleep(1.1)
            yield from map(Tree, made)

    return make()


@given(changes=CHANGES)
def test_the_hash_of_clean_files_is_that_of_all_files(old_trees, changes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "MIN_FILES", 1)
        tree = next(old_trees)
        tree.load_first()
        assert all(tree.trees.find_clean(str(tree.root / name)) for name in NAMES)
        check_changes(tree, changes)


def fill_tree(tree: Tree) -> None:
    for name in NAMES:
        tree.change("write", name, "one\n")
    tree.change("ignore", "", "")
    tree.change("add", "", "all")
    tree.change("commit", "", "")


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path)
    tree.change("write", "sub/c", "one\n")
    tree.change("add", "a", "all")
    tree.change("commit", "", "")
    tree.hash.rescan()
    return tree


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("echo two >> sub/c", ("sub/c",)),
        ("sed -i s/one/two/ sub/c", ("sub/c",)),
        ("chmod +x sub/c", ("sub/c",)),
        ("rm sub/c", ("sub/c",)),
        ("touch sub/c", ()),
        ("echo two > sub/c; echo one > sub/c", ()),
        ("echo x > build.log", ()),
        ("mkdir -p sub/__pycache__; touch sub/__pycache__/c.pyc; echo two >> sub/c", ("sub/c",)),
        ("echo x > new", ("new",)),
        ("echo x > sub/new; mktemp new_XXX.log; rm sub/c", ("sub/c", "sub/new")),
        ("ln -s c sub/link", ("sub/link",)),
        ("git init -q sub; touch sub/new", None),
        ("touch sub/.git", None),
        ("mkdir folder", None),
        ("mv sub other", None),
        ("rm sub/c; mkdir sub/c", None),
        ("echo a > .gitignore", None),
        ("git add -A", None),
        ("truncate -s 2M new", ("new",)),
        ("mkfifo new", None),
        ("touch {001..200}", tuple(f"{number:03}" for number in range(1, 201))),
        ("touch {001..201}; rm sub/c", None),
        ("truncate -s 2M sub/c", None),
        ("truncate -s 600K sub/c sub/known", None),
    ],
)
def test_signs_name_the_files_that_changed_where_they_suffice(tree, line, names):
    tree.change("ignore", "", "yes")
    (tree.root / "build.log").write_text("x")
    (tree.root / "sub/known").write_text("x")
    with closing(FolderWatch()) as watch, start_check(tree.root) as check:
        _, hashed = tree.load(watch, [check])
        subprocess.run(["bash", "-c", line], cwd=tree.root, check=True)
        signs = watch.take_signs()
        assert (None if signs is None else hashed.name_signs(signs)) == names
        hashed.rescan()
        assert names in (None, hashed.take_changes())


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


def test_a_link_in_place_of_a_folder_replaces_its_files(tree):
    (tree.root / "sub").rename(tree.root / "other")
    (tree.root / "sub").symlink_to("other")
    tree.hash.rescan()
    _, fresh = tree.load()
    assert tree.hash.value == fresh.value


def test_without_git_all_files_count(tmp_path):
    (tmp_path / "a").write_text("one")
    found = Trees(tmp_path / "state", [str(tmp_path)], lambda folder: frozenset())
    plain = TreeHash([tmp_path], found, [], lambda: ())
    found.look_before(frozenset, lambda data: "stored")
    plain.load(found.known, frozenset(), frozenset())
    before = plain.value
    assert ":" not in before
    (tmp_path / "b").write_text("two")
    plain.rescan()
    assert plain.value != before
    (tmp_path / "b").unlink()
    plain.rescan()
    assert plain.value == before
