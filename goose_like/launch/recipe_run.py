"""Recipes that a program runs in its own process: the same turn as `goose-like recipe run`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from goose_like.core.message import Message
from goose_like.recipes.profile import change_profile, name_model
from goose_like.recipes.recipe import FilledRecipe

from .agent import Agent, RunResult


def make_recipe_agent(filled: FilledRecipe, *, without: Sequence[str] = (), **options: Any) -> Agent:
    """Return an agent, still closed, with the profile of a recipe. `options` are those of `Agent`.

    `without` are names of extensions to leave out. Nobody is asked about the recipe: settle its trust before.
    """
    options["model"] = options.get("model") or name_model(filled)
    return Agent(change=partial(change_profile, filled, without=without), **options)


async def run_recipe(filled: FilledRecipe, agent: Agent) -> RunResult:
    """Run a recipe with an open agent of it. The exit code is 0 only if the work is done and all checks pass."""
    return await agent.run(Message.user(filled.message), schema=filled.content.response.json_schema)
