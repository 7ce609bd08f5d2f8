"""From a command's options to work that runs, and from its end to an exit code."""

import asyncio
import os
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from ..build import choose_models, default_profile, label_of
from ..errors import ProfileError
from ..profile import ModelChoice, Profile, Source, find_profile
from ..session import Session


@dataclass(frozen=True, slots=True)
class Chosen:
    """The profile to work with, and what its errors are told for: the file, or the option that replaced its model."""

    profile: Profile
    source: Source
    model: str | None = None

    def located(self, error: ProfileError) -> ProfileError:
        """The error with the place of what is wrong before it."""
        if self.model is not None and error.path[:1] in (("processor",), ("accelerator",)):
            told = str(error).removeprefix(f"{self.model}: ")
            return ProfileError(f"--model {self.model}: {told}")
        return self.source.located(error)


def chosen_profile(
    name: str | None,
    model: str | None = None,
    sandbox: str | None = None,
    approval: str | None = None,
    session: Session | None = None,
) -> Chosen:
    """The profile that the options ask for, with them laid over it; a resumed session keeps its own without them."""
    header = session.history.header if session else None
    if name is None and header:
        name = header.profile
        profile, source = find_profile(name)
        before = header.models.get("processor")
        if model is None and before != label_of(choose_models(profile)[0]):
            model = before
    elif name is None and model is None:
        profile, source = default_profile()
    else:
        profile, source = find_profile(name)
    over: dict[str, Any] = {"sandbox": sandbox, "approval": approval}
    if model is not None:
        over["processor"] = over["accelerator"] = ModelChoice(model=model)
    over = {key: value for key, value in over.items() if value is not None}
    return Chosen(profile.model_copy(update=over), source, model)


def begin(
    profile: str | None,
    model: str | None,
    sandbox: str | None,
    approval: str | None,
    *,
    session: str | None,
    is_resumed: bool,
) -> tuple[Chosen, Session]:
    """The profile and the session, new or (by name, else the newest of this folder) gone on with."""
    if not is_resumed:
        chosen = chosen_profile(profile, model, sandbox, approval)
        return chosen, Session.create(session)
    opened = Session.resume(session, cwd=None if session else os.getcwd())
    try:
        return chosen_profile(profile, model, sandbox, approval, opened), opened
    except BaseException:
        opened.close()
        raise


def finish(work: Coroutine[Any, Any, int], chosen: Chosen | None = None, session: Session | None = None) -> int:
    """Runs the work, closes the session, gives the exit code.

    Raises:
        ProfileError: with the file and the line of what is wrong in it.
    """
    try:
        return asyncio.run(work)
    except ProfileError as error:
        raise (chosen.located(error) if chosen else error) from None
    finally:
        if session:
            session.close()
