"""Audit of the workspace: what commands left for git, editors and shells, and what would run outside the sandbox."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from goose_like.config.paths import state_folder
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.workspace.sandbox.path_rules import Rules, resolve_path

from . import git
from .audit_record import AcceptedState, AuditRecord
from .file_copy import REFUSED_FOLDER, AcceptedFiles, FileEdit, FilePins, format_edits, read_copy
from .scanner import RepositoryScanner
from .staging import StagedFolder, Staging
from .start_files import list_start_files, list_watched_paths

_MAX_PINS = 300

Require = Callable[[str, str, Callable[[], str]], Awaitable[object]]
"""Asks for permission with a subject, a text and the detail; raises DeniedError if it is refused."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A changed file, the place to name in the question, its dangers in words, and what follows from the answer."""

    where: Path
    edit: FileEdit
    dangers: list[str]
    accept: Callable[[], None]
    refuse: Callable[[], None]


class RepositoryAudit:
    """Protects the repositories of a workspace, remembers what was accepted, and asks about changes.

    `protected` lists the paths that commands must not change. Instead of some, `staging` gives them copies to change.
    """

    def __init__(self, root: Path, folders: Iterable[Path]) -> None:
        """Survey the workspace and other git folders. Accept all but what a killed session may have left."""
        self._root = root
        self._lock, self._accepting = asyncio.Lock(), asyncio.Lock()
        self._search: asyncio.Task[list[Path]] | None = None
        self._record = AuditRecord(root)
        former = self._record.former
        self._is_settled = former is None  # nothing was run or written since a complete survey
        self._scanner = RepositoryScanner((root, *folders), former.closed if former else None)
        self._repositories = self._scanner.scan()
        self._accepted = AcceptedFiles()
        own = [repository for repository in self._repositories if self._recall(repository)]
        self.staging = Staging()
        self.protected = self._protect(own)
        mounted = [*self.staging.mounts, *self.staging.links]
        self._pins = FilePins(dict.fromkeys((*mounted, *self.protected[:_MAX_PINS])))
        self._lost: set[Path] = set()
        self.mount_losses = 0
        """How many times mounts of `staging` were lost, so that new commands need a new sandbox."""
        self._tops = {root, *(path.parent for path in own if path.name == ".git")}
        self._watched: list[Path] = []
        self._warnings: list[str] = []
        self._gaps: set[str] = set()
        self._warn_of_gaps()

    def take_warnings(self) -> list[str]:
        """Return sentences for the person about what the surveys could not see or undo, once."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def watch(self, rules: Rules) -> None:
        """Watch start files that commands can write, and paths of rules that do not exist. Save the record."""
        self._watched = list_watched_paths(self._tops, rules, self._scanner.roots)
        for place in self._watched:
            self._recall(place, list_start_files(place))
            if place.is_dir() and place in self._accepted.places.get(place, ()):
                self._warnings.append(f"{place} has so much content that changes there are not noticed")
        self._save()

    def is_start_file(self, path: Path) -> bool:
        """Check whether a program runs what a file says, so that the person is asked before it is written."""
        return self._find_watched(path) is not None

    def accept_file(self, path: Path, data: bytes) -> None:
        """Accept a start file with this content, because the person allowed to write it."""
        place, copy = self._find_watched(path), read_copy(path)
        if place and copy and copy.data == data:  # else a command was faster
            self._accepted.accept(place, FileEdit(path, None, copy))
            self._save()

    async def prepare_change(self) -> None:
        """Accept what changed while nothing ran: the person did that. Call this before each command and each write."""
        async with self._accepting:
            if self._is_settled:
                await self.inspect(_allow, timeout_s=0)
                self._is_settled = False

    async def finish(self) -> list[str]:
        """Undo what commands changed since the last call of `inspect`, and return sentences for the person.

        Ask nobody. The copies are removed, and the record too, unless a change could not be judged.
        """
        is_clean = True
        try:
            findings = await self.inspect(_allow if self._is_settled else _refuse_unattended)
        except (OSError, GooseLikeError) as error:
            findings = [f"hooks or settings that a command left in the workspace may still be active: {error}"]
            is_clean = False
        await asyncio.to_thread(self._close, is_clean=is_clean)
        if findings and (folder := state_folder() / REFUSED_FOLDER).exists():
            findings.append(f"the refused content of files is in {folder}")
        return findings

    def _close(self, *, is_clean: bool) -> None:
        self.staging.close()
        self._pins.close()
        self._record.close(is_kept=not is_clean)

    async def inspect(self, require: Require, timeout_s: float | None = None, *, is_last: bool = False) -> list[str]:
        """Find what changed since the last call, undo what `require` refuses, and return sentences for the model.

        `is_last`: all commands have ended, so that later changes are the person's until the next command. A search for
        new repositories that takes longer than `timeout_s` continues in its thread, and the next call judges what it
        found.
        """
        notes: list[str] = []
        async with self._lock:
            is_fresh = self._search is None and self._scanner.is_unchanged
            if is_fresh:
                notes += await self._settle(self._survey(), require)
            while not is_fresh:  # a search of an earlier call is followed by a new one
                is_fresh = self._search is None
                self._search = self._search or asyncio.create_task(asyncio.to_thread(self._scanner.scan))
                await asyncio.wait({self._search}, timeout=timeout_s)
                if self._search.done():
                    search, self._search = self._search, None
                    self._repositories = search.result()
                    self._warn_of_gaps()
                notes += await self._settle(self._survey(), require)
                if self._search:
                    break
            self._is_settled = is_last
        return notes

    # --- at the start

    def _recall(self, place: Path, files: Iterable[Path] | None = None) -> bool:
        """Accept the files of a place as they are, or as recorded if a killed session could change them.

        Return False if they were changed.
        """
        files = git.list_decisive_files(place) if files is None else files
        former = self._record.former
        if former and place in former.places:
            self._accepted.places[place] = dict(former.places[place])
        edits = self._accepted.find_edits(place, files)
        covered = former.covered if former else (Path("/"),)
        own = [edit for edit in edits if any(map(edit.path.is_relative_to, covered))]
        for edit in own:
            self._accepted.accept(place, edit)
        return own == edits

    def _protect(self, repositories: list[Path]) -> list[Path]:
        """Find the hooks and settings of repositories and of the person's git configuration, and stage them."""
        configs = [Path.home() / name for name in (".gitconfig", ".config/git/config")]
        configs += [config for repository in repositories for config in git.list_settings_files(repository)]
        referenced = git.find_referenced_paths(configs, {path.parent for path in repositories if path.name == ".git"})
        # A folder that holds a repository or the whole workspace cannot be taken away from commands.
        tops = (self._root, *repositories)
        protected = [path for path in referenced if not any(one.is_relative_to(path) for one in tops)]
        for path in protected:
            if path.is_dir() and self._is_inside(path):
                self._recall(path, list_start_files(path))
                self.staging.add(path, (), path, self._accepted.places.get(path, {}))
        for repository in repositories:
            if git.is_pointer(repository):
                protected.append(repository)
                continue
            hooks, files = repository / "hooks", self._accepted.places.get(repository, {})
            protected += [path for path in files if path != repository / git.REBASE_TODO]
            with suppress(OSError):
                if (repository / "objects").is_dir():
                    hooks.mkdir(exist_ok=True)  # otherwise a command could create it
            protected += [hooks] if hooks.exists() else []
            if hooks.is_dir() and resolve_path(hooks) == hooks:
                self.staging.add(hooks, git.list_settings_files(repository), repository, files)
        return list(dict.fromkeys(one for path in protected for one in (path, resolve_path(path))))

    def _save(self) -> None:
        self._record.write(AcceptedState(self._accepted.places, self.protected, sorted(self._scanner.closed)))

    # --- at each survey

    def _survey(self) -> list[_Change]:
        """Find all changes that commands can have made. Accept the others, which are the person's."""
        for path in (*self.staging.mounts, *self.staging.links):
            if self._pins.has_moved(path):
                self._pins.renew(path)
                self._lost.add(path)
                self.mount_losses += 1
        others = [*self._watched, *(path for path, staged in self.staging.folders.items() if staged.place == path)]
        files = {place: git.list_decisive_files(place) for place in self._repositories}
        files |= {place: list_start_files(place) for place in others}
        changes = []
        for place, paths in files.items():
            for edit in self._accepted.find_edits(place, paths):
                if self._is_covered(edit.path):
                    self._accepted.accept(place, edit)
                else:
                    changes.append(self._judge(place, edit))
        self._update_copies()
        real = {change.edit.path for change in changes}
        return changes + [
            self._judge_copy(folder, edit)
            for folder in self.staging.folders.values()
            for edit in folder.find_edits()
            if edit.path not in real
        ]

    def _is_covered(self, path: Path) -> bool:
        """Check that commands cannot have changed a path. A file that was replaced from outside has lost its mount."""
        above = (one for one in self.protected if path.is_relative_to(one))
        return any(one not in self._lost and not self._pins.has_moved(one) for one in above)

    def _judge(self, place: Path, edit: FileEdit) -> _Change:
        roots, accept, revert = self._scanner.roots, partial(self._accepted.accept, place, edit), self._accepted.revert
        if place not in self._repositories:
            return _Change(place.parent, edit, [place.name], accept, partial(revert, place, edit, edit.old, roots))
        old = git.drop_dangerous_settings(place, edit, roots)
        dangers = git.list_dangers(place, edit, roots)
        where = place.parent if edit.path == place else place
        return _Change(where, edit, dangers, accept, partial(revert, place, edit, old, roots))

    def _judge_copy(self, folder: StagedFolder, edit: FileEdit) -> _Change:
        def accept() -> None:
            folder.apply(edit)
            self._accepted.accept(folder.place, edit)

        where = folder.folder.parent
        if edit.new is None or folder.place == folder.folder:
            name = f"{edit.path.relative_to(where)}{'' if edit.new else ' (removed)'}"
            return _Change(where, edit, [name], accept, folder.reset)
        return _Change(where, edit, git.list_dangers(folder.place, edit, self._scanner.roots), accept, folder.reset)

    async def _settle(self, changes: list[_Change], require: Require) -> list[str]:
        """Ask one question about all dangerous changes, and do what follows from the answer."""
        dangerous = [change for change in changes if change.dangers]
        refusal, notes = "", []
        if dangerous:
            dangers: dict[Path, dict[str, None]] = {}
            for change in dangerous:
                dangers.setdefault(change.where, {}).update(dict.fromkeys(change.dangers))
            places = "; ".join(f"{', '.join(names)} in {where}" for where, names in dangers.items())
            text = f"let git, editors or shells run what changed here: {places}"
            subject = str(dangerous[0].where if len(dangers) == 1 else self._root)
            try:
                await require(subject, text, lambda: format_edits(change.edit for change in dangerous))
            except DeniedError as error:
                refusal = str(error)
        for change in changes:
            is_refused = bool(change.dangers and refusal)
            try:
                (change.refuse if is_refused else change.accept)()
            except (OSError, GooseLikeError) as error:
                next_step = (
                    "may be active; look at it before you run git or an editor" if is_refused else "stays as it was"
                )
                notes.append(f"{change.edit.path} {next_step}: {error}")
        self._update_copies()
        self._warnings += notes
        if dangerous and not refusal:
            self._save()
        if refusal and not notes:
            refusal += ". The changes were disabled: each file has its accepted content again"
        return [refusal, *notes] if refusal else notes

    def _update_copies(self) -> None:
        for folder in self.staging.folders.values():
            folder.update(self._accepted.places.get(folder.place, {}))

    def _find_watched(self, path: Path) -> Path | None:
        return next((place for place in (path, *path.parents) if place in self._watched), None)

    def _is_inside(self, path: Path) -> bool:
        return any(map(path.is_relative_to, self._scanner.roots))

    def _warn_of_gaps(self) -> None:
        """Warn once if repositories may be missing."""
        gaps = set() if self._scanner.is_complete else {"the workspace has too many folders for a complete search"}
        gaps |= {f"{path} cannot be listed" for path in sorted(self._scanner.closed)[:1]}
        self._warnings += [f"git repositories were not searched everywhere: {gap}" for gap in gaps - self._gaps]
        self._gaps |= gaps


async def _allow(subject: str, text: str, detail: Callable[[], str]) -> None:
    pass


async def _refuse_unattended(subject: str, text: str, detail: Callable[[], str]) -> None:
    raise DeniedError(f"not allowed, as nobody could be asked: {text}")
