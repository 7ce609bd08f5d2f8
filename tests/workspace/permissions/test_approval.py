"""Each approval mode and sandbox in a real workspace: rights of commands and tools, and questions."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from goose_like.config import trust
from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.errors import DeniedError, GooseLikeError, SandboxError
from goose_like.core.events import Answer, Question
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.sessions.session import Session
from goose_like.workspace.sandbox import bubblewrap, landlock
from goose_like.workspace.workspace import Workspace
from tests.toolkits.developer.developer_harness import DeveloperHarness

pytestmark = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)

NO = Answer(choice="deny", by="person")
ONCE = Answer(choice="allow", by="person")
SESSION = Answer(choice="allow_prefix", by="person")
ALWAYS = Answer(choice="allow_always", by="person")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("one\ntwo\n")
    return folder


@asynccontextmanager
async def open_harness(
    root: Path, mode: SandboxMode = "workspace", approval: ApprovalMode = "auto", answer: Answer = NO
) -> AsyncIterator[DeveloperHarness]:
    recorder = Recorder(answer)
    session = Session(root.parent / "session", "n", History())
    async with Workspace(root, mode=mode, approval=approval, notifier=recorder) as workspace:
        desk = DeveloperHarness(workspace.root, session, workspace, recorder)
        yield desk
        await desk.toolkit.close()


def list_question_kinds(desk: DeveloperHarness) -> list[str]:
    return [question.kind for question in desk.recorder.questions]


def connect(port: int) -> str:
    return f"echo hi > /dev/tcp/127.0.0.1/{port} && echo connected"


TRIES: dict[str, Callable[[DeveloperHarness], Awaitable[object]]] = {
    "a command": lambda desk: desk.outcome("shell", command="echo x > new.txt; echo x >> old.txt; rm old.txt; mkdir d"),
    "a command with network": lambda desk: desk.outcome("shell", command="echo x > new.txt", access="network"),
    "a new file": lambda desk: desk.outcome("write_file", path="new.txt", content="x"),
    "a file outside": lambda desk: desk.outcome("write_file", path=f"{desk.root.parent}/outside", content="x"),
    "a patch": lambda desk: desk.outcome("patch_file", path="old.txt", patches=[{"before": "one", "after": "x"}]),
    "a stranger's toolkit": lambda desk: desk.workspace.write_bytes("new.txt", b"x"),
    "a command without sandbox": lambda desk: desk.workspace.spawn(["touch", "new.txt"], access="full"),
}


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("way", TRIES)
@pytest.mark.parametrize(
    ("mode", "approval"),
    [("workspace", "plan"), ("full", "plan"), ("read-only", "auto"), ("read-only", "ask"), ("read-only", "yolo")],
)
async def test_nothing_is_changed_whatever_a_person_says(
    root: Path, mode: SandboxMode, approval: ApprovalMode, way: str
) -> None:
    before = read_files(root)
    async with open_harness(root, mode, approval, ALWAYS) as desk:
        try:
            await TRIES[way](desk)
        except DeniedError as error:
            assert "this session forbids it" in str(error)  # noqa: PT017
        assert set(list_question_kinds(desk)) <= {"network"}
    assert read_files(root) == before
    assert not (root.parent / "outside").exists()


async def test_looking_works_in_plan(root: Path) -> None:
    async with open_harness(root, "workspace", "plan") as desk:
        assert "two" in await desk.call_ok("read_file", path="old.txt")
        assert "say what you would change" in await desk.shell("touch new.txt")
        await desk.shell("cat old.txt; cd /tmp; echo scratch > file")
        assert await desk.shell("pwd; cat file") == "/tmp\nscratch"


async def test_plan_has_no_network_and_nobody_is_asked(root: Path) -> None:
    async with open_harness(root, "workspace+network", "plan", ALWAYS) as desk:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            command = connect(listener.getsockname()[1])
            assert "connected" not in await desk.shell(command)
            assert "this session forbids it" in await desk.call_error("shell", command=command, access="network")
        assert "access=" not in await desk.shell("echo Network is unreachable; false")
    assert list_question_kinds(desk) == []


@pytest.fixture
def repository(root: Path) -> Path:
    """A repository without a hooks folder, which a writing session creates to protect it."""
    subprocess.run(["git", "init", "-q", "--template=", root], check=True)
    return root


async def test_our_own_preparations_write_nothing_in_plan(root: Path, repository: Path) -> None:
    async with open_harness(root, "workspace", "plan") as desk:
        await desk.shell("git status")
    assert not (root / ".git/hooks").exists()
    async with open_harness(root) as desk:
        await desk.shell("git status")
    assert (root / ".git/hooks").exists()


@pytest.mark.parametrize(("mode", "approval"), [("workspace", "plan"), ("read-only", "auto")])
async def test_without_a_sandbox_nothing_promises_to_be_read_only(
    root: Path, mode: SandboxMode, approval: ApprovalMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: None)
    monkeypatch.setattr(landlock, "find_landlock_problem", lambda: "no Landlock here")
    workspace = Workspace(root, mode=mode, approval=approval, notifier=Recorder(ONCE))
    async with workspace:
        with pytest.raises(SandboxError, match="nothing can be made read-only"):
            await workspace.prepare_sandbox()


async def test_a_read_only_sandbox_with_network_connects_and_writes_nothing(root: Path) -> None:
    async with open_harness(root, "read-only", "auto", ONCE) as desk:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            command = f"{connect(listener.getsockname()[1])}; touch new.txt"
            assert "connected" in await desk.shell(command, access="network")
            assert "connected" not in await desk.shell(command)
    assert list_question_kinds(desk) == ["network"]
    assert not (root / "new.txt").exists()


async def test_workspace_with_network_connects_and_writes_no_more(root: Path) -> None:
    outside = Path("/etc/goose-like-test")
    async with open_harness(root, "workspace+network") as desk:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            command = connect(listener.getsockname()[1])
            assert "connected" in await desk.shell(command)
            assert "connected" in await desk.shell(command, access="network")
        assert list_question_kinds(desk) == []
        await desk.shell(f"echo x > {outside}; echo x > {sys.prefix}/outside; echo x > in.txt")
        assert "not allowed" in await desk.call_error("write_file", path=str(outside), content="x")
        assert list_question_kinds(desk) == ["outside"]
    assert not [place for place in (outside, Path(sys.prefix, "outside")) if place.exists()]
    assert (root / "in.txt").exists()


# --- ask


async def test_ask_shows_each_command_and_runs_none_that_is_refused(root: Path) -> None:
    async with open_harness(root, "workspace", "ask", NO) as desk:
        command = "echo one\necho x > new.txt"
        assert "the person said no" in await desk.call_error("shell", command=command)
    (question,) = desk.recorder.questions
    assert (question.kind, question.subject, question.text) == ("command", command, f"run: {command}")
    assert not (root / "new.txt").exists()


@pytest.mark.parametrize("mode", ["workspace", "workspace+network", "full"])
async def test_ask_asks_once_for_each_command(root: Path, mode: SandboxMode) -> None:
    async with open_harness(root, mode, "ask", ONCE) as desk:
        await desk.shell("echo x > new.txt")
        await desk.shell("echo x > new.txt")
        await desk.shell("date", access="network")
    assert list_question_kinds(desk) == ["command", "command", "network" if mode == "workspace" else "command"]
    assert (root / "new.txt").exists()


async def test_a_prefix_holds_for_the_session_and_for_no_other_command(root: Path) -> None:
    async with open_harness(root, "workspace", "ask", SESSION) as desk:
        await desk.shell("expr 1", access="network")
        desk.recorder._answer = NO
        await desk.shell("expr 2", access="network")
        for command in ("touch new.txt", "expr 1; touch new.txt", "expr 1 > new.txt", "PATH=. expr 1"):
            assert "the person said no" in await desk.call_error("shell", command=command, access="network")
        assert "the person said no" in await desk.call_error("shell", command="expr 1")
    assert list_question_kinds(desk) == [*["network"] * 5, "command"]
    assert [question.prefix for question in desk.recorder.questions] == [
        "expr",
        "touch",
        "expr, touch",
        "",
        "",
        "expr",
    ]
    assert not (root / "new.txt").exists()


async def test_a_prefix_with_network_does_not_hold_in_another_folder(root: Path) -> None:
    async with open_harness(root, "workspace", "auto", SESSION) as desk:
        await desk.shell("ls", access="network")
        await desk.shell("mkdir -p sub && cd sub")
        await desk.shell("ls", access="network")
        await desk.shell("ls -l", access="network")
    assert [question.prefix for question in desk.recorder.questions] == ["ls", f"cd {root}/sub, ls"]


async def test_a_file_that_was_allowed_for_the_session_is_asked_about_once(root: Path) -> None:
    async with open_harness(root, "workspace", "ask", SESSION) as desk:
        for content in ("x", "y"):
            await desk.call_ok("write_file", path="new.txt", content=content)
        await desk.call_ok("write_file", path="other.txt", content="x")
    assert [Path(question.subject).name for question in desk.recorder.questions] == ["new.txt", "other.txt"]


async def test_a_reason_for_no_reaches_the_model(root: Path) -> None:
    no = Answer(choice="deny", by="person", text="use the file")
    async with open_harness(root, "workspace", "ask", no) as desk:
        assert "the person said no: use the file;" in await desk.call_error("shell", command="date")


async def test_ask_spares_what_only_reads(root: Path) -> None:
    async with open_harness(root, "workspace", "ask", NO) as desk:
        assert "old.txt" in await desk.shell("ls")
        assert "two" in await desk.shell("cat old.txt | tail -1")
        await desk.call_error("shell", command="mkdir /tmp/d 2>/dev/null; cd /tmp && ls")
    assert [question.text for question in desk.recorder.questions] == ["run: mkdir /tmp/d 2>/dev/null; cd /tmp && ls"]


@pytest.mark.parametrize(
    "first",
    [
        "cat() { echo x > new.txt; }; export -f cat",
        "mkdir b; printf '#!/bin/sh\\necho x > new.txt' > b/cat; chmod +x b/cat; export PATH=$PWD/b:$PATH",
        "export LD_PRELOAD=$PWD/x.so",
        "export BASH_ENV=$PWD/x",
        "export GIT_EXTERNAL_DIFF=$PWD/x",
    ],
)
async def test_ask_spares_nothing_after_a_command_that_changes_programs(root: Path, first: str) -> None:
    async with open_harness(root, "workspace", "ask", ONCE) as desk:
        await desk.shell(first)
        desk.recorder._answer = NO
        assert "the person said no" in await desk.call_error("shell", command="cat old.txt")
        assert "the person said no" in await desk.call_error("shell", command="git diff")
    assert not (root / "new.txt").exists()


async def test_ask_spares_git_in_no_other_folder(root: Path) -> None:
    (root / "sub").mkdir()
    async with open_harness(root, "workspace", "ask", NO) as desk:
        await desk.shell("cd sub")
        assert "the person said no" in await desk.call_error("shell", command="git status")
        await desk.shell("cd ..")
        (root / "HEAD").touch()
        assert "the person said no" in await desk.call_error("shell", command="git log")
    assert len(desk.recorder.questions) == 2


@pytest.mark.parametrize("folder", [".", "", "bin"])
async def test_ask_spares_nothing_with_a_relative_folder_in_the_path(
    root: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    async with open_harness(root, "workspace", "ask", NO) as desk:
        assert "the person said no" in await desk.call_error("shell", command="cd sub && ls")


async def test_ask_without_a_sandbox_spares_nothing(root: Path) -> None:
    async with open_harness(root, "full", "ask", NO) as desk:
        assert "the person said no" in await desk.call_error("shell", command="cat old.txt")


async def test_ask_shows_what_a_file_becomes(root: Path) -> None:
    async with open_harness(root, "workspace", "ask", NO) as desk:
        report = await desk.call_error("patch_file", path="old.txt", patches=[{"before": "two", "after": "2"}])
        assert "the person said no" in report
        await desk.call_error("write_file", path="new.txt", content="x\r\n")
    first, second = desk.recorder.questions
    assert (first.kind, first.subject) == ("change", f"{root}/old.txt")
    assert first.detail.splitlines()[1:] == [" one", "-two", "+2"]
    assert second.detail.split("\n")[1:] == ["+x\r"]
    assert read_files(root) == {"old.txt": b"one\ntwo\n"}


async def test_a_file_that_changes_while_the_question_is_open_is_not_written_over(root: Path) -> None:
    class Meanwhile(Recorder):
        async def ask(self, question: Question) -> Answer:
            (root / "old.txt").write_text("the person's own\n")
            return ONCE

    async with Workspace(root, mode="workspace", approval="ask", notifier=Meanwhile()) as workspace:
        with pytest.raises(GooseLikeError, match="changed while the question was open"):
            await workspace.write_bytes("old.txt", b"x")
    assert (root / "old.txt").read_text() == "the person's own\n"


# --- answers for good


async def run_and_list_questions(root: Path, command: str, answer: Answer) -> list[str]:
    """Run a command with network in a new session, and list the kinds of its questions."""
    async with open_harness(root, answer=answer) as desk:
        await desk.outcome("shell", command=command, access="network")
    return list_question_kinds(desk)


async def test_an_answer_for_good_lasts_for_just_that_until_it_is_forgotten(root: Path, home: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    assert await run_and_list_questions(root, "true one", ALWAYS) == ["network"]
    assert await run_and_list_questions(root, "true one", NO) == []
    assert await run_and_list_questions(root, "true one two", NO) == ["network"]
    assert await run_and_list_questions(other, "true one", NO) == ["network"]
    (approval,) = trust.load_folder_trust(root).approvals
    assert (approval.kind, approval.subject) == ("network", "true one")
    assert oct((home / "config/trust.json").stat().st_mode & 0o777) == "0o600"
    trust.revoke(root, approval)
    assert await run_and_list_questions(root, "true one", NO) == ["network"]


@pytest.mark.parametrize("answer", [ONCE, SESSION])
async def test_other_answers_do_not_last(root: Path, answer: Answer) -> None:
    assert await run_and_list_questions(root, "true", answer) == ["network"]
    assert await run_and_list_questions(root, "true", NO) == ["network"]


async def test_hooks_are_never_allowed_for_good(root: Path) -> None:
    for _ in range(2):
        async with open_harness(root, answer=ALWAYS) as desk:
            await desk.shell("git init -q r; echo evil > r/.git/hooks/pre-commit")
            await desk.workspace.inspect_changes(None)
        assert list_question_kinds(desk) == ["repository"]
        shutil.rmtree(root / "r")
    assert trust.load_trust() == {}


async def test_a_command_can_not_answer_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "work/.g"))
    (tmp_path / "work").mkdir()
    async with open_harness(tmp_path / "work") as desk:
        await desk.outcome("shell", command="mkdir -p .g/config; mv .g other; echo '{}' > .g/config/trust.json")
        assert list((tmp_path / "work/.g/config").iterdir()) == []
        assert "protected" in await desk.call_error("write_file", path=".g/config/trust.json", content="{}")


# --- text that is typed into a process


async def test_ask_asks_about_each_text_for_a_process(root: Path) -> None:
    async with open_harness(root, "workspace", "ask", SESSION) as desk:
        await desk.call_ok("process", action="start", command="bash")
        await desk.call_ok("process", action="write", id="p1", text="ls")
        desk.recorder._answer = NO
        assert "the person said no" in await desk.call_error("process", action="write", id="p1", text="ls")
        assert "the person said no" in await desk.call_error("process", action="write", id="p1", text="touch new.txt")
    started, first, second, last = desk.recorder.questions
    assert started.text == "run: bash"
    assert (first.text, first.detail, first.prefix) == (
        "type into process p1 (bash): ls\n",
        "nothing was typed before",
        "",
    )
    assert (second.detail, last.text) == ("typed before:\nls\n", "type into process p1 (bash): touch new.txt\n")
    assert not (root / "new.txt").exists()


@pytest.mark.parametrize("texts", [["rm -rf old.txt"], ["rm \\", "-rf old.txt"], ["f() {", "rm -rf old.txt", "}"]])
async def test_a_rule_that_denies_holds_for_typed_text(root: Path, texts: list[str]) -> None:
    trust.store_rule(root, "rm -rf", "deny")
    async with open_harness(root, "workspace", "auto", ONCE) as desk:
        await desk.call_ok("process", action="start", command="bash")
        outcomes = [await desk.outcome("process", action="write", id="p1", text=text) for text in texts]
    assert [outcome.output for outcome in outcomes if "a rule forbids it" in outcome.output]
    assert (root / "old.txt").exists()
