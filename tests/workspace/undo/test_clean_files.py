"""Undo with clean files: what git saw long ago is kept as a list, and git tells what has changed."""

import asyncio
import os
import shutil
import struct
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from goose_like.core.notifier import Recorder
from goose_like.workspace.repositories.git_index import GitIndex, format_index
from goose_like.workspace.undo import snapshot, trees, undo
from goose_like.workspace.undo.clean_files import CleanFiles, CleanSearch, write_index
from goose_like.workspace.undo.contents import Contents
from goose_like.workspace.undo.log import UndoLog
from goose_like.workspace.undo.restore import FileChange, restore_files
from goose_like.workspace.undo.state import FileState
from goose_like.workspace.undo.tracked import TrackedFiles
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace
from tests.fakes import ExchangeHarness, FakeToolkit, call, calls
from tests.workspace.undo.test_undo_tracked import SCRIPTS, YES, commit, count_copies, create_files
from tests.workspace.undo.undo_harness import UndoHarness, open_undo, read_tree, run_git

AGE_S = 1.1
"""Files that are older than this have times that git can trust, which compares whole seconds."""


@pytest.fixture(autouse=True)
def few_files(monkeypatch):
    monkeypatch.setattr(trees, "MIN_FILES", 1)


def create_old_files(root: Path, count: int, **files: str) -> None:
    create_files(root, count, **files)
    grow_old()


def grow_old() -> None:
    time.sleep(AGE_S)


def is_clean(harness: UndoHarness, name: str) -> bool:
    return harness.undo._trees.find_clean(str(harness.root / name)) is not None


async def test_each_change_of_clean_files_is_undone(tmp_path):
    for number in range(len(SCRIPTS)):
        root = tmp_path / str(number) / "work"
        root.parent.mkdir()
        create_files(root, 30, large="x" * 5000)
        (root / "d2/file22.txt").chmod(0o600)
        (root / "d2/file23.txt").chmod(0o755)
        (root / "link").symlink_to("large")
        commit(root)
    grow_old()
    for number, script in enumerate(SCRIPTS.values()):
        async with open_undo(tmp_path / str(number), answer=YES) as harness:
            before, status = read_tree(harness.root), run_git(harness.root, "status", "--porcelain")
            first = await harness.turn(script)
            assert read_tree(harness.root) != before, script
            second = await harness.turn("rm -f d2/file22.txt; echo more >> d2/file23.txt; mkdir -p x/y; touch x/z")
            assert is_clean(harness, ".gitignore"), script
            assert await harness.back(second) == [], script
            assert await harness.back(first) == [], script
            assert read_tree(harness.root) == before, script
            assert run_git(harness.root, "status", "--porcelain") == status, script
            assert harness.logged == [], script


@pytest.mark.parametrize("writer", ["a tool", "a person", "nobody"])
async def test_what_git_ignores_is_listed_at_the_start_of_a_turn(tmp_path, writer):
    root = tmp_path / "work"
    create_old_files(root, 30)
    (root / "a.log").write_text("mine")
    async with open_undo(tmp_path) as harness:
        harness.undo.prepare()
        await harness.turn("true")
        if writer == "a person":
            (root / ".gitignore").write_text("")
        before = read_tree(root)
        number = harness.begin()
        harness.undo.start_turn()
        await harness.undo._queue(lambda: None)
        listed = harness.undo._listed_ahead
        assert listed
        assert (str(root / "a.log") in await asyncio.to_thread(listed)) == (writer != "a person")
        if writer == "a tool":
            await harness.workspace.write_bytes(".gitignore", b"")
        await harness.command("python3 -c 'import os; os.unlink(\"a.log\")'; echo two > d0/file1.txt")
        harness.end()
        assert await harness.back(number) == []
        if writer == "nobody":
            del before["a.log"]
        assert read_tree(root) == before


@pytest.mark.parametrize("who", ["a client", "a hook", "the model"])
async def test_each_turn_begins_with_what_git_ignores_then(tmp_path, who):
    """The look before the first turn, and a turn without a command, are followed by hours."""
    root = tmp_path / "work"
    create_old_files(root, 30)
    (root / "a.log").write_text("mine")
    hooks = FakeToolkit()
    async with Workspace(root, mode="full", approval="auto", notifier=Recorder()) as workspace:

        async def remove() -> str:
            process = await workspace.spawn(["python3", "-c", "import os; os.unlink('a.log')"])
            assert await process.wait() == 0
            return "removed"

        async def think() -> str:
            await undo._queue(lambda: None)
            assert undo._listed_ahead
            await asyncio.to_thread(undo._listed_ahead)
            return "git has listed what it ignores"

        script = [calls(call("think")), "Hello.", calls(call("remove")), "Removed."]
        harness = ExchangeHarness(script, remove, think, folder=tmp_path, workspace=workspace, toolkits=[hooks])
        history = harness.session.history
        undo = Undo(tmp_path / "undo", workspace.folders, history, workspace.run_internal, harness.journal)
        workspace.add_change_listener(undo.on_change)
        exchange = replace(harness.exchange, undo=undo)
        undo.prepare()
        assert await undo.list_turn_changes() == {}
        await exchange.reply("Think.")
        assert harness.outputs == ["git has listed what it ignores"]
        (root / ".gitignore").write_text("")
        if who == "a hook":
            hooks.on_turn_start = remove
        if who == "a client":
            await exchange.run_calls("a client calls remove", [call("remove")])
        else:
            await exchange.reply("Remove it.")
        assert [change.path.name for change in (await undo.plan_restore(2)).changes] == ["a.log"]
        await undo.close()


async def test_a_look_before_the_first_turn(tmp_path):
    root = tmp_path / "work"
    create_old_files(root, 30)
    async with open_undo(tmp_path) as harness:
        harness.undo.prepare()
        assert await harness.undo.list_turn_changes() == {}, "this waits for the look"
        assert is_clean(harness, "d0/file1.txt")
        (tree,) = harness.undo._trees.watched
        assert tree.listings[str(root / "d0")].names == []
        (root / "d0/file2.txt").write_text("a person's")
        (root / "d0/file3.txt").unlink()
        (root / "d0/new.txt").touch()
        before = read_tree(root)
        number = await harness.turn("sed -i s/one/two/ d0/*; rm -r d1 d0/new.txt; touch d0/file3.txt")
        assert is_clean(harness, "d2/file21.txt")
        assert not is_clean(harness, "d0/file2.txt")
        assert await harness.back(number) == []
        assert read_tree(root) == before
    assert list((tmp_path / "session/undo").glob("clean-*")) == [], "nobody needs the list any more"


async def test_a_look_before_the_first_turn_that_comes_too_late(tmp_path):
    root = tmp_path / "work"
    create_old_files(root, 30)
    before = read_tree(root)
    async with open_undo(tmp_path) as harness:
        number = harness.begin()
        await harness.command("rm -r d1; echo two > d0/file1.txt")
        harness.undo.prepare()
        await harness.command("echo three > d0/file2.txt")
        harness.end()
        assert await harness.back(number) == []
        assert read_tree(root) == before


async def test_a_small_repository_is_not_looked_at_before_a_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "MIN_FILES", 100)
    create_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        harness.undo.prepare()
    assert not (tmp_path / "session").exists()


async def test_a_session_that_was_killed(tmp_path):
    create_old_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        first = await harness.turn("sed -i s/one/two/ d0/*")
        number = harness.begin()
        await harness.command("sed -i s/one/three/ d1/*; rm -r d2; chmod 600 d0/file1.txt")
        log = (tmp_path / "session/undo/log").read_bytes()
    (tmp_path / "session/undo/log").write_bytes(log)
    async with open_undo(tmp_path, harness.history) as resumed:
        plan = await resumed.undo.plan_restore(number)
        assert len(plan.changes) == 10 + 11 + 1
        assert {change.is_edited for change in plan.changes} == {True}
        plan = await resumed.undo.plan_restore(first)
        assert await resumed.undo.restore(plan, frozenset(change.path for change in plan.changes)) == []
        assert read_tree(resumed.root) == before
        last = await resumed.turn("rm -r d1")
        assert await resumed.back(last) == []
        assert read_tree(resumed.root) == before
        assert len(list((tmp_path / "session/undo").glob("clean-*"))) == 1


async def test_a_list_that_is_lost_turns_undo_off(tmp_path):
    create_old_files(tmp_path / "work", 3)
    async with open_undo(tmp_path) as harness:
        harness.begin()
        await harness.command("rm d0/file1.txt")
        log = (tmp_path / "session/undo/log").read_bytes()
    (tmp_path / "session/undo/log").write_bytes(log)
    for file in (tmp_path / "session/undo").glob("clean-*"):
        file.unlink()
    async with open_undo(tmp_path, harness.history) as resumed:
        await resumed.turn("echo two > d0/file2.txt")
        assert len(resumed.logged) == 1
        assert resumed.logged[0].startswith("undo is off from here on")


async def test_files_in_other_states_are_no_clean_files(tmp_path):
    root = tmp_path / "work"
    create_files(root, 9, attributes="*.rot filter=rot\n", secret="one")
    (root / "attributes").rename(root / ".gitattributes")
    (root / "x.rot").write_text("one")
    run_git(root, "config", "filter.rot.clean", "touch ran; cat")
    commit(root)
    run_git(root, "update-index", "--assume-unchanged", "d0/file1.txt")
    run_git(root, "update-index", "--skip-worktree", "d0/file2.txt", "d0/file3.txt")
    (root / "d0/file3.txt").unlink()
    (root / "d0/file4.txt").write_text("two")
    (root / "d0/file5.txt").unlink()
    (root / "secret").chmod(0o600)
    run_git(root, "-c", "filter.rot.clean=cat", "add", "secret")
    shutil.move(root / "d0/file6.txt", root / "moved")
    grow_old()
    (root / "d0/file7.txt").touch()
    (root / "ran").unlink()
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn("rm -rf d0 secret x.rot; mkdir d0; echo new > d0/file3.txt")
        clean = [name for name in before if is_clean(harness, name)]
        files = [f"d0/file{number}.txt" for number in (0, 1, 2, 8)]
        assert sorted(clean) == [".gitattributes", ".gitignore", *files, "secret"]
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before
        assert not (root / "ran").exists()


@pytest.mark.parametrize("version", ["2", "4"])
async def test_formats_of_the_index(tmp_path, version):
    root = tmp_path / "work"
    root.mkdir()
    run_git(root, "init", "-q")
    run_git(root, "config", "index.version", version)
    create_files(root, 30, **{"ünï cödé": "one", "x" * 200: "long", "with\nline": "one"})
    (root / os.fsdecode(b"\xff\xfe")).write_text("bytes")
    commit(root)
    grow_old()
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn('for f in *; do test -d "$f" || echo two > "$f"; done; rm d1/*')
        assert is_clean(harness, os.fsdecode(b"\xff\xfe"))
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before
        assert harness.logged == []


async def test_a_folder_inside_a_repository_with_others_inside(tmp_path):
    create_files(tmp_path, 1)
    create_files(tmp_path / "work", 30)
    shutil.rmtree(tmp_path / "work/.git")
    commit(tmp_path)
    create_files(tmp_path / "work/other", 5)
    grow_old()
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn("sed -i s/one/two/ d*/* other/d*/*; rm -r d2")
        assert is_clean(harness, "d0/file1.txt")
        assert not is_clean(harness, "../.gitignore")
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before


async def test_many_untracked_files(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "LIMIT_ENTRIES", 5)
    monkeypatch.setattr(undo, "LIMIT_ENTRIES", 5)
    create_old_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        for number in range(6):
            (harness.root / f"mine{number}").write_text("mine")
        before = read_tree(harness.root)
        number = await harness.turn("sed -i s/one/two/ d*/*; rm -r d1; echo two > new; git add mine1")
        assert len(harness.logged) == 1
        assert await harness.back(number) == []
        (harness.root / "new").unlink()
        assert read_tree(harness.root) == before


async def test_a_checkout_of_many_files_makes_a_new_list(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "_MAX_IN_GIT", 10)
    create_old_files(tmp_path / "work", 30)
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        first = await harness.turn(
            "sed -i s/one/two/ d*/*; git add .; git -c user.name=n -c user.email=e commit -qm two; sleep 1.1"
        )
        assert not is_clean(harness, "d0/file1.txt") or harness.undo._ended_turn == first
        second = await harness.turn("rm -r d1")
        assert is_clean(harness, "d0/file1.txt")
        assert count_copies(harness) == 0
        assert await harness.back(second) == []
        assert await harness.back(first) == []
        assert read_tree(harness.root) == before


async def test_links_in_place_of_folders_lead_nowhere(tmp_path):
    create_files(tmp_path / "work", 30)
    shutil.move(tmp_path / "work/d1", tmp_path / "work/moved")
    (tmp_path / "work/d1").symlink_to("moved")
    grow_old()
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn("echo two > d1/file11.txt; mv d2 far; ln -s far d2")
        assert not is_clean(harness, "d1/file12.txt")
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before


async def test_files_of_goose_like_itself_do_not_count(tmp_path, monkeypatch):
    create_files(tmp_path / "work", 3)
    state = tmp_path / "work/state"
    state.mkdir()
    create_files(state / "inner", 1)
    shutil.rmtree(state / "inner/.git")
    commit(tmp_path / "work")
    grow_old()
    monkeypatch.setattr(undo, "state_folder", lambda: state)
    async with open_undo(tmp_path) as harness:
        write = "python3 -c 'import sys; [open(name, \"w\") for name in sys.argv[1:]]'"
        number = await harness.turn(f"{write} state/inner/d0/file0.txt d0/file0.txt")
        assert is_clean(harness, "d0/file1.txt")
        plan = await harness.undo.plan_restore(number)
        assert [change.path for change in plan.changes] == [harness.root / "d0/file0.txt"]


def test_git_sees_nothing_of_the_repository_but_its_files(tmp_path, monkeypatch):
    """Settings, attributes and variables could name programs."""
    root = tmp_path / "work"
    create_files(root, 5)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    (root / ".gitattributes").write_text("* filter=rot diff=rot\n")
    settings = ["filter.rot.clean", "filter.rot.process", "diff.rot.textconv", "diff.external", "core.fsmonitor"]
    repository = TrackedFiles(root, lambda folder: frozenset()).load()[0]
    grow_old()
    search = CleanSearch(str(root), repository)
    search.run()
    (tmp_path / "state").mkdir()
    write_index(tmp_path / "state/clean", [search.entries], search.count)
    clean = CleanFiles(tmp_path / "state/clean", str(root), [root])
    for name in (*settings, "core.pager", "core.hooksPath"):
        run_git(root, "config", name, str(program))
    subprocess.run(["git", "config", "--global", "core.fsmonitor", str(program)], check=True)
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor'='{program}'")
    for number in range(3):
        (root / f"d0/file{number}.txt").write_text(f"two {number}\n")
    os.utime(root / "d0/file3.txt", (0xFFFFFFFF, 0xFFFFFFFF))
    (root / "d0/file4.txt").unlink()
    found = {os.path.basename(path): exists for path, exists in clean.start_search().read().items()}
    assert found == {f"file{number}.txt": number < 4 for number in range(5)}
    assert not ran.exists()


def forge_entry(root: Path, name: str, data: bytes) -> bytes:
    """Make an index entry of a file that claims another content for it, and a wrong owner."""
    status = (root / name).lstat()
    blob = run_git_with(root, data, "hash-object", "-w", "--stdin")
    times = (*divmod(status.st_ctime_ns, 10**9), *divmod(status.st_mtime_ns, 10**9))
    low_bits = 0xFFFFFFFF
    facts = (status.st_dev & low_bits, status.st_ino & low_bits, 0o100644, 4711, 4711, status.st_size)
    entry = struct.pack(">10I20sH", *times, *facts, bytes.fromhex(blob), len(name)) + name.encode()
    return entry + bytes(8 - len(entry) % 8)


def run_git_with(root: Path, data: bytes, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], input=data, check=True, capture_output=True)
    return done.stdout.decode().strip()


def forge_index(root: Path, name: str, data: bytes) -> bytes:
    """Put a forged entry into the index of a repository. Return the true index."""
    index = root / ".git/index"
    truth = index.read_bytes()
    entries = GitIndex(truth)
    names = [entry for entry, _ in entries]
    parts = {entry: b"".join(entries.copy_without([other for other in names if other != entry])) for entry in names}
    parts[name.encode()] = forge_entry(root, name, data)
    index.write_bytes(b"".join(format_index([parts[entry] for entry in sorted(parts)], len(parts))))
    return truth


@pytest.mark.parametrize("name", [".git/config", "sub/.git/config", "d0/file1.txt"])
async def test_undo_writes_no_content_that_a_command_made_up(tmp_path, name):
    """The file may be one that no command can write."""
    root = tmp_path / "work"
    create_files(root, 30)
    create_files(root / "sub", 1)
    grow_old()
    true_data = (root / name).read_bytes()
    forged_data = b"x" * len(true_data)
    async with open_undo(tmp_path) as harness:
        truth = forge_index(root, name, forged_data)
        number = harness.begin()
        await harness.command("echo two > d1/file11.txt")
        (root / ".git/index").write_bytes(truth)
        harness.end()
        assert is_clean(harness, "d0/file2.txt")
        plan = await harness.undo.plan_restore(number)
        assert name not in [str(change.path.relative_to(root)) for change in plan.changes]
        assert await harness.undo.restore(plan, frozenset(change.path for change in plan.changes)) == []
        assert (root / name).read_bytes() == true_data
        assert (root / "d1/file11.txt").read_text() == "one 11\n"


@pytest.mark.parametrize("name", [".git/config", "sub/.GIT/hooks/pre-commit"])
def test_no_content_of_git_goes_into_a_repository_itself(tmp_path, name):
    """A session of a former version may have recorded such a change."""
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    now = FileState(file.lstat().st_mode, "now")
    change = FileChange(file, False, now, FileState(now.mode, f"git:{'0' * 40}:4"))
    log = UndoLog(tmp_path / "log", 1000)
    notes = restore_files([change], Contents(log, lambda words: b""), lambda path, *expected: now)
    log.close()
    assert notes == [f"{file} is left as it is: git has no files of a repository itself"]
    assert file.read_text() == "mine"


def test_names_of_an_index_lead_out_of_no_folder(tmp_path):
    root = tmp_path / "work"
    create_files(root, 3)
    outside = "d0/../../outside"
    (tmp_path / "outside").write_text("mine")
    grow_old()
    forge_index(root, outside, b"evil")
    repository = TrackedFiles(root, lambda folder: frozenset()).load()[0]
    search = CleanSearch(str(root), repository)
    search.run()
    names = [f"d0/file{number}.txt" for number in range(3)]
    assert search.count == len([".gitignore", *names])


def test_git_is_believed_no_name_of_a_repository_itself(tmp_path):
    """A list of a former version may hold such names."""
    root = tmp_path / "work"
    create_files(root, 1)
    (tmp_path / "state").mkdir()
    parts = [forge_entry(root, ".git/config", b"evil"), forge_entry(root, "d0/file0.txt", b"evil")]
    write_index(tmp_path / "state/clean", parts, len(parts))
    clean = CleanFiles(tmp_path / "state/clean", str(root), [root])
    assert clean.start_search().read() == {str(root / "d0/file0.txt"): True}


def test_a_list_that_is_cut_cannot_be_read(tmp_path):
    create_files(tmp_path, 1)
    list_file = tmp_path / "clean"
    write_index(list_file, [forge_entry(tmp_path, "d0/file0.txt", b"one")], 1)
    data = list_file.read_bytes()
    for end in (0, 1, 11, 12, 40, 74, 80):
        list_file.write_bytes(data[:end])
        with pytest.raises(OSError, match="can't be read"):
            CleanFiles(list_file, str(tmp_path), [])
