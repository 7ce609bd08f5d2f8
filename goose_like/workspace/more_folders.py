"""More folders of a session beside the workspace: `DIR` can be read, and `DIR:rw` can be changed like the workspace."""

import sys
from pathlib import Path

from goose_like.config.paths import config_folder, expand_home, find_main_folder, normalize_path
from goose_like.config.profile import WorkspaceSettings
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError

from .sandbox.denied_paths import DeniedPaths
from .sandbox.home import START_FILES, resolve_in_homes
from .sandbox.path_rules import list_secret_paths, resolve_path

WRITABLE = ":rw"


@dataclass(frozen=True, slots=True)
class MoreFolders:
    """The folders by their real paths, and sentences about those that cannot be used."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


def find_more_folders(root: Path, settings: WorkspaceSettings) -> MoreFolders:
    """Find the folders that a profile names. Relative ones begin at the workspace, in a worktree at the main one.

    A folder that can be changed anyway, because it lies in the workspace or in another one of them, is left out.
    """
    start = find_main_folder(root)
    denied = DeniedPaths((root,), settings.paths.deny_write)
    readable: list[Path] = []
    writable: list[Path] = []
    problems: list[str] = []
    for word in settings.folders:
        try:
            place = resolve_folder(word, start)
        except UsageError as error:
            problems.append(f"left out: {error}")
            continue
        if word.endswith(WRITABLE) and denied.covers(place):
            problems.append(f"left out: {word}: `deny_write` protects it")
        elif word.endswith(WRITABLE):
            writable.append(place)
        else:
            readable.append(place)
    outermost: list[Path] = []
    for place in sorted(set(writable)):  # a folder comes before those in it
        if not any(map(place.is_relative_to, (root, *outermost))):
            outermost.append(place)
    return MoreFolders(tuple(readable), tuple(outermost), tuple(problems))


def resolve_folder(word: str, start: Path) -> Path:
    """Return the real path of a folder. Relative paths begin at `start`.

    Raises:
        UsageError: there is no such folder, or it cannot be used.
    """
    path = word.removesuffix(WRITABLE)
    folder = normalize_path(start / expand_home(path))
    place = resolve_path(folder)
    if not place.is_dir():
        raise UsageError(f"{word}: there is no such folder")
    if word.endswith(WRITABLE):
        reason = _find_refusal(place)
        if reason:
            raise UsageError(f"{word}: {reason}; name another folder, or write {path} to read it")
    if place != folder and _holds_secrets(place) and not _holds_secrets(folder):
        raise UsageError(f"{word}: it is a link to {place}, which holds secrets; name that folder itself")
    return place


def _find_refusal(place: Path) -> str:
    """Return why commands may not change a folder: its own rule would win over the one that protects it."""
    if _holds_secrets(place):
        return "it holds secrets"
    if ".git" in place.parts:
        return "git runs what is in it"
    own = [config_folder(), Path(sys.prefix), *resolve_in_homes(START_FILES)]
    if any(place.is_relative_to(resolve_path(path)) for path in own):
        return "goose-like or your shell runs what is in it"
    return ""


def _holds_secrets(folder: Path) -> bool:
    return any(folder.is_relative_to(secret) for secret in list_secret_paths())
