"""The modes of a session: the key that changes them, and the question before one that allows more."""

from collections.abc import Mapping, Sequence
from typing import get_args

from goose_like.agent.profile_choice import keep_modes, restrict_profile
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import ApprovalMode, Effort, ModelChoice, Profile, SandboxMode
from goose_like.core.errors import UsageError
from goose_like.core.events import ModeRestricted
from goose_like.providers.known_models import find_known_model
from goose_like.providers.registry import choose_models, open_model, resolve_model
from goose_like.workspace.permissions.policy import KEY_APPROVALS, MODES, describe_risk, effective_sandbox

MODE_EFFECTS = {
    "plan": "only reads, and answers with a plan",
    "ask": "asks before anything that does more than read",
    "auto": "asks before it leaves the sandbox",
    "unattended": "never asks, and refuses what would be asked",
    "yolo": "never asks, and does what would be asked",
    "read-only": "sandbox: nothing can be changed",
    "workspace": "sandbox: this folder and a private /tmp",
    "workspace+network": "sandbox: this folder, and the whole network",
    "full": "no sandbox",
}
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_SANDBOX_RISKS = {
    "workspace+network": "commands can send what they read to any machine",
    "full": "commands run without a sandbox, with all your rights",
}


def get_next_profile(context: SlashContext) -> Profile:
    """Return the profile that holds from the next message."""
    return context.next_session.profile if context.next_session else context.profile


def switch_mode(context: SlashContext, profile: Profile) -> None:
    """Continue in the modes of a profile, and save those that are stricter."""
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
    before = context.wanted_approval or get_next_profile(context).approval
    position = KEY_APPROVALS.index(before) + 1 if before in KEY_APPROVALS else 0
    context.wanted_approval = wanted = KEY_APPROVALS[position % len(KEY_APPROVALS)]
    workspace = context.exchange.workspace
    context.exchange.inbox.is_held = context.is_in_turn() and has_new_mode(context)
    if context.is_in_turn() and wanted == "ask" and workspace.approval in ("unattended", "auto", "yolo"):
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
        switch_mode(context, changed)
    return is_confirmed


def describe_mode(profile: Profile) -> str:
    """Describe the approval and the sandbox in effect."""
    return f"{profile.approval} · {effective_sandbox(profile.sandbox, profile.approval)}"


async def choose_model(context: SlashContext, name: str) -> Profile:
    """Return the profile with another model for everything. A short name prefers the provider of the current model.

    Raises:
        GooseLikeError: nobody knows the model, or it cannot be used.
    """
    provider = context.exchange.models.processor.label.partition(":")[0]
    choice = ModelChoice(model=resolve_model(name, provider))
    await open_model(choice).provider.close()  # raises if the model cannot be used
    return context.profile.model_copy(update={"processor": choice, "accelerator": choice})


def list_efforts(context: SlashContext) -> Sequence[Effort]:
    """List the levels of effort that the model of the session knows. An unknown model may know all."""
    processor, _ = choose_models(context.profile)
    known = find_known_model(processor.provider, context.exchange.models.processor.name).efforts
    if known is None:
        return EFFORTS
    return [level for level in EFFORTS if level in known]


async def change_mode(context: SlashContext, before: Profile, changes: Mapping[str, str]) -> Profile:
    """Change the approval or the sandbox, and return the profile with the modes that hold then.

    A turn allows only stricter modes, which hold at once. `before` is the profile that would hold otherwise. The person
    is asked before a change to `yolo`, or to a sandbox that allows more than the workspace.

    Raises:
        UsageError: a mode is looser during a turn, or does not fit the other one.
    """
    changed = before.model_copy(update=dict(changes))
    if changed.approval == "plan" and changes.get("sandbox", "read-only") != "read-only":
        raise UsageError(f"plan only reads; to leave it too: /mode auto {changes['sandbox']}")
    if changed == before:
        return before
    if context.is_in_turn():
        if restrict_profile(changed, before) != changed:
            raise UsageError("a looser mode waits for the end of the turn; Ctrl-C stops the turn")
        context.exchange.workspace.restrict(changed.sandbox, changed.approval)
    elif not await confirm_mode(context, changed):
        return before
    switch_mode(context, changed)
    return changed


def _rank_sandbox(profile: Profile) -> int:
    """Return the place of the sandbox in effect among all, from the strictest."""
    return MODES.index(effective_sandbox(profile.sandbox, profile.approval))


async def confirm_mode(context: SlashContext, changed: Profile) -> bool:
    """Ask before a change to `yolo`, or to a sandbox that allows more than the workspace."""
    before = context.profile
    old_rank = _rank_sandbox(before)
    new_rank = _rank_sandbox(changed)
    becomes_yolo = changed.approval == "yolo" and before.approval != "yolo"
    if not becomes_yolo and new_rank <= max(old_rank, MODES.index("workspace")):
        return True
    risk = describe_risk(changed.sandbox, changed.approval)
    context.show(risk or _SANDBOX_RISKS[MODES[new_rank]])
    typed = await context.ask(f"  continue in {describe_mode(changed)}? [y]es  [N]o: ")
    return typed.strip().lower() in ("y", "yes")
