"""Trust in recipes: what one brings, the question before it runs, and values that would become part of a command."""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goose_like.config.paths import shorten_home
from goose_like.config.trust import ProjectConfig, find_trusted, is_refused, refuse_project, trust_project
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier, ask_or_deny

from .extensions import read_extensions
from .profile import name_model
from .recipe import FilledRecipe, Recipe

_PLAIN = re.compile(r"[\w./@,:+][\w./@,:+=-]*|")
"""Values that are one plain word in every command."""

_MAX_CODE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a recipe brings, such as `starts the server x: ...`. With `is_check`, a plain word may vary.

    `text` may be shorter than a whole server; `configuration` is never, so that no value in it goes unnoticed.
    """

    text: str
    is_check: bool = False
    configuration: str = ""


def list_effects(filled: FilledRecipe, without: Sequence[str] = ()) -> list[Effect]:
    """List what a recipe brings beside its texts: the model, servers, hosts, commands, folders and sub recipes.

    Raises:
        UsageError: an extension has no counterpart, also one of a sub recipe.
    """
    effects = []
    content = filled.content
    model = name_model(filled)
    if model:
        effects.append(Effect(f"sends the work to the model {model}"))
    extensions = read_extensions(filled, without)
    if extensions:
        for name, server in extensions.servers.items():
            effects.append(Effect(_describe_server(name, server), configuration=json.dumps(server)))
    if content.retry:
        for check in content.retry.checks:
            effects.append(Effect(f"runs the check: {check.command}", is_check=True))
        if content.retry.on_failure:
            effects.append(Effect(f"runs after a failed check: {content.retry.on_failure}", is_check=True))
    folder = filled.recipe.named_folder
    if folder:
        effects.append(Effect(f"lets commands read {shorten_home(str(folder))}"))
    for sub, recipe in filled.subs:
        effects.append(Effect(f"lets the model run the recipe {sub.name} ({sub.path})"))
        inner = recipe.fill(sub.values, str, keeps_missing=True)
        for effect in list_effects(inner, without):
            text = f"{sub.name} {effect.text}"
            effects.append(replace(effect, text=text))
    return effects


def _describe_server(name: str, server: Mapping[str, Any]) -> str:
    if "url" in server:
        url = server["url"]
        headers = _describe_values(server["headers"])
        return f"sends calls to the server {name} at {_find_host(url)}: {url}{headers}"
    command = shlex.join([server["command"], *server["args"]])
    lines = command.splitlines()
    if len(lines) > 1:
        start = lines[0][:_MAX_CODE_CHARACTERS]
        command = f"{start} ... ({len(lines)} lines of code)"
    return f"starts the server {name}: {command}{_describe_values(server['env'])}"


def _find_host(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:  # such as `http://[{{ address }}]`
        return url


def _describe_values(values: Mapping[str, str]) -> str:
    if not values:
        return ""
    listed = ", ".join(map("=".join, values.items()))
    return f" (with {listed})"


def find_risky_values(filled: FilledRecipe, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values that change what a recipe brings, such as the address of a server.

    The texts of a recipe are judged once, for all values. These values are not. One plain word in a check is harmless.
    """
    effects = list_effects(filled, without)
    bare = list_effects(filled.recipe.fill_values({}), without)
    if _leave_out_checks(bare) != _leave_out_checks(effects):
        return dict(filled.values)
    plain: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in filled.values.items():
        is_plain = isinstance(value, str) and _PLAIN.fullmatch(value)
        chosen = plain if is_plain else others
        chosen[key] = value
    with_plain = filled.recipe.fill_values(plain)
    return others if list_effects(with_plain, without) != effects else {}


def _leave_out_checks(effects: Sequence[Effect]) -> list[Effect]:
    return [effect for effect in effects if not effect.is_check]


async def settle_recipe_trust(
    filled: FilledRecipe, notifier: Notifier, without: Sequence[str] = (), *, is_trusted_now: bool = False
) -> None:
    """Ask the person whether a recipe may run, unless they said yes to exactly these texts before.

    `is_trusted_now` is that answer, for this time only.

    Raises:
        DeniedError: the answer is no, or nobody could answer.
        UsageError: an extension has no counterpart.
    """
    effects = list_effects(filled, without)
    risky = find_risky_values(filled, without)
    judged = _collect(filled, risky)
    if is_trusted_now or find_trusted(judged):
        return
    name = filled.recipe.label
    if is_refused(judged):
        raise DeniedError(f"you refused the recipe {name}; to run it all the same: --trust")
    answer = await ask_or_deny(notifier, _make_question(filled, judged, effects, risky), notifier.log)
    if answer.by == "nobody":
        raise DeniedError(f"nobody has agreed to the recipe {name} yet; run it once at a terminal, or with --trust")
    if answer.choice == "allow_always":
        trust_project(judged)
    if not answer.is_allowed:
        refuse_project(judged)
        raise DeniedError(f"the recipe {name} does not run; to run it all the same: --trust")


def trust_recipe(filled: FilledRecipe) -> None:
    """Store that the person trusts a recipe, which they have just made."""
    trust_project(_collect(filled, {}))


def digest_texts(filled: FilledRecipe) -> str:
    """Return the SHA-256 of all texts that a person judges, also those of sub recipes."""
    files = _collect(filled, {}).files
    return hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()


def _collect(filled: FilledRecipe, risky: Mapping[str, Any]) -> ProjectConfig:
    """Return everything that a person judges, by the path of the recipe."""
    start = filled.recipe.file.parent
    texts = _collect_texts(filled.recipe, start)
    for _, recipe in filled.subs:
        texts |= _collect_texts(recipe, start)
    if risky:
        texts["values of the parameters"] = json.dumps(dict(risky), ensure_ascii=False, sort_keys=True)
    return ProjectConfig(filled.recipe.file, texts)


def _collect_texts(recipe: Recipe, start: Path) -> dict[str, str]:
    texts = {}
    for name, text in recipe.texts.items():
        path = os.path.relpath(recipe.file.parent / name, start)
        texts[path] = text
    return texts


def _make_question(
    filled: FilledRecipe, judged: ProjectConfig, effects: Sequence[Effect], risky: Mapping[str, Any]
) -> Question:
    recipe = filled.recipe
    text = f"the recipe {filled.content.title!r} ({recipe.label}) is new or has changed."
    if effects:
        listed = "; it ".join(effect.text for effect in effects)
        text += f" It {listed}."
    if risky:
        text += f" Values become a part of that: {', '.join(risky)}."
    detail = "\n".join(map(":\n".join, judged.files.items()))
    text += " Run it?"
    return Question(kind="trust", subject=str(recipe.file), text=text, detail=detail)
