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
        ("~nobody-of-that-name/x", FileNotFoundError, "nobody"),
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
    with pytest.raises(GooseLikeError, match="is a file, no folder"):
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
            (question,) = recorder.questions
            assert (question.kind, question.subject, question.prefix) == ("outside", str(outside), "this file")
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
        for number in range(300):
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
            for _ in range(300):
                with suppress(GooseLikeError, OSError):
                    found.add(workspace.read_bytes("file"))
    assert found == {b"mine"}


@pytest.mark.parametrize("umask", [0o022, 0o077])
async def test_a_new_file_has_the_mode_of_the_umask(workspace: Workspace, root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        await workspace.write_bytes("a/new", b"x")
        await workspace.update_own_file("log", lambda old: b"x", at_end=True)
    finally:
        os.umask(before)
    for name in ("a/new", "log"):
        assert (root / name).stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("at_end", [False, True])
async def test_an_own_file_is_updated_from_its_newest_content(root: Path, at_end: bool) -> None:
    workspace, recorder = create_confined(root)
    file, seen = root / "notes/log", []

    def add_line(old: bytes) -> bytes | None:
        seen.append(old)
        return None if old.count(b"\n") >= 2 else old + b"line\n"

    async with workspace:
        for expected in (b"line\n", b"line\nline\n"):
            assert await workspace.update_own_file("notes/log", add_line, at_end=at_end)
            assert file.read_bytes() == expected
            inode = file.stat().st_ino
        assert not await workspace.update_own_file("notes/log", add_line, at_end=at_end)
        file.write_bytes(b"")
        await workspace.update_own_file("notes/log", add_line, at_end=at_end)
        assert (file.stat().st_ino == inode) == at_end
        assert file.read_bytes() == b"line\n"
        with pytest.raises(GooseLikeError, match="is a folder"):
            await workspace.update_own_file("notes", add_line, at_end=at_end)
        with pytest.raises(GooseLikeError, match="is a file, no folder"):
            await workspace.update_own_file("notes/log/x", add_line, at_end=at_end)
        os.mkfifo(root / "fifo")
        with pytest.raises(GooseLikeError, match="device, pipe"):
            await workspace.update_own_file("fifo", lambda old: b"x", at_end=at_end)
    assert set(seen) == {b"", b"line\n", b"line\nline\n"}
    assert recorder.questions == []


async def test_an_own_file_outside_is_asked_about_and_may_change_meanwhile(root: Path, tmp_path: Path) -> None:
    outside = Path(f"/var/lib/goose-like-own-{os.getpid()}") if os.getuid() == 0 else tmp_path / "x"
    workspace, recorder = create_confined(root, ONCE)
    changes = [b"from elsewhere"]

    def note(old: bytes) -> bytes | None:
        if not old and recorder.questions and changes:
            outside.write_bytes(changes.pop())
        return old + b"!"

    try:
        async with workspace:
            assert await workspace.update_own_file(outside, note)
            assert outside.read_bytes() == b"!"
            assert await workspace.update_own_file(outside, lambda old: old + b"?", at_end=True)
            assert outside.read_bytes().endswith(b"?")
        assert {(question.kind, question.subject) for question in recorder.questions} == {("outside", str(outside))}
        refusing, _ = create_confined(root)
        async with refusing:
            with pytest.raises(DeniedError):
                await refusing.update_own_file(outside, lambda old: b"no")
    finally:
        outside.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        (b"ref: refs/heads/main\n", "main"),
        (b"ref: refs/heads/fix/x\n", "fix/x"),
        (b"0123456789abcdef0123456789abcdef01234567\n", "detached at 01234567"),
        (b"x" * 1_001, ""),
        (None, ""),
    ],
)
async def test_the_branch(root: Path, head: bytes | None, branch: str) -> None:
    if head is not None:
        (root / ".git").mkdir()
        (root / ".git/HEAD").write_bytes(head)
    async with create_confined(root)[0] as workspace:
        assert workspace.branch == branch


async def test_the_branch_follows_its_file(root: Path) -> None:
    async with create_confined(root)[0] as workspace:
        for name in ("one", "two", "six"):
            (root / ".git").mkdir(exist_ok=True)
            (root / "HEAD").write_text(f"ref: refs/heads/{name}\n")
            (root / "HEAD").replace(root / ".git/HEAD")  # as git does
            assert [workspace.branch, workspace.branch] == [name, name]
        (root / ".git/HEAD").unlink()
        assert workspace.branch == ""


async def test_an_ignored_file_is_hidden_by_any_name(root: Path) -> None:
    (root / ".gooseignore").write_text("*.key\n")
    (root / "a.key").write_text("K")
    (root / "link").symlink_to("a.key")
    (root / "b.key").symlink_to("c")
    (root / "c").write_text("C")
    async with create_confined(root)[0] as workspace:
        for name in ("a.key", "link", "b.key", root / "a.key", "sub/../a.key"):
            assert workspace.is_ignored(name)
            with pytest.raises(DeniedError, match="is hidden from you"):
                workspace.read_bytes(name)
        (root / "d").write_text("D")
        assert not workspace.is_ignored("d")
        assert workspace.read_bytes("d") == b"D"
    (root / ".gooseignore").unlink()
    async with create_confined(root)[0] as workspace:
        assert not workspace.is_ignored("a.key")


async def test_full_mode_has_no_jail(root: Path, tmp_path: Path) -> None:
    async with Workspace(root, mode="full", approval="auto", notifier=Recorder()) as workspace:
        await workspace.write_bytes(tmp_path / "outside", b"x")
        assert workspace.read_bytes(tmp_path / "outside") == b"x"
        assert workspace.resolve("/tmp/x") == Path("/tmp/x")
