"""Audit of repositories: git hooks and settings that commands left and that would run outside the sandbox."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError

from .git import (
    RepositoryScanner,
    RunCommand,
    Signature,
    find_foreign_pointer,
    find_referenced_paths,
    is_harmless_key,
    list_hooks,
    list_protected_paths,
    list_settings_files,
    read_mark,
)

Require = Callable[[str, str], Awaitable[object]]
"""Asks for permission with a subject and a text; raises DeniedError if it is refused."""


def find_protected_paths(root: Path, commit_folders: Sequence[Path]) -> tuple[RepositoryScanner, list[Path]]:
    """Find the hooks and settings of all repositories in the workspace, and those of the person's git configuration.

    Returns:
        The scanner for later audits, and the paths that commands must not change.
    """
    scanner = RepositoryScanner((root, *commit_folders))
    gits = list(scanner.scan())
    configs = [Path.home() / name for name in (".gitconfig", ".config/git/config")]
    configs += [config for git in gits for config in list_settings_files(git)]
    referenced = find_referenced_paths(configs, {git.parent for git in gits if git.name == ".git"})
    protected = [path for git in gits for path in list_protected_paths(git)]
    # A folder that holds a repository or the whole workspace cannot be taken away from commands.
    protected += [path for path in referenced if not any(git.is_relative_to(path) for git in (root, *gits))]
    return scanner, protected


class RepositoryAudit:
    """Remembers the state of all repositories, and asks about new hooks and settings.

    All changes run inside the sandbox, so a link that a command puts in the way leads nowhere.
    """

    def __init__(self, scanner: RepositoryScanner, watched: Iterable[Path], run: RunCommand) -> None:
        """Record the accepted state. Paths of `watched` that do not exist now must not appear later."""
        self._accepted = scanner.scan()
        self._scanner = scanner
        self._absent = [path for path in watched if not os.path.lexists(path)]
        self._run = run
        self._has_warned = False
        self._lock = asyncio.Lock()
        self._scan: asyncio.Task[dict[Path, Signature]] | None = None

    async def inspect(self, require: Require, timeout_s: float | None = None) -> list[str]:
        """Find what changed since the last call, and disable everything that `require` refuses.

        A scan that takes longer than `timeout_s` continues in its thread, and the next call judges its result.

        Returns:
            Sentences for the model.
        """
        notes: list[str] = []
        async with self._lock:
            is_fresh = False
            while not is_fresh:  # a scan of an earlier call is followed by a new one
                is_fresh = self._scan is None
                self._scan = self._scan or asyncio.create_task(asyncio.to_thread(self._scanner.scan))
                await asyncio.wait({self._scan}, timeout=timeout_s)
                if not self._scan.done():
                    break
                found, self._scan = self._scan.result(), None
                notes += await self._judge_all(found, require)
        return notes

    async def _judge_all(self, found: dict[Path, Signature], require: Require) -> list[str]:
        notes: list[str] = []
        if not self._scanner.is_complete and not self._has_warned:
            self._has_warned = True
            notes.append("the workspace has so many folders that not all were searched for new git repositories")
        for git, signature in list(found.items()):
            if (before := self._accepted.get(git)) == signature:
                continue
            if refusal := await self._judge(git, before or (), require):
                notes.append(refusal)
                found.pop(git)  # judged again next time, against the earlier state
                found |= {git: before} if before else {}
        self._accepted = found
        for path in filter(os.path.lexists, self._absent):
            try:
                name = await self._set_aside(path)
            except GooseLikeError as error:
                notes.append(str(error))
            else:
                notes.append(f"{path} would be run by the person's shell or tools: it was renamed to {name}")
        return notes

    async def _judge(self, git: Path, before: Signature, require: Require) -> str | None:
        """Ask about new hooks and settings in a repository, and disable them if the answer is no."""
        foreign = find_foreign_pointer(git, self._scanner.roots)
        to_run = [foreign] if foreign else [hook for hook in list_hooks(git) if read_mark(hook) not in before]
        changed = [] if foreign else [file for file in list_settings_files(git) if read_mark(file) not in before]
        keys = {file: found for file in changed if (found := await self._list_harmful_keys(file, git))}
        dangers = [f"{path.name} (leads elsewhere)" if path == foreign else f"hook {path.name}" for path in to_run]
        dangers += [f"setting {key}" for found in keys.values() for key in found]
        if not dangers:
            return None
        text = f"the command left in the repository {git} what git may run outside the sandbox: {', '.join(dangers)}"
        try:
            await require(str(git), text)
        except DeniedError as error:
            try:
                for path in to_run:
                    await self._set_aside(path)
                for file, found in keys.items():
                    await self._unset_keys(file, found, git)
            except GooseLikeError as failure:
                return f"{error}. {failure}"
            return f"{error}. It was disabled; the former files are kept as NAME.refused"
        return None

    async def _list_harmful_keys(self, file: Path, git: Path) -> list[str]:
        """List the keys that are not known to be harmless, as git itself reads the file."""
        list_all = ["git", "config", "--file", str(file), "--no-includes", "--null", "--list"]
        try:
            code, output = await self._run(list_all)
        except GooseLikeError:
            code, output = 1, b""
        if code:
            return ["(unreadable)"]
        pairs = [entry.partition("\n")[::2] for entry in output.decode(errors="replace").split("\0") if entry]
        return sorted({key for key, value in pairs if not (is_harmless_key(key) or self._is_own_tree(key, value, git))})

    def _is_own_tree(self, key: str, value: str, git: Path) -> bool:
        """Check for a submodule's `core.worktree` that stays inside the workspace."""
        tree = Path(os.path.realpath(git / value))
        return key == "core.worktree" and any(tree.is_relative_to(root) for root in self._scanner.roots)

    async def _unset_keys(self, file: Path, keys: list[str], git: Path) -> None:
        await self._run(["cp", "-PT", "--", str(file), _find_free_name(file)])
        for key in keys:
            await self._run(["git", "config", "--file", str(file), "--unset-all", key])
        if await self._list_harmful_keys(file, git):
            await self._set_aside(file)

    async def _set_aside(self, path: Path) -> str:
        """Rename a file and return its new name.

        Raises:
            GooseLikeError: the file is still there, whatever the command did to keep it.
        """
        free = _find_free_name(path)
        await self._run(["chmod", "u+rwx", "--", str(path.parent)])
        await self._run(["mv", "-nT", "--", str(path), free])
        if read_mark(path):
            raise GooseLikeError(f"{path} could NOT be disabled: remove it before git or a shell runs there")
        return os.path.basename(free)


def _find_free_name(path: Path) -> str:
    """Return PATH.refused, or PATH with the first free number."""
    names = (f"{path}{number}.refused" for number in ("", *range(2, 1000)))
    return next(name for name in names if not os.path.lexists(name))
