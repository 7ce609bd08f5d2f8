"""The profile of a recipe: that of the person, with the model, the tools, the limits and the checks of the recipe."""

from collections.abc import Sequence
from typing import Any

from goose_like.agent.budget import narrow_limits
from goose_like.agent.goose09 import load_toolkit
from goose_like.config.profile import Profile, ToolkitChoice, VerifyChoice
from goose_like.providers.registry import choose_models

from .content import Retry
from .extensions import HELPERS, SERVERS, read_extensions
from .recipe import FilledRecipe

_PROVIDERS = {
    "aws_bedrock": "bedrock",
    "azure_openai": "azure",
    "gcp_vertex_ai": "vertex",
}
"""Our names of providers by those of goose, where they differ."""


def name_model(filled: FilledRecipe) -> str | None:
    """Return the model that a recipe wants, as `--model` takes it, or None."""
    settings = filled.content.settings
    provider = _PROVIDERS.get(settings.goose_provider, settings.goose_provider)
    if provider and settings.goose_model:
        return f"{provider}:{settings.goose_model}"
    return settings.goose_model or provider or None


def change_profile(filled: FilledRecipe, profile: Profile, without: Sequence[str] = ()) -> Profile:
    """Return the profile for a recipe. What the agent may do stays, and limits only become lower.

    A recipe that names extensions has no other tools. `without` are names of extensions to leave out. The caller sets
    the model, see `name_model`.

    Raises:
        UsageError: an extension has no counterpart.
    """
    content = filled.content
    changes: dict[str, Any] = {}
    changes["toolkits"] = _choose_toolkits(filled, profile, without)
    changes["instructions"] = f"{profile.instructions}\n\n{filled.instructions}".strip()
    changes["limits"] = narrow_limits(profile.limits, {"steps": content.settings.max_turns})
    folder = filled.recipe.named_folder
    if folder:
        readable = (*profile.paths.read, str(folder))
        changes["paths"] = profile.paths.model_copy(update={"read": readable})
    if content.retry:
        changes["verify"] = _make_check(content.retry)
    if content.settings.temperature is not None:
        processor, accelerator = choose_models(profile)
        changes["processor"] = processor.model_copy(update={"temperature": content.settings.temperature})
        changes["accelerator"] = accelerator
    return profile.model_copy(update=changes)


def _choose_toolkits(filled: FilledRecipe, profile: Profile, without: Sequence[str]) -> tuple[ToolkitChoice, ...]:
    extensions = read_extensions(filled, without)
    own = {choice.name: choice for choice in profile.toolkits}
    wanted = dict(own)
    if extensions:
        # Toolkits without tools, such as hooks, guard the person. They stay.
        wanted = {}
        for name, choice in own.items():
            if not load_toolkit(name).tool_names():
                wanted[name] = choice
        for name in extensions.toolkits:
            wanted[name] = own.get(name) or ToolkitChoice(name=name)
        if extensions.servers:
            wanted[SERVERS] = ToolkitChoice(name=SERVERS, config=extensions.servers)
    if filled.subs:
        helpers = wanted.get(HELPERS) or own.get(HELPERS) or ToolkitChoice(name=HELPERS)
        config = {**helpers.config, "recipes": _describe_subs(filled, without)}
        wanted[HELPERS] = helpers.model_copy(update={"config": config})
    return tuple(wanted.values())


def _describe_subs(filled: FilledRecipe, without: Sequence[str]) -> list[dict[str, Any]]:
    """Return the sub recipes with their texts, which nobody can change after the person judged them."""
    described = []
    for sub, recipe in filled.subs:
        described.append(
            {
                "name": sub.name,
                "file": str(recipe.file),
                "texts": dict(recipe.texts),
                "values": sub.values,
                "without": tuple(without),
                "is_sequential": sub.sequential_when_repeated,
            }
        )
    return described


def _make_check(retry: Retry) -> VerifyChoice:
    return VerifyChoice(
        commands=tuple(check.command for check in retry.checks),
        attempts=retry.max_retries,
        unchanged=True,
        time_s=retry.timeout_seconds,
        on_failure=retry.on_failure,
        on_failure_s=retry.on_failure_timeout_seconds,
    )
