"""A look at what commands left behind that would run later, outside the sandbox: git's hooks and settings, start files."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from .errors import DeniedError, GooseLikeError
from .repositories import Survey, hooks, is_harmless, leads_astray, settings

Run = Callable[[list[str]], Awaitable[tuple[int, bytes]]]
Permit = Callable[[str, str], Awaitable[None]]


class Inspection:
    """Remembers how things were, and asks about what is new.

    Whatever it changes it changes by `run`, from inside the sandbox: a link that is put in its way leads nowhere.
    """

    def __init__(self, survey: Survey, watched: Iterable[Path], run: Run) -> None:
        self.accepted = survey.look()
        self._survey = survey
        self._absent = [path for path in watched if not os.path.lexists(path)]
        self._run = run
        self._is_told = False

    async def look(self, permit: Permit) -> list[str]:
        """Looks at what changed since; what `permit(subject, text)` refuses is put out of effect.

        Returns sentences for the model.
        """
        told: list[str] = []
        found = await asyncio.to_thread(self._survey.look)
        if not self._survey.is_complete and not self._is_told:
            self._is_told = True
            told.append("the workspace has so many folders that not all were searched for new git repositories")
        changed = [git for git, signature in found.items() if self.accepted.get(git) != signature]
        for git in changed:
            told += await self._judge(git, permit)
        if changed:
            found = await asyncio.to_thread(self._survey.look)
        self.accepted = found
        for path in filter(os.path.lexists, self._absent):
            await self._set_aside(path)
            told.append(f"{path} would be run by the person's shell or tools: it was renamed to {path.name}.refused")
        return told

    async def _judge(self, git: Path, permit: Permit) -> list[str]:
        astray = leads_astray(git, self._survey.roots)
        to_run = [] if astray else hooks(git)
        keys = {file: await self._harmful(file, git) for file in ([] if astray else settings(git))}
        what = [f"{astray.name} leads out of the workspace"] if astray else []
        what += [f"hook {hook.name}" for hook in to_run]
        what += [f"setting {key}" for found in keys.values() for key in found]
        if not what:
            return []
        text = f"the command left in the repository {git} what git may run outside the sandbox: {', '.join(what)}"
        try:
            await permit(str(git), text)
            return []
        except DeniedError as error:
            for path in [astray] if astray else to_run:
                await self._set_aside(path)
            for file, found in keys.items():
                if found:
                    await self._clean(file, found, git)
            return [f"{error}. It was put out of effect: hooks and settings are kept as NAME.refused"]

    async def _harmful(self, file: Path, git: Path) -> list[str]:
        """The keys that are not known to be harmless; git itself reads the file, so that we read what it reads."""
        list_all = ["git", "config", "--file", str(file), "--no-includes", "--null", "--list"]
        try:
            code, output = await self._run(list_all)
        except GooseLikeError:
            code, output = 1, b""
        if code:
            return ["(unreadable)"]
        pairs = [entry.partition("\n")[::2] for entry in output.decode(errors="replace").split("\0") if entry]
        return sorted({key for key, value in pairs if not (is_harmless(key) or self._is_own_tree(key, value, git))})

    def _is_own_tree(self, key: str, value: str, git: Path) -> bool:
        """A submodule says where its files lie; that is harmless within the workspace."""
        tree = Path(os.path.realpath(git / value))
        return key == "core.worktree" and any(tree.is_relative_to(root) for root in self._survey.roots)

    async def _clean(self, file: Path, keys: list[str], git: Path) -> None:
        await self._run(["cp", "-P", "--", str(file), f"{file}.refused"])
        for key in keys:
            await self._run(["git", "config", "--file", str(file), "--unset-all", key])
        if file.is_symlink() or await self._harmful(file, git):
            await self._set_aside(file)

    async def _set_aside(self, path: Path) -> None:
        await self._run(["mv", "-T", "--", str(path), f"{path}.refused"])
