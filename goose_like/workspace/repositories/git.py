"""Git repositories: the folders of a commit, the files that make git run something, and ignored files.

Git runs hooks and some settings outside the sandbox, so a command could escape through a repository.
"""

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.core.errors import GooseLikeError
from goose_like.workspace.sandbox.path_rules import resolve_path

SETTINGS = ("config", "config.worktree")
_POINTERS = ("commondir", "gitdir")
"""Files that lead git to the settings of another folder. A worktree has both."""

REBASE_TODO = "rebase-merge/git-rebase-todo"
"""The steps of a stopped rebase. `git rebase --continue` runs its `exec` lines."""

# The lines of a settings file that we read, stricter than git. Any other line makes the file unreadable.
_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\][ \t]*(?:[#;].*)?')
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?")
_CONTROLS = re.compile(r"[\0-\x08\x0b-\x1f]")

# Settings that name a file or folder with more settings, or with programs that git runs.
_REFERENCES = re.compile(
    r'^[ \t]*(?:\[[^]\n]*\][ \t]*)?(?:path|hookspath|fsmonitor)[ \t]*=[ \t]*"?([^"\n]+)', re.M | re.I
)

# Keys (lower case, as git prints them) that only describe a repository and make git run nothing.
_HARMLESS = (
    *("core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase"),
    *("core.precomposeunicode", "core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf"),
    *("core.quotepath", "core.sparsecheckout", "core.sparsecheckoutcone", "extensions.*", "init.defaultbranch"),
    *("core.abbrev", "core.compression", "core.longpaths", "core.preloadindex", "core.untrackedcache", "index.version"),
    *("user.name", "user.email", "user.signingkey", "commit.gpgsign", "tag.gpgsign", "gc.auto", "maintenance.auto"),
    *("advice.*", "color.*"),
    *("push.default", "push.autosetupremote", "push.followtags", "pull.rebase", "pull.ff", "fetch.prune", "merge.ff"),
    *("merge.conflictstyle", "rebase.autostash", "rebase.autosquash", "rerere.enabled", "log.date", "status.*"),
    *("diff.algorithm", "diff.renames", "diff.colormoved", "branch.sort", "tag.sort", "column.*"),
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


def find_commit_folders(root: Path) -> tuple[Path, ...]:
    """Find the git folders that a commit in the workspace writes to.

    They are the workspace's own folder, one above it, or a worktree's common folder. The content of a `.git` file comes
    from the project and may point anywhere. A pointer counts only if the other end confirms it (a worktree's
    back-pointer) or an enclosing repository holds it (a submodule).
    """
    for folder in (root, *root.parents):
        git = folder / ".git"
        with suppress(OSError, ValueError):
            if stat.S_ISDIR(mode := git.lstat().st_mode):
                return (git,) if _is_git_folder(git) else ()
            target = _read_pointer(git) if stat.S_ISREG(mode) else None
            if target is None or not (target / "HEAD").is_file():
                return ()
            if (target / "commondir").is_file():
                common = target.parent.parent
                is_known = resolve_path(_read_text(target / "gitdir")) == resolve_path(git)
                is_known = is_known and find_foreign_pointer(target, ()) is None
                return (common,) if is_known and _is_git_folder(common) else ()
            above = find_commit_folders(folder.parent) if folder != folder.parent else ()
            return (target,) if any(target.is_relative_to(one / "modules") for one in above) else ()
    return ()


def _is_git_folder(path: Path) -> bool:
    """Apply git's own test, and check that the folder belongs to this user."""
    return all((path / name).exists() for name in ("HEAD", "objects", "refs")) and path.stat().st_uid == os.getuid()


# --- pointers, hooks and settings of a repository: `git` is its folder, or the file or link in its place


def is_pointer(git: Path) -> bool:
    """Check for a file or link in the place of a git folder."""
    return git.is_symlink() or not git.is_dir()


def _read_pointer(git: Path) -> Path | None:
    """Follow a `.git` file or link exactly as git does (`read_gitfile_gently` in its setup.c)."""
    with suppress(OSError, ValueError):
        if git.is_dir():
            return resolve_path(git)
        text = _read_text(git)
        if text.startswith("gitdir: "):
            return resolve_path(git.parent / text.removeprefix("gitdir: "))
    return None


def _read_text(path: Path) -> str:
    """Read a pointer or settings without blocking, because the path may be a pipe."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return os.fsdecode(file.read(1 << 20) or b"").rstrip("\r\n").split("\0")[0]


def find_foreign_pointer(git: Path, roots: Iterable[Path]) -> Path | None:
    """Find the pointer through which git would leave the scanned folders: a `.git` file or link, or a `commondir`.

    A `commondir` may lead from a worktree's folder to its own repository, and nowhere else.
    """
    if is_pointer(git):
        target = _read_pointer(git)
        return git if target and not any(target.is_relative_to(root) for root in roots) else None
    pointer = git / "commondir"
    with suppress(OSError, ValueError):
        common = resolve_path(git / _read_text(pointer))
        return None if git.parent.name == "worktrees" and common == git.parent.parent else pointer
    return None


def list_hooks(git: Path) -> list[Path]:
    """List the files that git would run from `hooks`, or the folder itself if it is a link or cannot be listed."""
    folder = git / "hooks"
    if folder.is_symlink():
        return [folder]
    try:
        return sorted(folder / name for name in os.listdir(folder) if is_hook_name(name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:  # git needs no right to list it
        return [folder]


def is_hook_name(name: str) -> bool:
    """Check that git or a hook may run a file of a hooks folder. A staged folder holds the settings, too."""
    return not name.endswith((".sample", ".refused")) and name.removesuffix(".lock") not in SETTINGS


def list_settings_files(git: Path) -> list[Path]:
    """List the files that hold the settings of a repository."""
    return [git / name for name in SETTINGS if os.path.lexists(git / name)]


def list_decisive_files(git: Path) -> list[Path]:
    """List the files that decide what git runs in a repository: hooks, settings, attributes and pointers."""
    if is_pointer(git):
        return [git]
    others = (git / name for name in (*_POINTERS, "info/attributes"))
    return [*list_hooks(git), *list_settings_files(git), *filter(os.path.lexists, others)]


def read_settings(data: bytes | None) -> set[tuple[str, str]] | None:
    """Read the keys and values of a settings file. Return None if git may read the file in another way."""
    if data is None or _CONTROLS.search(text := os.fsdecode(data)):
        return None
    section, pairs = "", set()
    for line in (line.strip(" \t") for line in text.split("\n")):
        if not line or line[0] in "#;":
            continue
        header, entry = _SECTION.fullmatch(line), _ENTRY.fullmatch(line)
        if header:
            section = ".".join(filter(None, header.groups()))
        elif entry and section and not line.endswith("\\"):
            pairs.add((f"{section}.{entry[1]}".lower(), (entry[2] or "").strip()))
        else:
            return None
    return pairs


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
            for path in (resolve_path(top / name) for top in (config.parent, *tops)):
                # husky names `.husky/_`, and the scripts there run those in `.husky`.
                path = path.parent if path.name == "_" else path
                if path not in found and name.lower() not in ("true", "false"):
                    found.add(path)
                    pending += [path] if path.is_file() else []
    return found


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
