"""The policy: which actions are allowed, which need the person's permission, and which are refused.

A new kind of action needs its name in `PermissionKind` (core/events.py), its row in `_POLICY` below, and a line in
docs/safety.md. `Question.can_be_remembered` lists the kinds whose answers may hold in later sessions.
"""

from dataclasses import dataclass
from typing import Literal

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.events import PermissionKind

Decision = Literal["allow", "ask", "refuse"]

Access = Literal["workspace", "network", "full"]
"""Rights that a command starts with: in the sandbox, in the sandbox with network, or without a sandbox."""

Grant = tuple[PermissionKind, SandboxMode, ApprovalMode]
"""A permission until the session ends: the kind, and the modes when it was given. Stricter modes ask again."""

_MODES: tuple[SandboxMode, ...] = ("read-only", "workspace", "workspace+network", "full")
_APPROVALS: tuple[ApprovalMode, ...] = ("plan", "ask", "auto", "yolo")
_DECISIONS: tuple[Decision, ...] = ("refuse", "ask", "allow")


@dataclass(frozen=True, slots=True)
class _Row:
    """The policy for one kind of action: the decision in each of `_MODES`, and the advice after a refusal."""

    decisions: tuple[Decision, Decision, Decision, Decision]
    advice: str


_POLICY: dict[PermissionKind, _Row] = {
    # a command inside the sandbox
    "command": _Row(
        ("allow", "allow", "allow", "allow"), "find out what is wrong with it, or do without it and say so"
    ),
    # a change of a file in the workspace
    "change": _Row(
        ("refuse", "allow", "allow", "allow"),
        "leave the file as it is, and say in your answer what you would change",
    ),
    # a command that reaches other machines
    "network": _Row(
        ("ask", "ask", "allow", "allow"),
        "work without the network (look for installed packages and local copies), or say what you need it for",
    ),
    # a change of a file outside the workspace
    "outside": _Row(
        ("refuse", "ask", "ask", "allow"),
        "write below the workspace or in /tmp instead, or tell the person what to change by hand",
    ),
    # hooks or settings that a command left in a repository
    "repository": _Row(
        ("refuse", "ask", "ask", "allow"),
        "leave hooks and such settings to the person, and say in your answer what you would have set",
    ),
    # a command without any sandbox
    "sandbox": _Row(
        ("refuse", "ask", "ask", "allow"),
        "do it inside the sandbox, or say what needs to run outside of it and why",
    ),
    # packages that a third-party component needs, installed into a folder of goose_like
    "install": _Row(
        ("ask", "ask", "ask", "ask"),
        "do without that component, or tell the person which packages it needs",
    ),
}
"""The decisions of approval mode `auto`, by kind."""


def decide(kind: PermissionKind, sandbox: SandboxMode, approval: ApprovalMode) -> Decision:
    """Decide whether an action is allowed, needs the person's permission, or is refused.

    Where nobody can be asked, `ask` means no.
    """
    decision = _POLICY[kind].decisions[_MODES.index(effective_sandbox(sandbox, approval))]
    match approval, decision:
        case "ask", "allow" if kind in ("command", "change") and sandbox != "read-only":  # harmless in read-only
            return "ask"
        case "plan", "ask":
            return "refuse"
        case "yolo", "ask":
            return "allow"
        case _:
            return decision


def pick_stricter(one: Decision, other: Decision) -> Decision:
    """Pick the stricter of two decisions."""
    return min(one, other, key=_DECISIONS.index)


def pick_narrower(
    one: tuple[SandboxMode, ApprovalMode], other: tuple[SandboxMode, ApprovalMode]
) -> tuple[SandboxMode, ApprovalMode]:
    """Pick the narrower of two sandbox modes, and the stricter of two approval modes."""
    return min(one[0], other[0], key=_MODES.index), min(one[1], other[1], key=_APPROVALS.index)


def effective_sandbox(sandbox: SandboxMode, approval: ApprovalMode) -> SandboxMode:
    """Return the sandbox mode that commands really run in: approval `plan` only reads."""
    return "read-only" if approval == "plan" else sandbox


def describe_rules(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    """Describe the rules in one line for the system prompt, without the folder's name."""
    sandbox = effective_sandbox(sandbox, approval)
    asked = " The person is asked before each command and each change of a file." if approval == "ask" else ""
    if sandbox == "full":
        return f"Commands run without a sandbox, with the rights of the person who started you.{asked}"
    if sandbox == "read-only":
        where = "You can read but change nothing: only /tmp (private to you) is writable"
        asked = ""
    else:
        where = "You may write in this folder and in /tmp (private to you); everything else is read-only"
    if sandbox == "workspace+network":
        network = "The network can be reached."
    else:
        words = {"allow": "is granted", "ask": "may be granted", "refuse": ""}[decide("network", sandbox, approval)]
        network = f"No network; call shell with access='network' and it {words}." if words else "No network."
    return f"{where}, and ~/.ssh and other secrets are hidden. {network}{asked}"


def describe_task(approval: ApprovalMode) -> str:
    """Describe the task of approval mode `plan` for the model; empty for the others."""
    if approval != "plan":
        return ""
    return (
        "Make a plan, do not carry it out: nothing can be changed in this session. Look at what there is, then answer "
        "with the plan: what to change in which file, in which order, and how to check it. "
        "The person decides what comes of it."
    )


def describe_risk(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    """Warn the person at the start of a session that asks no questions (`yolo`); empty for other modes."""
    if approval != "yolo":
        return ""
    if sandbox == "full":
        return "approval yolo without a sandbox: whatever the model runs has all your rights, and you are never asked"
    files = "" if sandbox == "read-only" else " and changes files outside of this folder"
    return f"approval yolo: you are never asked; the model uses the network{files} whenever it wants to"


def format_refusal(kind: PermissionKind, text: str, by: str) -> str:
    """Format the error for the model: the refused action, who refused it, and what to do instead."""
    who = {"person": "the person said no", "profile": "this session forbids it"}.get(by, "nobody is there to allow it")
    return f"not allowed: {text}: {who}; {_POLICY[kind].advice}"
