"""File access by real path: sandbox rules checked at the moment of use, and writes with permission."""

import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from goose_like.config.paths import expand_home, find_repository_root, normalize_path
from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import PermissionKind
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.permissions.policy import Verdict
from goose_like.workspace.sandbox.denied_paths import DENY_WRITE_CHANGE
from goose_like.workspace.sandbox.home import is_around_home
from goose_like.workspace.sandbox.ignored import IgnoredFiles
from goose_like.workspace.sandbox.path_rules import Rule, Rules, resolve_path

from .descriptors import FOLDER_FLAGS, read_descriptor_path
from .diff import format_diff
from .unsaved_text import UnsavedText

_NOFOLLOW_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | _NOFOLLOW_FLAGS
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW_FLAGS
_MAX_TMP_LINKS = 8


@dataclass(frozen=True, slots=True)
class CurrentFile:
    """The content of a file as the person sees it in an editor; without one, as it is on the disk."""

    data: bytes
    is_saved: bool


ContentUpdate = Callable[[bytes], bytes | None]
"""Computes the new content of a file from its old one (b"" for a missing file). None leaves the file unchanged."""


class FileAccess:
    """The file methods of a workspace: they check the rules at the moment of use, and ask for permission to write."""

    def __init__(
        self,
        root: Path,
        permissions: Permissions,
        ignored: IgnoredFiles,
        shown_paths: set[Path],
        unsaved: UnsavedText,
    ) -> None:
        self.root = root
        self.unsaved = unsaved
        self._permissions = permissions
        self._ignored = ignored
        self._shown_paths = shown_paths
        self._branch = ""
        self._branch_mark: tuple[int, ...] = ()

    @property
    def _rules(self) -> Rules | None:
        raise NotImplementedError

    async def _freeze_rules(self) -> None:
        raise NotImplementedError

    async def announce_change(
        self, path: Path | None, argv: Sequence[str], folder: str = "", is_confined: bool = True
    ) -> None:
        """Announce a change: the real path of a file, or None and the arguments of a command that writes."""
        raise NotImplementedError

    def _is_write_denied(self, place: Path) -> bool:
        """Check whether the profile denies changes of a real path."""
        raise NotImplementedError

    def _is_start_file(self, place: Path) -> bool:
        """Check whether an editor, shell or agent runs what a file says."""
        raise NotImplementedError

    def _accept_change(self, place: Path, data: bytes) -> None:
        """Accept the content of a file that was written with permission."""
        raise NotImplementedError

    async def _warn_of_writers(self) -> None:
        """Tell the person about processes that may write while a turn only reads."""

    @asynccontextmanager
    async def limit_turn(self, allow: Sequence[str] = (), *, is_read_only: bool = False) -> AsyncIterator[None]:
        """Let rules allow more for one turn, or let it only read. Running commands keep their rights."""
        if is_read_only:
            await self._freeze_rules()  # while the repository audit can start
            await self._warn_of_writers()
        with self._permissions.limit_turn(allow, is_read_only=is_read_only):
            yield

    def allow_in_turn(self, rules: Sequence[str]) -> None:
        """Let more rules allow actions until the turn ends. Without a sandbox, none do."""
        if self._permissions.mode != "full":
            self._permissions.allow_in_turn(rules)

    def end_turn(self) -> None:
        """Forget what was allowed for this turn alone."""
        self._permissions.end_turn()

    def change_approval(self, approval: ApprovalMode) -> None:
        """Continue in another approval mode of the same sandbox, such as `ask`. Running commands keep their rights."""
        self._permissions.change_approval(approval)

    def restrict(self, mode: SandboxMode, approval: ApprovalMode) -> None:
        """Narrow the modes at once, and judge an open question again. Running commands keep their rights."""
        self._permissions.restrict(mode, approval)

    def judge_tool(self, name: str) -> Verdict | None:
        """Return the verdict of the person's rules about a tool."""
        return self._permissions.judge("tool", name)[0]

    def reload_rules(self) -> None:
        """Let the rules of the trust file hold as they are now, in subagents too."""
        self._permissions.reload_rules()

    @property
    def is_turn_read_only(self) -> bool:
        """True in a turn that `limit_turn` lets only read."""
        return self._permissions.is_turn_read_only

    @property
    def branch(self) -> str:
        """The current git branch, or `detached at` and a short commit; empty outside a repository."""
        git = find_repository_root(self.root) / ".git"
        try:
            if git.is_file():  # a worktree
                pointer = os.fsdecode(self.read_bytes(git, 4096))
                git = git.parent / pointer.removeprefix("gitdir: ").rstrip("\n")
            file = git / "HEAD"
            status = file.stat()
            mark = (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size)
            if mark != self._branch_mark:
                name = self.read_bytes(file, 1000).decode(errors="replace").strip()
                self._branch_mark = mark
                self._branch = f"detached at {name[:8]}"
                if name.startswith("ref: "):
                    self._branch = name.removeprefix("ref: refs/heads/")
        except (GooseLikeError, OSError, ValueError):  # no repository
            return ""
        return self._branch

    def resolve(self, path: str | Path) -> Path:
        """Resolve a path through all links. A path below /tmp, as commands see it, leads into the private folder."""
        try:
            place = resolve_path(self.root / expand_home(path))
        except (ValueError, RuntimeError) as error:
            raise GooseLikeError(f"{str(path)!r} is not a path: {error}") from error
        rules = self._rules
        if rules is None:
            return place
        for _ in range(_MAX_TMP_LINKS):  # a link in the private folder may lead to /tmp again
            host_place = resolve_path(rules.to_host_path(place))
            if host_place == place:
                break
            place = host_place
        return place

    def is_ignored(self, path: str | Path) -> bool:
        """Check whether `.gooseignore` or the profile hides a path, or the target of a link."""
        if not self._ignored:
            return False
        return self._is_ignored(path, resolve_path(self.root / path))

    def find_ignored_paths(self) -> list[Path]:
        """Find the real paths that `.gooseignore` or the profile hides from commands: files and whole folders."""
        return self._ignored.find_paths()

    def show_path(self, path: str | Path) -> None:
        """Let tools read a path in the home folder until the session ends, because the person named it."""
        place = self.resolve(path)
        if not is_around_home(place):
            self._shown_paths.add(place)

    def read_bytes(self, path: str | Path, limit_bytes: int | None = None) -> bytes:
        """Read a file.

        Raises:
            OSError: the file is missing or unreadable.
            DeniedError: the file is ignored, a secret, or in the home folder and not named by the person.
            GooseLikeError: the path is a folder, a device or a pipe, or the file is larger than `limit_bytes`.
        """
        with self.open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if limit_bytes is not None and size > limit_bytes:
                excess = f"{path} has {size:,} bytes, more than {limit_bytes:,}"
                raise GooseLikeError(f"{excess}; take a smaller one, or look at a part of it")
            return file.read()

    async def read_current(self, path: str | Path, limit_bytes: int | None = None) -> CurrentFile:
        """Read a file as the person sees it in the editor, if the session runs in one. Raise like `read_bytes`."""
        place = self.resolve(path)
        self._require_visible(path, place)  # a link may lead elsewhere once the file is read
        saved = self.read_bytes(path, limit_bytes)
        data = await self.unsaved.read(place, saved)
        return CurrentFile(data, is_saved=data == saved)

    @contextmanager
    def open_file(self, path: str | Path) -> Iterator[BinaryIO]:
        """Open a file to read a part of it. Raise like `read_bytes`."""
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        with self._open_visible(path, os.O_NONBLOCK | os.O_NOCTTY) as descriptor:
            _require_regular_file(self._to_sandbox_path(Path(path)), os.fstat(descriptor).st_mode)
            with open(descriptor, "rb", closefd=False) as file:
                yield file

    def list_folder(self, path: str | Path) -> list[str]:
        """List the names in a folder, sorted. Names of folders end with a slash. Raise like `read_bytes`."""
        names = []
        with self._open_visible(path, os.O_DIRECTORY) as folder, os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    name += "/"
                names.append(name)
        return sorted(names)

    async def write_bytes(self, path: str | Path, data: bytes) -> Path:
        """Create or replace a file atomically, and return its real path. Ask first where a command could not write.

        In an editor, the editor writes the file. It may format the text on that occasion.

        Raises:
            DeniedError: the write was refused, or the path is protected or a secret.
            GooseLikeError: the path cannot hold a file, the file changed while the question was open, or the editor
                failed.
            OSError: the operating system refused the write.
        """
        place, rule = await self._find_target(path)
        current = await self._require_write(place, rule, data)
        if self._to_sandbox_path(place) == place:  # undo has nothing to restore in the private folder
            await self.announce_change(place, ())
        await self._write_current(place, rule, current, data)
        self._accept_change(place, data)
        return place

    async def _write_current(self, place: Path, rule: Rule, current: CurrentFile | None, data: bytes) -> None:
        """Write a file through the editor, or else to the disk."""
        if current and not current.is_saved and self.unsaved.keep:
            await self.unsaved.keep(place, current.data)
        before = self._read_old(place)
        is_left = not await self.unsaved.write(place, data, lambda: self._judge_target(place) == (place, rule))
        if is_left and current and not current.is_saved:
            raise GooseLikeError(f"the person has not saved {place} in the editor; ask them to save it first")
        # Commands see the disk, so what an editor keeps to itself is written there too.
        if is_left or self._read_old(place) == before:
            write_file(place, data)

    async def update_own_file(self, path: str | Path, update: ContentUpdate, *, at_end: bool = False) -> bool:
        """Update one of our own files that the person named. Within the workspace, no question is asked.

        `update` is called at the moment of writing. The file is replaced atomically, or with `at_end` extended in one
        write. Return True if the file was written. The errors are those of `write_bytes` and of `update`.
        """
        place, rule = await self._find_target(path)
        data = update(self._read_old(place) or b"")
        if data is None:
            return False
        if rule != "write":
            await self._require_write(place, rule, data)
        await self.announce_change(place, ())
        old = self._read_old(place) or b""  # the file may have changed while a question was open
        data = update(old)
        if data is None:
            return False
        if at_end:
            append_to_file(place, data[len(old) :])
        else:
            write_file(place, data)
        self._accept_change(place, data)
        return True

    def _get_rule(self, place: Path) -> Rule:
        """Return the rule of a real path. Hooks and settings of any repository are protected."""
        rules = self._rules
        if rules is None:
            return "write"
        rule = rules.get_rule(place)
        if rule == "write" and _is_run_by_git(place):
            return "protected"
        return rule

    @contextmanager
    def _open_visible(self, path: str | Path, flags: int) -> Iterator[int]:
        place = self.resolve(path)
        self._require_visible(path, place)
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | flags)
        try:
            self._require_visible(path, Path(read_descriptor_path(descriptor)))  # a link may be new
            yield descriptor
        finally:
            os.close(descriptor)

    def _is_ignored(self, path: str | Path, place: Path) -> bool:
        given = normalize_path(self.root / expand_home(path))
        return self._ignored.covers(given) or self._ignored.covers(place)

    def _require_visible(self, path: str | Path, place: Path) -> Rule:
        # Rule `tmp` covers the machine's own /tmp here, which the session must not see.
        rule = self._get_rule(place)
        if rule in ("hidden", "tmp"):
            raise DeniedError(f"{path} is hidden from you: it may hold secrets; work without it")
        if self._ignored and self._is_ignored(path, place):
            raise DeniedError(f"{path} is hidden from you by .gooseignore or the profile; work without it")
        # The question about a write shows no content, so a new file needs no more than that question.
        if rule == "private" and not self._is_shown(place) and os.path.lexists(place):
            raise DeniedError(f"{path} is in the home folder, which is hidden from you; ask the person for @{path}")
        return rule

    def _is_shown(self, place: Path) -> bool:
        """Check whether the person named a path, or a folder above it."""
        return not self._shown_paths.isdisjoint((place, *place.parents))

    async def _find_target(self, path: str | Path) -> tuple[Path, Rule]:
        await self._freeze_rules()
        return self._judge_target(path)

    def _judge_target(self, path: str | Path) -> tuple[Path, Rule]:
        """Return the real path of a file to write, and its rule. Raise DeniedError if it must not be written."""
        place = self.resolve(path)
        rule = self._require_visible(path, place)
        if self._is_write_denied(place):
            self._permissions.record_refusal("change", str(place), "rule", DENY_WRITE_CHANGE)
            raise DeniedError(
                f"{path} must not change: the profile lists it in deny_write; tell the person what to change"
            )
        if rule == "protected":
            raise DeniedError(
                f"{path} is protected: git, a shell or goose-like runs it; tell the person what to change"
            )
        return place, rule

    async def _require_write(self, place: Path, rule: Rule, data: bytes) -> CurrentFile | None:
        """Return the file as it is once the write is allowed; None if it is new."""
        current = await self._read_existing(place)
        was_asked = False

        def detail() -> str:
            nonlocal was_asked
            was_asked = True
            return format_diff(current.data if current else None, data)

        kind: PermissionKind = "change"
        named = self._to_sandbox_path(place)
        text = f"change {named}"
        if rule in ("read", "private") and self._permissions.mode != "read-only":
            kind = "outside"
            text = f"write {place}, which is outside the workspace"
        if named != place:
            text += ", in the sandbox's own /tmp"
        if kind == "change" and self._is_start_file(place):
            kind = "repository"
            text += ", by which an editor, a shell or an agent runs programs"
        await self._permissions.require(kind, str(named), text, detail)
        if was_asked and await self._read_existing(place) != current:
            raise GooseLikeError(f"{place} was changed while the question was open; look at it again")
        return current

    def _to_sandbox_path(self, place: Path) -> Path:
        """Translate a path of the private folder to the path below /tmp that commands see; keep any other path."""
        rules = self._rules
        if rules is None or not place.is_relative_to(rules.tmp):
            return place
        is_seen_as_tmp = rules.to_host_path(Path("/tmp")) == rules.tmp
        return Path("/tmp", place.relative_to(rules.tmp)) if is_seen_as_tmp else place

    async def _read_existing(self, place: Path) -> CurrentFile | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            return await self.read_current(place)
        return None

    def _read_old(self, place: Path) -> bytes | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            return self.read_bytes(place)
        return None


def _is_run_by_git(place: Path) -> bool:
    """Check for a hook or a settings file in a `.git`, or the `.git` itself."""
    if ".git" not in place.parts:
        return False
    start = place.parts.index(".git") + 1
    inside = place.parts[start:]
    if not inside or "hooks" in inside:
        return True
    return inside[-1] in ("config", "config.worktree", "commondir")


def write_file(place: Path, data: bytes) -> None:
    """Create or replace a file at a real path atomically. Create its folders, and keep its mode and owner.

    No link on the way is followed, so a link that appears after the path check causes an error.
    """
    with open_folder(place.parent) as folder:
        old = _stat_regular_file(place, folder)
        replace_file(folder, place.name, data, old)


def append_to_file(place: Path, data: bytes) -> None:
    """Append to a file at a real path in one write. Create the file and its folders, and follow no link."""
    with open_folder(place.parent) as folder:
        _stat_regular_file(place, folder)  # before opening, which would wait for the reader of a pipe
        descriptor = os.open(place.name, _APPEND_FLAGS, 0o666, dir_fd=folder)
        with open(descriptor, "wb", buffering=0) as file:
            written = file.write(data)
        if written != len(data):
            raise GooseLikeError(f"{place} took {written:,} of {len(data):,} bytes; free some space")


def _describe_obstacle(name: str, folder: int) -> str:
    """Describe what is in the place of a folder."""
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISLNK(status.st_mode):
            return "is a file, no folder; choose another path, or move the file away"
    return "became a link just now; look again"


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a folder by its real path, and create missing folders. A file or a link on the way raises GooseLikeError."""
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
            raise GooseLikeError(f"{path}: {name!r} {_describe_obstacle(name, here)}") from error
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
    temporary = temporary_name(name)
    first_mode = 0o666 if mode is None else 0o600
    if mode is None and old is not None:
        mode = old.st_mode
    try:
        descriptor = os.open(temporary, _NEW_FLAGS, first_mode, dir_fd=folder)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                with suppress(OSError):
                    os.fchown(descriptor, old.st_uid, old.st_gid)
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def temporary_name(name: str) -> str:
    """Build a hidden name that no other file has, at most 80 bytes of the given name with a random end."""
    start = os.fsdecode(os.fsencode(name)[:80])
    return f".{start}.{secrets.token_hex(6)}"


def _stat_regular_file(place: Path, folder: int) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        _require_regular_file(place, status.st_mode)
        return status
    return None


def _require_regular_file(path: str | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise GooseLikeError(f"{path} is a folder; see what is in it with `ls` or `rg --files` in the shell")
    if not stat.S_ISREG(mode):
        raise GooseLikeError(f"{path} is a device, pipe or socket, no file")
