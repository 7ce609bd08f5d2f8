"""What may be done without asking, what only by a person's word, what never; and the words for it."""

from typing import Literal

from goose_like.config.profile import ApprovalMode, SandboxMode

Kind = Literal["command", "change", "network", "outside", "repository", "sandbox", "install"]
Decision = Literal["allow", "ask", "refuse"]

Grant = tuple[Kind, SandboxMode, ApprovalMode]
"""What a person allowed for the session, and the rules under which: stricter ones ask anew."""

_COLUMNS: tuple[SandboxMode, ...] = ("read-only", "workspace", "workspace+network", "full")
_APPROVALS: tuple[ApprovalMode, ...] = ("plan", "ask", "auto", "yolo")
_DECISIONS: tuple[Decision, ...] = ("refuse", "ask", "allow")
_TABLE: dict[Kind, tuple[Decision, Decision, Decision, Decision]] = {
    "command":    ("allow",  "allow", "allow", "allow"),
    "change":     ("refuse", "allow", "allow", "allow"),
    "network":    ("ask",    "ask",   "allow", "allow"),
    "outside":    ("refuse", "ask",   "ask",   "allow"),
    "repository": ("refuse", "ask",   "ask",   "allow"),
    "sandbox":    ("refuse", "ask",   "ask",   "allow"),
    "install":    ("ask",    "ask",   "ask",   "ask"),
}  # fmt: skip
"""What each sandbox lets through, asks about and refuses by itself: that is approval `auto`."""


def decide(kind: Kind, sandbox: SandboxMode, approval: ApprovalMode) -> Decision:
    """Whether something is done at once, needs a person's word, or is not done whatever a person says.

    `command`: a command inside the sandbox. `change`: a file within the workspace. `network`: a command that reaches
    other machines. `outside`: a file outside the workspace. `repository`: hooks or configuration that a command left
    in a repository. `sandbox`: a command without any sandbox. `install`: packages that somebody else's component wants,
    into a place of ours. Where nobody is there to be asked the answer is no.
    """
    decision = _TABLE[kind][_COLUMNS.index(confinement(sandbox, approval))]
    match approval, decision:
        case "ask", "allow" if kind in ("command", "change") and sandbox != "read-only":  # there it does no harm
            return "ask"
        case "plan", "ask":
            return "refuse"
        case "yolo", "ask":
            return "allow"
        case _:
            return decision


def stricter(one: Decision, other: Decision) -> Decision:
    """The decision that lets less through."""
    return min(one, other, key=_DECISIONS.index)


def narrower(
    one: tuple[SandboxMode, ApprovalMode], other: tuple[SandboxMode, ApprovalMode]
) -> tuple[SandboxMode, ApprovalMode]:
    """Of two sandboxes the one that lets less through, and of two approvals."""
    return min(one[0], other[0], key=_COLUMNS.index), min(one[1], other[1], key=_APPROVALS.index)


def confinement(sandbox: SandboxMode, approval: ApprovalMode) -> SandboxMode:
    """The sandbox that commands really run in: who only plans needs no more than to read."""
    return "read-only" if approval == "plan" else sandbox


def rules_in_words(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    """One line for the model's system prompt; without the folder's name, so that it is the same everywhere."""
    sandbox = confinement(sandbox, approval)
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


def task_in_words(approval: ApprovalMode) -> str:
    """What the model is told of its task beyond the person's words: in `plan` that it plans and does not do."""
    return _PLAN if approval == "plan" else ""


_PLAN = (
    "Make a plan, do not carry it out: nothing can be changed in this session. Look at what there is, then answer with "
    "the plan: what to change in which file, in which order, and how to check it. The person decides what comes of it."
)


def warning(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    """What a person is told at the start of a session that asks nothing, in `yolo`; empty for the others."""
    if approval != "yolo":
        return ""
    if sandbox == "full":
        return "approval yolo without a sandbox: whatever the model runs has all your rights, and you are never asked"
    files = "" if sandbox == "read-only" else " and changes files outside of this folder"
    return f"approval yolo: you are never asked; the model uses the network{files} whenever it wants to"


_NEXT: dict[Kind, str] = {
    "command": "find out what is wrong with it, or do without it and say so",
    "change": "leave the file as it is, and say in your answer what you would change",
    "network": "work without the network (look for installed packages and local copies), or say what you need it for",
    "outside": "write below the workspace or in /tmp instead, or tell the person what to change by hand",
    "repository": "leave hooks and such settings to the person, and say in your answer what you would have set",
    "sandbox": "do it inside the sandbox, or say what needs to run outside of it and why",
    "install": "do without that component, or tell the person which packages it needs",
}


def refusal(kind: Kind, text: str, by: str) -> str:
    """What the model reads when the answer was no: who said so, and how to go on."""
    who = {"person": "the person said no", "profile": "this session forbids it"}.get(by, "nobody is there to allow it")
    return f"not allowed: {text}: {who}; {_NEXT[kind]}"
