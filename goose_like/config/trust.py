"""Permanent permissions by folder: the trusted files of a project and answers to single questions."""

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

from .paths import config_folder, find_repository_root

FOLDER = ".goose-like"
PROFILES = "profiles.yaml"
COMMANDS = "commands"
_FILE = "trust.json"
_MAX_BYTES = 256_000
_MAX_FILES = 200


class StoredApproval(FrozenModel):
    """A permanent answer to one question: the kind of action and its exact subject."""

    kind: str
    subject: Utf8Text


class FolderTrust(FrozenModel):
    """Permissions in one folder.

    `files` holds the exact contents of the project's files that a person trusted; None means no trust.
    """

    files: dict[str, str] | None = None
    approvals: tuple[StoredApproval, ...] = ()


class _TrustFile(FrozenModel):
    version: Literal[1] = 1
    folders: dict[str, FolderTrust] = {}


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """Files of a repository's `.goose-like` folder by name, read once.

    A person judges exactly the texts that are used, even if the files change meanwhile. `skipped` lists the files that
    were not read, with the reason.
    """

    root: Path
    files: Mapping[str, str]
    skipped: tuple[str, ...] = ()

    def get_path(self, name: str) -> Path:
        """Return the path of a file in the folder `.goose-like`."""
        return self.root / FOLDER / name


def read_project_config(cwd: Path) -> ProjectConfig | None:
    """Read the `.goose-like` folder of the repository around a folder, or return None without one. Follow no link."""
    root = find_repository_root(Path(os.path.realpath(cwd)))
    files: dict[str, str] = {}
    skipped: list[str] = []
    try:
        folder = os.open(root / FOLDER, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return ProjectConfig(root, {}, (f"{FOLDER} is not read: {error.strerror}; links are not followed",))
    try:
        for name in (PROFILES, *_list_commands(folder, skipped)):
            try:
                files[name] = _read_text(folder, name)
            except FileNotFoundError:
                continue
            except OSError as error:
                skipped.append(f"{FOLDER}/{name} is not read: {error.strerror}; links are not followed")
            except ValueError as error:
                reason = "it is no UTF-8 text" if isinstance(error, UnicodeDecodeError) else error
                skipped.append(f"{FOLDER}/{name} is not read: {reason}")
    finally:
        os.close(folder)
    return ProjectConfig(root, files, tuple(skipped)) if files or skipped else None


def _list_commands(folder: int, skipped: list[str]) -> list[str]:
    """List the Markdown files below `commands` by their paths in the folder, and add the others to `skipped`."""

    def skip(name: object, reason: str | None) -> None:
        skipped.append(f"{FOLDER}/{name} is not read: {reason}")

    names: list[str] = []
    try:
        if not stat.S_ISDIR(os.stat(COMMANDS, dir_fd=folder, follow_symlinks=False).st_mode):
            skip(COMMANDS, "it is no folder; links are not followed")
            return []
    except FileNotFoundError:
        return []
    walk = os.fwalk(
        COMMANDS, dir_fd=folder, follow_symlinks=False, onerror=lambda error: skip(error.filename, error.strerror)
    )
    for below, folders, here, descriptor in walk:
        folders.sort()
        for name in folders:
            if os.path.islink(f"/proc/self/fd/{descriptor}/{name}"):
                skip(f"{below}/{name}", "links are not followed")
        for name in sorted(f"{below}/{name}" for name in here if name.endswith(".md")):
            if name.isprintable():
                names.append(name)
            else:
                skip(ascii(name), "such a name can't be shown; rename it")
        if len(names) > _MAX_FILES:
            skipped.append(f"{FOLDER}/{COMMANDS} has more than {_MAX_FILES} commands; the others are not read")
            break
    return names[:_MAX_FILES]


def _read_text(folder: int, name: str) -> str:
    """Read a file by its path in the folder. No part of the path may be a link."""
    *parents, last = name.split("/")
    descriptors = [os.dup(folder)]
    try:
        for part in parents:
            descriptors.append(
                os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptors[-1])
            )
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(last, flags, dir_fd=descriptors[-1]), "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES:,} bytes")
    return data.decode()


def is_trusted(project: ProjectConfig) -> bool:
    """Check whether a person trusted exactly these contents in this folder."""
    return load_folder_trust(project.root).files == project.files


def load_trusted_project(cwd: Path) -> ProjectConfig | None:
    """Read the project around a folder, or return None if nobody trusted its present contents."""
    project = read_project_config(cwd)
    return project if project and is_trusted(project) else None


def load_trust() -> dict[Path, FolderTrust]:
    """Read all permanent permissions by folder.

    Raises:
        GooseLikeError: The file of permissions cannot be read.
    """
    file = config_folder() / _FILE
    try:
        stored = _TrustFile.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        raise GooseLikeError(f"{file} can't be read; remove it, and goose-like asks you again") from error
    return {Path(folder): trusted for folder, trusted in stored.folders.items()}


def load_folder_trust(folder: Path) -> FolderTrust:
    """Read the permanent permissions of one folder."""
    return load_trust().get(folder, FolderTrust())


def trust_project(project: ProjectConfig) -> None:
    """Store that a person trusts these contents in this folder."""
    with _edit_folder(project.root) as fields:
        fields["files"] = dict(project.files)


def store_approval(folder: Path, approval: StoredApproval) -> None:
    """Store a permanent answer for a folder."""
    with _edit_folder(folder) as fields:
        fields["approvals"] = (*fields["approvals"], approval)


def revoke(folder: Path, approval: StoredApproval | None = None) -> None:
    """Remove one answer, or without an answer the trust in the folder's files."""
    with _edit_folder(folder) as fields:
        if approval is None:
            fields["files"] = None
        else:
            fields["approvals"] = tuple(one for one in fields["approvals"] if one != approval)


@contextmanager
def _edit_folder(folder: Path) -> Iterator[dict[str, Any]]:
    """Give the permissions of one folder as a dict to change, and write them at the end. Other sessions wait."""
    place = config_folder()
    place.mkdir(parents=True, exist_ok=True)
    lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        every = load_trust()
        fields = dict(every.get(folder, FolderTrust()))
        yield fields
        every[folder] = FolderTrust(**fields)
        stored = _TrustFile(folders={str(path): kept for path, kept in every.items() if kept != FolderTrust()})
        new = place / f".{_FILE}.{secrets.token_hex(6)}"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(stored.model_dump_json(indent=1))
        new.replace(place / _FILE)
    finally:
        os.close(lock)
