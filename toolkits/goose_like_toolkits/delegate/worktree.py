"""A git worktree for a subagent that writes beside others, and the merge of its changes.

All git commands run in the parent's sandbox. Three trees decide: the parent's files at the start, those of the subagent
at the end, and the parent's then. A file that only the subagent changed is taken over. If the parent's changed as well,
both changes are merged; a file whose changes meet in the same lines stays as it is.
"""

import asyncio
import fcntl
import os
import secrets
import shlex
from collections.abc import Coroutine, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from goose_like.config.paths import CACHE_PATHS, WORKTREES_FOLDER
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.toolkit import Workspace
from goose_like.workspace.programs import GIT_OPTIONS

_OPTIONS = (*GIT_OPTIONS, "-c", "core.quotePath=false")
_AUTHOR = ("-c", "user.name=goose-like", "-c", "user.email=goose-like@localhost")
_CHANGES_AT_ONCE = 500
_MAX_COMMANDS = 3
_MERGE = """
set -e
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
git cat-file blob "$1" > "$folder/ours"
git cat-file blob "$2" > "$folder/base"
git cat-file blob "$3" > "$folder/theirs"
git merge-file -q "$folder/ours" "$folder/base" "$folder/theirs"
git hash-object -w --no-filters "$folder/ours"
"""
_MAX_LISTED = 10

_FILE_MODES = ("100644", "100755")

_OURS = "ours"
"""The copy of the index that describes the parent's files as they are now."""
_MERGED = "merged"
"""The copy of the index with the changes of both sides."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Mode and hash of a file in a tree."""

    mode: str
    name: str

    @property
    def is_gone(self) -> bool:
        """True if the file was removed: git then shows the mode 000000."""
        return int(self.mode) == 0


Entries = dict[str, Entry]
"""The changed files by path."""


async def complete(work: Coroutine[Any, Any, None]) -> None:
    """Run work to its end, even if the task is cancelled meanwhile: half a worktree would stay for good."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class SubagentWorktree:
    """A copy of a workspace as it is now, with uncommitted changes, for a subagent.

    After `merge`, `changed` lists the files that changed in the workspace, and `notes` tells the model what did not.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.changed: list[str] = []
        self.notes: list[str] = []
        self._workspace = workspace
        self._name = f"delegate-{secrets.token_hex(4)}"
        self._top = workspace.root / WORKTREES_FOLDER / self._name
        self._start = ""
        self._prefix = ""
        self._lock: int | None = None

    @property
    def root(self) -> Path:
        """The folder that stands for the root of the workspace."""
        return self._top / self._prefix

    @property
    def prompt(self) -> str:
        """The part of the subagent's prompt about the worktree."""
        return (
            f"You work beside others, in a copy of the folder {self._workspace.root}: use relative paths. When you "
            "finish, your changes are taken over there, but no commits and no files that git ignores."
        )

    async def create(self, lock: asyncio.Lock) -> None:
        """Create the worktree. Raise GooseLikeError if there is no repository or commit, or if git fails."""
        async with lock:
            await self._create()

    async def _create(self) -> None:
        root = self._workspace.root
        self._prefix = await self._git(root, "rev-parse", "--show-prefix")
        line = 'mkdir -p "$1" && echo "*" > "$1/.gitignore"'
        await self._run("sh", "-c", line, "sh", str(root / WORKTREES_FOLDER))
        self._start = await self._write_tree(root, "start")
        words = ("commit-tree", self._start, "-p", "HEAD", "-m", "The state before a delegate")
        commit = await self._git(root, *_AUTHOR, *words)
        await self._git(root, "worktree", "add", "--quiet", "--detach", str(self._top), commit)
        # As long as this process lives, the worktree is in use.
        self._lock = os.open(self._top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        await self._git(self._top, "reset", "--quiet", "HEAD^")  # uncommitted changes stay uncommitted

    async def merge(self, lock: asyncio.Lock) -> None:
        """Take over the changes, and remove the worktree unless something is only there."""
        async with lock:
            await self._merge()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _merge(self) -> None:
        try:
            await self._take_over()
            await self._note_ignored_files()
            if not self.notes:
                await self._git(self._workspace.root, "worktree", "remove", "--force", str(self._top))
        except (GooseLikeError, OSError) as error:
            self.notes.append(f"the changes could not be taken over: {error}")
        if self.notes:
            self.notes.append(
                f"the delegate's files are in {self.root}; take from there what is needed, then remove it: "
                f"git worktree remove --force {WORKTREES_FOLDER}/{self._name}"
            )

    async def _note_ignored_files(self) -> None:
        """Note the new files that git ignores, without caches: they exist only in the worktree."""
        words = ("ls-files", "-oi", "--exclude-standard", "--directory", "-z")
        ignored = await self._git(self._top, *words)
        kept = []
        for path in ignored.split("\0"):
            if path and not CACHE_PATHS.fullmatch(path.rstrip("/")):
                kept.append(path)
        if kept:
            self.notes.append(f"git ignores these, so they were not taken over: {list_some(kept)}")

    async def _take_over(self) -> None:
        root = self._workspace.root
        end = await self._write_tree(self._top, "end")
        now = await self._write_tree(root, _OURS)
        changes = await self._diff(self._start, end)
        others = await self._diff(self._start, now)
        taken = await self._merge_changes(changes, others)
        top = await self._find_top()
        await self._remove_denied(taken, top)
        if not taken:
            return
        merged = await self._write_merged_tree(now, taken, top)
        update = ["read-tree", "-m", "-u", now, merged]
        await self._workspace.announce_change(None, ["git", *update])  # for undo
        await self._git(top, *update, index=_OURS)
        self.changed = [path.removeprefix(self._prefix) for path in taken]

    async def _merge_changes(self, changes: Entries, others: Entries) -> Entries:
        """Return the entries to take over: changes of the subagent, merged with those of others in the same files.

        A file whose changes meet gets a note instead.
        """
        taken = {path: entry for path, entry in changes.items() if path not in others}
        conflicts: list[str] = []
        for path, entry in changes.items():
            other = others.get(path, entry)
            if other == entry:
                continue
            merged = await self._merge_file(path, other, entry)
            if merged:
                taken[path] = merged
            else:
                conflicts.append(path)
        if conflicts:
            self.notes.append(f"conflict: {list_some(conflicts)} changed here meanwhile, and stayed as it is here")
            self.notes += await self._describe_merges(conflicts)
        return taken

    async def _remove_denied(self, taken: Entries, top: Path) -> None:
        """Remove the entries that nobody allows to change. Each of them gets a note."""
        for path in list(taken):
            file = top / path
            try:
                await self._workspace.require_permission("change", str(file), f"change {file}")
            except DeniedError as error:
                self.notes.append(str(error))
                del taken[path]

    async def _write_merged_tree(self, now: str, taken: Entries, top: Path) -> str:
        """Store a tree of the parent's files `now` with some entries taken over, and return the tree."""
        await self._git(self._workspace.root, "read-tree", now, index=_MERGED)
        removals = []
        additions = []
        for path, entry in taken.items():
            if entry.is_gone:
                removals.append(("--force-remove", path))
            else:
                additions.append(("--add", "--cacheinfo", f"{entry.mode},{entry.name},{path}"))
        # What is gone comes first, since a folder may take the place of a file.
        updates = [*removals, *additions]
        for first in range(0, len(updates), _CHANGES_AT_ONCE):
            chunk = updates[first : first + _CHANGES_AT_ONCE]
            await self._git(top, "update-index", *chain(*chunk), index=_MERGED)
        return await self._git(self._workspace.root, "write-tree", index=_MERGED)

    async def _merge_file(self, path: str, ours: Entry, theirs: Entry) -> Entry | None:
        """Merge the changes of both sides of a file. Return None if they meet, or if there is no common start."""
        if ours.mode != theirs.mode or ours.mode not in _FILE_MODES:
            return None
        try:
            base = await self._find_start(path)
            words = ("sh", "-c", _MERGE, "sh", ours.name, base, theirs.name)
            merged = await self._run("env", "-C", str(self._workspace.root), *words)
        except GooseLikeError:
            return None
        return Entry(ours.mode, merged)

    async def _find_start(self, path: str) -> str:
        """Return the hash of a file at the start. Raise GooseLikeError if it did not exist."""
        place = f"{self._start}:{path}"
        return await self._git(self._workspace.root, "rev-parse", "--verify", "--quiet", place)

    async def _find_top(self) -> Path:
        """Return the top folder of the parent's repository."""
        return Path(await self._git(self._workspace.root, "rev-parse", "--show-toplevel"))

    async def _describe_merges(self, paths: Sequence[str]) -> list[str]:
        """Describe the command that merges a file and marks what meets, for the first files that have a start."""
        lines = []
        folder = shlex.quote(str(self._workspace.root))
        top = await self._find_top()
        for path in paths[:_MAX_COMMANDS]:
            ours = top / path
            theirs = self._top / path
            if not ours.is_file() or not theirs.is_file():
                continue
            try:
                base = await self._find_start(path)
            except GooseLikeError:  # a new file on both sides
                continue
            files = shlex.join([str(ours), "/tmp/base", str(theirs)])
            line = f"git -C {folder} cat-file blob {base} > /tmp/base; git merge-file {files}"
            lines.append(f"to merge {path} with marks where both changed: {line}")
        return lines

    async def _write_tree(self, folder: Path, index: str) -> str:
        """Store the files of a folder's working tree that git does not ignore, and return the tree."""
        real = await self._git(folder, "rev-parse", "--git-path", "index")
        await self._run("cp", "-p", str(folder / real), self._get_index(index))
        await self._git(folder, "add", "--all", index=index)
        return await self._git(folder, "write-tree", index=index)

    async def _diff(self, before: str, after: str) -> Entries:
        words = ("diff-tree", "-r", "-z", "--no-renames", before, after)
        output = await self._git(self._workspace.root, *words)
        # Each change is a line such as `:100644 100644 HASH HASH M`, and the path.
        parts = output.split("\0")
        entries = {}
        for line, path in zip(parts[::2], parts[1::2], strict=False):
            _, mode, _, name, _ = line.split()
            entries[path] = Entry(mode, name)
        return entries

    def _get_index(self, name: str) -> str:
        file = self._workspace.tmp / f"{self._name}-{name}"
        return self._workspace.path_in_sandbox(file)

    async def _git(self, folder: Path, *words: str, index: str = "") -> str:
        command = ["git", *_OPTIONS, "-C", str(folder), *words]
        if index:
            command.insert(0, f"GIT_INDEX_FILE={self._get_index(index)}")
        return await self._run("env", *command)

    async def _run(self, *words: str) -> str:
        code, output = await self._workspace.run_internal(list(words))
        text = output.decode(errors="surrogateescape").strip("\n")
        if not code:
            return text
        if not text:
            raise GooseLikeError(f"{words[0]} failed")
        raise GooseLikeError(text.splitlines()[-1])


def list_left_worktrees(root: Path) -> list[Path]:
    """List the worktrees of delegates in a folder that no process uses: a killed session left them, or a conflict."""
    left = []
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folders = (root / WORKTREES_FOLDER).glob("delegate-*")
    for top in sorted(folders):
        try:
            descriptor = os.open(top, flags)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.append(top)
        except BlockingIOError:
            continue  # a delegate works there
        finally:
            os.close(descriptor)
    return left


def list_some(paths: Sequence[str]) -> str:
    """List the first paths in words, and the number of the others."""
    text = ", ".join(paths[:_MAX_LISTED])
    rest_count = len(paths) - _MAX_LISTED
    if rest_count > 0:
        text += f" and {rest_count} more"
    return text
