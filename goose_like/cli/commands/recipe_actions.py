"""The work of the commands `recipe ...`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from goose_like.agent.profile_choice import choose_profile
from goose_like.config.paths import shorten_home
from goose_like.config.profile import Profile
from goose_like.config.trust import load_trusted_project
from goose_like.core.errors import UsageError
from goose_like.core.spelling import format_count
from goose_like.launch.command_line import ProfileOptions, TaskOptions
from goose_like.launch.exit import run_async
from goose_like.launch.output import report_failure
from goose_like.launch.run_options import RunOptions, find_output_file, find_receipt_file, list_limits
from goose_like.launch.start import SessionRequest, add_folders
from goose_like.launch.start_notifier import AbsentPerson, StartNotifier, print_warning
from goose_like.providers.registry import choose_models
from goose_like.recipes.content import Parameter
from goose_like.recipes.places import describe_places, fetch_repository, find_recipe, list_places, list_recipes
from goose_like.recipes.profile import change_profile, name_model
from goose_like.recipes.recipe import FilledRecipe, Recipe, load_recipe
from goose_like.recipes.trust import list_effects, settle_recipe_trust
from goose_like.recipes.writing import write_recipe
from goose_like.sessions.index import find_session, list_texts
from goose_like.terminal.escape import escape_controls, escape_invisible
from goose_like.terminal.interaction import has_person, read_answer
from goose_like.terminal.report_table import print_table

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema


@dataclass(frozen=True, slots=True)
class ChosenRecipe:
    """The recipe of a command line: its name, the values of its parameters, and where it comes from."""

    name: str
    parameters: Sequence[str] = ()
    source: str | None = None
    without: Sequence[str] = ()

    def load(self) -> Recipe:
        """Load the recipe."""
        return load_recipe(find_recipe(self.name, Path.cwd(), _list_places(self.source)))

    def read_values(self) -> dict[str, str]:
        """Read the values of the parameters."""
        values = {}
        for word in self.parameters:
            key, sign, value = word.partition("=")
            if not sign:
                raise UsageError(f"--param {word}: write KEY=VALUE")
            values[key] = value
        return values


def _list_places(source: str | None) -> list[Path]:
    return fetch_repository(source) if source else list_places(Path.cwd())


def list_names() -> list[str]:
    """Return the printable names of the recipes here, for shell completion."""
    names = {name for place in _list_places(None) for name in list_recipes(place)}
    return sorted(name for name in names if name.isprintable())


def run(chosen: ChosenRecipe, wanted: TaskOptions, options: ProfileOptions) -> int:
    """Run a recipe to its end and return the exit code."""
    from goose_like.cli.run import run_command

    with report_failure(wanted.output_format):
        recipe = chosen.load()
        is_attended = has_person() and options.approval != "unattended"
        values = chosen.read_values()
        if is_attended:
            values = _ask_for_missing(recipe, values)
        filled = recipe.fill(values)
        run_options = RunOptions(
            filled.message,
            list_limits(wanted),
            wanted.output_format,
            wanted.is_quiet,
            answer_schema=_read_schema(filled),
            answer_file=find_output_file("-o", wanted.answer_file),
            receipt_file=find_receipt_file(wanted.receipt),
            is_plain=True,
            change=partial(change_profile, filled, without=chosen.without),
        )
        for warning in filled.warnings:
            print_warning(escape_controls(warning))
    model = options.model or name_model(filled)
    request = SessionRequest(replace(options, model=model), wanted.session, is_saved=not wanted.is_unsaved)

    async def work() -> int:
        with report_failure(wanted.output_format):
            notifier = AbsentPerson(StartNotifier(), lambda: not is_attended)
            await settle_recipe_trust(filled, notifier, chosen.without, is_trusted_now=options.is_trusted)
        return await run_command(run_options, request)

    return run_async(work())


def _ask_for_missing(recipe: Recipe, values: dict[str, str]) -> dict[str, str]:
    """Return the values with those that the person at the terminal gives for missing parameters."""
    for parameter in recipe.list_missing(values):
        answer = read_answer(_format_prompt(parameter))
        if answer or parameter.requirement == "required":
            values[parameter.key] = answer
    return values


def _format_prompt(parameter: Parameter) -> str:
    choices = f" [{'/'.join(parameter.options)}]" if parameter.options else ""
    kind = "" if parameter.input_type == "string" else f" ({parameter.input_type})"
    text = f"{parameter.key}{kind}{choices}"
    if parameter.description:
        text = f"{parameter.description}\n{text}"
    return escape_invisible(f"{text}: ")


def _read_schema(filled: FilledRecipe) -> "AnswerSchema | None":
    schema = filled.content.response.json_schema
    if schema is None:
        return None
    from goose_like.providers.json_answer import AnswerSchema  # imported here: few recipes have a schema

    try:
        return AnswerSchema.read(schema)
    except UsageError as error:
        place = filled.source.locate("response", "json_schema")
        raise UsageError(f"{place}: {error}") from error


def print_recipes(source: str | None) -> None:
    """Print the recipes of all places, with those that cannot be loaded."""
    rows = []
    seen = set()
    places = _list_places(source)
    for place in places:
        for name, file in list_recipes(place).items():
            if name in seen:
                continue
            seen.add(name)
            row = (name, _describe_file(file), shorten_home(str(file)))
            rows.append(tuple(map(escape_invisible, row)))
    looked = describe_places(places)
    print_table(("name", "what", "file"), rows, f"no recipes in {looked}; write one: goose-like recipe new NAME")


def _describe_file(file: Path) -> str:
    try:
        return load_recipe(file).outline.title
    except UsageError as error:
        return f"can't be used: {str(error).partition(chr(10))[0]}"


def print_recipe(chosen: ChosenRecipe) -> None:
    """Print what a recipe does, its parameters, and what it brings."""
    recipe = chosen.load()
    outline = recipe.outline
    lines = [f"{outline.title}: {outline.description}", f"file: {shorten_home(str(recipe.file))}"]
    for parameter in outline.parameters:
        lines.append(f"parameter {_describe_parameter(parameter)}")
    filled = recipe.fill({}, keeps_missing=True)
    lines += [f"it {effect.text}" for effect in list_effects(filled, chosen.without)]
    lines += [f"activity: {activity}" for activity in outline.activities]
    print("\n".join(map(escape_invisible, lines)))


def _describe_parameter(parameter: Parameter) -> str:
    facts = [parameter.input_type, parameter.requirement.replace("_", " ")]
    if parameter.default is not None:
        facts.append(f"default {parameter.default!r}")
    if parameter.options:
        facts.append(f"one of {', '.join(parameter.options)}")
    return f"{parameter.key} ({', '.join(facts)}): {parameter.description}"


def check(chosen: ChosenRecipe) -> None:
    """Check a recipe and its sub recipes, and print sentences about what has no effect."""
    recipe = chosen.load()
    filled = recipe.fill({}, keeps_missing=True)
    list_effects(filled, chosen.without)
    recipes = [recipe, *(sub for _, sub in filled.subs)]
    for each in recipes:
        _read_schema(each.fill({}, keeps_missing=True))
        for warning in each.warnings:
            print_warning(escape_controls(warning))
    parameters = format_count(len(recipe.outline.parameters), "parameter")
    subs = format_count(len(filled.subs), "sub recipe")
    print(escape_controls(f"{recipe.outline.title}: this recipe can run; {parameters}, {subs}"))


def explain(chosen: ChosenRecipe, options: ProfileOptions) -> None:
    """Print what a run of the recipe would send and use."""
    filled = chosen.load().fill(chosen.read_values(), keeps_missing=True)
    model = options.model or name_model(filled)
    project = load_trusted_project(Path.cwd())
    choice = choose_profile(options.profile, model, options.sandbox, options.approval, project=project)
    base = add_folders(choice.profile, Path.cwd(), options.add_dirs or ())
    profile = change_profile(filled, base, chosen.without)
    schema = ""
    if filled.content.response.json_schema:
        schema = json.dumps(filled.content.response.json_schema, ensure_ascii=False, indent=2)
    parts = [
        _format_part("message", filled.message),
        _format_part("added to the system prompt", profile.instructions),
        _format_part("with", "\n".join(_describe_profile(profile))),
        _format_part("it brings", "\n".join(effect.text for effect in list_effects(filled, chosen.without))),
        _format_part("form of the answer", schema),
    ]
    print(escape_controls("\n\n".join(filter(None, parts))))


def _describe_profile(profile: Profile) -> list[str]:
    processor, _ = choose_models(profile)
    toolkits = ", ".join(toolkit.name for toolkit in profile.toolkits)
    lines = [
        f"profile {profile.name}, sandbox {profile.sandbox}, approval {profile.approval}",
        f"model {processor.model}",
        f"toolkits {toolkits or 'none'}",
        f"at most {format_count(profile.limits.steps, 'step')}",
    ]
    if profile.verify and profile.verify.commands:
        tries = format_count(profile.verify.attempts, "further attempt")
        lines.append(f"checks {'; '.join(profile.verify.commands)}, with {tries}")
    return lines


def _format_part(title: str, text: str) -> str:
    if not text:
        return ""
    lines = [f"  {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f"{title}:", *lines])


def write(name: str, session: str | None, *, is_personal: bool) -> None:
    """Write a recipe from the messages of a session, or to fill in."""
    project, personal = list_places(Path.cwd())
    messages: list[str] = []
    if session:
        messages = list_texts(find_session(session).folder)
    file = write_recipe(personal if is_personal else project, name, messages)
    print(f"written: {shorten_home(str(file))}; try it: goose-like recipe explain {name}")
