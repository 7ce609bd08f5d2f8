"""The workspace: who is asked, what commands see, which files may be written, and what is undone afterwards."""

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from goose_like.config.secrets import is_secret_variable
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace import sandbox
from goose_like.workspace.environment import build_environment
from goose_like.workspace.policy import decide
from goose_like.workspace.workspace import Workspace
from tests import ROOT

needs_sandbox = pytest.mark.skipif(
    sandbox.find_sandbox_problem() is not None, reason=str(sandbox.find_sandbox_problem())
)

ONCE = Answer(choice="allow", by="person")
ALWAYS = Answer(choice="allow_session", by="person")
GIT = "git -c user.name=n -c user.email=e"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "goose"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def confined(root: Path, answer: Answer = Answer()) -> tuple[Workspace, Recorder]:
    recorder = Recorder(answer)
    return Workspace(root, mode="workspace", approval="auto", notifier=recorder), recorder


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with confined(root)[0] as workspace:
        yield workspace


async def sh(workspace: Workspace, script: str, **options: object) -> tuple[int, str]:
    process = await workspace.spawn(["bash", "-c", script], **options)  # type: ignore[arg-type]
    output = b""
    while chunk := await process.read():
        output += chunk
    return await process.wait(), output.decode()


# --- questions


def test_policy() -> None:
    for kind in ("network", "outside", "repository", "sandbox"):
        assert decide(kind, "workspace", "auto") == "ask"
        assert decide(kind, "workspace", "yolo") == "allow"
        assert decide(kind, "full", "auto") == "allow"


async def test_a_refusal_says_what_to_do(workspace: Workspace) -> None:
    with pytest.raises(DeniedError, match=r"network access for: curl x: nobody is there.*without the network"):
        await workspace.spawn(["curl", "x"], access="network")
    with pytest.raises(DeniedError, match="inside the sandbox"):
        await workspace.spawn(["true"], access="full")


async def test_answers_are_remembered_by_kind(root: Path) -> None:
    for answer, count in ((ONCE, 2), (ALWAYS, 1)):
        workspace, recorder = confined(root, answer)
        async with workspace:
            await workspace.require_permission("network", "a", "a")
            await workspace.require_permission("network", "b", "b")
            assert len(recorder.questions) == count
            await workspace.require_permission("outside", "c", "c")
            assert recorder.questions[-1].kind == "outside"


async def test_one_question_at_a_time(root: Path) -> None:
    open_ = 0

    class Slow(Recorder):
        async def ask(self, question: object) -> Answer:
            nonlocal open_
            open_ += 1
            assert open_ == 1
            await asyncio.sleep(0.01)
            open_ -= 1
            return ONCE

    workspace = Workspace(root, mode="workspace", approval="auto", notifier=Slow())
    async with workspace:
        await asyncio.gather(*(workspace.require_permission("network", str(n), "x") for n in range(5)))


@needs_sandbox
async def test_full_access_when_granted(root: Path, tmp_path: Path) -> None:
    workspace, recorder = confined(root, ONCE)
    async with workspace:
        assert (await sh(workspace, f"echo x > {tmp_path}/out", access="full"))[0] == 0
        assert (tmp_path / "out").exists()
        assert [question.kind for question in recorder.questions] == ["sandbox"]
        assert (await sh(workspace, f"echo x > {tmp_path}/out2"))[0] in (0, 1)
        assert not (tmp_path / "out2").exists()


# --- the environment


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(
            (name, True)
            for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "PGPASSWORD")
        ),
        *((name, True) for name in ("OPENAIKEY", "GH_PAT", "SESSION_JWT", "NPM_CONFIG__AUTH", "OP_SESSION_mine")),
        *((name, False) for name in ("KEYBOARD_LAYOUT", "MONKEYS", "TOKENIZERS_PARALLELISM", "PATH", "PWD", "HOME")),
    ],
)
def test_secret_names(name: str, expected: bool) -> None:
    assert is_secret_variable(name) is expected


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://me:pass@host/simple", "https://host/simple"),
        ("https://token@host/", "https://host/"),
        ("postgres://me:pass@db:5432/x", "postgres://db:5432/x"),
        ("ssh://git@host/repo", "ssh://git@host/repo"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_urls_lose_user_and_password(monkeypatch: pytest.MonkeyPatch, url: str, seen: str) -> None:
    monkeypatch.setenv("SOME_URL", url)
    assert build_environment(is_confined=True)["SOME_URL"] == seen


@needs_sandbox
@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_commands_see_no_secrets(root: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "TOPSECRET")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/TOPSECRET")
    monkeypatch.setenv("MONKEYS", "12")
    async with Workspace(root, mode=mode, approval="auto", notifier=Recorder()) as workspace:  # type: ignore[arg-type]
        _, output = await sh(workspace, "env; cat /proc/$PPID/environ; rg --version", env={"MINE": "given"})
    assert "TOPSECRET" not in output
    assert "MONKEYS=12" in output
    assert "MINE=given" in output
    assert "ripgrep" in output


def test_rg_is_found_without_the_persons_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert build_environment(is_confined=True)["PATH"].startswith("/nowhere:")


@needs_sandbox
async def test_no_editor_and_no_prompt(workspace: Workspace) -> None:
    code, output = await sh(workspace, f"git init -q . && {GIT} commit --allow-empty")
    assert code != 0
    assert "no editor here" in output
    assert (await sh(workspace, "read -t 5 line < /dev/tty"))[0] != 0


# --- files


@needs_sandbox
async def test_tmp_is_the_commands_tmp(workspace: Workspace, root: Path) -> None:
    await sh(workspace, "echo one > /tmp/a; ln -s /tmp/a /tmp/link; ln -s /tmp/a ./link")
    for name in ("/tmp/a", "/tmp/link", "link", root / "link"):
        assert workspace.read_bytes(name) == b"one\n"
    await workspace.write_bytes("/tmp/b", b"two")
    assert (await sh(workspace, "cat /tmp/b"))[1] == "two"


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
    async with confined(home)[0] as workspace:
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
        workspace, recorder = confined(root, answer)
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


async def test_a_folder_that_becomes_a_link_is_not_followed(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    """Somebody swaps a folder for a link to elsewhere, all the time, while files are written into it."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (root / "folder").mkdir()
    (root / "link").symlink_to(victim)
    is_over = threading.Event()

    exchange, here = 2, -100  # renameat2(2): RENAME_EXCHANGE, AT_FDCWD
    names = [os.fsencode(root / name) for name in ("folder", "link")]

    def swap() -> None:
        while not is_over.is_set():
            ctypes.CDLL(None).renameat2(here, names[0], here, names[1], exchange)

    thread = threading.Thread(target=swap)
    thread.start()
    written = 0
    try:
        for number in range(3000):
            try:
                await workspace.write_bytes(root / "folder/file", b"%d" % number)
                written += 1
            except (GooseLikeError, OSError):
                pass
    finally:
        is_over.set()
        thread.join()
    assert written
    assert list(victim.iterdir()) == []


async def test_full_mode_has_no_jail(root: Path, tmp_path: Path) -> None:
    async with Workspace(root, mode="full", approval="auto", notifier=Recorder()) as workspace:
        await workspace.write_bytes(tmp_path / "outside", b"x")
        assert workspace.read_bytes(tmp_path / "outside") == b"x"
        assert workspace.resolve("/tmp/x") == Path("/tmp/x")


# --- changes


async def test_listeners_come_first(workspace: Workspace, root: Path) -> None:
    heard: list[tuple[Path | None, tuple[str, ...]]] = []

    async def listen(path: Path | None, argv: Sequence[str]) -> None:
        assert not (root / "f").exists()
        heard.append((path, tuple(argv)))

    workspace.add_change_listener(listen)
    await workspace.write_bytes("f", b"x")
    (root / "f").unlink()
    await workspace.spawn(["true"])
    await workspace.spawn(["true"], writes=False)
    assert heard == [(root / "f", ()), (None, ("true",))]


@pytest.fixture
def project(root: Path) -> Path:
    """A repository that is there before the session."""
    subprocess.run(["git", "init", "-q", str(root / "project")], check=True)
    return root / "project"


ATTACKS = {
    "hook": "git init -q r && echo evil > r/.git/hooks/pre-commit && chmod +x r/.git/hooks/pre-commit",
    "hooks link": "git init -q r && rm -r r/.git/hooks && mkdir b && echo evil >b/update && ln -s ../../b r/.git/hooks",
    "setting": "git init -q r && git -C r config core.fsmonitor evil",
    "include": "git init -q r && git -C r config include.path ../../evil",
    "alias": "git init -q r && git -C r config alias.st '!evil'",
    "broken": "git init -q r && echo '[evil' > r/.git/config",
    "bare": "git init -q --bare r && git -C r config core.sshCommand evil",
    "hidden deep": "git init -q node_modules/a/r && echo evil > node_modules/a/r/.git/hooks/post-checkout",
    "worktree setting": "git init -q r && cd r; git config extensions.worktreeConfig 1; git config --worktree a.b evil",
    "pointer": "git init -q /tmp/evil && mkdir r && echo 'gitdir: /tmp/evil/.git' > r/.git",
    "common": "git init -q r && git init -q /tmp/evil && echo /tmp/evil/.git > r/.git/commondir",
    "replaced": "git clone -q project copy 2>/dev/null; cp -r project/.git other; echo evil > other/hooks/update",
}


def dangers(root: Path) -> list[str]:
    """What is left in effect of an attack."""
    found = []
    for folder, _, _ in os.walk(root):
        if Path(folder, "hooks").is_dir():
            found += [name for name in os.listdir(Path(folder, "hooks")) if not name.endswith((".sample", ".refused"))]
    text = "".join(path.read_text() for path in root.rglob("config*") if path.is_file() and path.suffix != ".refused")
    links = [
        str(path) for path in root.rglob("*") if path.name in ("commondir",) or (path.name == ".git" and path.is_file())
    ]
    return found + ([text] if "evil" in text else []) + links


@needs_sandbox
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_new_repositories_are_looked_at(root: Path, project: Path, attack: str) -> None:
    workspace, recorder = confined(root)
    async with workspace:
        await sh(workspace, attack)
        assert dangers(root)
        told = await workspace.inspect_changes(None)
        assert told
        assert "disabled" in told[0]
        assert recorder.questions[0].kind == "repository"
        assert dangers(root) == []
        assert await workspace.inspect_changes(None) == []


@needs_sandbox
async def test_what_a_person_allows_stays(root: Path) -> None:
    workspace, recorder = confined(root, ONCE)
    async with workspace:
        await sh(workspace, ATTACKS["hook"])
        assert await workspace.inspect_changes(None) == []
        assert await workspace.inspect_changes(None) == []
        assert len(recorder.questions) == 1
        assert "hook pre-commit" in recorder.questions[0].text
        await sh(workspace, "echo worse > r/.git/hooks/pre-commit")
        await workspace.inspect_changes(None)
        assert len(recorder.questions) == 2


@needs_sandbox
async def test_ordinary_git_is_not_asked_about(root: Path) -> None:
    workspace, recorder = confined(root)
    async with workspace:
        code, output = await sh(
            workspace,
            """set -e
            git init -q a; cd a; git config user.name n; git config user.email e
            git commit -q --allow-empty -m one; git checkout -q -b topic; git worktree add -q ../tree
            cd ..; git clone -q a b; git -C b branch --set-upstream-to=origin/topic
            git -C a -c protocol.file.allow=always submodule --quiet add ../b sub""",
        )
        assert code == 0, output
        assert await workspace.inspect_changes(None) == []
    assert recorder.questions == []


STUBBORN = {
    "a folder that is closed": "git init -q b && echo evil > b/.git/hooks/pre-commit && chmod 555 b/.git/hooks",
    "the name is taken": "git init -q b && cd b/.git/hooks && echo evil > update && mkdir -p update.refused/x",
    "the settings are locked": "git init -q b && cd b/.git && git config core.fsmonitor evil && mkdir -p config.lock "
    "config.refused/x",
}


@needs_sandbox
@pytest.mark.parametrize("attack", STUBBORN.values(), ids=STUBBORN)
async def test_what_resists_is_put_out_of_effect_too(root: Path, attack: str) -> None:
    workspace, _ = confined(root)
    async with workspace:
        await sh(workspace, attack)
        (told,) = await workspace.inspect_changes(None)
        assert "disabled" in told
    assert not (root / "b/.git/hooks/pre-commit").exists()
    assert not (root / "b/.git/hooks/update").exists()
    config = root / "b/.git/config"
    assert not config.exists() or "evil" not in config.read_text()


@needs_sandbox
async def test_the_last_look_is_at_the_end(root: Path) -> None:
    workspace, recorder = confined(root)
    async with workspace:
        await sh(workspace, ATTACKS["hook"])
    assert dangers(root) == []
    assert recorder.questions == []
    assert "disabled" in str(recorder.events)


@needs_sandbox
async def test_the_last_look_comes_when_only_files_were_written_too(root: Path) -> None:
    workspace, _ = confined(root)
    async with workspace:
        await workspace.write_bytes("r/config", b"[core]\nfsmonitor = evil\n")  # as yet a file like any other
        for name in ("HEAD", "objects/x", "refs/x"):
            await workspace.write_bytes(f"r/{name}", b"")
        assert dangers(root)
    assert dangers(root) == []


@needs_sandbox
async def test_what_killed_sessions_left_is_removed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr("goose_like.workspace.private_tmp._UNLOCKED_S", -1)
    old, other = tmp_path / "tmp/goose-like-tmp-old", tmp_path / "tmp/somebody"
    old.mkdir(parents=True)
    other.mkdir()
    living, _ = confined(root)
    async with living, confined(root)[0] as workspace:
        assert living.tmp.exists()
        await sh(workspace, "true")
        assert workspace.tmp.parent == old.parent
        await workspace.close()
        assert living.tmp.exists()
    assert (old.exists(), other.exists()) == (False, True)


@needs_sandbox
async def test_warm_and_close_leave_nothing(root: Path) -> None:
    workspace, _ = confined(root)
    await workspace.prepare_sandbox()
    await sh(workspace, "sleep 300 &")
    folder = workspace.tmp
    assert folder.exists()
    await workspace.close()
    assert not folder.exists()
    await workspace.close()


@needs_sandbox
def test_the_environment_that_we_run_from_is_not_writable(root: Path) -> None:
    """A workspace that holds the very virtual environment in which goose_like runs, as in the README."""
    venv = root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    paths = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    probe = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from goose_like.core.notifier import Recorder\n"
        "from goose_like.workspace.workspace import Workspace\n"
        "async def main():\n"
        f"    root = Path({str(root)!r})\n"
        "    async with Workspace(root, mode='workspace', approval='auto', notifier=Recorder()) as workspace:\n"
        "        line = 'echo x > .venv/bin/goose-like; echo y > beside.txt'\n"
        "        process = await workspace.spawn(['bash', '-c', line])\n"
        "        while await process.read(): pass\n"
        "        await process.wait()\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([venv / "bin" / "python", "-c", probe], check=True, cwd=root, env={"PYTHONPATH": ":".join(paths)})
    assert (root / "beside.txt").exists()
    assert not (venv / "bin" / "goose-like").exists()
