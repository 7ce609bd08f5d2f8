"""The diagnosis that `goose-like doctor` and `/doctor` show: the installation, the model in use, and the next step."""

import asyncio
import os
import platform
from pathlib import Path

from rich.table import Table

from goose_like import __version__
from goose_like.agent.present_toolkits import find_present_toolkits
from goose_like.config import secrets
from goose_like.config.entry_points import (
    GROUPS,
    describe_unused_entry_point,
    list_entry_points,
    list_other_packages,
    list_unused_entry_points,
)
from goose_like.config.paths import FOLDER_ADVICE, cache_folder, config_folder, sessions_folder
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import describe_goose09_profiles, load_profile
from goose_like.config.trust import load_trusted_project
from goose_like.core.errors import GooseLikeError
from goose_like.core.notifier import Notifier
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


def run_doctor(profile_name: str | None) -> int:
    """Print a diagnosis; return 0 if the profile works, else the exit code of a run with it."""
    rows, next_step, code = asyncio.run(diagnose(profile_name))
    print_fitted(rows)
    print(f"\nnext: {next_step}")
    return code


async def diagnose(profile_name: str | None, session_profile: Profile | None = None) -> tuple[Table, str, int]:
    """Return the state of the installation, the next step, and the exit code of a run with this profile.

    A session passes its own profile, which options and commands can have changed.
    """
    rows = make_table("part", "state")
    rows.add_row("goose-like", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    rows.add_row("configuration", str(config_folder()))
    rows.add_row("sessions", f"{sessions_folder()}{_find_folder_problem()}")
    rows.add_row("cache", str(cache_folder()))
    rows.add_row("sandbox", describe_sandbox())
    rows.add_row("keys", _list_keys())
    missing = find_provider_class("local").find_setup_error(ModelChoice(model="local"))
    rows.add_row("embedded model", str(missing or "ready"))
    for group, description in GROUPS.items():
        if names := list_entry_points(group):
            rows.add_row(description, ", ".join(names))
        for conflict in describe_conflicts(group):
            rows.add_row("not used", conflict)
    for error in list_broken_providers():
        rows.add_row("not used", str(error))
    if note := describe_goose09_profiles():
        rows.add_row("not used", note)
    for point in list_unused_entry_points():
        rows.add_row("not used", describe_unused_entry_point(point))
    if packages := list_other_packages():
        rows.add_row("other packages", f"{', '.join(packages)}: their code runs with your rights, outside the sandbox")
    code = 0
    try:
        profile, source = load_profile(profile_name) if profile_name else load_default_profile()
        reason = "" if profile_name else explain_default(profile.name)
        rows.add_row("profile", f"{profile.name} ({source.file}){reason}")
        if present := find_present_toolkits(Path.cwd(), load_trusted_project(Path.cwd()), Notifier()):
            rows.add_row("active by their files", ", ".join(present))
        reason = "from the profile" if profile.processor else "from the first provider with an API key"
        if session_profile and session_profile.processor != profile.processor:
            profile = session_profile
            reason = "chosen for this session"
        processor, accelerator = choose_models(profile)
        rows.add_row("model", f"{processor.model} ({reason}); accelerator {accelerator.model}")
        next_step = 'goose-like run "what is in this folder?"'
        if processor.provider == "local":
            next_step += (
                "\nfor a stronger model: set an API key (goose-like provider list) or a processor in profiles.yaml"
            )
        factory = find_provider_class(processor.provider)
        if missing := find_setup_error(factory, processor):
            next_step, code = str(missing), missing.exit_code
        elif isinstance(factory, SupportsProbe):
            probe = await probe_server(factory, processor)
            rows.add_row("server", f"{probe.address} answers{', the key is accepted' if probe.is_key_verified else ''}")
    except GooseLikeError as error:
        next_step, code = str(error), error.exit_code
    if code == 0 and _find_folder_problem():
        code = 1
        next_step = f"no session can be saved: {FOLDER_ADVICE}, or save none: goose-like run --no-session"
    return rows, next_step, code


def _find_folder_problem() -> str:
    """Say that sessions cannot be saved, if so."""
    folder = sessions_folder()
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    can_write = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    return "" if can_write else f" ({nearest} cannot be written)"


def _list_keys() -> str:
    """Return where each API key is stored, never the key."""
    try:
        variables = dict.fromkeys(factory.info.key_variable for _, factory in list_working_providers())
        keys = [f"{variable} ({place})" for variable in variables if (place := secrets.find_key_location(variable))]
    except GooseLikeError as error:
        return str(error)
    return ", ".join(keys) or "none set"
