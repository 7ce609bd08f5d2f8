"""The policy: which actions are allowed, which need the person's permission, and which are refused.

A new kind of action needs its name in `PermissionKind` (core/events.py), rows in `_POLICY`, `_ADVICE` and `_ALLOWED_BY`
below, and a row in docs/safety.md. `Question.can_be_remembered` names the kinds whose answers never hold in later
sessions.
"""

from dataclasses import dataclass
from glob import escape
from typing import Literal

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.events import PermissionKind

Decision = Literal["allow", "ask", "refuse"]

Verdict = Literal["deny", "ask", "allow"]
"""The verdict of a permission rule, from the strictest on."""

Access = Literal["workspace", "network", "full"]
"""Rights that a command starts with: in the sandbox, in the sandbox with network, or without a sandbox."""


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A permission until the session ends. It holds in the modes and the state in which it was given."""

    kind: PermissionKind
    sandbox: SandboxMode
    approval: ApprovalMode
    scope: str
    """The prefix of a command, the file, the host, or the tool."""

    state: str = ""
    """What earlier commands changed in the shell, as the question showed it; for a tool, its version."""


# From the strictest on.
MODES: tuple[SandboxMode, ...] = ("read-only", "workspace", "workspace+network", "full")
APPROVALS: tuple[ApprovalMode, ...] = ("plan", "ask", "unattended", "auto", "yolo")
KEY_APPROVALS: tuple[ApprovalMode, ...] = ("ask", "auto", "plan")
"""The approval modes that a key of the session chooses, in this order. `yolo` is not one: it needs a question."""
DECISIONS: tuple[Decision, ...] = ("refuse", "ask", "allow")

_POLICY: dict[PermissionKind, tuple[Decision, Decision, Decision, Decision]] = {
    "command": ("allow", "allow", "allow", "allow"),  # a command inside the sandbox
    "change": ("refuse", "allow", "allow", "allow"),  # a change of a file in the workspace
    "deletion": ("refuse", "ask", "ask", "ask"),  # a command that deletes or overwrites what undo cannot keep
    "network": ("ask", "ask", "allow", "allow"),  # a command that reaches other machines
    "domain": ("ask", "ask", "allow", "allow"),  # a host that commands reach through the proxy
    "outside": ("refuse", "ask", "ask", "allow"),  # a change of a file outside the workspace
    "repository": ("refuse", "ask", "ask", "allow"),  # hooks or settings that a command left in a repository
    "sandbox": ("refuse", "ask", "ask", "allow"),  # a command without any sandbox
    "tool": ("allow", "allow", "allow", "allow"),  # a call of any tool: only rules of the person say otherwise
    # packages for components or the Python kernel, into a folder of goose_like
    "install": ("ask", "ask", "ask", "ask"),
}
"""The decisions of approval mode `auto`: for each kind, one for each of `MODES`."""

_ADVICE: dict[PermissionKind, str] = {
    "command": "do without it, and say so in your answer",
    "change": "leave the file as it is, and say in your answer what you would change",
    "deletion": "keep these files, delete less at once, or tell the person what to delete by hand",
    "network": "work without the network (look for installed packages and local copies), or say what you need it for",
    "domain": "do without that host, or name it: the person can list it in the profile, as network: {allow: [HOST]}",
    "outside": "write below the workspace or in /tmp instead, or tell the person what to change by hand",
    "repository": "leave hooks and such settings to the person, and say in your answer what you would have set",
    "sandbox": "do it inside the sandbox, or say what needs to run outside of it and why",
    "tool": "use another tool, or say what you need it for",
    "install": "do without these packages, or tell the person which ones are needed",
}
"""The advice for the model after a refusal."""

ONLY_A_PERSON = "a person's answer only"

_ALLOWED_BY: dict[PermissionKind, str] = {
    "command": "approval auto",
    "change": "the rule path:{subject}",
    "deletion": "approval yolo",
    "network": "sandbox workspace+network",
    "domain": "the rule domain:{subject}",
    "outside": "the rule path:{subject}",
    "repository": "approval yolo",
    "sandbox": "sandbox full",
    "tool": "the rule tool:{subject}",
    "install": "approval yolo",
}
"""The narrowest rule or mode that allows an action without a question."""


def describe_allowance(kind: PermissionKind, subject: str, prefix: str = "") -> str:
    """Describe the rule or mode that would allow an action without a question. `prefix` is what `p` would allow."""
    if kind == "command" and prefix:
        rules = prefix.replace(", ", " and ")
        return f"the rule {rules}"
    return _ALLOWED_BY[kind].format(subject=escape(subject))


def describe_looser_mode(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    """Describe the next mode that allows more than one which refuses an action."""
    if approval == "plan":
        return "approval auto"
    if sandbox == "read-only":
        return "sandbox workspace"
    return ONLY_A_PERSON


def decide(kind: PermissionKind, sandbox: SandboxMode, approval: ApprovalMode) -> Decision:
    """Decide whether an action is allowed, needs the person's permission, or is refused.

    Where nobody can be asked, and in approval mode `unattended`, `ask` means no.
    """
    decision = _POLICY[kind][MODES.index(effective_sandbox(sandbox, approval))]
    match approval, decision:
        # These are harmless in read-only. Calls of tools come here only if a rule, a hook or a toolkit has a doubt.
        case "ask", "allow" if kind in ("command", "change", "tool") and sandbox != "read-only":
            return "ask"
        case "plan", "ask":
            return "refuse"
        case "yolo", "ask":
            return "allow"
        case _:
            return decision


def effective_sandbox(sandbox: SandboxMode, approval: ApprovalMode) -> SandboxMode:
    """Return the sandbox mode that commands really run in: approval `plan` only reads."""
    return "read-only" if approval == "plan" else sandbox


def describe_rules(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    """Describe the rules in one line for the system prompt, without the folder's name."""
    sandbox = effective_sandbox(sandbox, approval)
    asked = ""
    if approval == "ask":
        asked = " The person is asked before each change of a file, and each command that does more than read."
    elif approval == "unattended":
        asked = " Nobody can be asked: other actions are refused."
    if sandbox == "full":
        return f"Commands run without a sandbox, with the rights of the person who started you.{asked}"
    home = "Of the home folder you see toolchains only; the person can show you a file there by writing @~/FILE."
    network = _describe_network(sandbox, approval)
    if sandbox == "read-only":
        return f"You can read but change nothing; commands may use /tmp (private to them). {home} {network}"
    where = "You may write in this folder and in /tmp (private to you); everything else is read-only"
    return f"{where}. {home} {network}{asked}"


def _describe_network(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    if sandbox == "workspace+network":
        return "The network can be reached."
    match decide("network", sandbox, approval):
        case "allow":
            others = "is granted"
            hosts = ""
        case "ask":
            others = "may be granted"
            hosts = ", and each new host is asked about"
            if approval == "unattended":
                others = "needs an earlier permission"
                hosts = ", for hosts that the person allowed before"
        case "refuse":
            return "No network."
    more = f"For other protocols call shell with access='network', which {others}."
    return f"The network is open to HTTP and HTTPS through a proxy{hosts}. {more}"


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


def format_refusal(kind: PermissionKind, text: str, by: str, reason: str = "", allowed_by: str = "") -> str:
    """Format the error for the model: the refused action, who refused it and why, and what to do instead.

    Where nobody could be asked, `allowed_by` says which rule or mode would have allowed the action.
    """
    who = {
        "person": "the person said no",
        "profile": "this session forbids it",
        "rule": "a rule forbids it",
        "hook": "a hook forbids it",
    }
    why = who.get(by, "nobody is there to allow it")
    if reason:
        why = f"{why}: {reason}"
    refusal = f"not allowed: {text}: {why}; {_ADVICE[kind]}"
    if by == "nobody" and allowed_by:
        refusal += f" (allowed by: {allowed_by})"
    return refusal


def format_change(text: str, mode: SandboxMode) -> str:
    """Format the error for the model about an action that was asked for in another sandbox mode."""
    return f"not done: {text}: the person changed the sandbox mode to {mode} meanwhile; do it again if that is enough"
