"""What a person allowed for good, by folder: the files a project brings for us, word for word, and single questions."""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.workspace.git import root_of

from .paths import config_folder

FOLDER = ".goose-like"
PROFILES = "profiles.yaml"
COMMANDS = "commands"
_FILE = "trust.json"
_MAX_BYTES = 256_000
_MAX_FILES = 200


class StoredApproval(FrozenModel):
    """One question that was answered for good: a kind of step, and exactly what it is about."""

    kind: str
    subject: Utf8Text


class FolderTrust(FrozenModel):
    """What is allowed in one folder. `files` are the project's as they were trusted, None where it is not."""

    files: dict[str, str] | None = None
    approvals: tuple[StoredApproval, ...] = ()


class _Ledger(FrozenModel):
    version: Literal[1] = 1
    folders: dict[str, FolderTrust] = {}


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """What a repository brings for us in its folder `.goose-like`: the texts by their names, read once.

    What is judged is thus what is used, whatever becomes of the files meanwhile. `refused` says of others why not.
    """

    root: Path
    files: Mapping[str, str]
    skipped: tuple[str, ...] = ()

    def get_path(self, name: str) -> Path:
        return self.root / FOLDER / name


def read_project_config(cwd: Path) -> ProjectConfig | None:
    """What the project around a folder brings; None where it brings nothing. No link is followed."""
    root = root_of(Path(os.path.realpath(cwd)))
    files: dict[str, str] = {}
    refused: list[str] = []
    try:
        folder = os.open(root / FOLDER, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return ProjectConfig(root, {}, (f"{FOLDER} is not read: {error.strerror}; links are not followed",))
    try:
        for name in (PROFILES, *_commands(folder, refused)):
            try:
                files[name] = _read(folder, name)
            except FileNotFoundError:
                continue
            except OSError as error:
                refused.append(f"{FOLDER}/{name} is not read: {error.strerror}; links are not followed")
            except ValueError as error:
                why = "it is no UTF-8 text" if isinstance(error, UnicodeDecodeError) else error
                refused.append(f"{FOLDER}/{name} is not read: {why}")
    finally:
        os.close(folder)
    return ProjectConfig(root, files, tuple(refused)) if files or refused else None


def _commands(folder: int, refused: list[str]) -> list[str]:
    """The Markdown files below `commands`, by their names in the folder."""

    def refuse(name: object, why: str | None) -> None:
        refused.append(f"{FOLDER}/{name} is not read: {why}")

    names: list[str] = []
    try:
        if not stat.S_ISDIR(os.stat(COMMANDS, dir_fd=folder, follow_symlinks=False).st_mode):
            refuse(COMMANDS, "it is no folder; links are not followed")
            return []
    except FileNotFoundError:
        return []
    walk = os.fwalk(
        COMMANDS, dir_fd=folder, follow_symlinks=False, onerror=lambda error: refuse(error.filename, error.strerror)
    )
    for below, folders, here, descriptor in walk:
        folders.sort()
        for name in folders:
            if os.path.islink(f"/proc/self/fd/{descriptor}/{name}"):
                refuse(f"{below}/{name}", "links are not followed")
        for name in sorted(f"{below}/{name}" for name in here if name.endswith(".md")):
            if name.isprintable():
                names.append(name)
            else:
                refuse(ascii(name), "such a name can't be shown; rename it")
        if len(names) > _MAX_FILES:
            refused.append(f"{FOLDER}/{COMMANDS} has more than {_MAX_FILES} commands; the others are not read")
            break
    return names[:_MAX_FILES]


def _read(folder: int, name: str) -> str:
    """A file's text, by a name in the folder that no link is on."""
    *above, last = name.split("/")
    opened = [os.dup(folder)]
    try:
        for part in above:
            opened.append(os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened[-1]))
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(last, flags, dir_fd=opened[-1]), "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES:,} bytes")
    return data.decode()


def is_trusted(project: ProjectConfig) -> bool:
    """Whether a person trusted exactly this content in this folder."""
    return load_folder_trust(project.root).files == project.files


def load_trusted_project(cwd: Path) -> ProjectConfig | None:
    """What the project around a folder brings, if it was trusted as it stands there now."""
    project = read_project_config(cwd)
    return project if project and is_trusted(project) else None


def load_trust() -> dict[Path, FolderTrust]:
    """Everything that was allowed for good, by folder.

    Raises:
        GooseLikeError: the file that holds it can't be read.
    """
    file = config_folder() / _FILE
    try:
        ledger = _Ledger.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        raise GooseLikeError(f"{file} can't be read; remove it, and you are asked anew") from error
    return {Path(folder): trusted for folder, trusted in ledger.folders.items()}


def load_folder_trust(folder: Path) -> FolderTrust:
    """What was allowed for good in one folder."""
    return load_trust().get(folder, FolderTrust())


def trust_project(project: ProjectConfig) -> None:
    """Remembers that this content is trusted in this folder."""
    with _changed(project.root) as now:
        now["files"] = dict(project.files)


def store_approval(folder: Path, approval: StoredApproval) -> None:
    """Remembers that a question is answered for good in this workspace."""
    with _changed(folder) as now:
        now["approvals"] = (*now["approvals"], approval)


def revoke(folder: Path, approval: StoredApproval | None = None) -> None:
    """Takes back one answer, or that the folder's files are trusted."""
    with _changed(folder) as now:
        if approval is None:
            now["files"] = None
        else:
            now["approvals"] = tuple(one for one in now["approvals"] if one != approval)


@contextmanager
def _changed(folder: Path) -> Iterator[dict[str, Any]]:
    """The fields of one folder, to be changed within the block; another session waits for its end."""
    place = config_folder()
    place.mkdir(parents=True, exist_ok=True)
    lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        every = load_trust()
        now = dict(every.get(folder, FolderTrust()))
        yield now
        every[folder] = FolderTrust(**now)
        ledger = _Ledger(folders={str(path): kept for path, kept in every.items() if kept != FolderTrust()})
        new = place / f".{_FILE}.{secrets.token_hex(6)}"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(ledger.model_dump_json(indent=1))
        new.replace(place / _FILE)
    finally:
        os.close(lock)
