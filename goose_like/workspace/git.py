"""Git repositories: find them, detect changes of hooks and settings, and list ignored files.

Git runs hooks and some settings outside the sandbox, so a command could escape through a repository.
"""

import asyncio
import os
import re
import stat
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.core.errors import GooseLikeError

_SETTINGS = ("config", "config.worktree")
_POINTERS = ("commondir", "gitdir")
"""Files that lead git to the settings of another folder. A worktree has both."""

# Settings that name a file or folder with more settings, or with programs that git runs.
_REFERENCES = re.compile(
    r'^[ \t]*(?:\[[^]\n]*\][ \t]*)?(?:path|hookspath|fsmonitor)[ \t]*=[ \t]*"?([^"\n]+)', re.M | re.I
)

# Keys (lower case, as git prints them) that only describe a repository and make git run nothing.
_HARMLESS = (
    *("core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase"),
    *("core.precomposeunicode", "core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf"),
    *("core.quotepath", "core.sparsecheckout", "core.sparsecheckoutcone", "extensions.*", "init.defaultbranch"),
    *("user.name", "user.email", "commit.gpgsign", "tag.gpgsign", "gc.auto", "maintenance.auto", "advice.*", "color.*"),
    *("push.default", "push.autosetupremote", "pull.rebase", "pull.ff", "merge.conflictstyle", "rebase.autostash"),
    *("remote.*.url", "remote.*.pushurl", "remote.*.fetch", "remote.*.tagopt", "remote.*.prune"),
    *("remote.*.promisor", "remote.*.partialclonefilter", "branch.*.remote", "branch.*.merge", "branch.*.rebase"),
    *("branch.*.pushremote", "branch.*.description", "branch.*.vscode-merge-base", "branch.autosetuprebase"),
    *("submodule.*.url", "submodule.*.active", "submodule.*.branch", "submodule.active", "lfs.repositoryformatversion"),
)

_IGNORED_TIMEOUT_S = 5.0

# Error messages would come in one stream with the names.
_GIT = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh", "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C")
_LIST_IGNORED = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")

RunCommand = Callable[[list[str]], Awaitable[tuple[int, bytes]]]
"""Runs a short command of our own; returns its exit code and output."""

Mark = tuple[str | int, ...]
"""Identifies the state of one file: its name, inode and change time, and those of a link's target."""

Signature = tuple[object, ...]
"""Differs whenever hooks or settings of a repository changed, or something else took their place."""


def parse_head(data: bytes) -> str:
    """Return the branch name in a HEAD file, or the first 8 letters of the commit."""
    head = data.decode(errors="replace").strip()
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]


def find_commit_folders(root: Path) -> tuple[Path, ...]:
    """Find the git folders that a commit in the workspace writes to.

    They are the workspace's own folder, one above it, or a worktree's common folder. The content of a `.git` file comes
    from the project and may point anywhere. A pointer counts only if the other end confirms it (a worktree's
    back-pointer) or an enclosing repository holds it (a submodule).
    """
    for folder in (root, *root.parents):
        git = folder / ".git"
        with suppress(OSError, ValueError):
            mode = git.lstat().st_mode
            if stat.S_ISDIR(mode):
                return (git,) if _is_git_folder(git) else ()
            if not stat.S_ISREG(mode):
                return ()
            target = _read_pointer(git)
            if target is None or not (target / "HEAD").is_file():
                return ()
            if (target / "commondir").is_file():
                common = target.parent.parent
                back = Path(os.path.realpath(_read_text(target / "gitdir")))
                is_known = back == Path(os.path.realpath(git)) and find_foreign_pointer(target, ()) is None
                return (common,) if is_known and _is_git_folder(common) else ()
            above = find_commit_folders(folder.parent) if folder != folder.parent else ()
            return (target,) if any(target.is_relative_to(one / "modules") for one in above) else ()
    return ()


def _is_git_folder(path: Path) -> bool:
    """Apply git's own test, and check that the folder belongs to this user."""
    return all((path / name).exists() for name in ("HEAD", "objects", "refs")) and path.stat().st_uid == os.getuid()


def _read_pointer(git: Path) -> Path | None:
    """Follow a `.git` file or link exactly as git does (`read_gitfile_gently` in its setup.c)."""
    with suppress(OSError, ValueError):
        if git.is_dir():
            return Path(os.path.realpath(git))
        text = _read_text(git)
        if text.startswith("gitdir: "):
            return Path(os.path.realpath(git.parent / text.removeprefix("gitdir: ")))
    return None


def _read_text(path: Path) -> str:
    """Read a pointer or settings without blocking, because the path may be a pipe."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return os.fsdecode(file.read(1 << 20) or b"").rstrip("\r\n").split("\0")[0]


# --- scanning


@dataclass(frozen=True, slots=True)
class _Listing:
    """The content of a folder when it was listed. A change of its entries changes `changed_ns`."""

    changed_ns: int
    listed_ns: int
    below: tuple[str, ...]
    git: tuple[str, ...]  # repositories directly in this folder


class RepositoryScanner:
    """Finds every repository below some folders, including bare ones and pointers. A repeated scan is cheap."""

    def __init__(self, roots: Iterable[Path], limit: int = 50_000) -> None:
        self.roots = [root for root in roots if root.is_dir()]
        self.is_complete = True
        self._limit = limit
        self._folders: dict[str, _Listing] = {}

    def scan(self) -> dict[Path, Signature]:
        """Return each repository (its git folder, or the file or link in its place) with its signature.

        No folder is skipped, not even `node_modules`, because a command could hide a repository there.
        """
        found: dict[Path, Signature] = {}
        pending, known = [str(root) for root in self.roots], self._folders
        self._folders = {}
        while pending and len(self._folders) < self._limit:
            path = pending.pop()
            listing = _list_folder(path, known.get(path))
            if listing is None or path in self._folders:
                continue
            self._folders[path] = listing
            pending += listing.below
            for git in listing.git:
                found[Path(git)] = _read_signature(Path(git))
        self.is_complete = not pending
        return found


_CLOCK_TICK_NS = 50_000_000


def _list_folder(path: str, known: _Listing | None) -> _Listing | None:
    """List a folder, or return the known listing if the folder cannot have changed since."""
    try:
        changed_ns = os.lstat(path).st_ctime_ns
        # A change within the clock tick after a listing would not show, so such a listing is not reused.
        if known and known.changed_ns == changed_ns and known.listed_ns - changed_ns > _CLOCK_TICK_NS:
            return known
        listed_ns = time.time_ns()
        with os.scandir(path) as entries:
            kinds = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return None
    below = tuple(f"{path}/{name}" for name, is_folder in kinds.items() if is_folder)
    # Names alone decide, since git follows links. A worktree's folder borrows `objects` and `refs` from the one above.
    names = kinds.keys()
    is_git = {"HEAD", "commondir"} <= names or ({"objects", "refs"} <= names and bool({"HEAD", "worktrees"} & names))
    git: tuple[str, ...] = (path,) if is_git else ()
    if ".git" in kinds:
        git += (f"{path}/.git",)
    return _Listing(changed_ns, listed_ns, below, git)


def _read_signature(git: Path) -> Signature:
    own = (*read_mark(git)[:2], git.is_symlink()) if git.is_dir() else read_mark(git)
    files = (*(git / name for name in (*_SETTINGS, *_POINTERS)), *list_hooks(git))
    return (own, *map(read_mark, files))


def read_mark(path: Path) -> Mark:
    """Return the mark of a file; empty if it is missing. No program can set the change time in it."""
    with suppress(OSError):
        status = target = path.lstat()
        if stat.S_ISLNK(status.st_mode) and path.exists():
            target = path.stat()
        return path.name, status.st_ino, status.st_ctime_ns, target.st_ino, target.st_ctime_ns
    return ()


# --- hooks and settings


def list_hooks(git: Path) -> list[Path]:
    """List the files that git would run from `hooks`, or the folder itself if it is a link."""
    folder = git / "hooks"
    if folder.is_symlink():
        return [folder]
    with suppress(OSError):
        return sorted(folder / name for name in os.listdir(folder) if not name.endswith((".sample", ".refused")))
    return []


def list_protected_paths(git: Path) -> list[Path]:
    """List the paths that must not change in a repository. Create a missing `hooks`, or a command could create it."""
    if git.is_symlink() or not git.is_dir():
        return [git]
    with suppress(OSError):
        if (git / "objects").is_dir():
            (git / "hooks").mkdir(exist_ok=True)
    pointers = [git / name for name in _POINTERS if os.path.lexists(git / name)]
    return [git / "hooks", *list_hooks(git), *list_settings_files(git), *pointers]


def list_settings_files(git: Path) -> list[Path]:
    """List the files that hold the settings of a repository."""
    return [git / name for name in _SETTINGS if os.path.lexists(git / name)]


def find_referenced_paths(configs: Iterable[Path], tops: Iterable[Path]) -> set[Path]:
    """Find the hooks and settings that settings files lead to, directly or indirectly, existing or not.

    A relative path is resolved against the folder of the settings and against each of `tops`, the folders that hold a
    `.git`. The result may contain too many paths, but none is missing.
    """
    found: set[Path] = set()
    pending, tops = list(configs), list(tops)
    while pending:
        config, text = pending.pop(), ""
        with suppress(OSError):
            text = _read_text(config)
        for value in _REFERENCES.findall(text):
            name = os.path.expanduser(re.split(r"\s[#;]", value)[0].strip())
            for path in (Path(os.path.realpath(top / name)) for top in (config.parent, *tops)):
                # husky names `.husky/_`, and the scripts there run those in `.husky`.
                path = path.parent if path.name == "_" else path
                if path not in found and name.lower() not in ("true", "false"):
                    found.add(path)
                    pending += [path] if path.is_file() else []
    return found


def find_foreign_pointer(git: Path, roots: Iterable[Path]) -> Path | None:
    """Find the pointer through which git would leave the scanned folders: a `.git` file or link, or a `commondir`.

    A `commondir` may lead from a worktree's folder to its own repository, and nowhere else.
    """
    if git.is_symlink() or not git.is_dir():
        target = _read_pointer(git)
        return git if target and not any(target.is_relative_to(root) for root in roots) else None
    pointer = git / "commondir"
    with suppress(OSError, ValueError):
        common = Path(os.path.realpath(git / _read_text(pointer)))
        return None if git.parent.name == "worktrees" and common == git.parent.parent else pointer
    return None


def is_harmless_key(key: str) -> bool:
    """Check that git runs nothing and redirects nothing for this configuration key."""
    return any(fnmatchcase(key.lower(), pattern) for pattern in _HARMLESS)


# --- ignored files


async def list_ignored_paths(folder: Path, run: RunCommand) -> frozenset[str]:
    """List the files below a folder that git ignores, and the folders that hold nothing else.

    The result is empty without a repository or git, if the folder itself is ignored, or if git takes over 5 seconds.
    """
    if not (find_repository_root(folder) / ".git").exists():
        return frozenset()
    with suppress(GooseLikeError, TimeoutError):
        async with asyncio.timeout(_IGNORED_TIMEOUT_S):
            code, output = await run([*_GIT, str(folder), *_LIST_IGNORED])
        if code == 0:
            names = (name.rstrip("/") for name in os.fsdecode(output).split("\0") if name)
            return frozenset(os.path.join(folder, name) for name in names)
    return frozenset()
