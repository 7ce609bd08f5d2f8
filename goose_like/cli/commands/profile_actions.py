"""The work of the commands `profile list`, `show` and `check`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goose_like.agent.build import build_exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.profile_choice import choose_profile
from goose_like.agent.toolkit_hooks import toolkit_errors
from goose_like.config.paths import PROFILES
from goose_like.config.profile import Profile
from goose_like.config.profile_loader import (
    find_selected_profile,
    get_profiles_file,
    list_profile_sources,
    load_profile,
)
from goose_like.config.trust import is_trusted, read_project_config
from goose_like.config.yaml_reader import format_document
from goose_like.config.yaml_source import YamlSource
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.notifier import Notifier
from goose_like.launch.exit import run_async
from goose_like.providers.model_names import find_similar_model
from goose_like.providers.registry import load_default_profile
from goose_like.sdk.lint import lint_toolkit
from goose_like.terminal.escape import to_one_line
from goose_like.terminal.report_table import print_table
from goose_like.workspace.permissions.policy import effective_sandbox

_Path = tuple[str | int, ...]


def print_profiles() -> None:
    """Print every profile with its model and file; of several profiles with one name the first is used."""
    rows = []
    seen: set[str] = set()
    for source in list_profile_sources():
        processor = "(overridden)"
        if source.name not in seen:
            processor = _describe_processor(source.name)
        seen.add(source.name)
        rows.append((source.name, processor, str(source.file)))
    print_table(("name", "processor", "file"), rows, "")
    project = read_project_config(Path.cwd())
    if project and PROFILES in project.files and not is_trusted(project):
        print(f"\nskipped, not trusted: {project.get_path(PROFILES)}; to trust it: goose-like trust add")
    default, _ = load_default_profile()
    print(f"\nwithout --profile: {default.name}{explain_default(default.name)}")


def _describe_processor(name: str) -> str:
    try:
        profile, _ = load_profile(name)
    except GooseLikeError as error:
        return f"broken: {error}"
    return profile.processor.model if profile.processor else "(depends on which API key is set)"


def explain_default(name: str) -> str:
    """Return the reason why a profile is the default, as the end of a sentence."""
    if find_selected_profile() == name:
        return f", because {get_profiles_file()} has `use: {name}`"
    if name == "local":
        return ", because no API key is set"
    return ""


def print_profile(name: str | None = None) -> None:
    """Print a profile with everything that it extends as YAML; without a name print the default profile."""
    profile, source = load_profile(name) if name else load_default_profile()
    print(f"# {profile.name}: {source.file}")
    print(format_profile(profile), end="")


def format_profile(profile: Profile) -> str:
    """Format all values of a profile as YAML that loads as the same profile."""
    data = profile.model_dump(exclude={"name"}, exclude_none=True)
    # A null that somebody wrote may differ from the default, such as `processes: null`.
    for key, value in profile.model_dump(exclude={"name"}, exclude_unset=True).items():
        if isinstance(value, dict):
            data[key] |= value
        else:
            data[key] = value
    return format_document(data)


def check_profile(name: str | None = None) -> int:
    """Print where each value comes from, then build an exchange without asking a model. Return the exit code."""
    choice = choose_profile(name)
    try:
        return run_async(_check_profile(choice.profile, choice.source))
    except ProfileError as error:
        raise choice.locate_error(error) from None


async def _check_profile(profile: Profile, source: YamlSource) -> int:
    _print_values(profile, source)
    print(flush=True)
    for index, toolkit in enumerate(profile.toolkits):
        with toolkit_errors(toolkit.name, "toolkits", index):
            for warning in lint_toolkit(load_toolkit(toolkit.name)):
                print(f"warning: toolkit {toolkit.name!r}: {warning}", flush=True)
    for warning in _list_model_warnings(profile):
        print(f"warning: {warning}", flush=True)
    default, _ = load_default_profile()
    use = "by default"
    if default.name != profile.name:
        use = f"with --profile {profile.name}; the default is {default.name!r}"
    async with build_exchange(profile, Notifier()) as exchange:
        print(f"{profile.name}: ready")
        print(f"  used     {use}{explain_default(default.name)}")
        print(f"  models   {exchange.models.processor.label}, {exchange.models.accelerator.label} (accelerator)")
        print(f"  tools    {', '.join(exchange.tools)}")
        print(f"  sandbox  {effective_sandbox(profile.sandbox, profile.approval)}, approval {profile.approval}")
    return 0


def _print_values(profile: Profile, source: YamlSource) -> None:
    """Print each value with the file and line that it comes from."""
    rows = []
    written = dict(_iterate_values(profile.model_dump(mode="json", exclude_unset=True)))
    for path, value in _iterate_values(profile.model_dump(mode="json", exclude={"name"})):
        name = ".".join(map(str, path))
        text = to_one_line(_format_value(value), 60)
        origin = source.locate(*path) if path in written else "default"
        rows.append((name, text, origin))
    print_table(("key", "value", "from"), rows, "")


def _format_value(value: Any) -> str:
    if value in (None, ""):
        return "-"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _list_model_warnings(profile: Profile) -> Iterator[str]:
    """Yield a sentence for each model whose name looks misspelt. A server of one's own may have any names."""
    choices = {"processor": profile.processor, "accelerator": profile.accelerator, "fallback": profile.fallback}
    for role, choice in choices.items():
        if choice is None or choice.base_url:
            continue
        near = find_similar_model(choice.provider, choice.name)
        if near:
            yield f"{role}: no known model has the name {choice.model!r}; did you mean {near!r}?"


def _iterate_values(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    """Yield every value except mappings and lists of mappings, with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _iterate_values(item, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _iterate_values(item, (*path, index))
    else:
        yield path, value
