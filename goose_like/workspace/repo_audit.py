"""A look at what commands left behind that would run later, outside the sandbox: git's hooks and settings."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError

from .git import Signature, Survey, hooks, is_harmless, leads_astray, mark, settings

Run = Callable[[list[str]], Awaitable[tuple[int, bytes]]]
Permit = Callable[[str, str], Awaitable[object]]


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
        self._judging = asyncio.Lock()
        self._looking: asyncio.Task[dict[Path, Signature]] | None = None

    async def look(self, permit: Permit, patience_s: float | None = None) -> list[str]:
        """Looks at what changed since; what `permit(subject, text)` refuses is put out of effect.

        Returns sentences for the model. A look that takes longer than `patience_s` goes on in its thread, and the next
        call judges what it found.
        """
        told: list[str] = []
        async with self._judging:
            is_fresh = False
            while not is_fresh:
                is_fresh = self._looking is None
                self._looking = self._looking or asyncio.create_task(asyncio.to_thread(self._survey.look))
                await asyncio.wait({self._looking}, timeout=patience_s)
                if not self._looking.done():
                    break
                found, self._looking = self._looking.result(), None
                told += await self._judged(found, permit)
        return told

    async def _judged(self, found: dict[Path, Signature], permit: Permit) -> list[str]:
        told: list[str] = []
        if not self._survey.is_complete and not self._is_told:
            self._is_told = True
            told.append("the workspace has so many folders that not all were searched for new git repositories")
        for git, signature in list(found.items()):
            if (before := self.accepted.get(git)) == signature:
                continue
            if refused := await self._judge(git, before or (), permit):
                told.append(refused)
                found.pop(git)  # judged again next time, against what stood before
                found |= {git: before} if before else {}
        self.accepted = found
        for path in filter(os.path.lexists, self._absent):
            try:
                name = await self._set_aside(path)
            except GooseLikeError as error:
                told.append(str(error))
            else:
                told.append(f"{path} would be run by the person's shell or tools: it was renamed to {name}")
        return told

    async def _judge(self, git: Path, before: Signature, permit: Permit) -> str | None:
        """Asks about what is new in a repository, and puts it out of effect when the answer is no."""
        astray = leads_astray(git, self._survey.roots)
        to_run = [astray] if astray else [hook for hook in hooks(git) if mark(hook) not in before]
        changed = [] if astray else [file for file in settings(git) if mark(file) not in before]
        keys = {file: found for file in changed if (found := await self._harmful(file, git))}
        what = [f"{path.name} (leads elsewhere)" if path == astray else f"hook {path.name}" for path in to_run]
        what += [f"setting {key}" for found in keys.values() for key in found]
        if not what:
            return None
        text = f"the command left in the repository {git} what git may run outside the sandbox: {', '.join(what)}"
        try:
            await permit(str(git), text)
        except DeniedError as error:
            try:
                for path in to_run:
                    await self._set_aside(path)
                for file, found in keys.items():
                    await self._clean(file, found, git)
            except GooseLikeError as failure:
                return f"{error}. {failure}"
            return f"{error}. It was put out of effect; what was there is kept as NAME.refused"
        return None

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
        await self._run(["cp", "-PT", "--", str(file), _free_name(file)])
        for key in keys:
            await self._run(["git", "config", "--file", str(file), "--unset-all", key])
        if await self._harmful(file, git):
            await self._set_aside(file)

    async def _set_aside(self, path: Path) -> str:
        """Renames it and gives the new name.

        Raises:
            GooseLikeError: it is still there, whatever the command did to keep it.
        """
        free = _free_name(path)
        await self._run(["chmod", "u+rwx", "--", str(path.parent)])
        await self._run(["mv", "-nT", "--", str(path), free])
        if mark(path):
            raise GooseLikeError(f"{path} could NOT be put out of effect: remove it before git or a shell runs there")
        return os.path.basename(free)


def _free_name(path: Path) -> str:
    """PATH.refused, or with a number where that is taken."""
    names = (f"{path}{number}.refused" for number in ("", *range(2, 1000)))
    return next(name for name in names if not os.path.lexists(name))
