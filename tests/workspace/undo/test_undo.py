"""Undo: a restore brings back the exact files before a turn, and keeps edits of other people."""

import asyncio
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Profile
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.sessions.session import Session
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace
from tests.workspace.undo.undo_harness import (
    Tree,
    UndoHarness,
    create_repository,
    exclude_paths,
    list_changes,
    open_undo,
    read_tree,
    run_git,
)

EDITS: dict[str, Callable[[Path, Path], object]] = {
    "write": lambda a, b: a.write_bytes(os.fsencode(b.name) * 3),
    "append": lambda a, b: a.open("ab").write(b"more"),
    "delete": lambda a, b: a.unlink(),
    "rename": lambda a, b: a.rename(b),
    "chmod": lambda a, b: a.chmod(0o750 if a.is_dir() else 0o604),
    "close": lambda a, b: a.chmod(0o500),
    "link": lambda a, b: a.symlink_to(b.name),
    "folder": lambda a, b: (a / "x").mkdir(parents=True),
    "no folder": lambda a, b: a.rmdir(),
    "no tree": lambda a, b: shutil.rmtree(a),
    "replace": lambda a, b: (b.write_bytes(b"new"), b.rename(a)),
}
UNREAD = (".git", "many")
NAMES = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "ünï", os.fsdecode(b"\xff\xfe")]


EDIT = st.tuples(st.booleans(), st.sampled_from(sorted(EDITS)), st.sampled_from(NAMES), st.sampled_from(NAMES))


Turns = list[list[tuple[bool, str, str, str]]]
TURNS = st.lists(st.lists(EDIT, max_size=6), min_size=1, max_size=4)


async def play_turns(place: UndoHarness, turns: Turns) -> list[Tree]:
    """Make edits in turns, and return the tree before each turn and after the last."""
    trees = [read_tree(place.root, without=UNREAD)]
    for edits in turns:
        place.begin()
        for is_tool, name, one, two in edits:
            try:
                if is_tool:
                    await place.workspace.write_bytes(one, f"by a tool: {two!r}".encode())
                else:
                    await place.undo.on_change(None, ("edit",))
                    EDITS[name](place.root / one, place.root / two)
            except Exception:
                continue  # there is nothing of the kind to be edited
        place.end()
        trees.append(read_tree(place.root, without=UNREAD))
    return trees


@pytest.mark.parametrize("is_repository", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=TURNS, data=st.data())
def test_going_back_gives_the_very_tree(tmp_path_factory, is_repository, turns, data):
    async def run() -> None:
        folder = tmp_path_factory.mktemp("undo")
        if is_repository:
            create_repository(folder / "work")
        async with open_undo(folder) as harness:
            await play_and_go_back(harness, turns, data)
        assert harness.logged == []

    asyncio.run(run())


async def play_and_go_back(
    harness: UndoHarness, turns: list[list[tuple[bool, str, str, str]]], data: st.DataObject
) -> None:
    trees = await play_turns(harness, turns)
    back_to = data.draw(st.integers(1, len(turns)))
    assert await harness.back(back_to) == []
    assert read_tree(harness.root, without=UNREAD) == trees[back_to - 1]
    further = data.draw(st.integers(1, back_to))
    assert await harness.back(further) == []
    assert read_tree(harness.root, without=UNREAD) == trees[further - 1]
    assert (await harness.undo.plan_restore(further)).changes == ()


@pytest.fixture(scope="module")
def large_folder(request, tmp_path_factory):
    """Make a repository of many files, which are old enough for git to tell all their changes."""
    count = request.config.getoption("--undo-files")
    if not count:
        pytest.skip("--undo-files N makes a repository of N files, which takes minutes")
    folder = tmp_path_factory.mktemp("large")
    root = folder / "work"
    create_repository(root)
    run_git(root, "config", "gc.auto", "0")  # it would still run when the folder is removed
    for number in range(count):
        file = root / f"many/{number // 2_500}/{number // 50}/file{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"one {number}\n")
    for name in ("a", "b", "d/a", "d/b", "d/e/a"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("one\n")
    run_git(root, "add", ".")
    run_git(root, "commit", "-qm", "many")
    yield folder
    shutil.rmtree(folder)


@given(turns=TURNS, data=st.data())
def test_going_back_gives_the_very_tree_in_a_large_repository(large_folder, turns, data):
    root = large_folder / "work"
    time.sleep(1.1)  # git compares whole seconds
    assert run_git(root, "status", "--porcelain") == ""

    async def run() -> None:
        async with open_undo(large_folder) as harness:
            before = read_tree(root, without=UNREAD)
            await play_and_go_back(harness, turns, data)
            await harness.turn("true")
            assert harness.undo._trees.find_clean(str(root / "many/0/0/file0.txt"))
            assert await harness.back(1) == []
            assert read_tree(root, without=UNREAD) == before
            assert run_git(root, "status", "--porcelain") == ""
        assert harness.logged == []
        shutil.rmtree(large_folder / "session")

    asyncio.run(run())


async def test_a_repository(tmp_path):
    create_repository(tmp_path / "work")
    (tmp_path / "work/ignored").mkdir()
    (tmp_path / "work/ignored/mine").write_text("mine")
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        first = await harness.turn("sed -i s/one/ONE/ kept.txt", "git mv sub/deep.txt moved.txt", "chmod +x moved.txt")
        middle = read_tree(harness.root)
        second = await harness.turn(
            "rm kept.txt; mkdir -p new/er; echo x > new/er/file; ln -s moved.txt link",
            "echo made > ignored/made; echo changed > ignored/mine; echo x > new/a.log",
        )
        plan = await harness.undo.plan_restore(second)
        assert list_changes(plan) == [
            *[("mine", "restore", False), ("kept.txt", "recreate", False), ("link", "remove", False)],
            *[(name, "remove", False) for name in ("new", "er", "file")],
        ]
        assert await harness.undo.restore(plan) == [f"{harness.root}/new is left as it is: Directory not empty"]
        assert read_tree(harness.root, without=(".git", "ignored", "new")) == exclude_paths(middle, "ignored")
        assert sorted(read_tree(harness.root / "new")) == ["a.log"]  # what git ignores is nobody's
        (harness.root / "new/a.log").unlink()
        await harness.back(first)
        assert read_tree(harness.root) == before | {
            "ignored/made": (stat.S_IFREG | 0o644, b"made\n"),
        }


async def test_a_plain_folder(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n")
    (tmp_path / "work/a.log").write_text("log\n")
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn(
            "sed -i s/one/two/ a.txt; mv a.log b.log; git init -q",
            "mkdir d; cp a.txt d; chmod 700 d; echo > $'not\\xffutf8'",
            **{"a.txt": "by a tool\n", "e/f/new.txt": "new"},
        )
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before


async def test_in_the_sandbox(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))
    create_repository(tmp_path / "work")
    history, recorder = History(), Recorder()
    where = Workspace(tmp_path / "work", mode="workspace", approval="auto", notifier=recorder)
    async with where as workspace:
        undo = Undo(tmp_path / "session/undo", workspace.folders, history, workspace.run_internal, recorder)
        workspace.add_change_listener(undo.on_change)
        harness = UndoHarness(workspace.root, history, workspace, undo, recorder)
        before = read_tree(harness.root)
        number = await harness.turn("echo x > a.log; sed -i s/one/two/ kept.txt; rm -r sub")
        assert await harness.back(number) == []
        assert exclude_paths(read_tree(harness.root), "a.log") == before
        await undo.close()


async def test_rules_of_git_that_a_turn_changes(tmp_path):
    create_repository(tmp_path / "work")
    (tmp_path / "work/old.log").write_text("log")
    (tmp_path / "work/plain.txt").write_text("plain")
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn("echo plain.txt > .gitignore; echo changed > plain.txt")
        assert list_changes(await harness.undo.plan_restore(number)) == [
            (".gitignore", "restore", False),
            ("plain.txt", "restore", False),
        ]
        await harness.back(number)
        assert read_tree(harness.root) == before


async def test_a_file_tool_after_commands(tmp_path):
    create_repository(tmp_path / "work")
    async with open_undo(tmp_path) as harness:
        (harness.root / "secret.log").write_text("old")
        before = read_tree(harness.root)
        number = harness.begin()
        await harness.command("echo 1 > kept.txt; echo 1 > made.log; echo 1 > made.txt; rm -r sub")
        for name in ("kept.txt", "made.log", "made.txt", "sub/deep.txt", "secret.log"):
            await harness.workspace.write_bytes(name, b"2")
        await harness.command("echo 3 > kept.txt; rm secret.log")
        harness.end()
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before


async def test_outside_the_workspace(tmp_path):
    (tmp_path / "other.txt").write_text("old")
    async with open_undo(tmp_path) as harness:
        number = await harness.turn(**{"../other.txt": "new", "../far/new.txt": "new"})
        assert await harness.back(number) == []
        assert (tmp_path / "other.txt").read_text() == "old"
        assert not (tmp_path / "far").exists()


async def test_files_that_the_person_edited(tmp_path):
    async with open_undo(tmp_path) as harness:
        for name in "abcd":
            (harness.root / name).write_text("old\n")
        number = await harness.turn("echo new | tee a b c d made gone > /dev/null")
        await harness.undo.plan_restore(number)  # the turn's end was seen
        (harness.root / "b").write_text("mine\n")
        (harness.root / "c").unlink()
        (harness.root / "d").write_text("old\n")
        (harness.root / "made").chmod(0o700)
        (harness.root / "gone").unlink()
        (harness.root / "mine").write_text("mine\n")
        plan = await harness.undo.plan_restore(number)
        changes = [("a", "restore", False), ("b", "restore", True), ("c", "recreate", True), ("made", "remove", True)]
        assert list_changes(plan) == changes
        assert [(await plan.format_diff(change)).splitlines()[1:] for change in plan.changes] == [
            ["-new", "+old"],
            ["-mine", "+old"],
            ["+old"],
            ["-new"],
        ]
        assert await harness.undo.restore(plan, frozenset({harness.root / "b"})) == []
        assert {path.name: path.read_text() for path in harness.root.iterdir()} == {
            **dict.fromkeys("abd", "old\n"),
            "made": "new\n",
            "mine": "mine\n",
        }


async def test_an_edit_between_two_turns_is_one_too(tmp_path):
    async with open_undo(tmp_path) as harness:
        first = await harness.turn("echo 1 > a")
        await harness.undo.plan_restore(first)
        (harness.root / "a").write_text("mine\n")
        second = await harness.turn("echo 2 >> a")
        assert list_changes(await harness.undo.plan_restore(first)) == [("a", "remove", True)]
        assert await harness.back(second) == []
        assert (harness.root / "a").read_text() == "mine\n"


async def test_the_persons_own_commands_are_not_taken_back(tmp_path):
    async with open_undo(tmp_path) as harness:
        first = await harness.turn("echo 1 > a")
        await harness.command("echo mine > b")
        assert list_changes(await harness.undo.plan_restore(first)) == [("a", "remove", False)]


async def test_a_change_waits_until_the_last_turn_is_compared(tmp_path):
    async with open_undo(tmp_path) as harness:
        may_compare = threading.Event()
        harness.begin()
        await harness.workspace.write_bytes("a", b"the turn's")
        harness.undo._worker.submit(may_compare.wait)
        harness.end()
        own = asyncio.create_task(harness.workspace.write_bytes("a", b"mine"))
        await asyncio.sleep(0)  # the change has begun, and would be over without waiting
        may_compare.set()
        await own
        assert list_changes(await harness.undo.plan_restore(1)) == [("a", "remove", True)]


async def test_a_change_between_plan_and_restore(tmp_path):
    async with open_undo(tmp_path) as harness:
        plan = await harness.undo.plan_restore(await harness.turn("echo 1 > a; echo 1 > b; ln -s a link"))
        (harness.root / "a").write_text("mine")
        (harness.root / "link").unlink()
        (harness.root / "link").symlink_to(tmp_path)
        assert await harness.undo.restore(plan) == [
            f"{harness.root}/{name} was changed just now: it is left as it is" for name in ("a", "link")
        ]
        assert sorted(read_tree(harness.root)) == ["a", "link"]


async def test_a_link_in_the_way_leads_nowhere(tmp_path):
    async with open_undo(tmp_path) as harness:
        (harness.root / "d").mkdir()
        (harness.root / "d/a").write_text("old")
        number = await harness.turn("rm d/a")
        await harness.undo.plan_restore(number)
        (harness.root / "d").rmdir()
        (tmp_path / "outside").mkdir()
        (harness.root / "d").symlink_to(tmp_path / "outside")
        report = await harness.back(number)
        assert report == [f"{harness.root}/d/a is left as it is: {harness.root}/d is no folder any more"]
        assert list((tmp_path / "outside").iterdir()) == []


async def test_a_file_of_the_person_in_place_of_a_folder(tmp_path):
    async with open_undo(tmp_path) as harness:
        (harness.root / "d/e").mkdir(parents=True)
        (harness.root / "d/e/a").write_text("old")
        number = await harness.turn("rm -r d")
        await harness.undo.plan_restore(number)
        (harness.root / "d").write_text("mine")
        report = await harness.back(number)
        reason = f"is left as it is: {harness.root}/d is no folder any more"
        assert report == [f"{harness.root}/d/{name} {reason}" for name in ("e", "e/a")]
        assert (harness.root / "d").read_text() == "mine"


async def test_going_back_can_be_gone_back_on(tmp_path):
    async with open_undo(tmp_path) as harness:
        (harness.root / "a").write_text("0")
        await harness.turn("echo 1 > a")
        second = await harness.turn("echo 2 > a")
        third = await harness.turn("true")
        assert await harness.back(second) == []
        assert (harness.root / "a").read_text() == "1\n"
        assert await harness.back(third) == []
        assert (harness.root / "a").read_text() == "2\n"
        assert await harness.back(1) == []
        assert (harness.root / "a").read_text() == "0"


async def test_a_plan_while_a_turn_runs(tmp_path):
    async with open_undo(tmp_path) as harness:
        number = harness.begin()
        await harness.command("echo 1 > a")
        assert list_changes(await harness.undo.plan_restore(number)) == [("a", "remove", False)]
        await harness.command("echo 2 > a; echo 2 > b")
        harness.end()
        assert list_changes(await harness.undo.plan_restore(number)) == [("a", "remove", False), ("b", "remove", False)]


async def test_what_is_shown_of_a_change(tmp_path):
    async with open_undo(tmp_path) as harness:
        for name in ("text", "same", "binary", "kind"):
            (harness.root / name).write_bytes(b"\0\xff" if name == "binary" else b"a\n")
        number = await harness.turn(
            "echo b > text; chmod 600 text; chmod 640 same; echo x > binary",
            "rm kind; mkdir kind; ln -s x link; : > empty",
        )
        plan = await harness.undo.plan_restore(number)
        assert {change.path.name: await plan.format_diff(change) for change in plan.changes} == {
            "text": "mode 600, then 644\n@@ -1 +1 @@\n-b\n+a",
            "same": "mode 640, then 644",
            "binary": "binary: 2 bytes, before 2",
            "kind": "-folder of mode 755\n+file of mode 644",
            "link": "-link to x",
            "empty": "an empty file",
        }


async def test_an_exchange_has_undo_where_its_session_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "script.yaml").write_text(
        "- calls: [{tool: shell, arguments: {command: echo 1 > a; echo 1 > b}}]\n"
        "- calls: [{tool: write_file, arguments: {path: a, content: two}}]\n"
        "- text: done\n- text: nothing to do\n"
    )
    profile = Profile(processor=f"scripted:{tmp_path}/script.yaml", toolkits=["developer"], sandbox="full")
    async with build_exchange(profile, Recorder()) as exchange:
        assert exchange.undo is None
    session = Session.create()
    async with build_exchange(profile, Recorder(), session=session) as exchange:
        await exchange.reply("make files")
        await exchange.reply("and now?")
        assert exchange.undo
        assert (await exchange.undo.plan_restore(2)).changes == ()
        plan = await exchange.undo.plan_restore(1)
        assert list_changes(plan) == [("a", "remove", False), ("b", "remove", False)]
    session.close()
    resumed = Session.resume(session.name)
    async with build_exchange(profile, Recorder(), session=resumed) as exchange:
        assert exchange.undo
        assert list_changes(await exchange.undo.plan_restore(1)) == list_changes(plan)
        assert await exchange.undo.restore(plan) == []
        assert list((tmp_path / "work").iterdir()) == []
    resumed.close()
