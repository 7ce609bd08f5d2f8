"""The modes of a session: the command `/mode`, and the question before a mode that allows more."""

from goose_like.agent.profile_choice import restrict_profile
from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import Profile
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.workspace.permissions.policy import APPROVALS, MODES, describe_risk, effective_sandbox

_SANDBOX_RISKS = {
    "workspace+network": "commands can send what they read to any machine",
    "full": "commands run without a sandbox, with all your rights",
}


@command(usage="[auto|ask|plan|yolo|SANDBOX]", choices=lambda context: (*APPROVALS, *MODES), anytime=True)
async def mode(context: SlashContext, words: str) -> None:
    """Show or change the approval mode and the sandbox mode; while a turn runs, only to stricter ones."""
    before = context.next_session.profile if context.next_session else context.profile
    changes: dict[str, str] = {}
    for word in words.split():
        if word not in (*APPROVALS, *MODES):
            raise UsageError(f"no mode {word!r}; {did_you_mean(word, (*APPROVALS, *MODES))}")
        changes["approval" if word in APPROVALS else "sandbox"] = word
    changed = before.model_copy(update=changes)
    if changed.approval == "plan" and changes.get("sandbox", "read-only") != "read-only":
        raise UsageError(f"plan only reads; to leave it too: /mode auto {changes['sandbox']}")
    if changed == before:
        context.show(describe_mode(before))
    elif context.is_in_turn():
        if restrict_profile(changed, before) != changed:
            raise UsageError("a looser mode waits for the end of the turn; Ctrl-C stops the turn")
        context.exchange.workspace.restrict(changed.sandbox, changed.approval)
        context.switch_session(profile=changed)
        context.show(f"{describe_mode(changed)} from now on; commands that run already keep their rights")
    elif await confirm_mode(context, changed):
        context.switch_session(profile=changed)
    else:
        context.show(describe_mode(before))


def describe_mode(profile: Profile) -> str:
    """Describe the approval and the sandbox in effect."""
    return f"{profile.approval} · {effective_sandbox(profile.sandbox, profile.approval)}"


async def confirm_mode(context: SlashContext, changed: Profile) -> bool:
    """Ask before a change to `yolo`, or to a sandbox that allows more than the workspace."""
    before, after = context.profile, describe_mode(changed)
    old, new = (MODES.index(effective_sandbox(one.sandbox, one.approval)) for one in (before, changed))
    is_yolo = changed.approval == "yolo" != before.approval
    if not is_yolo and new <= max(old, MODES.index("workspace")):
        return True
    context.show(describe_risk(changed.sandbox, changed.approval) or _SANDBOX_RISKS[MODES[new]])
    typed = await context.ask(f"  continue in {after}? [y]es  [N]o: ")
    return typed.strip().lower() in ("y", "yes")
