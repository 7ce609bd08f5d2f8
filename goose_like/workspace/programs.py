"""Programs that goose_like starts with the person's rights: never from a folder that a command may write to."""

import os
import shutil
from functools import cache
from pathlib import Path

from goose_like.config.paths import find_main_folder, find_repository_root


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
