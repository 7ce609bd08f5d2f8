"""Programs that goose_like starts with the person's rights: never from a folder that a command may write to."""

import os
import shutil
from functools import cache
from pathlib import Path

from goose_like.config.paths import find_main_folder, find_repository_root

_GIT_TRANSPORT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_SSL_CAINFO")

GIT_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Options with which our own git runs no hook, and no program that watches files for it."""


@cache
def find_program(name: str, *roots: Path) -> str | None:
    """Return the absolute path of a program on the PATH outside the folders that commands change, or None."""
    found = shutil.which(name, path=build_safe_path(*roots))
    return found and os.path.abspath(found)


@cache
def build_safe_path(*roots: Path) -> str:
    """Return the PATH without relative folders, and without those in the given folders or their repositories."""
    tops = [os.path.realpath(find_repository_root(find_main_folder(root))) for root in roots]

    def is_safe(folder: str) -> bool:
        if not os.path.isabs(folder):
            return False
        for place in (Path(os.path.abspath(folder)), Path(os.path.realpath(folder))):
            if any(map(place.is_relative_to, tops)):
                return False
        return True

    search_path = os.environ.get("PATH", os.defpath)
    folders = filter(is_safe, search_path.split(os.pathsep))
    return os.pathsep.join(folders) or os.defpath  # the workspace may be the whole disk


def build_git_environment(*roots: Path) -> dict[str, str]:
    """Build the variables for our own git. Of those of git, only the ones about the way to a server remain.

    Others, such as GIT_DIR in a hook, would lead it to another repository than the one that it is told.
    """
    variables = {}
    for name, value in os.environ.items():
        if not name.startswith("GIT_") or name in _GIT_TRANSPORT:
            variables[name] = value
    variables["PATH"] = build_safe_path(*roots)
    variables["GIT_TERMINAL_PROMPT"] = "0"
    return variables
