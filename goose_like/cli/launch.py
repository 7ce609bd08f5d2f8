"""Commands from their options to a profile and a session, and from their work to an exit code."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any

from goose_like.agent.profile_choice import ProfileChoice, choose_profile
from goose_like.config.private_folder import remove_abandoned_folders
from goose_like.config.profile_loader import describe_goose09_profiles
from goose_like.core.errors import ProfileError
from goose_like.sessions.session import Session
from goose_like.workspace.permissions.policy import describe_risk

from .exit import keep_stdout
from .options import ProfileOptions
from .project_trust import settle_project_trust


def settle_profile(options: ProfileOptions, session: Session | None = None) -> ProfileChoice:
    """Choose the profile, after asking about untrusted files of the project; warn of risky settings."""
    if note := describe_goose09_profiles():
        print(f"goose-like: {note}", file=sys.stderr)
    project = settle_project_trust(is_trusted_now=options.is_trusted)
    choice = choose_profile(options.profile, options.model, options.sandbox, options.approval, session, project)
    if risk := describe_risk(choice.profile.sandbox, choice.profile.approval):
        print(f"goose-like: {risk}", file=sys.stderr)
    return choice


def open_session(
    options: ProfileOptions, *, session: str | None, is_resumed: bool, keep_open_turn: bool = False
) -> tuple[ProfileChoice, Session]:
    """Choose the profile and open a new session or resume one: by name, else the newest of this folder.

    With `keep_open_turn` an interrupted turn of a resumed session stays open.
    """
    if not is_resumed:
        choice = settle_profile(options)
        return choice, Session.create(session)
    resumed = Session.resume(session, cwd=None if session else os.getcwd(), keep_open_turn=keep_open_turn)
    try:
        return settle_profile(options, resumed), resumed
    except BaseException:
        resumed.close()
        raise


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
