"""The slash command `/effort`."""

from collections.abc import Sequence
from typing import get_args

from goose_like.agent.profile_choice import set_effort
from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import Effort
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.providers.known_models import find_known_model
from goose_like.providers.registry import choose_models

from .startup import has_prompt

_LEVELS: tuple[Effort, ...] = get_args(Effort)


def list_efforts(context: SlashContext) -> Sequence[Effort]:
    """List the levels that the model of the session knows. An unknown model may know all."""
    processor, _ = choose_models(context.profile)
    known = find_known_model(processor.provider, context.exchange.models.processor.name).efforts
    if known is None:
        return _LEVELS
    return [level for level in _LEVELS if level in known]


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
    if words not in _LEVELS:
        raise UsageError(f"no effort {words!r}; {did_you_mean(words, levels)}")
    context.switch_session(profile=set_effort(context.profile, words))
