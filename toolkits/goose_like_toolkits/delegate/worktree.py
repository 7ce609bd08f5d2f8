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
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.toolkit import Workspace

_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
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

Entry = tuple[str, str]
"""Mode and hash of a file. The mode 000000 means that the file is gone."""
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
        self._start = self._prefix = ""
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
            ignored = (await self._git(self._top, "ls-files", "-oi", "--exclude-standard", "--directory", "-z")).split(
                "\0"
            )
            if kept := [path for path in ignored if path and not CACHE_PATHS.fullmatch(path.rstrip("/"))]:
                self.notes.append(f"git ignores these, so they were not taken over: {list_some(kept)}")
            if not self.notes:
                await self._git(self._workspace.root, "worktree", "remove", "--force", str(self._top))
        except (GooseLikeError, OSError) as error:
            self.notes.append(f"the changes could not be taken over: {error}")
        if self.notes:
            self.notes.append(
                f"the delegate's files are in {self.root}; take from there what is needed, then remove it: "
                f"git worktree remove --force {WORKTREES_FOLDER}/{self._name}"
            )

    async def _take_over(self) -> None:
        root, ours = self._workspace.root, "ours"
        end, now = await self._write_tree(self._top, "end"), await self._write_tree(root, ours)
        changes, others = await self._diff(self._start, end), await self._diff(self._start, now)
        taken = {path: entry for path, entry in changes.items() if path not in others}
        conflicts: list[str] = []
        for path, entry in changes.items():
            if others.get(path, entry) == entry:
                continue
            if both := await self._merge_file(path, others[path], entry):
                taken[path] = both
            else:
                conflicts.append(path)
        if conflicts:
            self.notes.append(f"conflict: {list_some(conflicts)} changed here meanwhile, and stayed as it is here")
            self.notes += await self._describe_merges(conflicts)
        top = Path(await self._git(root, "rev-parse", "--show-toplevel"))
        for path in list(taken):
            try:
                await self._workspace.require_permission("change", str(top / path), f"change {top / path}")
            except DeniedError as error:
                self.notes.append(str(error))
                del taken[path]
        if not taken:
            return
        await self._git(root, "read-tree", now, index="merged")
        # What is gone comes first, since a folder may take the place of a file.
        words = [["--force-remove", path] for path, (mode, _) in taken.items() if not int(mode)]
        words += [
            ["--add", "--cacheinfo", f"{mode},{name},{path}"] for path, (mode, name) in taken.items() if int(mode)
        ]
        for first in range(0, len(words), _CHANGES_AT_ONCE):
            chunk = chain(*words[first : first + _CHANGES_AT_ONCE])
            await self._git(top, "update-index", *chunk, index="merged")
        merged = await self._git(root, "write-tree", index="merged")
        update = ["read-tree", "-m", "-u", now, merged]
        await self._workspace.announce_change(None, ["git", *update])  # for undo
        await self._git(top, *update, index=ours)
        self.changed = [path.removeprefix(self._prefix) for path in taken]

    async def _merge_file(self, path: str, ours: Entry, theirs: Entry) -> Entry | None:
        """Merge the changes of both sides of a file. Return None if they meet, or if there is no common start."""
        mode, our_name = ours
        their_mode, their_name = theirs
        if mode != their_mode or mode not in _FILE_MODES:
            return None
        try:
            base = await self._git(self._workspace.root, "rev-parse", "--verify", "--quiet", f"{self._start}:{path}")
            words = ("sh", "-c", _MERGE, "sh", our_name, base, their_name)
            merged = await self._run("env", "-C", str(self._workspace.root), *words)
        except GooseLikeError:
            return None
        return mode, merged

    async def _describe_merges(self, paths: Sequence[str]) -> list[str]:
        """Describe the command that merges a file and marks what meets, for the first files that have a start."""
        lines = []
        root = self._workspace.root
        top = Path(await self._git(root, "rev-parse", "--show-toplevel"))
        for path in paths[:_MAX_COMMANDS]:
            place = f"{self._start}:{path}"
            if not (top / path).is_file() or not (self._top / path).is_file():
                continue
            try:
                base = await self._git(root, "rev-parse", "--verify", "--quiet", place)
            except GooseLikeError:  # a new file on both sides
                continue
            files = shlex.join([str(top / path), "/tmp/base", str(self._top / path)])
            line = f"git -C {shlex.quote(str(root))} cat-file blob {base} > /tmp/base; git merge-file {files}"
            lines.append(f"to merge {path} with marks where both changed: {line}")
        return lines

    async def _write_tree(self, folder: Path, index: str) -> str:
        """Store the files of a folder's working tree that git does not ignore, and return the tree."""
        real = await self._git(folder, "rev-parse", "--git-path", "index")
        await self._run("cp", "-p", str(folder / real), self._get_index(index))
        await self._git(folder, "add", "--all", index=index)
        return await self._git(folder, "write-tree", index=index)

    async def _diff(self, before: str, after: str) -> Entries:
        output = await self._git(self._workspace.root, "diff-tree", "-r", "-z", "--no-renames", before, after)
        words = output.split("\0")
        return {path: (line.split()[1], line.split()[3]) for line, path in zip(words[::2], words[1::2], strict=False)}

    def _get_index(self, name: str) -> str:
        return self._workspace.path_in_sandbox(self._workspace.tmp / f"{self._name}-{name}")

    async def _git(self, folder: Path, *words: str, index: str = "") -> str:
        variables = [f"GIT_INDEX_FILE={self._get_index(index)}"] if index else []
        return await self._run("env", *variables, "git", *_OPTIONS, "-C", str(folder), *words)

    async def _run(self, *words: str) -> str:
        code, output = await self._workspace.run_internal(list(words))
        text = output.decode(errors="surrogateescape").strip("\n")
        if code:
            raise GooseLikeError(text.splitlines()[-1] if text else f"{words[0]} failed")
        return text


def list_left_worktrees(root: Path) -> list[Path]:
    """List the worktrees of delegates in a folder that no process uses: a killed session left them, or a conflict."""
    left = []
    for top in sorted((root / WORKTREES_FOLDER).glob("delegate-*")):
        try:
            descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.append(top)
        except OSError:
            pass  # a delegate works there
        finally:
            os.close(descriptor)
    return left


def list_some(paths: Sequence[str]) -> str:
    """List the first paths in words, and the number of the others."""
    more = f" and {len(paths) - _MAX_LISTED} more" if len(paths) > _MAX_LISTED else ""
    return ", ".join(paths[:_MAX_LISTED]) + more
