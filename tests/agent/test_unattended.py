"""Approval mode `unattended`: no question of any kind reaches the front-end."""

from pathlib import Path
from typing import get_args

import pytest
from typing_extensions import override

from goose_like.agent.build import build_exchange
from goose_like.config.profile import PermissionLists, Profile, WorkspaceSettings
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer, PermissionKind, Question, TurnStarted
from goose_like.core.message import Message
from goose_like.core.notifier import Recorder
from goose_like.workspace.permissions.policy import APPROVALS, MODES
from goose_like.workspace.workspace import Workspace

KINDS = [kind for literal in get_args(Question.model_fields["kind"].annotation) for kind in get_args(literal)]
PERMISSIONS = get_args(PermissionKind)


class Absent(Recorder):
    """A front-end that must not be asked: an answer would never come."""

    @override
    async def ask(self, question: Question) -> Answer:
        pytest.fail(f"asked: {question}")


@pytest.mark.parametrize("kind", KINDS)
async def test_no_kind_of_question_waits(home: Path, tmp_path: Path, kind: str) -> None:
    front_end = Absent()
    script = tmp_path / "model.yaml"
    script.write_text("- hi\n")
    profile = Profile.model_validate(
        {"processor": f"scripted:{script}", "sandbox": "full", "approval": "unattended", "toolkits": ()}
    )
    async with build_exchange(profile, front_end, folder=tmp_path) as exchange:
        exchange.journal.emit(TurnStarted(message=Message.user("go")))  # questions about hosts need a turn
        question = Question(kind=kind, subject="x", text="May I?")
        assert await exchange.journal.ask(question) == Answer(choice="deny", by="nobody")
        assert [event.type for event in front_end.events][-2:] == ["asked", "answered"]
        is_refusal = kind != "text"
        assert exchange.history.unanswered_questions == [question] * is_refusal


SUBJECTS = {
    "command": "make build",
    "change": "docs/a.md",
    "outside": "/elsewhere/a[1].md",
    "domain": "example.org:8443",
    "tool": 'look {"x": 1}',
}


def open_workspace(root: Path, notifier: Recorder, mode: str, approval: str, rule: str = "") -> Workspace:
    rules = PermissionLists(allow=tuple(filter(None, [rule])))
    settings = WorkspaceSettings(permissions=rules)
    return Workspace(root, mode=mode, approval=approval, notifier=notifier, settings=settings)


async def require(workspace: Workspace, kind: PermissionKind) -> None:
    subject = SUBJECTS.get(kind, "x")
    line = subject if kind == "command" else None
    await workspace._permissions.require(kind, subject, subject, line=line)


@pytest.mark.parametrize("approval", ["ask", "unattended"])
@pytest.mark.parametrize("kind", PERMISSIONS)
async def test_what_a_question_says_would_allow_the_action_does_so(
    home: Path, tmp_path: Path, kind: PermissionKind, approval: str
) -> None:
    nobody = Recorder()
    async with open_workspace(tmp_path, nobody, "workspace", approval) as workspace:
        if workspace._permissions.decide(kind) == "allow":
            await require(workspace, kind)
            return
        with pytest.raises(DeniedError) as denied:
            await require(workspace, kind)
        (question,) = nobody.questions
        assert f"(allowed by: {question.allowed_by})" in str(denied.value)
    allowed_by = question.allowed_by
    mode = next((mode for mode in MODES if allowed_by == f"sandbox {mode}"), "workspace")
    wanted = next((mode for mode in APPROVALS if allowed_by == f"approval {mode}"), approval)
    rule = allowed_by.removeprefix("the rule ") if allowed_by.startswith("the rule ") else ""
    assert rule or (mode, wanted) != ("workspace", approval)
    async with open_workspace(tmp_path, Absent(), mode, wanted, rule) as workspace:
        await require(workspace, kind)


async def test_a_rule_that_asks_is_what_has_to_change(home: Path, tmp_path: Path) -> None:
    nobody = Recorder()
    settings = WorkspaceSettings(permissions=PermissionLists(ask=("git push",)))
    async with Workspace(
        tmp_path, mode="workspace", approval="unattended", notifier=nobody, settings=settings
    ) as workspace:
        with pytest.raises(DeniedError, match="allowed by: a change of the rule"):
            await workspace._permissions.require("command", "git push", "run: git push", line="git push")
    assert "`ask: git push`" in nobody.questions[0].allowed_by
