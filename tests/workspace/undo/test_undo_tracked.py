"""Undo in git repositories: what git has is restored from git, in repositories of any size."""

import os
import shutil
import time
from pathlib import Path

import pytest

from goose_like.core.events import Answer
from goose_like.workspace.undo import snapshot as tree
from goose_like.workspace.undo import undo
from tests.workspace.undo.undo_harness import (
    UndoHarness,
    list_changes,
    open_undo,
    read_tree,
    run_git,
)

AGE_S = 0.06
"""Files that are older than this have times that can be trusted."""

YES = Answer(choice="allow", by="person")


def create_files(root: Path, count: int, **files: str) -> None:
    """Create a repository with tracked files whose index can be trusted."""
    root.mkdir(exist_ok=True)
    run_git(root, "init", "-q")
    (root / ".gitignore").write_text("*.log\n")
    for number in range(count):
        path = root / f"d{number // 10}/file{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"one {number}\n")
    for name, text in files.items():
        (root / name).write_text(text)
    commit(root)


def commit(root: Path) -> None:
    wait()
    run_git(root, "add", ".")
    run_git(root, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x")
    time.sleep(AGE_S)


def wait() -> None:
    """Wait until the times of all files can be trusted."""
    time.sleep(AGE_S)


def count_copies(place: UndoHarness) -> int:
    """Count the file contents in the undo log, without HEAD and the indexes."""
    log = (place.root.parent / "session/undo/log").read_bytes()
    return log.count(b'{"blob":') - log.count(b"refs/heads/") - log.count(b"\nDIRC")


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(tree, "LIMIT_ENTRIES", 5)
    monkeypatch.setattr(undo, "LIMIT_ENTRIES", 5)
    monkeypatch.setattr(tree, "LIMIT_FILE_BYTES", 100)
    monkeypatch.setattr(tree, "LIMIT_TREE_BYTES", 200)


SCRIPTS = {
    "changed": "sed -i s/one/two/ d*/*.txt",
    "deleted": "rm d0/*.txt",
    "a folder deleted": "rm -r d0 d1",
    "renamed": "mv d0/file1.txt d1/moved.txt; git mv d0/file2.txt d2/moved.txt",
    "a folder renamed": "mv d1 other",
    "mode changed": "chmod +x d0/file1.txt; chmod 600 d2/file21.txt; chmod 700 d1",
    "replaced by a link": "ln -sf file2.txt d0/file1.txt",
    "a link replaced": "rm link; echo text > link",
    "replaced by a folder": "rm d0/file1.txt; mkdir d0/file1.txt; echo x > d0/file1.txt/in",
    "a folder replaced by a link": "mv d1 /tmp/goose-like-undo-$$; ln -s d0 d1; rm -r /tmp/goose-like-undo-$$",
    "staged": "sed -i s/one/two/ d0/file1.txt; git add .; rm d0/file2.txt",
    "committed": "sed -i s/one/two/ d0/*; git add .; git -c user.name=n -c user.email=e commit -qm two",
    "amended": "rm -r d1; git add .; git -c user.name=n -c user.email=e commit -q --amend -m two",
    "on another branch": "git checkout -qb b; git rm -rq d1; git -c user.name=n -c user.email=e commit -qm two",
    "stashed": "echo two > d0/file1.txt; git -c user.name=n -c user.email=e stash -q; rm d0/file2.txt",
    "large": "echo > large",
    "untracked": "echo > d0/new; mkdir -p e/f; echo > e/f/new",
    "by another program": 'python3 -c \'open("d0/file1.txt", "w").write("two")\'',
    "with the same times": "cp -p d0/file1.txt saved; echo two 1 > d0/file1.txt; touch -r saved d0/file1.txt; rm saved",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_what_git_has_is_restored_beyond_the_limits(tmp_path, monkeypatch, script):
    monkeypatch.setattr(tree, "LIMIT_ENTRIES", 12)
    monkeypatch.setattr(tree, "LIMIT_FILE_BYTES", 1000)
    monkeypatch.setattr(tree, "LIMIT_TREE_BYTES", 1000)
    create_files(tmp_path / "work", 30, large="x" * 5000)
    (tmp_path / "work/link").symlink_to("large")
    commit(tmp_path / "work")
    async with open_undo(tmp_path, answer=YES) as harness:
        before, status = read_tree(harness.root), run_git(harness.root, "status", "--porcelain")
        number = await harness.turn(script)
        assert read_tree(harness.root) != before
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before
        assert run_git(harness.root, "status", "--porcelain") == status
        assert harness.logged == []


async def test_nothing_is_copied_that_git_has(tmp_path):
    create_files(tmp_path / "work", 50)
    async with open_undo(tmp_path) as harness:
        await harness.turn("true")
        assert count_copies(harness) == 0
        first = await harness.turn("sed -i s/one/two/ d0/*")
        await harness.undo.plan_restore(first)
        assert count_copies(harness) == 10
        await harness.turn("git checkout -q .")
        await harness.undo.plan_restore(first)
        assert count_copies(harness) == 10


async def test_changes_before_the_turn_are_copied(tmp_path):
    create_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        (harness.root / "d0/file1.txt").write_text("dirty")
        (harness.root / "d0/file2.txt").write_text("staged")
        run_git(harness.root, "add", "d0/file2.txt")
        (harness.root / "d0/file3.txt").write_text("staged")
        run_git(harness.root, "add", "d0/file3.txt")
        (harness.root / "d0/file3.txt").write_text("dirty too")
        (harness.root / "new.txt").write_text("untracked")
        (harness.root / "mine.log").write_text("ignored")
        run_git(harness.root, "rm", "-q", "--cached", "d0/file4.txt")
        before, status = read_tree(harness.root), run_git(harness.root, "status", "--porcelain")
        number = await harness.turn("for f in d0/* new.txt; do echo two > $f; done", "git add .; git reset -q --hard")
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before
        assert run_git(harness.root, "status", "--porcelain") == status


async def test_a_change_that_git_could_not_see(tmp_path):
    """The file has the size and the times of its index entry, but the index is as old as the file."""
    create_files(tmp_path / "work", 3)
    file, index = tmp_path / "work/d0/file1.txt", tmp_path / "work/.git/index"
    time_ns = file.stat().st_mtime_ns
    file.write_text("two 1\n")
    os.utime(file, ns=(time_ns, time_ns))
    entry, data = index.read_bytes().index(b"d0/file1.txt") - 62, bytearray(index.read_bytes())
    data[entry : entry + 8] = b"".join(part.to_bytes(4) for part in divmod(file.stat().st_ctime_ns, 10**9))
    index.write_bytes(data)
    os.utime(index, ns=(time_ns, time_ns))
    wait()
    async with open_undo(tmp_path) as harness:
        number = await harness.turn("rm d0/file1.txt")
        assert await harness.back(number) == []
        assert file.read_text() == "two 1\n"


@pytest.mark.parametrize("text", ["a\nb\n", "a\r\nb\r\n", "a\r\nb\n", ""])
async def test_line_ends_that_git_converts(tmp_path, text):
    (tmp_path / "work").mkdir()
    run_git(tmp_path / "work", "init", "-q")
    run_git(tmp_path / "work", "config", "core.autocrlf", "input" if "\nb\n" in text else "true")
    (tmp_path / "work/a.txt").write_bytes(text.encode())
    (tmp_path / "work/b.txt").write_bytes(b"other\r\n")
    commit(tmp_path / "work")
    async with open_undo(tmp_path) as harness:
        number = await harness.turn("sed -i 's/^/x/' b.txt; python3 -c 'import os; os.unlink(\"a.txt\")'")
        notes = await harness.back(number)
        assert (harness.root / "b.txt").read_bytes() == b"other\r\n"
        if text == "a\r\nb\n":  # git does not know which lines ended in which way
            assert notes == [f"{harness.root}/a.txt is left as it is: git has its former content only in another form"]
        else:
            assert notes == []
            assert (harness.root / "a.txt").read_bytes() == text.encode()
            assert (await harness.undo.plan_restore(number)).changes == ()
            run_git(harness.root, "add", ".")  # now the index names these contents
            wait()
            await harness.turn("echo x > a.txt")
            assert list_changes(await harness.undo.plan_restore(number)) == [("a.txt", "restore", False)]


async def test_filters_that_change_the_content(tmp_path):
    create_files(tmp_path / "work", 1, **{"a.txt": "plain"})
    root = tmp_path / "work"
    run_git(root, "config", "filter.rot.clean", "tr a-z b-za")
    run_git(root, "config", "filter.rot.smudge", "tr b-za a-z")
    (root / ".gitattributes").write_text("*.rot filter=rot\n*.id ident\n*.wide working-tree-encoding=UTF-16\n")
    for name in ("a.rot", "a.id", "a.wide"):
        (root / name).write_bytes(f"secret $Id$ {name}".encode("utf-16" if "wide" in name else "ascii"))
    commit(root)
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn("for f in a.*; do echo new > $f; done; echo '*.rot -filter' > .gitattributes")
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before


@pytest.mark.parametrize("is_kept", [True, False])
async def test_files_of_git_lfs(tmp_path, is_kept):
    """The filter does what git-lfs does: git has a pointer, and a folder in `.git` has the content."""
    from hashlib import sha256

    create_files(tmp_path / "work", 1)
    root, data = tmp_path / "work", os.urandom(5000)
    oid = sha256(data).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 5000\n"
    run_git(root, "config", "filter.lfs.clean", f"cat > /dev/null; printf '{pointer}'".replace("\n", "\\n"))
    (root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (root / "a.bin").write_bytes(data)
    commit(root)
    assert run_git(root, "show", ":a.bin") == pointer
    if is_kept:
        (root / ".git/lfs/objects" / oid[:2] / oid[2:4]).mkdir(parents=True)
        (root / ".git/lfs/objects" / oid[:2] / oid[2:4] / oid).write_bytes(data)
    async with open_undo(tmp_path) as harness:
        number = await harness.turn("rm a.bin")
        assert count_copies(harness) == 0
        notes = await harness.back(number)
        if is_kept:
            assert notes == []
            assert (root / "a.bin").read_bytes() == data
            assert (await harness.undo.plan_restore(number)).changes == ()
        else:
            assert notes == [f"{root}/a.bin is left as it is: git-lfs does not have its former content here"]


@pytest.mark.parametrize("version", ["2", "3", "4", "sha256"])
async def test_formats_of_the_index(tmp_path, small_limits, version):
    root = tmp_path / "work"
    root.mkdir()
    run_git(root, "init", "-q", *(["--object-format=sha256"] if version == "sha256" else []))
    if version.isdecimal():
        run_git(root, "config", "index.version", version)
    create_files(root, 30, **{"ünï cödé": "one", "x" * 200: "long"})
    if version == "3":
        run_git(root, "update-index", "--skip-worktree", "d1/file11.txt")
    run_git(root, "update-index", "--assume-unchanged", "d1/file12.txt")
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn('for f in d*/* x* ü*; do echo two > "$f"; done')
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before
        assert harness.logged == []


async def test_extensions_of_the_index(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    run_git(tmp_path / "work", "update-index", "--untracked-cache", "--fsmonitor")
    run_git(tmp_path / "work", "-c", "core.fsmonitor=true", "status")
    async with open_undo(tmp_path) as harness:
        await harness.run_and_undo("sed -i s/one/two/ d*/*")


async def test_a_sparse_checkout(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    run_git(tmp_path / "work", "sparse-checkout", "set", "--cone", "--sparse-index", "d1")
    wait()
    async with open_undo(tmp_path) as harness:
        assert not (harness.root / "d0").exists()
        await harness.run_and_undo("rm -r d1; mkdir d0; echo new > d0/file1.txt")


async def test_a_split_index_is_told(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    run_git(tmp_path / "work", "update-index", "--split-index")
    async with open_undo(tmp_path) as harness:
        await harness.turn("echo two > d0/file1.txt")
        assert harness.logged == [
            f"undo does not cover what commands do: {harness.root} has over 5 files and folders",
            f"undo can't use what git has: {harness.root} (the index is split)",
        ]


async def test_a_worktree(tmp_path, small_limits):
    create_files(tmp_path / "main", 30)
    run_git(tmp_path / "main", "worktree", "add", "-q", "-b", "other", str(tmp_path / "work"))
    wait()
    async with open_undo(tmp_path) as harness:
        await harness.run_and_undo("sed -i s/one/two/ d*/*; git add .; rm d0/*")


async def test_submodules_and_repositories_in_folders(tmp_path, small_limits):
    create_files(tmp_path / "source", 30)
    create_files(tmp_path / "work", 5)
    run_git(
        tmp_path / "work", "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(tmp_path / "source"), "sub"
    )
    commit(tmp_path / "work")
    create_files(tmp_path / "work/other", 20)
    async with open_undo(tmp_path) as harness:
        await harness.run_and_undo("sed -i s/one/two/ d*/* sub/d*/* other/d*/*; rm sub/d1/file11.txt")


async def test_a_folder_inside_a_repository(tmp_path, small_limits):
    create_files(tmp_path, 1)
    create_files(tmp_path / "work", 30)
    shutil.rmtree(tmp_path / "work/.git")
    commit(tmp_path)
    async with open_undo(tmp_path) as harness:
        await harness.run_and_undo("sed -i s/one/two/ d*/*")


async def test_many_untracked_files_are_told_and_left_alone(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        for number in range(6):
            (harness.root / f"mine{number}").write_text("mine")
        before = read_tree(harness.root)
        number = await harness.turn("sed -i s/one/two/ d*/*; rm -r d1; echo two > new; git add mine1; chmod 600 mine2")
        assert harness.logged == [
            f"undo does not cover what commands do to files that git does not track: {harness.root} has over 5 of them"
        ]
        assert await harness.back(number) == []
        (harness.root / "new").unlink()
        (harness.root / "mine2").chmod(before["mine2"][0])
        assert read_tree(harness.root) == before
        second = await harness.turn("git clean -fdq; rm d0/file1.txt")
        assert await harness.back(second) == []
        assert read_tree(harness.root) == before  # a destructive command has copies made
        assert len(harness.logged) == 1


async def test_a_turn_that_makes_many_files(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn("sed -i s/one/two/ d*/*; touch 1 2 3 4 5 6 7")
        assert await harness.back(number) == []
        assert {name: node for name, node in read_tree(harness.root).items() if not name.isdecimal()} == before
        reason = f"{harness.root} has over 5 files that git does not track"
        assert harness.logged == [f"undo can't remove the files that commands have made: {reason}"]


async def test_too_many_changed_files_are_told(tmp_path, small_limits):
    create_files(tmp_path / "work", 50)
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        first = await harness.turn("sed -i s/one/two/ d*/*")
        assert harness.logged == []
        script = "import glob; [open(name, 'w').write('three') for name in glob.glob('d*/*')]"
        second = await harness.turn(f'python3 -c "{script}"')
        plan = await harness.undo.plan_restore(second)
        assert {change.kind for change in plan.changes} == {"restore", "lost"}
        assert len(harness.logged) == 1
        assert harness.logged[0].startswith("undo does not cover what commands do to d")
        assert " (beyond 0 MB in all) and " in harness.logged[0]
        plan = await harness.undo.plan_restore(first)
        assert {(kind, is_edited) for _, kind, is_edited in list_changes(plan)} == {("restore", False)}
        assert await harness.undo.restore(plan) == []
        assert read_tree(harness.root) == before


async def test_contents_that_git_lost(tmp_path):
    create_files(tmp_path / "work", 3)
    async with open_undo(tmp_path) as harness:
        (harness.root / "d0/file1.txt").write_text("staged\n")
        run_git(harness.root, "add", ".")
        await harness.turn("true")
        number = await harness.turn("git reset -q --hard; echo two > d0/file2.txt")
        run_git(harness.root, "gc", "-q", "--prune=now")
        plan = await harness.undo.plan_restore(number)
        assert ("file1.txt", "lost", False) in list_changes(plan)
        lost, kept = (change for change in plan.changes if change.path.suffix == ".txt")
        assert await plan.format_diff(lost) == "its content was not kept"
        assert (await plan.format_diff(kept)).splitlines()[1:] == ["-two", "+one 2"]
        assert len(await harness.undo.restore(plan)) == 1
        assert (harness.root / "d0/file2.txt").read_text() == "one 2\n"


async def test_a_repository_without_git(tmp_path, monkeypatch):
    create_files(tmp_path / "work", 3)
    (tmp_path / "bin").mkdir()
    for name in ("bash", "sh", "rm"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn("echo two > d0/file1.txt; rm d0/file2.txt")
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before


async def test_a_session_that_was_killed_or_resumed(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        first = await harness.turn("sed -i s/one/two/ d0/*")
        await harness.undo.plan_restore(first)
        number = harness.begin()
        await harness.command("sed -i s/one/three/ d1/*")
        log = (tmp_path / "session/undo/log").read_bytes()
    (tmp_path / "session/undo/log").write_bytes(log)
    async with open_undo(tmp_path, harness.history) as resumed:
        plan = await resumed.undo.plan_restore(number)
        assert {(kind, is_edited) for _, kind, is_edited in list_changes(plan)} == {("restore", True)}
        plan = await resumed.undo.plan_restore(first)
        assert await resumed.undo.restore(plan, frozenset(change.path for change in plan.changes)) == []
        assert read_tree(resumed.root) == before


async def test_going_back_can_be_undone_with_contents_of_git(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        first = await harness.turn("sed -i s/one/two/ d0/*; rm -r d1")
        after = read_tree(harness.root)
        await harness.turn("true")
        assert await harness.back(first) == []
        last = await harness.turn("git checkout -q .")
        assert await harness.back(last - 1) == []
        assert read_tree(harness.root) == after


async def test_more_files_than_the_limit_and_than_a_batch_of_git(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "LIMIT_ENTRIES", 1000)
    root = tmp_path / "work"
    for number in range(24):
        (root / f"d{number}").mkdir(parents=True)
        for name in range(100):
            (root / f"d{number}/{name}").write_bytes(b"one")
    run_git(root, "init", "-q")
    commit(root)
    async with open_undo(tmp_path) as harness:
        number = await harness.turn("sed -i s/one/two/ d1?/*; rm -r d2*")
        assert len((await harness.undo.plan_restore(number)).changes) == 1000 + 5 * 101
        assert await harness.back(number) == []
        assert run_git(root, "diff", "--name-only") == ""
        assert count_copies(harness) == 1
        assert harness.logged == []


async def test_a_link_in_place_of_a_tracked_folder_leads_nowhere(tmp_path, small_limits):
    create_files(tmp_path / "work", 30)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file11.txt").write_text("outside")
    async with open_undo(tmp_path) as harness:
        for number in range(6):
            (harness.root / f"mine{number}").write_text("mine")
        number = await harness.turn("rm -r d1; ln -s ../outside d1; echo two > d1/file11.txt")
        assert await harness.back(number) == []
        assert (harness.root / "d1/file11.txt").read_text() == "one 11\n"
        assert (tmp_path / "outside/file11.txt").read_text() == "two\n"
