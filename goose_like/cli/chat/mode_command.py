"""The slash command `/mode`."""

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.launch.modes import change_mode, describe_mode, get_next_profile
from goose_like.workspace.permissions.policy import APPROVALS, MODES

from .startup import has_prompt


@command(usage="[auto|ask|plan|unattended|yolo|SANDBOX]", choices=lambda context: (*APPROVALS, *MODES), anytime=True)
async def mode(context: SlashContext, words: str) -> None:
    """Change the approval or the sandbox; without a name, choose from a list. A turn allows only stricter ones."""
    before = get_next_profile(context)
    if context.wanted_approval and not context.is_in_turn():
        before = before.model_copy(update={"approval": context.wanted_approval})
    if not words and has_prompt() and not context.is_in_turn():
        from .pickers import pick_mode  # imported here: few sessions use it

        words = await pick_mode(before) or ""
    changes: dict[str, str] = {}
    for word in words.split():
        if word in APPROVALS:
            changes["approval"] = word
        elif word in MODES:
            changes["sandbox"] = word
        else:
            raise UsageError(f"no mode {word!r}; {did_you_mean(word, (*APPROVALS, *MODES))}")
    is_in_turn = context.is_in_turn()
    after = await change_mode(context, before, changes)
    if is_in_turn and after != before:
        context.show(f"{describe_mode(after)} from now on; commands that run already keep their rights")
    elif after == before:
        context.show(describe_mode(before))
