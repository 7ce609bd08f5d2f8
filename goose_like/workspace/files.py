"""File access by real path: sandbox rules checked at the moment of use, and writes with permission."""

import os
import secrets
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError

from .diff import format_diff
from .permissions import Permissions
from .rules import Rule, Rules

FOLDER_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOFOLLOW_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_TMP_LINKS = 8

ContentUpdate = Callable[[bytes], bytes | None]
"""Computes the new content of a file from its old one (b"" for a missing file). None leaves the file unchanged."""


class FileAccess:
    """Reads and writes within the sandbox rules. Without rules, only the operating system sets limits."""

    def __init__(self, root: Path, rules: Rules | None) -> None:
        self._root = root
        self._rules = rules

    def resolve(self, path: str | Path) -> Path:
        """Resolve a path through all links, as seen by the machine: the sandbox's /tmp is a private folder."""
        try:
            place = Path(os.path.realpath(self._root / Path(path).expanduser()))
        except (ValueError, RuntimeError) as error:
            raise GooseLikeError(f"{str(path)!r} is not a path: {error}") from error
        for _ in range(_MAX_TMP_LINKS if self._rules else 0):  # a link in the private folder may lead to /tmp again
            before, place = place, self._to_host_path(place)
            if place == before:
                break
        return place

    def get_rule(self, place: Path) -> Rule:
        """Return the rule of a real path. Hooks and settings of any repository are protected."""
        if self._rules is None:
            return "write"
        rule = self._rules.get_rule(place)
        parts = place.parts
        in_git = parts[parts.index(".git") + 1 :] if ".git" in parts else None
        is_run_by_git = in_git == () or (
            in_git is not None and ("hooks" in in_git or in_git[-1] in ("config", "config.worktree", "commondir"))
        )
        return "protected" if is_run_by_git and rule in ("write", "pin") else rule

    def read_bytes(self, path: str | Path, limit_bytes: int | None = None) -> bytes:
        """Read a file.

        Raises:
            OSError: the file is missing or unreadable.
            DeniedError: the file is a secret.
            GooseLikeError: the path is a folder, a device or a pipe, or the file is larger than `limit_bytes`.
        """
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        with self._open_visible(path, os.O_NONBLOCK | os.O_NOCTTY) as descriptor:
            status = os.fstat(descriptor)
            _require_regular_file(path, status.st_mode)
            if limit_bytes is not None and status.st_size > limit_bytes:
                raise GooseLikeError(
                    f"{path} has {status.st_size:,} bytes, more than {limit_bytes:,}; "
                    "take a smaller one, or look at a part of it"
                )
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()

    def list_folder(self, path: str | Path) -> list[str]:
        """List the names in a folder, sorted. Names of folders end with a slash.

        Raises:
            OSError: the folder is missing or unreadable, or the path is not a folder.
            DeniedError: the folder is a secret.
        """
        with self._open_visible(path, os.O_DIRECTORY) as folder, os.scandir(folder) as entries:
            return sorted(entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries)

    def write_bytes(self, place: Path, data: bytes) -> None:
        """Create or replace a file at a real path atomically. Create its folders, and keep its mode and owner.

        No link on the way is followed, so a link that appears after the path check causes an error.
        """
        with open_folder(place.parent) as folder:
            old = None
            with suppress(FileNotFoundError):
                old = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
                _require_regular_file(place, old.st_mode)
            replace_file(folder, place.name, data, old)

    def append_bytes(self, place: Path, data: bytes) -> None:
        """Append to a file at a real path in one write. Create the file and its folders, and follow no link."""
        with open_folder(place.parent) as folder:
            with suppress(FileNotFoundError):  # check before opening, which would wait for the reader of a pipe
                _require_regular_file(place, os.stat(place.name, dir_fd=folder, follow_symlinks=False).st_mode)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | _NOFOLLOW_FLAGS
            with open(os.open(place.name, flags, 0o666, dir_fd=folder), "wb", buffering=0) as file:
                if (written := file.write(data)) != len(data):
                    raise GooseLikeError(f"{place} took {written:,} of {len(data):,} bytes; free some space")

    def _to_host_path(self, place: Path) -> Path:
        return Path(os.path.realpath(self._rules.to_host_path(place))) if self._rules else place

    @contextmanager
    def _open_visible(self, path: str | Path, flags: int) -> Iterator[int]:
        place = self.resolve(path)
        self._refuse_hidden(path, place)
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | flags)
        try:
            self._refuse_hidden(path, Path(os.readlink(f"/proc/self/fd/{descriptor}")))  # a link may be new
            yield descriptor
        finally:
            os.close(descriptor)

    def _refuse_hidden(self, path: str | Path, place: Path) -> None:
        # Rule `tmp` covers the machine's own /tmp here, which the session must not see.
        if self.get_rule(place) in ("hidden", "tmp"):
            raise DeniedError(f"{path} is hidden from you: it may hold secrets; work without it")


class FileWriter:
    """Writes through a `FileAccess`, and asks for permission where the policy says so."""

    def __init__(
        self, files: FileAccess, permissions: Permissions, announce: Callable[[Path], Awaitable[None]]
    ) -> None:
        self._files = files
        self._permissions = permissions
        self._announce = announce

    async def write(self, path: str | Path, data: bytes) -> Path:
        """Create or replace a file; see `Workspace.write_bytes`."""
        place, rule = self._find_target(path)
        await self._require_permission(place, rule, data)
        await self._announce(place)
        self._files.write_bytes(place, data)
        return place

    async def update(self, path: str | Path, update: ContentUpdate, *, at_end: bool) -> bool:
        """Update one of our own files; see `Workspace.update_own_file`."""
        place, rule = self._find_target(path)
        old = self._read_old(place) or b""
        if (data := update(old)) is None:
            return False
        if rule != "write":
            await self._require_permission(place, rule, data)
        await self._announce(place)
        old = self._read_old(place) or b""  # the file may have changed while a question was open
        if (data := update(old)) is None:
            return False
        if at_end:
            self._files.append_bytes(place, data[len(old) :])
        else:
            self._files.write_bytes(place, data)
        return True

    def _find_target(self, path: str | Path) -> tuple[Path, Rule]:
        place = self._files.resolve(path)
        rule = self._files.get_rule(place)
        if rule in ("hidden", "tmp"):
            raise DeniedError(f"{path} is hidden from you: it may hold secrets; write somewhere else")
        if rule == "protected":
            raise DeniedError(
                f"{path} is protected: git, a shell or goose-like runs it; tell the person what to change"
            )
        return place, rule

    async def _require_permission(self, place: Path, rule: Rule, data: bytes) -> None:
        shown: list[bytes | None] = []

        def detail() -> str:
            shown.append(self._read_old(place))
            return format_diff(shown[0], data)

        if rule == "read" and self._permissions.mode != "read-only":
            await self._permissions.require(
                "outside", str(place), f"write {place}, which is outside the workspace", detail
            )
        else:
            await self._permissions.require("change", str(place), f"change {place}", detail)
        if shown and self._read_old(place) != shown[0]:
            raise GooseLikeError(f"{place} was changed while the question was open; look at it again")

    def _read_old(self, place: Path) -> bytes | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            return self._files.read_bytes(place)
        return None


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a folder by its real path without following links. Create missing folders.

    Raises:
        GooseLikeError: a part of the path is a file or a link.
    """
    here = os.open("/", FOLDER_FLAGS)
    for name in path.parts[1:]:
        try:
            try:
                below = os.open(name, FOLDER_FLAGS, dir_fd=here)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
                below = os.open(name, FOLDER_FLAGS, dir_fd=here)
        except NotADirectoryError as error:
            raise GooseLikeError(f"{path}: {name!r} is no folder, or became a link just now; look again") from error
        finally:
            os.close(here)
        here = below
    try:
        yield here
    finally:
        os.close(here)


def replace_file(folder: int, name: str, data: bytes, old: os.stat_result | None, mode: int | None = None) -> None:
    """Write a temporary file in an open folder and rename it to `name`.

    The file gets the owner of `old` if this user may give files away, and the mode of `old` unless `mode` is given.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW_FLAGS
    temporary = temporary_name(name)
    try:
        with open(os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                with suppress(OSError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                mode = old.st_mode if mode is None else mode
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def temporary_name(name: str) -> str:
    """Build a hidden name that no other file has, at most 80 bytes of the given name with a random end."""
    return f".{os.fsdecode(os.fsencode(name)[:80])}.{secrets.token_hex(6)}"


def _require_regular_file(path: str | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise GooseLikeError(f"{path} is a folder; see what is in it with `ls` or `rg --files` in the shell")
    if not stat.S_ISREG(mode):
        raise GooseLikeError(f"{path} is a device, pipe or socket, no file")
