"""Paths that the profile denies to write: protected for commands and tools, also before they exist."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from goose_like.config.paths import normalize_path
from goose_like.core.errors import ProfileError

from .path_rules import resolve_path

DENY_WRITE_CHANGE = "a change of paths: {deny_write} in the profile"
"""The change that would allow a write which the profile denies."""


class DeniedPaths:
    """The paths of `paths: {deny_write}` in one workspace. Relative ones begin at its root, `~` is the home folder.

    `folders` are those that commands change, the root of the workspace first.

    Nothing can be mounted on a path that does not exist. So each missing one is an empty folder while the session
    lasts: git does not see it, and the sandbox mounts it read-only.
    """

    def __init__(self, folders: Sequence[Path], names: Iterable[str]) -> None:
        self._folders = folders
        root = folders[0]
        self._created: list[Path] = []
        self.paths: list[Path] = []
        for name in names:
            path = normalize_path(root / os.path.expanduser(name))
            if path == root or root.is_relative_to(path):
                raise _complain(name, "is the whole workspace; use `sandbox: read-only`")
            self.paths.append(path)

    def covers(self, place: Path) -> bool:
        """Check whether a real path is denied, or lies in a denied folder."""
        for path in self.paths:
            if place.is_relative_to(path) or place.is_relative_to(resolve_path(path)):
                return True
        return False

    def create_missing(self) -> bool:
        """Create an empty folder for each missing path of the workspace. Return whether one was missing.

        Raises:
            ProfileError: a link or a file stands in the way, which a command could replace.
        """
        count = len(self._created)
        for path in self.paths:
            if not any(map(path.is_relative_to, self._folders)):
                continue
            if resolve_path(path) != path:
                raise _complain(str(path), f"leads through a link to {resolve_path(path)}; name that path")
            missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
            for folder in reversed(missing):
                try:
                    folder.mkdir(0o755)
                except OSError as error:
                    raise _complain(str(path), f"cannot be protected: {error.strerror}") from error
                self._created.append(folder)
        return len(self._created) > count

    def remove_created(self) -> None:
        """Remove the folders that were created, unless somebody has put something there."""
        while self._created:
            with suppress(OSError):
                self._created.pop().rmdir()


def _complain(name: str, problem: str) -> ProfileError:
    return ProfileError(f"deny_write: {name} {problem}", ("paths", "deny_write"))
