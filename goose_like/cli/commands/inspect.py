"""Reports on profiles, toolkits, providers and the installation: `list`, `show`, `check` and `doctor`."""

import inspect
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table

from goose_like import __version__
from goose_like.agent.build import build_exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.toolkit_hooks import toolkit_errors
from goose_like.config import secrets
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
from goose_like.config.yaml_reader import format_document
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
    find_provider_class,
    list_provider_names,
    load_default_profile,
)
from goose_like.sdk.lint import collect_tools, lint_toolkit
from goose_like.terminal.escape import to_one_line
from goose_like.terminal.report_table import make_table, print_fitted
from goose_like.workspace.policy import effective_sandbox
from goose_like.workspace.sandbox import find_sandbox_problem

_MAX_MODELS = 40


def print_profiles() -> None:
    """Print every profile with its model and file; of several profiles with one name the first is used."""
    rows = make_table("name", "processor", "file")
    names: set[str] = set()
    for source in list_profile_sources():
        processor = "(overridden)" if source.name in names else _describe_processor(source.name)
        names.add(source.name)
        rows.add_row(source.name, processor, str(source.file))
    print_fitted(rows)
    project = read_project_config(Path.cwd())
    if project and PROFILES in project.files and not is_trusted(project):
        print(f"\nskipped, not trusted: {project.get_path(PROFILES)}; to trust it: goose-like trust add")
    default, _ = load_default_profile()
    print(f"\nwithout --profile: {default.name}{_explain_default(default.name)}")


def _describe_processor(name: str) -> str:
    try:
        profile, _ = load_profile(name)
        return profile.processor.model if profile.processor else "(depends on which API key is set)"
    except GooseLikeError as error:
        return f"broken: {error}"


def print_profile(name: str | None = None) -> None:
    """Print a profile with everything that it extends as YAML; without a name print the default profile."""
    profile, source = load_profile(name) if name else load_default_profile()
    print(f"# {profile.name}: {source.file}")
    print(format_document(profile.model_dump(mode="json", exclude={"name"}, exclude_none=True)), end="")


async def check_profile(profile: Profile, source: YamlSource) -> int:
    """Print where each value comes from, then build an exchange without asking a model."""
    rows = make_table("key", "value", "from")
    for path, value in _iterate_values(profile.model_dump(mode="json", exclude={"name"})):
        text = "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        rows.add_row(".".join(map(str, path)), to_one_line(text, 60), find_origin(source, *path) or "default")
    print_fitted(rows)
    print(flush=True)
    try:
        async with build_exchange(profile, Notifier()) as exchange:
            print(f"{profile.name}: ready")
            print(f"  used     {_explain_use(profile)}")
            print(f"  models   {exchange.models.processor.label}, {exchange.models.accelerator.label} (accelerator)")
            print(f"  tools    {', '.join(exchange.tools)}")
            print(f"  sandbox  {effective_sandbox(profile.sandbox, profile.approval)}, approval {profile.approval}")
    except ProviderError as error:  # warn about toolkits first
        async with build_exchange(profile, Notifier(), models=build_null_models(error)):
            _print_warnings(profile)
        raise
    _print_warnings(profile)
    return 0


def _print_warnings(profile: Profile) -> None:
    for choice in profile.toolkits:
        for warning in lint_toolkit(load_toolkit(choice.name)):
            print(f"warning: toolkit {choice.name!r}: {warning}", flush=True)


def _iterate_values(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every value except mappings and lists of mappings, with its path."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _iterate_values(item, (*path, key))
    else:
        yield path, value


def _explain_use(profile: Profile) -> str:
    default, _ = load_default_profile()
    if default.name == profile.name:
        return f"by default{_explain_default(default.name)}"
    return f"with --profile {profile.name}; the default is {default.name!r}{_explain_default(default.name)}"


def _explain_default(name: str) -> str:
    if find_selected_profile() == name:
        return f", because {get_profiles_file()} has `use: {name}`"
    return ", because no API key is set" if name == "local" else ""


def print_toolkits() -> None:
    """Print every installed toolkit with its package."""
    rows = make_table("name", "description", "package")
    for name, point in list_entry_points("goose_like.toolkit").items():
        try:
            description = (load_toolkit(name).__doc__ or "").strip().partition("\n")[0]
        except GooseLikeError as error:
            description = f"broken: {error}"
        rows.add_row(name, description, get_package_name(point))
    print_fitted(rows)
    for conflict in _describe_conflicts("goose_like.toolkit"):
        print(f"\nnot used: {conflict}")


def _describe_conflicts(group: str) -> list[str]:
    """Return a sentence for each name that two packages offer."""
    return [
        f"{point.name!r} of the package {get_package_name(point)!r}, because the package {get_package_name(other)!r} "
        "has the same name; uninstall one of them"
        for point, other in list_overridden_entry_points(group)
    ]


async def print_toolkit(name: str) -> int:
    """Print a toolkit's tools as the model sees them; neither a model nor the toolkit's requirements are needed."""
    toolkit = load_toolkit(name)
    with toolkit_errors(name):
        tools, warnings = collect_tools(toolkit), list(lint_toolkit(toolkit))
    print(inspect.getdoc(toolkit) or "")
    for tool in tools:
        print(f"\n{tool.name}: {tool.spec.description}")
        for field, schema in tool.spec.schema["properties"].items():
            required = "" if field in tool.spec.schema.get("required", []) else ", optional"
            print(f"    {field} ({_describe_schema(schema)}{required}) {schema.get('description', '')}".rstrip())
    if warnings:
        print("", *(f"warning: {warning}" for warning in warnings), sep="\n")
    return 0


def _describe_schema(schema: dict[str, Any]) -> str:
    """Describe a JSON schema in a word or two."""
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(_describe_schema, schema["anyOf"]))
    types = schema.get("type", "any")
    if types == "object" and "properties" in schema:
        return f"{{{', '.join(schema['properties'])}}}"
    items = schema.get("items")
    if isinstance(items, dict):
        return f"list of {_describe_schema(items)}"
    return " | ".join([types] if isinstance(types, str) else types)


def print_providers() -> None:
    """Print every provider and what it still needs, without asking any server."""
    rows = make_table("name", "description", "models", "key", "state")
    for name in list_provider_names():
        factory = find_provider_class(name)
        info = factory.info
        models = ", ".join(dict.fromkeys(filter(None, (info.processor, info.accelerator))))
        missing = factory.find_setup_error(ModelChoice(model=f"{name}:{info.processor or ''}"))
        place = secrets.find_key_location(info.key_variable)
        state = str(missing or (f"ready, key from {place}" if place else "ready"))
        rows.add_row(name, info.summary, models or "-", info.key_variable or "-", state)
    print_fitted(rows)


async def check_provider(wanted: str) -> int:
    """Ask a provider for its list of models and print the result; `wanted` is `PROVIDER` or `PROVIDER:MODEL`."""
    name, _, model = wanted.partition(":")
    factory = find_provider_class(name)
    if not isinstance(factory, SupportsProbe):
        missing = factory.find_setup_error(ModelChoice(model=wanted))
        if missing:
            raise missing
        print(f"{name}: ready; it has no server to ask")
        return 0
    info = factory.info
    probe = await factory.probe(ModelChoice(model=wanted))
    print(f"{name}: {probe.address} answers")
    place = secrets.find_key_location(info.key_variable)
    verdict = "accepted" if probe.is_key_verified else "not checked: the server lists its models without a key too"
    print(f"  key     {f'{info.key_variable} from {place}, {verdict}' if place else 'none sent'}")
    if probe.models is None:
        print("  models  the server returned no list")
        return 0
    wanted_models = [model] if model else list(dict.fromkeys(filter(None, (info.processor, info.accelerator))))
    for each in wanted_models:
        hint = did_you_mean(each, probe.models)
        print(f"  model   {each} is {'available' if each in probe.models else f'not in the list; {hint}'}")
    listed = probe.models[:_MAX_MODELS]
    more = f" and {len(probe.models) - len(listed)} more" if len(probe.models) > len(listed) else ""
    print(f"  models  {', '.join(listed) or 'none'}{more}")
    return ModelUnavailableError.exit_code if model and model not in probe.models else 0


async def run_doctor(profile_name: str | None) -> int:
    """Print a diagnosis; return 0 if the profile works, else the exit code of a run with it."""
    rows, next_step, code = await diagnose(profile_name)
    print_fitted(rows)
    print(f"\nnext: {next_step}")
    return code


async def diagnose(profile_name: str | None) -> tuple[Table, str, int]:
    """Return the state of the installation, the next step, and the exit code of a run with this profile."""
    rows = make_table("part", "state")
    rows.add_row("goose-like", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    rows.add_row("configuration", str(config_folder()))
    rows.add_row("sessions", str(sessions_folder()))
    rows.add_row("cache", str(cache_folder()))
    rows.add_row("sandbox", find_sandbox_problem() or "works (bubblewrap)")
    rows.add_row("keys", _list_keys())
    missing = find_provider_class("local").find_setup_error(ModelChoice(model="local"))
    rows.add_row("embedded model", str(missing or "ready"))
    for group, description in GROUPS.items():
        if names := list_entry_points(group):
            rows.add_row(description, ", ".join(names))
        for conflict in _describe_conflicts(group):
            rows.add_row("not used", conflict)
    code = 0
    try:
        profile, source = load_profile(profile_name) if profile_name else load_default_profile()
        reason = "" if profile_name else _explain_default(profile.name)
        rows.add_row("profile", f"{profile.name} ({source.file}){reason}")
        processor, accelerator = choose_models(profile)
        reason = "from the profile" if profile.processor else "from the first provider with an API key"
        rows.add_row("model", f"{processor.model} ({reason}); accelerator {accelerator.model}")
        next_step = 'goose-like run "what is in this folder?"'
        if processor.provider == "local":
            next_step += (
                "\nfor a stronger model: set an API key (goose-like provider list) or a processor in profiles.yaml"
            )
        factory = find_provider_class(processor.provider)
        if missing := factory.find_setup_error(processor):
            next_step, code = str(missing), missing.exit_code
        elif isinstance(factory, SupportsProbe):
            probe = await factory.probe(processor)
            rows.add_row("server", f"{probe.address} answers{', the key is accepted' if probe.is_key_verified else ''}")
    except GooseLikeError as error:
        next_step, code = str(error), error.exit_code
    return rows, next_step, code


def _list_keys() -> str:
    """Return where each API key is stored, never the key."""
    try:
        variables = dict.fromkeys(find_provider_class(name).info.key_variable for name in list_provider_names())
        keys = [f"{variable} ({place})" for variable in variables if (place := secrets.find_key_location(variable))]
    except GooseLikeError as error:
        return str(error)
    return ", ".join(keys) or "none set"
