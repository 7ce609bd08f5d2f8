"""Undo with killed sessions, limits, full disks and damaged files."""

import asyncio
import os
import resource
import stat

import pytest

from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Answer
from goose_like.workspace.undo import snapshot as tree
from goose_like.workspace.undo import undo
from tests import ROOT
from tests.workspace.undo.undo_harness import (
    list_changes,
    open_undo,
    read_tree,
)


@pytest.mark.parametrize("torn", [b"", b'{"turn": 2, "le', b'{"blob": "x", "size": 9}\ntorn'])
async def test_a_session_that_was_killed(tmp_path, torn):
    async with open_undo(tmp_path) as harness:
        (harness.root / "a").write_text("0")
        (harness.root / "b").write_text("0")
        first = await harness.turn("echo 1 > a")
        await harness.undo.plan_restore(first)
        killed = harness.begin()
        await harness.workspace.write_bytes("tool", b"x")
        await harness.command("echo 2 > a; echo 2 > b")
        log = (tmp_path / "session/undo/log").read_bytes()
    (tmp_path / "session/undo/log").write_bytes(log + torn)
    async with open_undo(tmp_path, harness.history) as resumed:
        changes = [("a", "restore", True), ("b", "restore", True), ("tool", "remove", True)]
        assert list_changes(await resumed.undo.plan_restore(killed)) == changes
        later = await resumed.turn("echo 3 > c; echo 3 > a")
        assert list_changes(await resumed.undo.plan_restore(later)) == [("a", "restore", False), ("c", "remove", False)]
        plan = await resumed.undo.plan_restore(first)
        assert list_changes(plan) == [*changes[:2], ("c", "remove", False), changes[2]]
        assert await resumed.undo.restore(plan, frozenset(change.path for change in plan.changes)) == []
        assert {path.name: path.read_text() for path in resumed.root.iterdir()} == {"a": "0", "b": "0"}
        assert resumed.logged == []


async def test_limits_are_told_once_and_before(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "LIMIT_FILE_BYTES", 100)
    monkeypatch.setattr(tree, "LIMIT_TREE_BYTES", 150)
    async with open_undo(tmp_path, answer=Answer(choice="allow", by="person")) as harness:
        for name, size in (("big", 101), ("one", 90), ("two", 91), ("small", 1)):
            (harness.root / name).write_bytes(b"x" * size)
        number = harness.begin()
        await harness.undo.on_change(None, ("true",))
        assert harness.logged == ["undo does not cover what commands do to two (beyond 0 MB in all) and 1 more"]
        await harness.command("rm big one two; echo 2 > small")
        harness.end()
        await harness.turn("touch other")
        assert len(harness.logged) == 1
        report = await harness.back(number)
        assert [sentence.split(":")[0] for sentence in report] == [f"{harness.root}/big can't be put back"]
        assert sorted(read_tree(harness.root)) == ["one", "small", "two"]
        assert [question.kind for question in harness.recorder.questions] == ["deletion"]


async def test_a_plan_names_what_is_lost_and_keeps_a_moved_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "LIMIT_FILE_BYTES", 100)
    async with open_undo(tmp_path, answer=Answer(choice="allow", by="person")) as harness:
        for name in ("gone", "moved"):
            (harness.root / name).write_bytes(b"x" * 101)
        number = await harness.turn("rm gone; mv moved elsewhere; touch small")
        plan = await harness.undo.plan_restore(number)
        lost = [("gone", "lost", False), ("moved", "lost", False)]
        assert list_changes(plan) == [*lost, ("small", "remove", False)]
        assert len(await harness.undo.restore(plan)) == 2
        assert (harness.root / "elsewhere").stat().st_size == 101


async def test_a_folder_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "LIMIT_ENTRIES", 5)
    async with open_undo(tmp_path) as harness:
        for number in range(6):
            (harness.root / str(number)).write_text("0")
        number = await harness.turn("echo 1 >> 1", "echo 1 > 2", **{"3": "tool"})
        assert list_changes(await harness.undo.plan_restore(number)) == [
            (name, "restore", False) for name in ("2", "3")
        ]
        await harness.turn("true")
        assert len(harness.logged) == 1
        assert "does not cover what commands do: " in harness.logged[0]


async def test_a_folder_that_becomes_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "LIMIT_ENTRIES", 5)
    async with open_undo(tmp_path) as harness:
        (harness.root / "a").write_text("0")
        number = await harness.turn("echo 1 > a; touch 1 2 3 4 5 6")
        assert list_changes(await harness.undo.plan_restore(number)) == [("a", "restore", False)]


async def test_a_store_that_cannot_be_written(tmp_path):
    (tmp_path / "session").write_text("a file where the folder would be")
    async with open_undo(tmp_path) as harness:
        number = await harness.turn("echo 1 > a", b="tool")
        await harness.turn("echo 2 > a")
        assert len(harness.logged) == 1
        assert harness.logged[0].startswith("undo is off from here on: what changes now can't be taken back (")
        assert read_tree(harness.root).keys() == {"a", "b"}
        with pytest.raises(GooseLikeError, match="can't be used"):
            await harness.undo.plan_restore(number)


@pytest.mark.parametrize("has_limit", [True, False])
async def test_a_store_that_becomes_full(tmp_path, monkeypatch, has_limit):
    if has_limit:
        monkeypatch.setattr(undo, "LIMIT_STORE_BYTES", 1 << 20)
    async with open_undo(tmp_path) as harness:
        (harness.root / "a").write_text("0")
        first = await harness.turn("echo 1 > a")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            if not has_limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
            await harness.turn("echo 2 > b; seq 300000 > large")
            await harness.turn("echo 3 > a; echo 3 > c")
            plan = await harness.undo.plan_restore(first)
            assert list_changes(plan) == [
                ("a", "restore", True),
                *((name, "remove", True) for name in ("b", "c", "large")),
            ]
            assert len(harness.logged) == 1
            assert await harness.undo.restore(plan, frozenset({harness.root / "a"})) == []
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (harness.root / "a").read_text() == "0"


async def test_a_record_that_cannot_be_read(tmp_path):
    async with open_undo(tmp_path) as harness:
        await harness.turn("echo 1 > a")
    with (tmp_path / "session/undo/log").open("a") as file:
        size = file.tell()
        file.write("damage\n")
    async with open_undo(tmp_path, harness.history) as harness:
        await harness.turn("echo 2 > a")
        assert f"undo/log, byte {size}: it can't be read" in harness.logged[0]


async def test_only_the_person_may_read_what_was_kept(tmp_path):
    async with open_undo(tmp_path) as harness:
        await harness.turn("echo 1 > a")
        folder = tmp_path / "session/undo"
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
        assert modes == {"undo": 0o700, "log": 0o600}


async def test_odd_things_are_passed_over(tmp_path):
    async with open_undo(tmp_path) as harness:
        os.mkfifo(harness.root / "pipe")
        (harness.root / "loop").symlink_to(".")
        (harness.root / "gone").symlink_to("nowhere")
        number = await harness.turn("mkfifo pipe2; ln -sfn sub loop; rm gone")
        assert list_changes(await harness.undo.plan_restore(number)) == [
            ("gone", "recreate", False),
            ("loop", "restore", False),
        ]
        assert await harness.back(number) == []
        assert os.readlink(harness.root / "loop") == "."


async def test_a_cancelled_command_leaves_its_stock(tmp_path):
    async with open_undo(tmp_path) as harness:
        (harness.root / "a").write_text("0")
        number = harness.begin()
        task = asyncio.create_task(harness.command("echo 1 > a"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        harness.end()
        await harness.turn("echo 2 > a")
        assert await harness.back(number) == []
        assert (harness.root / "a").read_text() == "0"


def test_the_page_states_the_limits():
    page = (ROOT / "docs/undo.md").read_text()
    limits = (tree.LIMIT_FILE_BYTES, tree.LIMIT_TREE_BYTES, undo.LIMIT_STORE_BYTES)
    for words in (*(f"{limit >> 20:,} MB" for limit in limits), f"{tree.LIMIT_ENTRIES:,} files"):
        assert words in page
