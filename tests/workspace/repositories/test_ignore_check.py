"""A running `git check-ignore`: it tells what git tells, and ends with the session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from goose_like.core.notifier import Recorder
from goose_like.workspace.repositories.ignore_check import IgnoreCheck
from goose_like.workspace.undo.git_calls import GitCalls
from goose_like.workspace.workspace import Workspace
from tests.workspace.undo.undo_harness import create_repository


@asynccontextmanager
async def open_check(root: Path) -> AsyncIterator[tuple[Workspace, IgnoreCheck]]:
    async with Workspace(root, mode="full", approval="auto", notifier=Recorder()) as workspace:
        check = IgnoreCheck(str(root), GitCalls(workspace.run_internal).serve)
        try:
            yield workspace, check
        finally:
            check.stop()


async def ask(check: IgnoreCheck, root: Path, *names: str) -> set[str] | None:
    """Ask until there is an answer, as git may be slow, and the first question only starts it."""
    paths = [str(root / name) for name in names]
    async with asyncio.timeout(60):
        while True:
            found = await asyncio.to_thread(check.find_ignored, paths)
            if found is not None:
                return {str(Path(path).relative_to(root)) for path in found}


async def test_git_tells_what_it_ignores(tmp_path):
    create_repository(tmp_path)
    (tmp_path / "sub/.gitignore").write_text("!kept.log\n*.tmp\n")
    async with open_check(tmp_path) as (workspace, check):
        names = ("a.log", "a.tmp", "sub/kept.log", "sub/a.tmp", "sub/a.log", "ignored/a", "kept.txt", "sub/ä\n")
        assert await ask(check, tmp_path, *names) == {"a.log", "sub/a.tmp", "sub/a.log", "ignored/a"}
        assert not await workspace._spawners.has_processes()


async def test_new_rules_are_read_after_a_stop(tmp_path):
    create_repository(tmp_path)
    async with open_check(tmp_path) as (_, check):
        assert await ask(check, tmp_path, "a.log", "b") == {"a.log"}
        (tmp_path / ".gitignore").write_text("b\n")
        check.stop()
        check.prepare()
        assert await ask(check, tmp_path, "a.log", "b") == {"b"}


async def test_there_is_no_answer_where_git_has_none(tmp_path):
    create_repository(tmp_path)
    create_repository(tmp_path / "sub/other")
    (tmp_path / "link").symlink_to("sub")
    ignored = tmp_path / "ignored"
    ignored.mkdir()
    async with open_check(tmp_path) as (_, check):
        assert await ask(check, tmp_path, "a.log") == {"a.log"}
        for name in ("sub/other/a.log", "link/a.log", "x" * 40_000):
            assert check.find_ignored([str(tmp_path / name)]) is None
        assert await ask(check, tmp_path, "a.log") == {"a.log"}  # a link ends git, which starts again
    async with open_check(ignored) as (_, check):
        await asyncio.to_thread(check.find_ignored, [])
        assert await asyncio.to_thread(check.find_ignored, [str(ignored / "a")]) is None
