"""What an editor may choose in a session: modes, models, efforts and slash commands."""

from collections.abc import Sequence

from goose_like.agent.slash_context import SlashContext
from goose_like.launch.modes import MODE_EFFECTS, list_efforts
from goose_like.launch.scheduler import TurnScheduler
from goose_like.providers.catalog import ModelOffer
from goose_like.workspace.permissions.policy import KEY_APPROVALS

from .content import Json

_NEEDS_TERMINAL = frozenset({"copy", "exit", "doctor", "show"})
"""Slash commands that make no sense in an editor."""

_DEFAULT_EFFORT = "default"


def list_modes(conversation: TurnScheduler) -> Json:
    """List the approval modes for editors that know modes and no options."""
    current = conversation.current.profile.approval
    modes = [{"id": mode, "name": mode, "description": MODE_EFFECTS[mode]} for mode in _list_approvals(current)]
    return {"currentModeId": current, "availableModes": modes}


def list_options(conversation: TurnScheduler, offers: Sequence[ModelOffer]) -> list[Json]:
    """List the options with their present values: mode, model, and effort if the model has levels."""
    profile = conversation.current.profile
    processor = conversation.exchange.models.processor
    modes = [_make_value(mode, mode, MODE_EFFECTS[mode]) for mode in _list_approvals(profile.approval)]
    models = []
    for offer in _list_models(offers, processor.label, processor.window):
        models.append(_make_value(offer.label, offer.label, offer.describe()))
    options = [
        _make_option("mode", "Mode", "mode", profile.approval, modes),
        _make_option("model", "Model", "model", processor.label, models),
    ]
    levels: list[str] = list(list_efforts(conversation.context))
    if levels:
        current = processor.effort or _DEFAULT_EFFORT
        if current not in levels:
            levels.insert(0, current)
        efforts = [_make_value(level, level, "") for level in levels]
        options.append(_make_option("effort", "Effort", "thought_level", current, efforts))
    return options


def list_commands(context: SlashContext) -> list[Json]:
    """List the slash commands of a session: of packages, of toolkits, and of files."""
    commands = []
    for name, command in sorted(context.commands.items()):
        if name in _NEEDS_TERMINAL:
            continue
        entry: Json = {"name": name, "description": command.summary}
        if command.usage:
            entry["input"] = {"hint": command.usage}
        commands.append(entry)
    return commands


def _list_approvals(current: str) -> list[str]:
    """List the modes that need no confirmation, and the present one."""
    modes: list[str] = list(KEY_APPROVALS)
    if current not in modes:
        modes.append(current)
    return modes


def _list_models(offers: Sequence[ModelOffer], label: str, window: int | None) -> list[ModelOffer]:
    """List the models that can be used, beginning with that of the session."""
    others = {offer.label: offer for offer in offers}
    own = others.pop(label, ModelOffer(label, window))
    return [own, *others.values()]


def _make_option(name: str, title: str, category: str, current: str, values: list[Json]) -> Json:
    return {
        "id": name,
        "name": title,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": values,
    }


def _make_value(value: str, name: str, description: str) -> Json:
    entry: Json = {"value": value, "name": name}
    if description:
        entry["description"] = description
    return entry
