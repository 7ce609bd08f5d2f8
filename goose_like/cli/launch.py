"""Commands from their options to a profile and a session, and from their work to an exit code."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from goose_like.agent.profile_choice import ProfileChoice, choose_profile
from goose_like.config.private_folder import remove_abandoned_folders
from goose_like.config.profile import PermissionLists, Profile
from goose_like.config.profile_loader import describe_goose09_profiles
from goose_like.config.secrets import find_key_location
from goose_like.config.tool_list import read_rules
from goose_like.config.yaml_source import describe_field_error
from goose_like.core.errors import ProfileError, UsageError
from goose_like.providers.registry import choose_models, find_provider_class, format_model_label
from goose_like.sessions.fork import fork
from goose_like.sessions.index import find_newest_session, find_session
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.workspace.permissions.policy import describe_risk, effective_sandbox
from goose_like.workspace.sandbox.path_rules import list_secret_paths

from .exit import keep_stdout
from .options import ProfileOptions
from .project_trust import settle_project_trust
from .worktree import create_worktree, find_session_folder

Warn = Callable[[str], None]
"""Shows a warning to the person."""


def print_warning(text: str) -> None:
    """Show a warning on standard error."""
    print(f"goose-like: {text}", file=sys.stderr)


def settle_profile(
    options: ProfileOptions, session: Session | None = None, warn: Warn = print_warning
) -> ProfileChoice:
    """Choose the profile, after asking about untrusted files of the project; warn of risky settings."""
    if note := describe_goose09_profiles():
        warn(note)
    project = settle_project_trust(is_trusted_now=options.is_trusted)
    choice = choose_profile(options.profile, options.model, options.sandbox, options.approval, session, project)
    if risk := describe_risk(choice.profile.sandbox, choice.profile.approval):
        warn(risk)
    profile = _allow_tools(_show_folders(choice.profile, options.add_dirs or ()), options.allowed_tools or ())
    return replace(choice, profile=profile)


def _show_folders(profile: Profile, folders: Sequence[str]) -> Profile:
    """Return the profile with more folders that commands and tools see, read-only."""
    named = [Path(folder).expanduser().absolute() for folder in folders]
    places = [folder.resolve() for folder in named]
    for word, folder, place in zip(folders, named, places, strict=True):
        if not place.is_dir():
            raise UsageError(f"--add-dir {word}: there is no such folder")
        if place != folder and _holds_secrets(place) and not _holds_secrets(folder):
            raise UsageError(f"--add-dir {word}: it is a link to {place}, which holds secrets; name that folder itself")
    read = (*profile.paths.read, *map(str, places))
    return profile.model_copy(update={"paths": profile.paths.model_copy(update={"read": read})})


def _holds_secrets(folder: Path) -> bool:
    return any(folder.is_relative_to(secret) for secret in list_secret_paths())


def _allow_tools(profile: Profile, texts: Sequence[str]) -> Profile:
    """Return the profile with more rules that allow; its own rules that deny or ask still come first."""
    try:
        rules = [rule for text in texts for rule in read_rules(text, Path.cwd())]
        allow = PermissionLists(allow=(*profile.permissions.allow, *rules)).allow
    except ValidationError as error:
        problem = describe_field_error(error.errors(include_url=False)[0] | {"loc": ()}, "--allowed-tools")
        raise UsageError(problem) from error
    except ValueError as error:
        raise UsageError(f"--allowed-tools {', '.join(texts)}: {error}") from error
    return profile.model_copy(update={"permissions": profile.permissions.model_copy(update={"allow": allow})})


def open_session(
    options: ProfileOptions,
    *,
    session: str | None,
    is_resumed: bool,
    is_forked: bool = False,
    keep_open_turn: bool = False,
    worktree: str | None = None,
    warn: Warn = print_warning,
) -> tuple[ProfileChoice, Session]:
    """Choose the profile and open a new session or resume one: by name, else the newest of this folder.

    With `is_forked` a copy is resumed. With `keep_open_turn` an interrupted turn of a resumed session stays open. A new
    session enters a new `worktree` of this name (if empty: the session's name), a resumed one the worktree that it had.
    """
    if not is_resumed:
        choice, created = settle_profile(options, warn=warn), Session.create(session)
        if worktree is not None:
            with close_on_error(created):
                folder, notes = create_worktree(worktree or created.name, Path.cwd())
                os.chdir(folder)
            for note in notes:
                warn(escape_controls(note))
        return choice, created
    cwd = None if session else os.getcwd()
    if is_forked:
        copy = fork(find_session(session) if session else find_newest_session(cwd))
        copy.close()
        session, cwd = copy.name, None
    resumed = Session.resume(session, cwd=cwd, keep_open_turn=keep_open_turn)
    with close_on_error(resumed):
        os.chdir(find_session_folder(resumed, Path.cwd()))
        return settle_profile(options, resumed, warn), resumed


@contextmanager
def close_on_error(session: Session) -> Iterator[None]:
    """Close a session if the block fails."""
    try:
        yield
    except BaseException:
        session.close()
        raise


def describe_start(choice: ProfileChoice) -> list[str]:
    """Describe the model and why it is used, the limits, and what to type, for a person's first session."""
    profile = choice.profile
    processor, _ = choose_models(profile)
    variable = find_provider_class(processor.provider).info.key_variable
    if choice.model:
        reason = "from --model"
    elif processor.provider == "local" and (profile.name == "local" or not profile.processor):
        reason = "small; no API key is set: goose-like setup"
    elif profile.processor:
        reason = f"from the profile {profile.name!r}"
    else:
        reason = f"{variable} from {find_key_location(variable)}"
    is_asking = profile.approval != "yolo"
    further = "goose-like asks before it goes further" if is_asking else "goose-like goes further without asking"
    limits = {"full": "none; commands have all your rights", "read-only": "nothing can be changed"}.get(
        effective_sandbox(profile.sandbox, profile.approval),
        f"this folder and a private /tmp; {further}",
    )
    return [
        f"model    {format_model_label(processor)} ({reason})",
        f"sandbox  {limits}",
        "type a task and press Enter; / lists commands, @ files; Ctrl-D leaves",
    ]


def run_and_close(work: Coroutine[Any, Any, int], choice: ProfileChoice, session: Session | None = None) -> int:
    """Run work in a new event loop, close the session, and return the exit code of the work.

    An error about the profile names its file and line.
    """
    remove_abandoned_folders()
    try:
        with keep_stdout():
            return asyncio.run(work)
    except ProfileError as error:
        raise choice.locate_error(error) from None
    finally:
        if session:
            session.close()
