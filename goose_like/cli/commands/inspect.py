"""What `list`, `show`, `check` and `doctor` print."""

import inspect
import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table
from ruamel.yaml import YAML

from goose_like import __version__
from goose_like.agent.build import build_exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.toolkit_guard import toolkit_errors
from goose_like.config import secrets as keys
from goose_like.config.paths import cache_folder, config_folder, sessions_folder
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import (
    find_origin,
    find_selected_profile,
    get_profiles_file,
    list_profile_sources,
    load_profile,
)
from goose_like.config.trust import PROFILES, is_trusted, read_project_config
from goose_like.config.yaml_source import YamlSource
from goose_like.core.entry_points import (
    GROUPS,
    did_you_mean,
    get_package_name,
    list_entry_points,
    list_overridden_entry_points,
)
from goose_like.core.errors import GooseLikeError, ModelUnavailableError, ProviderError
from goose_like.core.notifier import Notifier
from goose_like.providers.base import SupportsProbe
from goose_like.providers.null_provider import build_null_models
from goose_like.providers.registry import (
    choose_models,
    find_provider_factory,
    list_provider_names,
    load_default_profile,
)
from goose_like.sdk.lint import collect_tools, lint_toolkit
from goose_like.terminal.escape import to_one_line
from goose_like.terminal.report_table import make_table, print_fitted
from goose_like.workspace.policy import effective_sandbox
from goose_like.workspace.sandbox import find_sandbox_problem

_MODELS_SHOWN = 40


def show_profiles() -> None:
    """Every profile, its model and the file it is in; broken ones say why. Of one name the first is used."""
    rows = make_table("name", "processor", "file")
    names: set[str] = set()
    for source in list_profile_sources():
        processor = "(overridden)" if source.name in names else _processor(source.name)
        names.add(source.name)
        rows.add_row(source.name, processor, str(source.file))
    print_fitted(rows)
    project = read_project_config(Path.cwd())
    if project and PROFILES in project.files and not is_trusted(project):
        print(
            f"\nleft out, as you have not trusted it: {project.get_path(PROFILES)}; see `goose-like trust add --help`"
        )
    usual, _ = load_default_profile()
    print(f"\nwithout --profile: {usual.name}{why_profile(usual.name)}")


def _processor(name: str) -> str:
    try:
        profile, _ = load_profile(name)
        return profile.processor.model if profile.processor else "(by the key that is set)"
    except GooseLikeError as error:
        return f"broken: {error}"


def show_profile(name: str | None = None) -> None:
    """A profile with all that it extends, as YAML; without a name the one that `run` uses then."""
    profile, source = load_profile(name) if name else load_default_profile()
    print(f"# {profile.name}: {source.file}")
    YAML().dump(profile.model_dump(mode="json", exclude={"name"}, exclude_none=True), sys.stdout)


async def check_profile(profile: Profile, source: YamlSource) -> int:
    """Tells where each value comes from, then builds the exchange, asking no model; what is wrong is raised."""
    rows = make_table("key", "value", "from")
    for path, value in _leaves(profile.model_dump(mode="json", exclude={"name"})):
        shown = "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        rows.add_row(".".join(map(str, path)), to_one_line(shown, 60), find_origin(source, *path) or "default")
    print_fitted(rows)
    print(flush=True)
    try:
        async with build_exchange(profile, Notifier()) as exchange:
            print(f"{profile.name}: ready")
            print(f"  used     {_when_used(profile)}")
            print(f"  models   {exchange.models.processor.label}, {exchange.models.accelerator.label} (accelerator)")
            print(f"  tools    {', '.join(exchange.tools)}")
            print(f"  sandbox  {effective_sandbox(profile.sandbox, profile.approval)}, approval {profile.approval}")
    except ProviderError as error:  # what is wrong with the toolkits is told before that
        async with build_exchange(profile, Notifier(), models=build_null_models(error)):
            _warn_of(profile)
        raise
    _warn_of(profile)
    return 0


def _warn_of(profile: Profile) -> None:
    for choice in profile.toolkits:
        for words in lint_toolkit(load_toolkit(choice.name)):
            print(f"warning: toolkit {choice.name!r}: {words}", flush=True)


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value that is no mapping or list of others, with its path."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _when_used(profile: Profile) -> str:
    """Which of the profiles a run without `--profile` takes depends on what there is."""
    usual, _ = load_default_profile()
    if usual.name == profile.name:
        return f"when no profile is named{why_profile(usual.name)}"
    return f"with --profile {profile.name}; when none is named, {usual.name!r} is{why_profile(usual.name)}"


def why_profile(name: str) -> str:
    """Why `default_profile` took this one, if it needs saying."""
    if find_selected_profile() == name:
        return f", since {get_profiles_file()} says `use: {name}`"
    return ", since no key is set" if name == "local" else ""


def show_toolkits() -> None:
    """Every installed toolkit and the package that it comes from."""
    rows = make_table("name", "what it does", "package")
    for name, point in list_entry_points("goose_like.toolkit").items():
        try:
            words = (load_toolkit(name).__doc__ or "").strip().partition("\n")[0]
        except GooseLikeError as error:
            words = f"broken: {error}"
        rows.add_row(name, words, get_package_name(point))
    print_fitted(rows)
    for words in _overridden("goose_like.toolkit"):
        print(f"\nnot used: {words}")


def _overridden(group: str) -> list[str]:
    """Names that two packages offer, a sentence each."""
    return [
        f"{point.name!r} of the package {get_package_name(point)!r}, since {get_package_name(other)!r} offers one of that name too; "
        "uninstall one of them"
        for point, other in list_overridden_entry_points(group)
    ]


async def show_toolkit(name: str) -> int:
    """A toolkit's tools as a model is told of them; needs neither a model nor what the toolkit requires."""
    kind = load_toolkit(name)
    with toolkit_errors(name):
        tools, warnings = collect_tools(kind), list(lint_toolkit(kind))
    print(inspect.getdoc(kind) or "")
    for tool in tools:
        print(f"\n{tool.name}: {tool.spec.description}")
        for field, schema in tool.spec.schema["properties"].items():
            required = "" if field in tool.spec.schema.get("required", []) else ", optional"
            print(f"    {field} ({_kind(schema)}{required}) {schema.get('description', '')}".rstrip())
    if warnings:
        print("", *(f"warning: {words}" for words in warnings), sep="\n")
    return 0


def _kind(schema: dict[str, Any]) -> str:
    """A JSON schema in a word or two."""
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(_kind, schema["anyOf"]))
    kinds = schema.get("type", "any")
    if kinds == "object" and "properties" in schema:
        return f"{{{', '.join(schema['properties'])}}}"
    items = schema.get("items")
    return (
        f"list of {_kind(items)}"
        if isinstance(items, dict)
        else " | ".join([kinds] if isinstance(kinds, str) else kinds)
    )


def show_providers() -> None:
    """Every provider and what it still needs; no server is asked."""
    rows = make_table("name", "what it is", "models", "key", "state")
    for name in list_provider_names():
        kind = find_provider_factory(name)
        facts = kind.info
        models = ", ".join(dict.fromkeys(filter(None, (facts.processor, facts.accelerator))))
        missing = kind.find_setup_error(ModelChoice(model=f"{name}:{facts.processor or ''}"))
        place = keys.find_key_location(facts.key_variable)
        state = str(missing or (f"ready, key from {place}" if place else "ready"))
        rows.add_row(name, facts.summary, models or "-", facts.key_variable or "-", state)
    print_fitted(rows)


async def check_provider(wanted: str) -> int:
    """Asks a server for the list of its models, and says what came; `wanted` is its name, or `name:model`.

    Raises:
        ProviderError: it can't be reached, or refused the key.
    """
    name, _, model = wanted.partition(":")
    kind = find_provider_factory(name)
    if not isinstance(kind, SupportsProbe):
        missing = kind.find_setup_error(ModelChoice(model=wanted))
        if missing:
            raise missing
        print(f"{name}: ready; it has no server that could be asked")
        return 0
    facts = kind.info
    probe = await kind.probe(ModelChoice(model=wanted))
    print(f"{name}: {probe.address} answers")
    place = keys.find_key_location(facts.key_variable)
    took = (
        "accepted" if probe.is_key_verified else "not refused, which may say nothing: others may list its models, too"
    )
    print(f"  key     {f'{facts.key_variable} from {place}, {took}' if place else 'none sent'}")
    if probe.models is None:
        print("  models  it gave no list")
        return 0
    asked = [model] if model else list(dict.fromkeys(filter(None, (facts.processor, facts.accelerator))))
    for each in asked:
        near = did_you_mean(each, probe.models)
        print(f"  model   {each} is {'there' if each in probe.models else f'not in its list; {near}'}")
    shown = probe.models[:_MODELS_SHOWN]
    more = f" and {len(probe.models) - len(shown)} more" if len(probe.models) > len(shown) else ""
    print(f"  models  {', '.join(shown) or 'none'}{more}")
    return ModelUnavailableError.exit_code if model and model not in probe.models else 0


async def show_doctor(profile_name: str | None) -> int:
    """Prints what there is; gives 0 when the profile can be used, else the code that a run would end with."""
    rows, next_step, code = await examine(profile_name)
    print_fitted(rows)
    print(f"\nnext: {next_step}")
    return code


async def examine(profile_name: str | None) -> tuple[Table, str, int]:
    """What there is, what to do next, and the exit code of a run with this profile if it can't be used."""
    rows = make_table("what", "state")
    rows.add_row("goose-like", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    rows.add_row("configuration", str(config_folder()))
    rows.add_row("sessions", str(sessions_folder()))
    rows.add_row("cache", str(cache_folder()))
    rows.add_row("sandbox", find_sandbox_problem() or "works (bubblewrap)")
    rows.add_row("keys", _keys_told())
    missing = find_provider_factory("local").find_setup_error(ModelChoice(model="local"))
    rows.add_row("embedded model", str(missing or "ready"))
    for group, what in GROUPS.items():
        if names := list_entry_points(group):
            rows.add_row(what, ", ".join(names))
        for words in _overridden(group):
            rows.add_row("not used", words)
    code = 0
    try:
        profile, source = load_profile(profile_name) if profile_name else load_default_profile()
        why = "" if profile_name else why_profile(profile.name)
        rows.add_row("profile", f"{profile.name} ({source.file}){why}")
        processor, accelerator = choose_models(profile)
        why = "the profile names it" if profile.processor else "of the first provider whose key is set"
        rows.add_row("model", f"{processor.model} ({why}); accelerator {accelerator.model}")
        next_step = 'goose-like run "what is in this folder?"'
        if processor.provider == "local":
            next_step += (
                "\nfor a stronger model: set a key (`goose-like provider list`), or a processor in profiles.yaml"
            )
        kind = find_provider_factory(processor.provider)
        if missing := kind.find_setup_error(processor):
            next_step, code = str(missing), missing.exit_code
        elif isinstance(kind, SupportsProbe):
            probe = await kind.probe(processor)
            rows.add_row("server", f"{probe.address} answers{', the key is accepted' if probe.is_key_verified else ''}")
    except GooseLikeError as error:
        next_step, code = str(error), error.exit_code
    return rows, next_step, code


def _keys_told() -> str:
    """Which keys there are and where, never what they are."""
    try:
        variables = dict.fromkeys(find_provider_factory(name).info.key_variable for name in list_provider_names())
        told = [f"{variable} ({place})" for variable in variables if (place := keys.find_key_location(variable))]
    except GooseLikeError as error:
        return str(error)
    return ", ".join(told) or "none set"
