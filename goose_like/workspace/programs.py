"""Programs that goose_like starts with the person's rights: never from a folder that a command may write to."""

import os
import shutil
from functools import cache
from pathlib import Path

from goose_like.config.paths import find_main_folder, find_repository_root


@cache
def find_program(name: str, root: Path) -> str | None:
    """Return the absolute path of a program on the PATH outside the workspace `root`, or None."""
    found = shutil.which(name, path=build_safe_path(root))
    return found and os.path.abspath(found)


@cache
def build_safe_path(root: Path) -> str:
    """Return the PATH without relative folders, and without those in the workspace or its repository."""
    top = os.path.realpath(find_repository_root(find_main_folder(root)))

    def is_safe(folder: str) -> bool:
        places = (os.path.abspath(folder), os.path.realpath(folder))
        return os.path.isabs(folder) and not any(os.path.commonpath((top, place)) == top for place in places)

    folders = filter(is_safe, os.environ.get("PATH", os.defpath).split(os.pathsep))
    return os.pathsep.join(folders) or os.defpath  # the workspace may be the whole disk
