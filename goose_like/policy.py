"""What may be done without asking, and the words in which the model is told."""

from typing import Literal

from .profile import ApprovalMode, SandboxMode

Kind = Literal["network", "outside", "repository", "sandbox"]


def decide(kind: Kind, sandbox: SandboxMode, approval: ApprovalMode) -> Literal["allow", "ask"]:
    """Whether a step over a border needs a person's word.

    `network`: a command that reaches other machines. `outside`: a write outside the workspace. `repository`: hooks
    or configuration that a command left in a repository. `sandbox`: a command without any sandbox. Nothing is
    forbidden outright: a person may allow each of them, and where nobody is there the answer is no.
    """
    return "allow" if sandbox == "full" or approval == "yolo" else "ask"


def rules_in_words(sandbox: SandboxMode, approval: ApprovalMode) -> str:
    """One line for the model's system prompt; without the folder's name, so that it is the same everywhere."""
    if sandbox == "full":
        return "Commands run without a sandbox, with the rights of the person who started you."
    word = "is" if approval == "yolo" else "may be"
    return (
        "You may write in this folder and in /tmp (private to you); everything else is read-only, and ~/.ssh and other "
        f"secrets are hidden. No network; call shell with access='network' and it {word} granted."
    )


_NEXT = {
    "network": "work without the network (look for installed packages and local copies), or say what you need it for",
    "outside": "write below the workspace or in /tmp instead, or tell the person what to change by hand",
    "repository": "leave hooks and such settings to the person, and say in your answer what you would have set",
    "sandbox": "do it inside the sandbox, or say what needs to run outside of it and why",
}


def refusal(kind: Kind, text: str, by: str) -> str:
    """What the model reads when the answer was no: who said so, and how to go on."""
    who = {"person": "the person said no", "profile": "the profile forbids it"}.get(by, "nobody is there to allow it")
    return f"not allowed: {text}: {who}; {_NEXT[kind]}"
