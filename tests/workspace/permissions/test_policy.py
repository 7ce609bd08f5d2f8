"""The policy: the decision for each kind, sandbox and approval, and its description."""

from itertools import product
from typing import get_args

import pytest

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.events import PermissionKind, Question
from goose_like.workspace.permissions.policy import (
    decide,
    describe_risk,
    describe_rules,
    describe_task,
    effective_sandbox,
    format_refusal,
)
from tests import ROOT

KINDS, SANDBOXES, APPROVALS = get_args(PermissionKind), get_args(SandboxMode), get_args(ApprovalMode)


@pytest.mark.parametrize(
    ("sandbox", "asked", "refused"),
    [
        ("read-only", "network domain install", "change deletion outside repository sandbox"),
        ("workspace", "deletion network domain outside repository sandbox install", ""),
        ("workspace+network", "deletion outside repository sandbox install", ""),
        ("full", "deletion install", ""),
    ],
)
def test_auto(sandbox: SandboxMode, asked: str, refused: str) -> None:
    found = {kind: decide(kind, sandbox, "auto") for kind in KINDS}
    assert {kind for kind in KINDS if found[kind] == "ask"} == set(asked.split())
    assert {kind for kind in KINDS if found[kind] == "refuse"} == set(refused.split())


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_plan_is_read_only_whatever_the_sandbox_and_asks_nothing(sandbox: SandboxMode) -> None:
    assert effective_sandbox(sandbox, "plan") == "read-only"
    assert {kind: decide(kind, sandbox, "plan") for kind in KINDS} == dict.fromkeys(KINDS, "refuse") | {
        "command": "allow",
        "tool": "allow",
    }


@pytest.mark.parametrize("approval", APPROVALS)
def test_no_approval_makes_a_read_only_sandbox_writable(approval: ApprovalMode) -> None:
    assert {decide(kind, "read-only", approval) for kind in ("change", "outside", "repository", "sandbox")} == {
        "refuse"
    }


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_ask_asks_wherever_something_can_be_written(sandbox: SandboxMode) -> None:
    is_writable = sandbox != "read-only"
    assert decide("command", sandbox, "ask") == ("ask" if is_writable else "allow")
    assert decide("change", sandbox, "ask") == ("ask" if is_writable else "refuse")
    for kind in KINDS:
        assert decide(kind, sandbox, "auto") == "allow" or decide(kind, sandbox, "ask") != "allow"


@pytest.mark.parametrize(("kind", "sandbox"), list(product(KINDS, SANDBOXES)))
def test_yolo_never_asks(kind: PermissionKind, sandbox: SandboxMode) -> None:
    assert decide(kind, sandbox, "yolo") != "ask"


@pytest.mark.parametrize(("sandbox", "approval"), list(product(SANDBOXES, APPROVALS)))
def test_the_words_say_what_is_decided(sandbox: SandboxMode, approval: ApprovalMode) -> None:
    words = describe_rules(sandbox, approval)
    assert "\n" not in words
    assert ("may write" in words) == (decide("change", sandbox, approval) != "refuse" and sandbox != "full")
    assert ("change nothing" in words) == (decide("change", sandbox, approval) == "refuse")
    asked = "The person is asked before each change of a file, and each command that does more than read."
    assert (asked in words) == (decide("change", sandbox, approval) == "ask")
    network = decide("network", sandbox, approval)
    assert ("may be granted" in words) == (network == "ask" and approval != "unattended")
    assert ("for hosts that the person allowed before" in words) == (network == "ask" and approval == "unattended")
    assert ("access='network'" in words) == (network != "refuse" and sandbox in ("read-only", "workspace"))
    assert ("can be reached" in words) == (sandbox == "workspace+network" and approval != "plan")


def test_only_plan_changes_the_task_and_only_yolo_warns() -> None:
    assert [approval for approval in APPROVALS if describe_task(approval)] == ["plan"]
    assert {approval for sandbox, approval in product(SANDBOXES, APPROVALS) if describe_risk(sandbox, approval)} == {
        "yolo"
    }
    assert "all your rights" in describe_risk("full", "yolo")
    assert "changes files" not in describe_risk("read-only", "yolo")


@pytest.mark.parametrize("kind", KINDS)
def test_every_refusal_says_what_to_do(kind: PermissionKind) -> None:
    assert format_refusal(kind, "x", "nobody").startswith("not allowed: x: nobody is there to allow it; ")
    assert format_refusal(kind, "x", "person", "too big").startswith("not allowed: x: the person said no: too big; ")


def test_the_page_on_safety_names_every_kind() -> None:
    page = (ROOT / "docs/safety.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"`{kind}`" not in page] == []


def test_answers_about_repositories_and_the_sandbox_are_never_remembered() -> None:
    remembered = {kind for kind in KINDS if Question(kind=kind, subject="x", text="May I?").can_be_remembered}
    assert remembered == {"command", "change", "deletion", "network", "domain", "outside", "install", "tool"}
