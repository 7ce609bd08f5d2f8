"""Snapshots of folders."""

from goose_like.workspace.undo import snapshot as tree
from goose_like.workspace.undo.state import Snapshot
from goose_like.workspace.undo.watched_tree import WatchedTree


async def test_what_is_unchanged_is_not_read_again(tmp_path):
    kept: list[bytes] = []

    def keep(data: bytes) -> str:
        kept.append(data)
        return "name"

    (tmp_path / "a").write_text("a")
    known: Snapshot = {}
    watched = WatchedTree(str(tmp_path))
    while (seen := tree.take_snapshot(watched, (), keep, known)[0])[str(tmp_path / "a")].marks is None:
        known = seen
    assert len(kept) > 1
    kept.clear()
    tree.take_snapshot(watched, (), keep, seen)
    assert kept == []
    (tmp_path / "a").write_text("b")
    tree.take_snapshot(watched, (), keep, seen)
    assert kept == [b"b"]
