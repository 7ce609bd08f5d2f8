"""A running `git check-ignore`: it tells what git tells, and ends with the session."""

import asyncio
import fcntl
import os
import resource
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from goose_like.core.notifier import Recorder
from goose_like.workspace.repositories.ignore_check import IgnoreCheck
from goose_like.workspace.undo.git_calls import GitCalls
from goose_like.workspace.workspace import Workspace
from tests.workspace.undo.undo_harness import create_repository

LIMIT_S = 60  # a busy machine is slow


@asynccontextmanager
async def open_check(root: Path, pipe_bytes: int = 1 << 16) -> AsyncIterator[tuple[Workspace, IgnoreCheck]]:
    async with Workspace(root, mode="full", approval="auto", notifier=Recorder()) as workspace:
        serve = GitCalls(workspace.run_internal).serve

        def serve_by_pipes(argv: list[str], descriptors: Mapping[int, int]) -> None:
            for descriptor in descriptors.values():
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, pipe_bytes)
            serve(argv, descriptors)

        check = IgnoreCheck(str(root), serve_by_pipes, LIMIT_S)
        try:
            yield workspace, check
        finally:
            check.stop()


async def ask(check: IgnoreCheck, root: Path, *names: str) -> set[str] | None:
    """Ask until there is an answer, as git may be slow, and the first question only starts it."""
    paths = [str(root / name) for name in names]
    async with asyncio.timeout(LIMIT_S):
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
            assert await asyncio.to_thread(check.find_ignored, [str(tmp_path / name)]) is None
        assert await ask(check, tmp_path, "a.log") == {"a.log"}  # a link ends git, which starts again
    async with open_check(ignored) as (_, check):
        await asyncio.to_thread(check.find_ignored, [])
        assert await asyncio.to_thread(check.find_ignored, [str(ignored / "a")]) is None


async def test_a_question_that_does_not_fit_into_a_small_pipe_gets_no_answer(tmp_path):
    """Linux gives small pipes to a user who has many."""
    create_repository(tmp_path)
    many = [str(tmp_path / f"{number}.log") for number in range(25_000 // len(f"{tmp_path}/123.log"))]
    async with open_check(tmp_path, pipe_bytes=1 << 12) as (_, check):
        assert await ask(check, tmp_path, "a.log", "b") == {"a.log"}
        assert await asyncio.to_thread(check.find_ignored, many) is None
        assert await ask(check, tmp_path, "a.log", "b") == {"a.log"}


@pytest.mark.parametrize("free_count", range(4))
async def test_without_free_descriptors_there_is_no_answer(tmp_path, free_count):
    create_repository(tmp_path)
    async with open_check(tmp_path) as (_, check):
        opened = os.listdir("/proc/self/fd")
        limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        first_free = os.dup(0)
        os.close(first_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + free_count, most))
        try:
            assert check.find_ignored([str(tmp_path / "a.log")]) is None
            check.prepare()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
        assert os.listdir("/proc/self/fd") == opened
        assert await ask(check, tmp_path, "a.log", "b") == {"a.log"}
