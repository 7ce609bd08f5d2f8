"""Git repositories: the folders of a commit, the files that make git run something, and ignored files.

Git runs hooks and some settings outside the sandbox, so a command could escape through a repository.
"""

import asyncio
import os
import re
import stat
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

from goose_like.config.paths import find_repository_root
from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.workspace.programs import GIT_OPTIONS
from goose_like.workspace.sandbox.path_rules import resolve_path

from .file_copy import FileCopy, FileEdit, list_files

SETTINGS = ("config", "config.worktree")
_COMMON = "commondir"  # leads git from the folder of a worktree to the settings
_BACK = "gitdir"  # leads from there to the worktree
_ATTRIBUTES = "info/attributes"
REBASE_TODO = "rebase-merge/git-rebase-todo"  # `git rebase --continue` runs its `exec` lines
_EXEC = compile_later(rb"^\s*(x|exec)\b", re.M)

# The lines of a settings file that we read, stricter than git. Any other line makes the file unreadable.
_SECTION = compile_later(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\][ \t]*(?:[#;].*)?')
_ENTRY = compile_later(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?")
_CONTROLS = compile_later(r"[\0-\x08\x0b-\x1f]")

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

_LIST_TIMEOUT_S = 5.0
_MAX_TEXT_BYTES = 1 << 20

# Error messages would come in one stream with the names.
_GIT = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh", "git", "--no-optional-locks", *GIT_OPTIONS, "-C")
_LIST_IGNORED = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
_PLAIN = ":(exclude,attr:!filter !ident !working-tree-encoding)"
_LIST_FILTERED = ("ls-files", "-z", "--", _PLAIN, ":(exclude,attr:filter=lfs)")


class RunCommand(Protocol):
    """Runs a command of our own; returns its exit code and output."""

    def __call__(
        self, argv: list[str], *, descriptors: Mapping[int, int] = ...
    ) -> Coroutine[Any, Any, tuple[int, bytes]]:
        """Start the command. One with `descriptors`, by their numbers there, may run as long as the session."""
        ...


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
            if stat.S_ISREG(mode):
                return _follow_git_file(git)
            return ()
    return ()


def _follow_git_file(git: Path) -> tuple[Path, ...]:
    """Find the git folder that a `.git` file leads to, if the other end confirms it."""
    target = _read_pointer(git)
    if target is None or not (target / "HEAD").is_file():
        return ()
    if (target / _COMMON).is_file():
        return _find_worktree_folder(git, target)
    folder = git.parent
    if folder == folder.parent:
        return ()
    for above in find_commit_folders(folder.parent):
        if target.is_relative_to(above / "modules"):
            return (target,)
    return ()


def _find_worktree_folder(git: Path, target: Path) -> tuple[Path, ...]:
    """Find the common folder of the worktree with this `.git` file and this own folder."""
    if not _leads_home(target, read_text(target / _COMMON)):
        return ()
    if resolve_path(read_text(target / _BACK)) != resolve_path(git):
        return ()
    common = target.parent.parent
    return (common,) if _is_git_folder(common) else ()


def _is_git_folder(path: Path) -> bool:
    """Apply git's own test, and check that the folder belongs to this user."""
    for name in ("HEAD", "objects", "refs"):
        if not (path / name).exists():
            return False
    return path.stat().st_uid == os.getuid()


# --- pointers, hooks and settings of a repository: `git` is its folder, or the file or link in its place


def is_pointer(git: Path) -> bool:
    """Check for a file or link in the place of a git folder."""
    return os.path.islink(git) or not os.path.isdir(git)  # unlike Path, without errors


def _read_pointer(git: Path) -> Path | None:
    """Follow a `.git` file as git does."""
    with suppress(OSError, ValueError):
        return _resolve_pointer(git, read_text(git))
    return None


def _resolve_pointer(git: Path, text: str) -> Path | None:
    """Resolve the content of a `.git` file exactly as git does (`read_gitfile_gently` in its setup.c)."""
    if not text.startswith("gitdir: "):
        return None
    return resolve_path(git.parent / text.removeprefix("gitdir: "))


def _leads_home(git: Path, text: str) -> bool:
    """Check that the `commondir` of a worktree leads to its own repository, and nowhere else."""
    return git.parent.name == "worktrees" and resolve_path(git / text) == git.parent.parent


def read_text(path: Path) -> str:
    """Read a pointer or settings without blocking, because the path may be a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return _clean_text(file.read(_MAX_TEXT_BYTES))


def _clean_text(data: bytes | None) -> str:
    text = os.fsdecode(data or b"").rstrip("\r\n")
    return text.partition("\0")[0]


def is_hook_name(name: str) -> bool:
    """Check that git or a hook may run a file of a hooks folder. A staged folder holds the settings, too."""
    return not name.endswith((".sample", ".refused")) and name.removesuffix(".lock") not in SETTINGS


def list_settings_files(git: Path) -> list[Path]:
    """List the files that hold the settings of a repository."""
    return [git / name for name in SETTINGS if os.path.lexists(git / name)]


def list_decisive_files(git: Path) -> list[Path]:
    """List the files that decide what git runs in a repository: hooks, settings and others, and targets of links."""
    if is_pointer(git):
        files = [git]
    else:
        others = [git / name for name in (_COMMON, _BACK, _ATTRIBUTES, REBASE_TODO)]
        files = [*_list_hooks(git / "hooks"), *list_settings_files(git), *filter(os.path.lexists, others)]
    linked: list[Path] = []
    for path in files:
        # A link to a whole repository has no target here, since that is listed as well.
        is_repository = path == git and not os.path.isfile(path)
        if os.path.islink(path) and not is_repository:
            linked += _list_hooks(resolve_path(path))
    return [*files, *linked]


def _list_hooks(folder: Path) -> list[Path]:
    try:
        return list_files(folder, is_hook_name)
    except GooseLikeError:  # too many
        return [folder]


def list_dangers(git: Path, edit: FileEdit, roots: Collection[Path]) -> list[str]:
    """List in words what git would run outside the sandbox, or where it would go, after a change of a decisive file.

    `roots` are the folders in which all repositories are known. The removal of a file is no danger.
    """
    path = edit.path
    new = edit.new
    if new is None or path == git / _BACK:
        return []
    try:
        name = str(path.relative_to(git))
    except ValueError:  # the target of a link
        return [path.name]
    if name == ".":
        return [] if _is_known_pointer(git, new, roots) else [f"{path.name} (leads elsewhere)"]
    if name == _COMMON:
        is_own = stat.S_ISREG(new.mode) and _leads_home(git, _clean_text(new.data))
        return [] if is_own else [f"{name} (leads elsewhere)"]
    if name == REBASE_TODO:
        has_exec = not stat.S_ISREG(new.mode) or new.data is None or _EXEC.search(new.data)
        return ["git-rebase-todo (exec)"] if has_exec else []
    if name in SETTINGS:
        return _list_dangerous_settings(git, edit, roots)
    if name == _ATTRIBUTES:
        return [name]
    return [f"hook {name.removeprefix('hooks/')}"]


def _is_known_pointer(git: Path, new: FileCopy, roots: Collection[Path]) -> bool:
    """Check that a file or link in the place of a git folder leads nowhere, or below `roots`."""
    if new.data is None:
        return False
    text = _clean_text(new.data)
    if stat.S_ISLNK(new.mode):
        return _is_inside(resolve_path(git.parent / text), roots)
    target = _resolve_pointer(git, text)
    return target is None or _is_inside(target, roots)


def _list_dangerous_settings(git: Path, edit: FileEdit, roots: Collection[Path]) -> list[str]:
    """List in words the settings that are new and not harmless."""
    after = read_settings(edit.new)
    if after is None:
        return [f"{edit.path.name} (unreadable)"]
    before = read_settings(edit.old) or set()
    dangers = set()
    for key, value in after - before:
        if not _is_harmless(git, key, value, roots):
            dangers.add(f"setting {key}")
    return sorted(dangers)


def _is_inside(path: Path, roots: Collection[Path]) -> bool:
    return any(map(path.is_relative_to, roots))


def _is_harmless(git: Path, key: str, value: str, roots: Collection[Path]) -> bool:
    if key == "core.worktree":  # a submodule's, which stays inside the workspace; git unquotes others
        is_plain = set(value).isdisjoint('"\\#;')
        return is_plain and _is_inside(resolve_path(git / value), roots)
    return is_harmless_key(key)


def drop_dangerous_settings(git: Path, edit: FileEdit, roots: Collection[Path]) -> FileCopy | None:
    """Return new settings without the lines of dangerous keys. Return the old file if the new one has other dangers."""
    new = edit.new
    is_settings = edit.path.parent == git and edit.path.name in SETTINGS
    if not is_settings or new is None or read_settings(new) is None:
        return edit.old
    lines = os.fsdecode(new.data or b"").split("\n")
    kept = []
    for line, entry in zip(lines, _parse_lines(lines), strict=True):
        if entry is None or _is_harmless(git, *entry, roots):
            kept.append(line)
    return new._replace(data=os.fsencode("\n".join(kept)))


def read_settings(copy: FileCopy | None) -> set[tuple[str, str]] | None:
    """Read the keys and values of a settings file. Return None if git may read the file in another way."""
    if copy is None or not stat.S_ISREG(copy.mode) or copy.data is None:
        return None
    text = os.fsdecode(copy.data)
    if _CONTROLS.search(text):
        return None
    try:
        return set(filter(None, _parse_lines(text.split("\n"))))
    except ValueError:
        return None


def _parse_lines(lines: Iterable[str]) -> Iterator[tuple[str, str] | None]:
    """Yield key and value of each line of a settings file; None for another line. Raise ValueError for an odd one."""
    section = ""
    for line in lines:
        line = line.strip(" \t")
        header = _SECTION.fullmatch(line)
        entry = _ENTRY.fullmatch(line)
        if header:
            name = ".".join(filter(None, header.groups()))
            section = re.sub(r"\\(.)", r"\1", name)
            yield None
        elif not line or line[0] in "#;":
            yield None
        elif entry and section and not line.endswith("\\"):
            value = entry[2] or ""
            yield f"{section}.{entry[1]}".lower(), value.strip()
        else:
            raise ValueError(line)


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
    paths = await _list_paths(folder, _LIST_IGNORED, run)
    return paths or frozenset()


async def list_filtered_paths(folder: Path, run: RunCommand) -> frozenset[str] | None:
    """List the tracked files that git converts by a filter or an encoding, except those of git-lfs.

    Return None if git fails.
    """
    return await _list_paths(folder, _LIST_FILTERED, run)


async def _list_paths(folder: Path, words: tuple[str, ...], run: RunCommand) -> frozenset[str] | None:
    with suppress(GooseLikeError, TimeoutError):
        async with asyncio.timeout(_LIST_TIMEOUT_S):
            code, output = await run([*_GIT, str(folder), *words])
        if code == 0:
            names = filter(None, os.fsdecode(output).split("\0"))
            return frozenset(os.path.join(folder, name.rstrip("/")) for name in names)
    return None
