"""The slash command `/effort`."""

from goose_like.agent.profile_choice import set_effort
from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.launch.modes import EFFORTS, list_efforts
from goose_like.providers.registry import choose_models

from .startup import has_prompt


@command(usage="[LEVEL]", choices=list_efforts)
async def effort(context: SlashContext, words: str) -> None:
    """Change how long the model reasons; without a level, choose one from a list."""
    levels = list_efforts(context)
    label = context.exchange.models.processor.label
    if not levels:
        context.show(f"{label} has no levels of effort")
        return
    processor, _ = choose_models(context.profile)
    if not words and has_prompt():
        from .pickers import pick_effort  # imported here: few sessions use it

        words = await pick_effort(levels, processor.effort) or ""
        if not words:
            return
    if not words:
        present = processor.effort or "the default of the vendor"
        context.show(f"effort  {present}\nknown   {', '.join(levels)}")
        return
    if words not in EFFORTS:
        raise UsageError(f"no effort {words!r}; {did_you_mean(words, levels)}")
    context.switch_session(profile=set_effort(context.profile, words))
