"""The diagnosis that `goose-like doctor` and `/doctor` show: the installation, the model in use, and the next step."""

import asyncio
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from goose_like.agent.present_toolkits import find_present_toolkits
from goose_like.config import secrets
from goose_like.config.entry_points import (
    GROUPS,
    describe_unused_entry_point,
    list_entry_points,
    list_other_packages,
    list_unused_entry_points,
)
from goose_like.config.paths import FOLDER_ADVICE, cache_folder, config_folder, home_folder, sessions_folder
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import describe_goose09_profiles, load_profile
from goose_like.config.trust import load_trusted_project
from goose_like.core.errors import GooseLikeError
from goose_like.core.masking import mask_text
from goose_like.core.notifier import Notifier
from goose_like.core.version import describe_version
from goose_like.providers.base import SupportsProbe
from goose_like.providers.foreign_code import find_setup_error, probe_server
from goose_like.providers.registry import (
    choose_models,
    find_provider_class,
    list_broken_providers,
    list_working_providers,
    load_default_profile,
)
from goose_like.terminal.report_table import make_table, print_fitted
from goose_like.workspace.sandbox.bubblewrap import describe_sandbox

from .profile_actions import explain_default
from .toolkit_actions import describe_conflicts

_FIRST_TASK = 'goose-like run "what is in this folder?"'
_VARIABLE = re.compile(
    r"(GOOSE_LIKE|ANTHROPIC|OPENAI|AZURE|AWS|OTEL|XDG|SSL)_|(https?|no|all)_proxy$|TERM$|NO_COLOR$", re.I
)
_STRONGER_MODEL = "for a stronger model: goose-like setup, or name a processor in profiles.yaml"


def run_doctor(profile_name: str | None, *, is_report: bool = False) -> int:
    """Print a diagnosis; return 0 if the profile works, else the exit code of a run with it.

    A report is Markdown for others: it has no secrets, and no names of the person, the machine and the folders.
    """
    rows, next_step, code = asyncio.run(diagnose(profile_name))
    if is_report:
        rows.add_row("variables", ", ".join(_list_variables()) or "none")
        print(_remove_names(_format_report(rows, next_step)))
        return code
    print_fitted(rows)
    print(f"\nnext: {next_step}")
    return code


def _format_report(rows: Table, next_step: str) -> str:
    parts, states = (list(column.cells) for column in rows.columns)
    lines = ["| part | state |", "|---|---|"]
    for part, state in zip(parts, states, strict=True):
        cell = str(state).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {part} | {cell} |")
    return "\n".join([*lines, "", f"next: {next_step}"])


def _list_variables() -> list[str]:
    """List the names of variables that are set and that goose-like or a vendor's library reads."""
    return sorted(name for name in os.environ if _VARIABLE.match(name))


def _remove_names(text: str) -> str:
    """Mask secrets, and replace the current folder, the home folder, the person and the machine by words."""
    text = mask_text(text)
    for path, word in ((Path.cwd(), "FOLDER"), (home_folder(), "~")):
        if path != Path("/"):
            text = text.replace(str(path), word)
    for name, word in ((home_folder().name, "USER"), (platform.node(), "MACHINE")):
        if name:
            text = re.sub(rf"\b{re.escape(name)}\b", word, text)
    return text


async def diagnose(profile_name: str | None, session_profile: Profile | None = None) -> tuple[Table, str, int]:
    """Return the state of the installation, the next step, and the exit code of a run with this profile.

    A session passes its own profile, which options and commands can have changed.
    """
    rows = make_table("part", "state")
    for part, state in _iterate_installation():
        rows.add_row(part, state)
    for description, names in _iterate_extensions():
        rows.add_row(description, names)
    try:
        next_step = await _check_profile(rows, profile_name, session_profile)
    except GooseLikeError as error:
        return rows, str(error), error.exit_code
    if _find_folder_problem():
        return rows, f"no session can be saved: {FOLDER_ADVICE}, or save none: goose-like run --no-session", 1
    return rows, next_step, 0


def _iterate_installation() -> Iterator[tuple[str, str]]:
    """Yield rows about goose-like itself, its folders and what it needs."""
    yield "goose-like", f"{describe_version()}, Python {platform.python_version()}, {platform.platform()}"
    yield "configuration", str(config_folder())
    yield "sessions", f"{sessions_folder()}{_find_folder_problem()}"
    yield "cache", str(cache_folder())
    yield "sandbox", describe_sandbox()
    yield "keys", _list_keys()
    missing = find_provider_class("local").find_setup_error(ModelChoice(model="local"))
    yield "embedded model", str(missing or "ready")


def _iterate_extensions() -> Iterator[tuple[str, str]]:
    """Yield rows about what packages add, and about what is not used."""
    for group, description in GROUPS.items():
        names = list_entry_points(group)
        if names:
            yield description, ", ".join(names)
        for conflict in describe_conflicts(group):
            yield "not used", conflict
    for error in list_broken_providers():
        yield "not used", str(error)
    if note := describe_goose09_profiles():
        yield "not used", note
    for point in list_unused_entry_points():
        yield "not used", describe_unused_entry_point(point)
    if packages := list_other_packages():
        yield "other packages", f"{', '.join(packages)}: their code runs with your rights, outside the sandbox"


async def _check_profile(rows: Table, profile_name: str | None, session_profile: Profile | None) -> str:
    """Add rows about a profile and its model, and return the next step.

    Raises:
        GooseLikeError: the profile does not work; the text says what to do.
    """
    if profile_name:
        profile, source = load_profile(profile_name)
        reason = ""
    else:
        profile, source = load_default_profile()
        reason = explain_default(profile.name)
    rows.add_row("profile", f"{profile.name} ({source.file}){reason}")
    here = Path.cwd()
    present = find_present_toolkits(here, load_trusted_project(here), Notifier())
    if present:
        rows.add_row("active by their files", ", ".join(present))
    origin = "from the profile" if profile.processor else "from the first provider with an API key"
    if session_profile and session_profile.processor != profile.processor:
        profile = session_profile
        origin = "chosen for this session"
    processor, accelerator = choose_models(profile)
    rows.add_row("model", f"{processor.model} ({origin}); accelerator {accelerator.model}")
    if processor.tools != "auto":
        rows.add_row("tool calls", f"{processor.tools} (from the profile)")
    await _check_provider(rows, processor)
    if processor.provider == "local":
        return f"{_FIRST_TASK}\n{_STRONGER_MODEL}"
    return _FIRST_TASK


async def _check_provider(rows: Table, processor: ModelChoice) -> None:
    """Check that the provider of a model has what it needs, and add a row about its server. Raise GooseLikeError."""
    factory = find_provider_class(processor.provider)
    missing = find_setup_error(factory, processor)
    if missing:
        raise missing
    if isinstance(factory, SupportsProbe):
        probe = await probe_server(factory, processor)
        state = f"{probe.address} answers"
        if probe.is_key_verified:
            state += ", the key is accepted"
        rows.add_row("server", state)


def _find_folder_problem() -> str:
    """Say that sessions cannot be saved, if so."""
    folder = sessions_folder()
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    can_write = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    if can_write:
        return ""
    return f" ({nearest} cannot be written)"


def _list_keys() -> str:
    """Return where each API key is stored, never the key."""
    keys = []
    try:
        variables = dict.fromkeys(factory.info.key_variable for _, factory in list_working_providers())
        for variable in variables:
            place = secrets.find_key_location(variable)
            if place:
                keys.append(f"{variable} ({place})")
    except GooseLikeError as error:
        return str(error)
    return ", ".join(keys) or "none set"
