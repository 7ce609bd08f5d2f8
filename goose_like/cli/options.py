"""From a command's options to work that runs, and from its end to an exit code."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from goose_like.cli.commands.trust import settled_project
from goose_like.config.profile import ModelChoice, Profile, find_profile
from goose_like.config.trust import Project
from goose_like.config.yaml_source import Source
from goose_like.core.errors import ProfileError
from goose_like.providers.registry import choose_models, default_profile, label_of
from goose_like.sessions.session import Session
from goose_like.workspace.policy import warning


@dataclass(frozen=True, slots=True)
class Chosen:
    """The profile to work with, and what its errors are told for: the file, or the option that replaced its model.

    `project` is what the project brings and may.
    """

    profile: Profile
    source: Source
    model: str | None = None
    project: Project | None = None

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
    project: Project | None = None,
) -> Chosen:
    """The profile that the options ask for, with them laid over it; a resumed session keeps its own without them."""
    header = session.history.header if session else None
    if name is None and header and header.profile:  # an imported one may have none
        name = header.profile
        profile, source = find_profile(name, project)
        before = header.models.get("processor")
        if model is None and before != label_of(choose_models(profile)[0]):
            model = before
    elif name is None and model is None:
        profile, source = default_profile(project)
    else:
        profile, source = find_profile(name, project)
    over: dict[str, Any] = {"sandbox": sandbox, "approval": approval}
    if model is not None:
        over["processor"] = over["accelerator"] = ModelChoice(model=model)
    over = {key: value for key, value in over.items() if value is not None}
    return Chosen(profile.model_copy(update=over), source, model, project)


def settled_profile(
    name: str | None,
    model: str | None,
    sandbox: str | None,
    approval: str | None,
    session: Session | None = None,
    *,
    is_trusted: bool = False,
) -> Chosen:
    """As `chosen_profile`, once it is settled whether the project's profiles count; warns of one that asks nothing.

    `is_trusted` settles it for this run; otherwise a person is asked about what is new.
    """
    project = settled_project(is_trusted_now=is_trusted)
    chosen = chosen_profile(name, model, sandbox, approval, session, project)
    if words := warning(chosen.profile.sandbox, chosen.profile.approval):
        print(f"goose-like: {words}", file=sys.stderr)
    return chosen


def begin(
    profile: str | None,
    model: str | None,
    sandbox: str | None,
    approval: str | None,
    *,
    session: str | None,
    is_resumed: bool,
    goes_on: bool = False,
    is_trusted: bool = False,
) -> tuple[Chosen, Session]:
    """The settled profile and the session, new or (by name, else the newest of this folder) gone on with.

    With `goes_on` a turn of it that was cut off is left open.
    """
    if not is_resumed:
        chosen = settled_profile(profile, model, sandbox, approval, is_trusted=is_trusted)
        return chosen, Session.create(session)
    opened = Session.resume(session, cwd=None if session else os.getcwd(), goes_on=goes_on)
    try:
        return settled_profile(profile, model, sandbox, approval, opened, is_trusted=is_trusted), opened
    except BaseException:
        opened.close()
        raise


def finish(work: Coroutine[Any, Any, int], chosen: Chosen | None = None, session: Session | None = None) -> int:
    """Runs the work, closes the session, gives the exit code.

    Raises:
        ProfileError: with the file and the line of what is wrong in it.
    """
    return asyncio.run(closing(work, chosen, session))


async def closing(work: Coroutine[Any, Any, int], chosen: Chosen | None, session: Session | None) -> int:
    """The same within a loop that runs."""
    try:
        return await work
    except ProfileError as error:
        raise (chosen.located(error) if chosen else error) from None
    finally:
        if session:
            session.close()
