"""File access: path checks, atomic writes and questions."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import ONCE, create_confined, needs_sandbox, run_script


@needs_sandbox
async def test_tmp_is_the_commands_tmp(workspace: Workspace, root: Path) -> None:
    await run_script(workspace, "echo one > /tmp/a; ln -s /tmp/a /tmp/link; ln -s /tmp/a ./link")
    for name in ("/tmp/a", "/tmp/link", "link", root / "link"):
        assert workspace.read_bytes(name) == b"one\n"
    await workspace.write_bytes("/tmp/b", b"two")
    assert (await run_script(workspace, "cat /tmp/b"))[1] == "two"


async def test_reading(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    (root / "f").write_bytes(b"12345")
    os.mkfifo(root / "fifo")
    assert workspace.read_bytes("f") == b"12345"
    assert workspace.read_bytes("f", limit_bytes=5) == b"12345"
    assert workspace.read_bytes("/etc/passwd")
    for path, error, words in (
        ("f", GooseLikeError, "more than 4"),
        (".", GooseLikeError, "is a folder"),
        ("fifo", GooseLikeError, "device, pipe"),
        ("a\0b", GooseLikeError, "is not a path"),
        ("~nobody-of-that-name/x", GooseLikeError, "is not a path"),
        ("missing", FileNotFoundError, "missing"),
        ("/proc/self/environ", DeniedError, "hidden"),
        ("/dev/zero", DeniedError, "hidden"),
        ("/run", DeniedError, "hidden"),
        ("/etc/shadow", DeniedError, "hidden"),
    ):
        with pytest.raises(error, match=words):
            workspace.read_bytes(path, limit_bytes=4 if path == "f" else None)


async def test_secrets_in_the_workspace(tmp_path: Path, root: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("TOPSECRET")
    (home / "innocent").symlink_to(home / ".ssh/id")
    async with create_confined(home)[0] as workspace:
        for name in (".ssh/id", "~/.ssh/id", "innocent", "x/../.ssh/id"):
            with pytest.raises(DeniedError, match="hidden"):
                workspace.read_bytes(name)
            with pytest.raises(DeniedError, match="hidden"):
                await workspace.write_bytes(name, b"x")
        for name in (".bashrc", ".config/git/config", "p/.git/hooks/pre-commit", "p/.git/config", "p/.git"):
            with pytest.raises(DeniedError, match="protected"):
                await workspace.write_bytes(name, b"x")


async def test_writing_keeps_what_was(workspace: Workspace, root: Path) -> None:
    script = root / "script"
    script.write_text("old")
    script.chmod(0o751)
    (root / "link").symlink_to("script")
    assert await workspace.write_bytes("link", b"new") == script
    assert (root / "link").is_symlink()
    assert script.read_text() == "new"
    assert script.stat().st_mode & 0o777 == 0o751
    await workspace.write_bytes("a/b/c", b"deep")
    assert (root / "a/b/c").read_text() == "deep"
    assert sorted(os.listdir(root)) == ["a", "link", "script"]
    with pytest.raises(GooseLikeError, match="is a folder"):
        await workspace.write_bytes("a", b"x")
    with pytest.raises(GooseLikeError, match="is no folder"):
        await workspace.write_bytes("script/x", b"x")


async def test_writing_outside_is_asked(root: Path, tmp_path: Path) -> None:
    outside = Path(f"/var/lib/goose-like-{os.getpid()}") if os.getuid() == 0 else tmp_path / "x"
    for answer, is_written in ((Answer(), False), (ONCE, True)):
        workspace, recorder = create_confined(root, answer)
        (root / "way-out").unlink(missing_ok=True)
        (root / "way-out").symlink_to(outside)
        async with workspace:
            try:
                await workspace.write_bytes("way-out", b"x")
            except DeniedError as error:
                assert "below the workspace" in str(error)  # noqa: PT017
            assert [(question.kind, question.subject) for question in recorder.questions] == [("outside", str(outside))]
        assert outside.exists() is is_written
    outside.unlink()


@contextmanager
def swap_all_the_time(one: Path, two: Path) -> Iterator[None]:
    """Exchange two names in a thread, again and again."""
    is_over = threading.Event()
    exchange, here = 2, -100  # renameat2(2): RENAME_EXCHANGE, AT_FDCWD
    names = [os.fsencode(path) for path in (one, two)]

    def swap() -> None:
        while not is_over.is_set():
            ctypes.CDLL(None).renameat2(here, names[0], here, names[1], exchange)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


async def test_a_folder_that_becomes_a_link_is_not_followed(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (root / "folder").mkdir()
    (root / "link").symlink_to(victim)
    written = 0
    with swap_all_the_time(root / "folder", root / "link"):
        for number in range(3000):
            with suppress(GooseLikeError, OSError):
                await workspace.write_bytes(root / "folder/file", b"%d" % number)
                written += 1
    assert written
    assert list(victim.iterdir()) == []


async def test_a_file_that_becomes_a_link_to_a_secret_is_not_read(tmp_path: Path, root: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("TOPSECRET")
    (home / "file").write_text("mine")
    (home / "link").symlink_to(home / ".ssh/id")
    found = set()
    async with create_confined(home)[0] as workspace:
        with swap_all_the_time(home / "file", home / "link"):
            for _ in range(3000):
                with suppress(GooseLikeError, OSError):
                    found.add(workspace.read_bytes("file"))
    assert found == {b"mine"}


async def test_full_mode_has_no_jail(root: Path, tmp_path: Path) -> None:
    async with Workspace(root, mode="full", approval="auto", notifier=Recorder()) as workspace:
        await workspace.write_bytes(tmp_path / "outside", b"x")
        assert workspace.read_bytes(tmp_path / "outside") == b"x"
        assert workspace.resolve("/tmp/x") == Path("/tmp/x")
