"""Permanent permissions by folder: the trusted files of a project and answers to single questions."""

import hashlib
import json
import operator
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.format_version import describe_newer_format
from goose_like.core.message import FrozenModel, Utf8Text

from .paths import (
    OTHER_AGENTS,
    OTHER_COMMANDS,
    PROFILES,
    PROJECT_FOLDER,
    config_folder,
    describe_read_error,
    find_main_folder,
    find_repository_root,
    list_project_folders,
    lock_folder,
    read_user_file,
    replace_private_file,
)
from .profile import PermissionLists
from .project_files import is_below_root, list_toolkit_files

_FILE = "trust.json"
_FORMAT = 1
_MAX_BYTES = 256_000


class StoredApproval(FrozenModel):
    """A permanent answer to one question: the kind of action and its exact subject."""

    kind: str
    subject: Utf8Text


class FolderTrust(FrozenModel):
    """Permissions in one folder.

    `files` holds the exact contents of the project's files that a person trusted; None means no trust. `refused` is the
    hash of contents that the person does not want to use. `permissions` are rules that hold in addition to those of the
    profile.
    """

    files: dict[str, str] | None = None
    refused: str = Field(default="", exclude_if=operator.not_)
    approvals: tuple[StoredApproval, ...] = ()
    permissions: PermissionLists = Field(default=PermissionLists(), exclude_if=PermissionLists().__eq__)


class _TrustFile(FrozenModel):
    version: Literal[1] = 1
    folders: dict[Path, FolderTrust] = {}


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """Files of a repository's `.goose-like` folder by name, read once. Those of other folders begin with its name.

    A person judges exactly the texts that are used, even if the files change meanwhile. `skipped` lists the files that
    were not read, with the reason.
    """

    root: Path
    files: Mapping[str, str]
    skipped: tuple[str, ...] = ()

    def get_path(self, name: str) -> Path:
        """Return the path of a file."""
        is_of_others = name.startswith((*OTHER_COMMANDS, *OTHER_AGENTS)) or is_below_root(name)
        return self.root / ("" if is_of_others else PROJECT_FOLDER) / name


def read_project_config(cwd: Path) -> ProjectConfig | None:
    """Read the files that the repository around a folder brings, or return None without any. Follow no link."""
    root = find_repository_root(Path(os.path.realpath(cwd)))
    files: dict[str, str] = {}
    skipped: list[str] = []
    for path in _list_files(root):
        name = str(path.relative_to(root))
        try:
            files[name.removeprefix(f"{PROJECT_FOLDER}/")] = _read_text(path, name)
        except (OSError, ValueError) as error:
            skipped.append(f"{name if name.isprintable() else ascii(name)} is not read: {error}")
    return ProjectConfig(root, files, tuple(skipped)) if files or skipped else None


def _list_files(root: Path) -> list[Path]:
    paths = [root / PROJECT_FOLDER / PROFILES]
    for folder in (root / name for name in list_project_folders(root)):
        is_link = os.path.realpath(folder) != str(folder)  # list no folder outside the project
        paths += [folder] if is_link else sorted(folder.rglob("*.md"))
    paths += list_toolkit_files(root)
    return [path for path in dict.fromkeys(paths) if os.path.lexists(path)]


def _read_text(path: Path, name: str) -> str:
    if not name.isprintable():
        raise ValueError("such a name can't be shown; rename it")
    if os.path.realpath(path) != str(path):
        raise ValueError("links are not followed")
    if not path.is_file():
        raise ValueError("it is no file")
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES:,} bytes")
    return data.decode()


def is_trusted(project: ProjectConfig) -> bool:
    """Check whether a person trusted exactly these contents in this folder."""
    return load_folder_trust(project.root).files == project.files


def is_refused(project: ProjectConfig) -> bool:
    """Check whether a person refused exactly these contents in this folder."""
    return load_folder_trust(project.root).refused == _hash_files(project)


def load_trusted_project(cwd: Path) -> ProjectConfig | None:
    """Read the project around a folder, or return None if nobody trusted its present contents."""
    project = read_project_config(cwd)
    return project if project and is_trusted(project) else None


def load_trust() -> dict[Path, FolderTrust]:
    """Read all permanent permissions by folder."""
    file = config_folder() / _FILE
    try:
        return _TrustFile.model_validate_json(read_user_file(file)).folders
    except (OSError, ValueError) as error:
        if not os.path.lexists(file):
            return {}
        if isinstance(error, ValidationError):
            _check_format(file, error)
            first = error.errors()[0]
            problem = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        else:
            problem = describe_read_error(error)
        text = f"{file} can't be read ({problem}); correct or remove it. Without it, goose-like asks you again"
        raise GooseLikeError(text) from error


def _check_format(file: Path, error: ValidationError) -> None:
    for field in error.errors():
        if field["loc"] == ("version",) and (refusal := describe_newer_format(str(file), field["input"], _FORMAT)):
            raise GooseLikeError(refusal) from error


def load_folder_trust(folder: Path) -> FolderTrust:
    """Read the permanent permissions of one folder. A worktree of ours has those of the main working tree."""
    return load_trust().get(find_main_folder(folder), FolderTrust())


def trust_project(project: ProjectConfig) -> None:
    """Store that a person trusts these contents in this folder."""
    with _edit_folder(project.root) as fields:
        fields.update(files=dict(project.files), refused="")


def refuse_project(project: ProjectConfig) -> None:
    """Store that a person does not want to use these contents in this folder. Trust in earlier contents stays."""
    with _edit_folder(project.root) as fields:
        fields["refused"] = _hash_files(project)


def _hash_files(project: ProjectConfig) -> str:
    return hashlib.sha256(json.dumps(dict(project.files), sort_keys=True).encode(errors="replace")).hexdigest()


def store_approval(folder: Path, approval: StoredApproval) -> None:
    """Store a permanent answer for a folder."""
    with _edit_folder(folder) as fields:
        fields["approvals"] = (*fields["approvals"], approval)


def revoke(folder: Path, approval: StoredApproval | None = None) -> None:
    """Remove one answer, or without an answer the trust in the folder's files."""
    with _edit_folder(folder) as fields:
        if approval is None:
            fields.update(files=None, refused="")
        else:
            fields["approvals"] = tuple(one for one in fields["approvals"] if one != approval)


def store_rule(folder: Path, rule: str, verdict: str | None) -> None:
    """Store a rule for a folder, in place of the same rule with another verdict. Without a verdict, remove the rule.

    Raises:
        UsageError: the rule could never match.
    """
    with _edit_folder(folder) as fields:
        lists = {name: tuple(one for one in rules if one != rule) for name, rules in fields["permissions"]}
        if verdict:
            lists[verdict] += (rule,)
        try:
            fields["permissions"] = PermissionLists(**lists)
        except ValidationError as error:
            raise UsageError(f"{rule!r} is no rule: it is {error.errors()[0]['msg']}") from error


@contextmanager
def _edit_folder(folder: Path) -> Iterator[dict[str, Any]]:
    """Give the permissions of one folder as a dict to change, and write them at the end. Other sessions wait."""
    folder = find_main_folder(folder)
    with lock_folder(config_folder()):
        every = load_trust()
        fields = dict(every.get(folder, FolderTrust()))
        yield fields
        every[folder] = FolderTrust(**fields)
        stored = _TrustFile(folders={path: kept for path, kept in every.items() if kept != FolderTrust()})
        replace_private_file(config_folder() / _FILE, stored.model_dump_json(indent=1))
