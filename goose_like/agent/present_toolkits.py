"""Toolkits that are active without a line in the profile, because their files exist."""

from collections.abc import Callable
from pathlib import Path

from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.config.project_files import find_toolkits_of_project, find_toolkits_with_files, name_file_kinds
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError
from goose_like.core.notifier import Notifier

from .goose09 import load_toolkit
from .toolkit_hooks import toolkit_errors


def find_present_toolkits(folder: Path, project: ProjectConfig | None, notifier: Notifier) -> list[str]:
    """Return the names of the toolkits that are present in a folder. One that fails is logged and left out.

    Only a toolkit that has a file is imported, and asked whether the file counts.
    """
    trusted = project.files if project else {}
    present = []
    for name in find_toolkits_with_files(trusted):
        try:
            with toolkit_errors(name):
                if load_toolkit(name).is_present(folder, project):
                    present.append(name)
        except GooseLikeError as error:
            notifier.log(str(error))
    return present


def name_kinds(project: ProjectConfig) -> list[str]:
    """Name what a project brings, such as `settings` and `hooks`."""
    kinds = name_file_kinds(project.files)
    for name in find_toolkits_of_project(project.files):
        try:
            kinds.append(load_toolkit(name).file_kind or name)
        except GooseLikeError:  # `describe_effects` reports it
            kinds.append(name)
    return kinds


def describe_effects(project: ProjectConfig, log: Callable[[str], None]) -> list[str]:
    """Describe what the files of a project would run and get, in lines of its toolkits. One that fails is logged."""
    lines: list[str] = []
    for name in find_toolkits_of_project(project.files):
        try:
            with toolkit_errors(name):
                lines += load_toolkit(name).describe_files(project)
        except GooseLikeError as error:
            log(str(error))
    return lines


def add_present_toolkits(profile: Profile, folder: Path, project: ProjectConfig | None, notifier: Notifier) -> Profile:
    """Return the profile with the toolkits that are present in a folder, behind its own."""
    named = {choice.name for choice in profile.toolkits}
    added = [name for name in find_present_toolkits(folder, project, notifier) if name not in named]
    if not added:
        return profile
    # Unchecked: a check would build the model.
    choices = [ToolkitChoice.model_construct(name=name) for name in added]
    return profile.model_copy(update={"toolkits": (*profile.toolkits, *choices)})
