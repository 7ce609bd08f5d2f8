"""Permissions: the policy decides, the person answers, and answers are remembered."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from goose_like.config.paths import config_folder
from goose_like.config.profile import ApprovalMode, PermissionLists, SandboxMode, WorkspaceSettings
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer, Question
from goose_like.core.notifier import Recorder
from goose_like.workspace.permissions.policy import decide
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import ONCE, SESSION, create_confined, needs_sandbox, run_script


def test_policy() -> None:
    for kind in ("network", "domain", "outside", "repository", "sandbox"):
        assert decide(kind, "workspace", "auto") == "ask"
        assert decide(kind, "workspace", "yolo") == "allow"
        assert decide(kind, "full", "auto") == "allow"


async def test_a_refusal_says_what_to_do(workspace: Workspace) -> None:
    with pytest.raises(DeniedError, match=r"network access for: curl x: nobody is there.*without the network"):
        await workspace.spawn(["curl", "x"], access="network")
    with pytest.raises(DeniedError, match="inside the sandbox"):
        await workspace.spawn(["true"], access="full")


async def test_no_answer_allows_a_whole_kind(root: Path) -> None:
    for answer, count in ((ONCE, 3), (SESSION, 2)):
        workspace, recorder = create_confined(root, answer)
        async with workspace:
            for host in ("a", "b", "a"):
                await workspace.require_permission("domain", host, host)
            assert len(recorder.questions) == count
            await workspace.require_permission("outside", "a", "a")
            assert recorder.questions[-1].kind == "outside"


async def test_rights_beyond_the_sandbox_are_granted_one_by_one(root: Path) -> None:
    workspace, recorder = create_confined(root, SESSION)
    async with workspace:
        for _ in range(2):
            for kind in ("sandbox", "repository", "install", "network"):
                await workspace.require_permission(kind, "a", "a")
    assert [question.prefix for question in recorder.questions] == [""] * 8


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


async def test_a_time_out_of_the_front_end_is_no_answer(root: Path) -> None:
    class Slow(Recorder):
        async def ask(self, question: Question) -> Answer:
            if not self.questions:
                await super().ask(question)
                raise TimeoutError("no screen")
            return ONCE

    async with Workspace(root, mode="workspace", approval="auto", notifier=Slow()) as workspace:
        with pytest.raises(TimeoutError, match="no screen"):
            await workspace.require_permission("network", "x", "x")
        assert await workspace.require_permission("network", "x", "x")


@needs_sandbox
async def test_an_answer_to_the_parent_holds_in_a_narrower_child(root: Path) -> None:
    parent, recorder = open_ruled(root, mode="workspace", answer=SESSION)
    async with parent:
        await run_script(parent, "ls -l", access="network")
        child, child_recorder = open_ruled(root, mode="read-only", parent=parent)
        await run_script(child, "ls -a", access="network")
        with pytest.raises(DeniedError):
            await run_script(child, "touch x", access="network")
        await child.close()
    assert [question.prefix for question in recorder.questions] == ["ls"]
    assert [question.prefix for question in child_recorder.questions] == ["touch x"]


@needs_sandbox
async def test_full_access_when_granted(root: Path, tmp_path: Path) -> None:
    workspace, recorder = create_confined(root, ONCE)
    async with workspace:
        assert (await run_script(workspace, f"echo x > {tmp_path}/out", access="full"))[0] == 0
        assert (tmp_path / "out").exists()
        assert [(question.kind, question.prefix) for question in recorder.questions] == [("sandbox", "")]
        assert (await run_script(workspace, f"echo x > {tmp_path}/out2"))[0] in (0, 1)
        assert not (tmp_path / "out2").exists()


# --- rules


def open_ruled(
    root: Path,
    *,
    approval: ApprovalMode = "auto",
    mode: SandboxMode = "workspace",
    answer: Answer = Answer(),
    parent: Workspace | None = None,
    **lists: tuple[str, ...],
) -> tuple[Workspace, Recorder]:
    recorder, settings = Recorder(answer), WorkspaceSettings(permissions=PermissionLists(**lists))
    return Workspace(root, mode=mode, approval=approval, notifier=recorder, settings=settings, parent=parent), recorder


@needs_sandbox
async def test_a_denied_command_is_refused_whatever_is_granted(root: Path) -> None:
    for approval, mode in (("auto", "workspace"), ("yolo", "full"), ("ask", "workspace")):
        workspace, recorder = open_ruled(root, approval=approval, mode=mode, answer=SESSION, deny=("touch",))
        async with workspace:
            for line in ("touch x", "ls; env touch x", "sh -c 'touch x'"):
                with pytest.raises(
                    DeniedError, match=r"a rule forbids it: `touch x` matches `deny: touch` of the profile"
                ):
                    await run_script(workspace, line)
            await workspace.spawn(["touch", "x"], is_own=True)  # the person typed it
        assert recorder.questions == []


@needs_sandbox
async def test_a_rule_asks_in_every_mode_and_a_prefix_answers_it(root: Path) -> None:
    for approval in ("auto", "yolo"):
        workspace, recorder = open_ruled(root, approval=approval, answer=SESSION, ask=("touch",))
        async with workspace:
            for name in ("x", "y"):
                await run_script(workspace, f"touch -c {name}")
            await run_script(workspace, "ls")
        (question,) = recorder.questions
        assert (question.kind, question.prefix) == ("command", "touch")
        assert question.detail == "asked about because `touch -c x` matches `ask: touch` of the profile"
    workspace, _ = open_ruled(root, approval="plan", answer=ONCE, ask=("ls",))
    async with workspace:
        with pytest.raises(DeniedError, match="this session forbids it"):
            await run_script(workspace, "ls")


@needs_sandbox
async def test_what_cannot_be_parsed_is_asked_about(root: Path) -> None:
    workspace, recorder = open_ruled(root, answer=ONCE, deny=("git push",))
    async with workspace:
        for line in ("$x", "echo 'open", "git $x", "echo ls | sh"):
            await run_script(workspace, line)
    assert len(recorder.questions) == 4


@needs_sandbox
async def test_an_allowed_command_is_not_asked_about_but_gets_no_rights_beyond_the_sandbox(root: Path) -> None:
    workspace, recorder = open_ruled(root, approval="ask", allow=("ls", "path:docs/*", "domain:*.example.org"))
    async with workspace:
        await run_script(workspace, "ls -l")
        await workspace.write_bytes("docs/x", b"x")
        await workspace.require_permission("domain", "www.example.org", "x")
        assert recorder.questions == []
        for refused in (
            run_script(workspace, "ls > x"),
            run_script(workspace, "ls", access="network"),
            run_script(workspace, "ls", access="full"),
            workspace.write_bytes("x", b"x"),
            workspace.require_permission("domain", "example.org", "x"),
            workspace.ask_loss("ls", str(root), "too large"),
        ):
            with pytest.raises(DeniedError):
                await refused
    kinds = [question.kind for question in recorder.questions]
    assert kinds == ["command", "network", "sandbox", "change", "domain", "deletion"]
    assert [question.prefix for question in recorder.questions[1:]] == ["ls", "", "this file", "this host", ""]


async def test_rules_hold_for_files_and_hosts_too(root: Path) -> None:
    workspace, recorder = open_ruled(root, mode="full", deny=("path:*.pem", "domain:*"), ask=("path:/etc/*",))
    async with workspace:
        for refused in (
            workspace.write_bytes("a/key.pem", b"x"),
            workspace.write_bytes("/etc/goose-like-test", b"x"),
            workspace.require_permission("domain", "example.org", "x"),
        ):
            with pytest.raises(DeniedError):
                await refused
    assert [question.kind for question in recorder.questions] == ["change"]


@needs_sandbox
async def test_rules_of_the_trust_file_and_of_the_parent_hold(root: Path) -> None:
    stored = {"folders": {str(root): {"permissions": {"deny": ["touch"]}}}}
    config_folder().mkdir(parents=True, exist_ok=True)
    (config_folder() / "trust.json").write_text(json.dumps(stored))
    workspace, _ = open_ruled(root, deny=("mkdir",))
    async with workspace:
        child, _ = open_ruled(root, allow=("touch", "mkdir"), parent=workspace)
        for line, source in (("touch x", "trust.json"), ("mkdir x", "the profile")):
            for place in (workspace, child):
                with pytest.raises(DeniedError, match=f"of {source}"):
                    await run_script(place, line)
        await child.close()


@needs_sandbox
def test_a_session_without_rules_and_questions_loads_no_parser(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace

async def main():
    async with Workspace({str(tmp_path)!r}, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        await (await workspace.spawn(["bash", "-c", "ls"])).wait()

asyncio.run(main())
print([name for name in sys.modules if "tree_sitter" in name or "permission_rules" in name or "shell_syntax" in name])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
