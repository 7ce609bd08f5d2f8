"""From a command's options to work that runs, and from its end to an exit code."""

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

from ..build import default_profile
from ..errors import ProfileError
from ..profile import ModelChoice, Profile, Source, find_profile
from ..session import Session


def chosen_profile(
    name: str | None, model: str | None = None, sandbox: str | None = None, approval: str | None = None
) -> tuple[Profile, Source]:
    """The profile of that name with the options laid over it, and the file that errors in it are told for."""
    chosen, source = default_profile() if name is None and model is None else find_profile(name or "default")
    over: dict[str, Any] = {"sandbox": sandbox, "approval": approval}
    if model:
        over["processor"] = over["accelerator"] = ModelChoice(model=model)
    return chosen.model_copy(update={key: value for key, value in over.items() if value is not None}), source


def opened_session(name: str | None, *, is_resumed: bool) -> Session:
    """A new session, or the one to go on with: by name, else the newest of this folder."""
    return Session.resume(name, cwd=None if name else os.getcwd()) if is_resumed else Session.create(name)


def finish(work: Coroutine[Any, Any, int], source: Source | None = None, kept: Session | None = None) -> int:
    """Runs the work, closes the session, gives the exit code.

    Raises:
        ProfileError: with the file and the line of what is wrong in it.
    """
    try:
        return asyncio.run(work)
    except ProfileError as error:
        raise (source.located(error) if source else error) from None
    finally:
        if kept:
            kept.close()
