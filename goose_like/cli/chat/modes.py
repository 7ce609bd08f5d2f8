"""The modes of a session: the key and the command that change them, and the question before one that allows more."""

from goose_like.agent.profile_choice import keep_modes, restrict_profile
from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import ApprovalMode, Profile, SandboxMode
from goose_like.core.errors import UsageError
from goose_like.core.events import ModeRestricted
from goose_like.core.spelling import did_you_mean
from goose_like.workspace.permissions.policy import APPROVALS, KEY_APPROVALS, MODES, describe_risk, effective_sandbox

_SANDBOX_RISKS = {
    "workspace+network": "commands can send what they read to any machine",
    "full": "commands run without a sandbox, with all your rights",
}


@command(usage="[auto|ask|plan|yolo|SANDBOX]", choices=lambda context: (*APPROVALS, *MODES), anytime=True)
async def mode(context: SlashContext, words: str) -> None:
    """Show or change the approval mode and the sandbox mode; while a turn runs, only to stricter ones."""
    before = _get_profile(context)
    if context.wanted_approval and not context.is_in_turn():
        before = before.model_copy(update={"approval": context.wanted_approval})
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
        _switch_mode(context, changed)
        context.show(f"{describe_mode(changed)} from now on; commands that run already keep their rights")
    elif await confirm_mode(context, changed):
        _switch_mode(context, changed)
    else:
        context.show(describe_mode(before))


def _get_profile(context: SlashContext) -> Profile:
    return context.next_session.profile if context.next_session else context.profile


def _switch_mode(context: SlashContext, profile: Profile) -> None:
    record_restriction(context, profile.sandbox, profile.approval)
    context.wanted_approval = None
    context.switch_session(profile=profile)


def record_restriction(context: SlashContext, sandbox: SandboxMode, approval: ApprovalMode) -> None:
    """Save modes that are stricter than the recorded ones, so that the session resumes in them however it ends."""
    journal = context.exchange.journal
    before = keep_modes(context.profile, journal.session)
    after = restrict_profile(before, context.profile.model_copy(update={"sandbox": sandbox, "approval": approval}))
    if after != before:
        journal.emit(ModeRestricted(sandbox=after.sandbox, approval=after.approval))


def choose_next_mode(context: SlashContext) -> None:
    """Choose the next approval mode for the next message. During a turn `ask` holds at once where it is stricter."""
    before = context.wanted_approval or _get_profile(context).approval
    position = KEY_APPROVALS.index(before) + 1 if before in KEY_APPROVALS else 0
    context.wanted_approval = wanted = KEY_APPROVALS[position % len(KEY_APPROVALS)]
    workspace = context.exchange.workspace
    context.exchange.inbox.is_held = context.is_in_turn() and has_new_mode(context)
    if context.is_in_turn() and wanted == "ask" and workspace.approval in ("auto", "yolo"):
        workspace.restrict(context.profile.sandbox, wanted)
        record_restriction(context, context.profile.sandbox, wanted)


def has_new_mode(context: SlashContext) -> bool:
    """Return whether another approval mode holds from the next message."""
    modes = {context.profile.approval, context.exchange.workspace.approval}
    return context.wanted_approval is not None and modes != {context.wanted_approval}


async def apply_wanted_mode(context: SlashContext) -> bool:
    """Switch to the approval mode that a key has chosen. Return False if the person declines it."""
    changed = context.profile.model_copy(update={"approval": context.wanted_approval})
    context.wanted_approval = None
    is_confirmed = await confirm_mode(context, changed)
    if is_confirmed:
        _switch_mode(context, changed)
    return is_confirmed


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
