"""Git repositories seen as a way out of the sandbox: where they lie, what in them git would run, what has changed."""

import os
import re
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# Where git reads its settings from, and what leads it to other ones: a worktree has both of the latter.
_SETTINGS = ("config", "config.worktree")
_POINTERS = ("commondir", "gitdir")

# Settings that name a file or folder from which git reads more settings, or runs what lies there.
_LEADS = re.compile(r'^[ \t]*(?:\[[^]\n]*\][ \t]*)?(?:path|hookspath|fsmonitor)[ \t]*=[ \t]*"?([^"\n]+)', re.M | re.I)

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

Signature = tuple[object, ...]


def root_of(folder: Path) -> Path:
    """The root of the repository around a folder, the folder itself where there is none."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


def enclosing(root: Path) -> tuple[Path, ...]:
    """The git folders that a commit in the workspace writes to: its own, one above, or a worktree's common one.

    A `.git` file is the project's word only, and may point at anything: it counts where the other end knows it (a
    worktree's back-pointer) or an enclosing repository holds it (a submodule).
    """
    for folder in (root, *root.parents):
        git = folder / ".git"
        with suppress(OSError, ValueError):
            mode = git.lstat().st_mode
            if stat.S_ISDIR(mode):
                return (git,) if _is_git_folder(git) else ()
            if not stat.S_ISREG(mode):
                return ()
            target = _pointed(git)
            if target is None or not (target / "HEAD").is_file():
                return ()
            if (target / "commondir").is_file():
                common = target.parent.parent
                back = Path(os.path.realpath(_text(target / "gitdir")))
                is_known = back == Path(os.path.realpath(git)) and leads_astray(target, ()) is None
                return (common,) if is_known and _is_git_folder(common) else ()
            above = enclosing(folder.parent) if folder != folder.parent else ()
            return (target,) if any(target.is_relative_to(one / "modules") for one in above) else ()
    return ()


def _is_git_folder(path: Path) -> bool:
    """Git's own test, and that it is ours."""
    return all((path / name).exists() for name in ("HEAD", "objects", "refs")) and path.stat().st_uid == os.getuid()


def _pointed(git: Path) -> Path | None:
    """Where a `.git` file or link leads; exactly as git reads it (`read_gitfile_gently` in its setup.c)."""
    with suppress(OSError, ValueError):
        if git.is_dir():
            return Path(os.path.realpath(git))
        text = _text(git)
        if text.startswith("gitdir: "):
            return Path(os.path.realpath(git.parent / text.removeprefix("gitdir: ")))
    return None


def _text(path: Path) -> str:
    """A pointer or settings; without waiting, as somebody may have put a pipe there."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return os.fsdecode(file.read(1 << 20) or b"").rstrip("\r\n").split("\0")[0]


@dataclass(frozen=True, slots=True)
class _Folder:
    """What a folder held when it was last listed: whoever changes its entries changes `changed_ns` too."""

    changed_ns: int
    listed_ns: int
    below: tuple[str, ...]
    git: tuple[str, ...]  # the repositories that lie right here


class Survey:
    """Finds every repository below some folders, bare ones and what only points to one; cheap when asked again."""

    def __init__(self, roots: Iterable[Path], limit: int = 50_000) -> None:
        self.roots = [root for root in roots if root.is_dir()]
        self.is_complete = True
        self._limit = limit
        self._folders: dict[str, _Folder] = {}

    def look(self) -> dict[Path, Signature]:
        """Each repository (its git folder, or the file or link in its place) with a mark of its hooks and settings.

        Nothing is passed over, not even `node_modules`: what a command wants to hide it puts there.
        """
        found: dict[Path, Signature] = {}
        open_, folders = [str(root) for root in self.roots], self._folders
        self._folders = {}
        while open_ and len(self._folders) < self._limit:
            path = open_.pop()
            folder = _listed(path, folders.get(path))
            if folder is None or path in self._folders:
                continue
            self._folders[path] = folder
            open_ += folder.below
            for git in folder.git:
                found[Path(git)] = _signature(Path(git))
        self.is_complete = not open_
        return found


_HEADS = ("HEAD", "worktrees")


def _listed(path: str, known: _Folder | None) -> _Folder | None:
    """The folder's listing, or the known one if it can't have changed since."""
    try:
        changed_ns = os.lstat(path).st_ctime_ns
        # A change within the clock's tick after a listing would not show: such a listing is not trusted again.
        if known and known.changed_ns == changed_ns and known.listed_ns - changed_ns > 50_000_000:
            return known
        listed_ns = time.time_ns()
        with os.scandir(path) as entries:
            kinds = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return None
    below = tuple(f"{path}/{name}" for name, is_folder in kinds.items() if is_folder)
    # By names alone: git follows links. A worktree's folder borrows `objects` and `refs` from the one above.
    names = kinds.keys()
    is_git = {"HEAD", "commondir"} <= names or ({"objects", "refs"} <= names and not names.isdisjoint(_HEADS))
    git: tuple[str, ...] = (path,) if is_git else ()
    if ".git" in kinds:
        git += (f"{path}/.git",)
    return _Folder(changed_ns, listed_ns, below, git)


def _signature(git: Path) -> Signature:
    """Differs whenever hooks or settings were changed, or something else stands in their place."""
    itself = (*mark(git)[:2], git.is_symlink()) if git.is_dir() else mark(git)
    return (itself, *(mark(git / name) for name in (*_SETTINGS, *_POINTERS)), *(mark(hook) for hook in hooks(git)))


def mark(path: Path) -> tuple[str | int, ...]:
    """The file's name, number and time of change, and those of what it links to; no program can set the latter."""
    with suppress(OSError):
        status = target = path.lstat()
        if stat.S_ISLNK(status.st_mode) and path.exists():
            target = path.stat()
        return path.name, status.st_ino, status.st_ctime_ns, target.st_ino, target.st_ctime_ns
    return ()


def hooks(git: Path) -> list[Path]:
    """What git would run from the folder `hooks`; that itself, if it is a link to elsewhere."""
    folder = git / "hooks"
    if folder.is_symlink():
        return [folder]
    with suppress(OSError):
        return sorted(folder / name for name in os.listdir(folder) if not name.endswith((".sample", ".refused")))
    return []


def protected(git: Path) -> list[Path]:
    """What must not change in a repository that a session finds; the folder `hooks` is made, or a command could."""
    if git.is_symlink() or not git.is_dir():
        return [git]
    with suppress(OSError):
        if (git / "objects").is_dir():
            (git / "hooks").mkdir(exist_ok=True)
    pointers = [git / name for name in _POINTERS if os.path.lexists(git / name)]
    return [git / "hooks", *hooks(git), *settings(git), *pointers]


def settings(git: Path) -> list[Path]:
    """The files that hold the repository's settings."""
    return [git / name for name in _SETTINGS if os.path.lexists(git / name)]


def led_to(configs: Iterable[Path], tops: Iterable[Path]) -> set[Path]:
    """The hooks and settings to which these settings lead, and those lead on, there or not.

    Rather too many than too few: a relative path is taken from the settings' folder and from each of `tops`, the
    folders that hold a `.git`.
    """
    found: set[Path] = set()
    open_, tops = list(configs), list(tops)
    while open_:
        config, text = open_.pop(), ""
        with suppress(OSError):
            text = _text(config)
        for value in _LEADS.findall(text):
            name = os.path.expanduser(re.split(r"\s[#;]", value)[0].strip())
            for path in (Path(os.path.realpath(top / name)) for top in (config.parent, *tops)):
                # husky names `.husky/_`, the scripts in which run those in `.husky`.
                path = path.parent if path.name == "_" else path
                if path not in found and name.lower() not in ("true", "false"):
                    found.add(path)
                    open_ += [path] if path.is_file() else []
    return found


def leads_astray(git: Path, roots: Iterable[Path]) -> Path | None:
    """The pointer through which git would leave what the survey sees: a `.git` file or link, or a `commondir`.

    The latter may lead a worktree's folder to the repository that it lies in, and nowhere else.
    """
    if git.is_symlink() or not git.is_dir():
        target = _pointed(git)
        return git if target and not any(target.is_relative_to(root) for root in roots) else None
    pointer = git / "commondir"
    with suppress(OSError, ValueError):
        common = Path(os.path.realpath(git / _text(pointer)))
        return None if git.parent.name == "worktrees" and common == git.parent.parent else pointer
    return None


def is_harmless(key: str) -> bool:
    """Whether git runs nothing and redirects nothing for this key of its configuration."""
    return any(fnmatchcase(key.lower(), pattern) for pattern in _HARMLESS)
