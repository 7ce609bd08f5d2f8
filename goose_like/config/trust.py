"""Permanent permissions by folder: the trusted files of a project and answers to single questions."""

import hashlib
import json
import operator
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_core import from_json

from goose_like import __version__
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.format_version import describe_newer_format
from goose_like.core.message import FrozenModel, Utf8Text

from .file_state import describe_state, find_state, keep_state
from .folder_marks import mark_folder
from .paths import (
    OTHER_AGENTS,
    OTHER_COMMANDS,
    PROFILES,
    PROJECT_FOLDER,
    TRUST_FILE,
    config_folder,
    describe_read_error,
    find_main_folder,
    find_repository_root,
    list_project_folders,
    lock_folder,
    read_user_bytes,
    replace_private_file,
)
from .personal_files import PersonalPlace
from .profile import PermissionLists
from .project_files import find_toolkit_files, is_below_root, list_folder_files

_FORMAT = 1
_MAX_BYTES = 256_000


class StoredApproval(FrozenModel):
    """A permanent answer to one question: the kind of action and its exact subject."""

    kind: str
    subject: Utf8Text


_NO_RULES = PermissionLists.make_unchecked()


class FolderTrust(FrozenModel):
    """Permissions in one folder.

    `files` holds the exact contents of the project's files that a person trusted; None means no trust. `folders` has
    the marks of the folders that belong to such files. `refused` is the hash of contents that the person does not want
    to use. `permissions` are rules that hold in addition to those of the profile. `is_read` decides about a file or
    folder of another agent in the home folder; None means that the person did not decide. `checks` has the commands of
    its AGENTS.md about which the person decided: may they run after turns?
    """

    files: dict[str, str] | None = None
    folders: dict[str, str] = Field(default={}, exclude_if=operator.not_)
    refused: str = Field(default="", exclude_if=operator.not_)
    approvals: tuple[StoredApproval, ...] = ()
    permissions: PermissionLists = Field(default=_NO_RULES, exclude_if=_NO_RULES.__eq__)
    is_read: bool | None = Field(default=None, exclude_if=lambda value: value is None)
    checks: dict[Utf8Text, bool] = Field(default={}, exclude_if=operator.not_)


class _TrustFile(FrozenModel):
    version: Literal[1] = 1
    folders: dict[Path, FolderTrust] = {}


class _CheckedFolders(Mapping[Path, FolderTrust]):
    """The folders of a trust file that was checked before. Their records are made when somebody asks for them."""

    def __init__(self, folders: Mapping[str, Mapping[str, Any]]) -> None:
        self._fields = {Path(name): fields for name, fields in folders.items()}

    def __getitem__(self, folder: Path) -> FolderTrust:
        fields = dict(self._fields[folder])
        answers = fields.get("approvals", ())
        fields["approvals"] = tuple(StoredApproval.make_unchecked(**answer) for answer in answers)
        rules = {kind: tuple(texts) for kind, texts in fields.get("permissions", {}).items()}
        fields["permissions"] = PermissionLists.make_unchecked(**rules)
        return FolderTrust.make_unchecked(**fields)

    def __iter__(self) -> Iterator[Path]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """Files of a repository's `.goose-like` folder by name, read once. Those of other folders begin with its name.

    A person judges exactly the texts that are used, even if the files change meanwhile. `skipped` lists the files that
    were not read, with the reason. `folders` has the mark of what lies beside a file in a folder of its own, such as
    the scripts of a skill, as the person trusted it. Compare it with a new mark before these files are used. `personal`
    are the places of other agents in the home folder that the person lets goose_like read. `check` is the command of
    AGENTS.md that the person lets run after turns. `state` is that of the files on disk before they were read.
    """

    root: Path
    files: Mapping[str, str]
    skipped: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    personal: Sequence[PersonalPlace] = ()
    check: str = ""
    state: str = field(default="", compare=False)

    def get_path(self, name: str) -> Path:
        """Return the path of a file."""
        is_of_others = name.startswith((*OTHER_COMMANDS, *OTHER_AGENTS))
        if is_of_others or is_below_root(name):
            return self.root / name
        return self.root / PROJECT_FOLDER / name


def read_project_config(cwd: Path) -> ProjectConfig | None:
    """Read the files that the repository around a folder brings, or return None without any. Follow no link."""
    root = _find_root(cwd)
    found = _find_files(root)
    state = _describe_state(found)
    files: dict[str, str] = {}
    skipped: list[str] = []
    for path in found:
        name = path.removeprefix(f"{root}/")
        try:
            text = _read_text(path, name)
        except (OSError, ValueError) as error:
            shown = name if name.isprintable() else ascii(name)
            skipped.append(f"{shown} is not read: {describe_read_error(error)}")
        else:
            files[name.removeprefix(f"{PROJECT_FOLDER}/")] = text
    if not files and not skipped:
        return None
    return ProjectConfig(root, files, tuple(skipped), state=state)


def _find_root(cwd: Path) -> Path:
    return find_repository_root(Path(os.path.realpath(cwd)))


def _find_files(root: Path) -> dict[str, os.stat_result]:
    """Find the files that a repository brings, and links to them: the status of each by its path."""
    paths = [f"{root}/{PROJECT_FOLDER}/{PROFILES}"]
    for name in list_project_folders(root):
        folder = root / name
        is_link = os.path.realpath(folder) != str(folder)
        if is_link:
            paths.append(str(folder))  # its files may lie outside the project
        else:
            paths += sorted(map(str, folder.rglob("*.md")))
    found: dict[str, os.stat_result] = {}
    for path in paths:
        with suppress(OSError):  # it is missing
            found[path] = os.lstat(path)
    return found | find_toolkit_files(root)


def _describe_state(files: Mapping[str, os.stat_result]) -> str:
    """Return the state of a project's files and of the trust file. It is empty if there is no trust file."""
    trust_file = config_folder() / TRUST_FILE
    try:
        status = trust_file.stat()
    except OSError:
        return ""
    return describe_state({**files, str(trust_file): status})


def _read_text(path: str, name: str) -> str:
    """Read a file by its real path.

    Raises:
        OSError: it is missing or unreadable.
        ValueError: it is no such file, or too large. The text is the end of a sentence.
    """
    if not name.isprintable():
        raise ValueError("such a name can't be shown; rename it")
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if os.path.islink(path):
            raise ValueError("links are not followed") from error
        raise
    try:
        if _find_real_path(descriptor, path) != path:
            raise ValueError("links are not followed")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no file")
        data = _read_all(descriptor)
    finally:
        os.close(descriptor)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES:,} bytes")
    return data.decode()


def _find_real_path(descriptor: int, path: str) -> str:
    """Return the path of an open file without links, by one look at /proc where there is one."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return os.path.realpath(path)


def _read_all(descriptor: int) -> bytes:
    """Read a whole file, at most one byte more than allowed."""
    parts: list[bytes] = []
    room = _MAX_BYTES + 1
    while part := os.read(descriptor, room):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def mark_folders(project: ProjectConfig) -> ProjectConfig:
    """Return the project with the marks of the folders that belong to its files, as they are now.

    A folder that cannot be marked gets none, with a line in `skipped`.
    """
    folders: dict[str, str] = {}
    skipped = list(project.skipped)
    for name in list_folder_files(project.files):
        path = project.get_path(name)
        try:
            mark = mark_folder(path.parent, path.name)
        except GooseLikeError as error:
            skipped.append(f"the files beside {name} are not trusted: {error}")
            continue
        if mark:
            folders[name] = mark
    return replace(project, folders=folders, skipped=tuple(skipped))


def find_trusted(project: ProjectConfig) -> ProjectConfig | None:
    """Return the project with the trusted marks of its folders, or None if nobody trusted exactly these contents.

    The state of the files is kept, so that the next start need not read them.
    """
    trusted = load_folder_trust(project.root)
    if trusted.files != project.files:
        return None
    if project.state and not project.skipped:
        keep_state(project.root, project.state)
    return replace(project, folders=trusted.folders)


def is_trusted(project: ProjectConfig) -> bool:
    """Check whether a person trusted exactly these contents in this folder."""
    return find_trusted(project) is not None


def is_refused(project: ProjectConfig) -> bool:
    """Check whether a person refused exactly these contents in this folder."""
    return load_folder_trust(project.root).refused == _hash_files(project)


def load_trusted_project(cwd: Path) -> ProjectConfig | None:
    """Read the project around a folder, or return None if nobody trusted its present contents."""
    unchanged = load_unchanged_project(cwd)
    if unchanged:
        return unchanged
    project = read_project_config(cwd)
    return find_trusted(project) if project else None


def load_unchanged_project(cwd: Path) -> ProjectConfig | None:
    """Return the project around a folder as it was trusted, or None if its files may have changed. Read none of them.

    They and the trust file have the state in which a session compared them.
    """
    root = _find_root(cwd)
    known_state = find_state(root)
    if not known_state or _describe_state(_find_files(root)) != known_state:
        return None
    trusted = load_folder_trust(root)
    if trusted.files is None:  # the trust file changed just now
        return None
    return ProjectConfig(root, trusted.files, folders=trusted.folders, state=known_state)


def load_trust() -> Mapping[Path, FolderTrust]:
    """Read all permanent permissions by folder, once for each state of their file."""
    file = config_folder() / TRUST_FILE
    try:
        status = os.stat(file)
        numbers = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return _parse_trust_file(file, numbers, describe_state({str(file): status}))
    except (OSError, ValueError) as error:
        if not os.path.lexists(file):
            return {}
        raise GooseLikeError(_format_refusal(file, describe_read_error(error))) from error


@lru_cache(maxsize=1)  # a start needs it several times, and the texts of many skills are a megabyte
def _parse_trust_file(file: Path, numbers: tuple[int, ...], state: str) -> Mapping[Path, FolderTrust]:
    """Read the trust file. Each writer of ours gives it new `numbers`. `state` is empty if it changed a moment ago.

    A file is checked once: building the models for it takes longer than reading it.
    """
    data = read_user_bytes(file)
    checked_state = f"{__version__} {state}"
    if state and find_state(file) == checked_state:
        return _CheckedFolders(from_json(data).get("folders", {}))
    try:
        folders = _TrustFile.model_validate_json(data.decode()).folders
    except ValidationError as error:
        raise GooseLikeError(_describe_invalid_file(file, error)) from error
    if state:
        keep_state(file, checked_state)
    return folders


def _describe_invalid_file(file: Path, error: ValidationError) -> str:
    problems = error.errors()
    for problem in problems:
        if problem["loc"] != ("version",):
            continue
        refusal = describe_newer_format(str(file), problem["input"], _FORMAT)
        if refusal:
            return refusal
    first = problems[0]
    path = ".".join(map(str, first["loc"]))
    if path:
        return _format_refusal(file, f"{path}: {first['msg']}")
    return _format_refusal(file, first["msg"])


def _format_refusal(file: Path, problem: str) -> str:
    return f"{file} can't be read ({problem}); correct or remove it. Without it, goose-like asks you again"


def load_folder_trust(folder: Path) -> FolderTrust:
    """Read the permanent permissions of one folder. A worktree of ours has those of the main working tree."""
    return load_trust().get(find_main_folder(folder)) or FolderTrust.make_unchecked()


def trust_project(project: ProjectConfig) -> None:
    """Store that a person trusts these contents in this folder, and `folders` as they are marked."""
    with _edit_folder(project.root) as fields:
        fields.update(files=dict(project.files), folders=dict(project.folders), refused="")


def trust_marked_folder(root: Path, name: str, mark: str) -> None:
    """Store that a person trusts what lies beside a trusted file of a project, as it is marked now."""
    with _edit_folder(root) as fields:
        fields["folders"] = {**fields["folders"], name: mark}


def refuse_project(project: ProjectConfig) -> None:
    """Store that a person does not want to use these contents in this folder. Trust in earlier contents stays."""
    with _edit_folder(project.root) as fields:
        fields["refused"] = _hash_files(project)


def _hash_files(project: ProjectConfig) -> str:
    text = json.dumps(dict(project.files), sort_keys=True)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def store_approval(folder: Path, approval: StoredApproval) -> None:
    """Store a permanent answer for a folder."""
    with _edit_folder(folder) as fields:
        fields["approvals"] = (*fields["approvals"], approval)


def revoke(folder: Path, approval: StoredApproval | None = None) -> None:
    """Remove one answer, or without an answer the trust in the folder's files."""
    with _edit_folder(folder) as fields:
        if approval is None:
            fields.update(files=None, folders={}, refused="")
        else:
            kept = [stored for stored in fields["approvals"] if stored != approval]
            fields["approvals"] = tuple(kept)


def store_reading(place: Path, is_read: bool | None) -> None:
    """Store whether a file or folder of another agent in the home folder is read; None: the person is asked again."""
    with _edit_folder(place) as fields:
        fields["is_read"] = is_read


def store_check(folder: Path, command: str, *, may_run: bool | None) -> None:
    """Store whether a command of a folder's AGENTS.md may run after turns; None: the person is asked again."""
    with _edit_folder(folder) as fields:
        checks = {**fields["checks"]}
        checks.pop(command, None)
        if may_run is not None:
            checks[command] = may_run
        fields["checks"] = checks


def store_rule(folder: Path, rule: str, verdict: str | None) -> None:
    """Store a rule for a folder, in place of the same rule with another verdict. Without a verdict, remove the rule.

    Raises:
        UsageError: the rule could never match.
    """
    with _edit_folder(folder) as fields:
        lists = {}
        for name, rules in fields["permissions"]:
            lists[name] = [stored for stored in rules if stored != rule]
        if verdict:
            lists[verdict].append(rule)
        try:
            fields["permissions"] = PermissionLists.model_validate(lists)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise UsageError(f"{rule!r} is no rule: it is {problem}") from error


@contextmanager
def _edit_folder(folder: Path) -> Iterator[dict[str, Any]]:
    """Give the permissions of one folder as a dict to change, and write them at the end. Other sessions wait."""
    folder = find_main_folder(folder)
    with lock_folder(config_folder()):
        folders = dict(load_trust())
        fields = dict(folders.get(folder, FolderTrust()))
        yield fields
        folders[folder] = FolderTrust(**fields)
        kept = {path: trust for path, trust in folders.items() if trust != FolderTrust()}
        stored = _TrustFile(folders=kept)
        replace_private_file(config_folder() / TRUST_FILE, stored.model_dump_json(indent=1))
