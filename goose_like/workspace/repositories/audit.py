"""Audit of the workspace: what commands left for git, editors and shells, and what would run outside the sandbox."""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from goose_like.config.paths import FOLDER_ADVICE, home_folder, state_folder
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.threads import run_in_daemon_thread, run_in_thread
from goose_like.workspace.sandbox.path_rules import Rules, resolve_path

from . import git
from .audit_record import AcceptedState, AuditRecords
from .file_copy import REFUSED_FOLDER, AcceptedFiles, FileEdit, FilePins, format_edits, read_copy
from .git_references import References, find_references
from .scanner import RepositoryScanner
from .staging import StagedFolder, Staging
from .start_files import (
    find_start_place,
    is_ci_file,
    is_harmless_module_list,
    is_in_packages,
    list_absent_paths,
    list_start_files,
)

_MAX_PINS = 300
_MAX_NAMED = 5

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

    def __init__(self, roots: Sequence[Path], folders: Iterable[Path]) -> None:
        """Survey the `folders`. Accept all but what a killed session may have left.

        `roots` are those that the person works in, the workspace first. The others are git folders.
        """
        self._root = roots[0]
        self._roots = roots
        self._lock = asyncio.Lock()
        self._accepting = asyncio.Lock()
        self._search: asyncio.Task[list[Path]] | None = None
        self._record = AuditRecords(roots)
        former = self._record.former
        self._is_settled = former is None  # nothing was run or written since a complete survey
        self._scanner = RepositoryScanner(folders, former.closed if former else None, top_count=len(roots))
        self._repositories = self._scanner.scan()
        self._accepted = AcceptedFiles()
        own = [repository for repository in self._repositories if self._recall(repository)]
        self._programs: set[Path] = set()
        """Files that git would run, and that commands can change."""
        self.staging = Staging()
        self.protected = self._protect(own)
        mounted = [*self.staging.mounts, *self.staging.links]
        pinned = [*mounted, *self.protected[:_MAX_PINS]]
        self._pins = FilePins(dict.fromkeys(pinned))
        self._lost: set[Path] = set()
        self.mount_losses = 0
        """How many times mounts of `staging` were lost, so that new commands need a new sandbox."""
        self._rules: Rules | None = None
        self._absent: list[Path] = []
        self._watched: set[Path] = set()
        self._targets: dict[Path, Path] = {}
        """Where links in the place of start files lead, with these start files."""
        self._ci_files: dict[Path, None] = {}
        self._warnings: list[str] = []
        self._gaps: set[str] = set()
        if self._record.problem:
            fact = f"a record of hooks and the content of refused files can't be kept, {self._record.problem}"
            self._warnings.append(f"{fact}; {FOLDER_ADVICE}")
        self._warn_of_gaps()

    def take_warnings(self) -> list[str]:
        """Return sentences for the person about what the surveys could not see or undo, once."""
        warnings = self._warnings
        self._warnings = []
        return warnings

    def watch(self, rules: Rules) -> None:
        """Watch start files that commands can write, and paths of rules that do not exist. Save the record."""
        self._rules = rules
        self._absent = list_absent_paths(rules, self._scanner.roots)
        former = self._record.former
        lost = []
        if former:
            lost = [place for place in former.places if find_start_place(place) == place]
        self._update_watched(lost)
        for place in sorted(self._watched):
            self._recall(place, list_start_files(place, self._scanner.roots))
            # A folder with too many files is itself in the list of its files.
            if place.is_dir() and place in self._accepted.places.get(place, ()):
                self._warnings.append(f"{place} has so much content that changes there are not noticed")
        self._save()

    def _update_watched(self, more: Iterable[Path] = (), *, is_searched: bool = False) -> None:
        """Watch what the last scan found, and what was accepted before and may be gone.

        `is_searched`: a scan would find the same now, so the tops need not be listed again.
        """
        if self._rules is None:
            return
        candidates = {*self._scanner.start_files, *more}
        if not is_searched:
            candidates.update(self._scanner.list_top_start_files())
        gone = [path for path in self._watched if self._accepted.places.get(path)]
        self._watched = {*self._absent, *self._programs, *gone}
        self._targets = {}
        for path in candidates:
            if not self._is_watchable(path):
                continue
            self._watched.add(path)
            if path.is_symlink():
                self._targets[resolve_path(path)] = path

    def _is_watchable(self, path: Path) -> bool:
        """Check that commands can write a path in a searched folder."""
        is_writable = self._rules is not None and self._rules.get_rule(path) == "write"
        return is_writable and not is_in_packages(path, self._scanner.roots)

    def is_start_file(self, path: Path) -> bool:
        """Check whether a program runs what a file says, so that the person is asked before it is written."""
        return self._find_watched(path) is not None

    def accept_file(self, path: Path, data: bytes) -> None:
        """Accept a start file with this content, because the person allowed to write it."""
        place = self._find_watched(path)
        copy = read_copy(path)
        if place is None or copy is None or copy.data != data:  # a command was faster
            return
        self._watched.add(place)
        self._accepted.accept(place, FileEdit(path, None, copy))
        self._save()

    async def prepare_change(self) -> None:
        """Accept what changed while nothing ran: the person did that. Call this before each command and each write."""
        async with self._accepting:
            if self._is_settled:
                await self.inspect(_allow, timeout_s=0)
                self._ci_files.clear()
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
        await run_in_thread(self._close, is_clean=is_clean)
        folder = state_folder() / REFUSED_FOLDER
        if findings and folder.exists():
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
        async with self._lock:
            if self._search is None and self._scanner.is_unchanged:
                notes = await self._settle(self._survey(is_searched=True), require)
            else:
                notes = await self._search_and_settle(require, timeout_s)
            self._is_settled = is_last
            if timeout_s is None:
                self._warn_of_ci_files()
        return notes

    async def _search_and_settle(self, require: Require, timeout_s: float | None) -> list[str]:
        """Search for new repositories, and judge what changed. Without a result in time, judge it in the known ones."""
        notes: list[str] = []
        is_fresh = False
        while not is_fresh:  # a search of an earlier call is followed by a new one
            is_fresh = self._search is None
            is_done = await self._wait_for_search(timeout_s)
            notes += await self._settle(self._survey(), require)
            if not is_done:
                break
        return notes

    async def _wait_for_search(self, timeout_s: float | None) -> bool:
        """Wait for the search, after starting one if none runs. Return False if it takes longer than `timeout_s`."""
        search = self._search
        if search is None:
            search = asyncio.create_task(run_in_daemon_thread(self._scanner.scan))
            self._search = search
        await asyncio.wait({search}, timeout=timeout_s)
        if not search.done():
            return False
        self._search = None
        self._repositories = search.result()
        self._warn_of_gaps()
        return True

    # --- at the start

    def _recall(self, place: Path, files: Iterable[Path] | None = None) -> bool:
        """Accept the files of a place as they are, or as recorded if a killed session could change them.

        Return False if they were changed.
        """
        if files is None:
            files = git.list_decisive_files(place)
        former = self._record.former
        if former and place in former.places:
            self._accepted.places[place] = dict(former.places[place])
        edits = self._accepted.find_edits(place, files)
        own = edits
        if former:
            own = [edit for edit in edits if any(map(edit.path.is_relative_to, former.covered))]
        for edit in own:
            self._accepted.accept(place, edit)
        return own == edits

    def _protect(self, repositories: list[Path]) -> list[Path]:
        """Find the hooks and settings of repositories and of the person's git configuration, and stage them."""
        referenced = self._find_referenced(repositories)
        # A folder that holds a repository or the whole workspace cannot be taken away from commands.
        tops = (*self._roots, *repositories)
        # A mount needs a file. Programs that do not exist are only looked at.
        self._programs = {path for path in referenced.programs if not os.path.lexists(path)}
        candidates = [*referenced.paths, *(referenced.programs - self._programs)]
        protected = [path for path in candidates if not _contains_any(path, tops)]
        for path in protected:
            if path.is_dir() and self._is_inside(path):
                self._recall(path, list_start_files(path))
                self.staging.add(path, (), path, self._accepted.places.get(path, {}))
        for repository in repositories:
            protected += self._protect_repository(repository)
        unique: dict[Path, None] = {}
        for path in protected:
            unique[path] = None
            unique[resolve_path(path)] = None
        return list(unique)

    def _protect_repository(self, repository: Path) -> list[Path]:
        """List the hooks and settings of a repository, and stage them."""
        if git.is_pointer(repository):
            return [repository]
        hooks = repository / "hooks"
        files = self._accepted.places.get(repository, {})
        protected = [path for path in files if path != repository / git.REBASE_TODO]
        with suppress(OSError):
            if (repository / "objects").is_dir():
                hooks.mkdir(exist_ok=True)  # otherwise a command could create it
        if hooks.exists():
            protected.append(hooks)
        if hooks.is_dir() and resolve_path(hooks) == hooks:
            self.staging.add(hooks, git.list_settings_files(repository), repository, files)
        return protected

    def _find_referenced(self, repositories: list[Path]) -> References:
        """Find what git settings lead to: those of the person, of the machine and of repositories."""
        home = home_folder()
        configs = [home / ".gitconfig", home / ".config/git/config"]
        person_config = os.environ.get("GIT_CONFIG_GLOBAL")
        if person_config:
            configs.append(Path(person_config))
        configs.append(Path("/etc/gitconfig"))
        for repository in repositories:
            configs += git.list_settings_files(repository)
        tops = {path.parent for path in repositories if path.name == ".git"}
        return find_references(configs, tops, self._scanner.roots)

    def _watch_new_programs(self) -> None:
        """Watch the programs that changed settings name. What they are now was accepted with the settings."""
        programs = self._find_referenced(self._repositories).programs
        for path in programs - self._programs - set(self.protected):
            self._programs.add(path)
            files = list_start_files(path, self._scanner.roots)
            for edit in self._accepted.find_edits(path, files):
                self._accepted.accept(path, edit)

    def _save(self) -> None:
        closed = sorted(self._scanner.closed)
        self._record.write(AcceptedState(self._accepted.places, self.protected, closed))

    # --- at each survey

    def _survey(self, *, is_searched: bool = False) -> list[_Change]:
        """Find all changes that commands can have made. Accept the others, which are the person's.

        `is_searched` is explained at `_update_watched`.
        """
        self._find_lost_mounts()
        self._update_watched(is_searched=is_searched)
        changes = []
        for place, paths in self._list_files().items():
            for edit in self._accepted.find_edits(place, paths):
                if self._is_covered(edit.path):
                    self._accepted.accept(place, edit)
                else:
                    changes.append(self._judge(place, edit))
        self._update_copies()
        real = {change.edit.path for change in changes}
        for folder in self.staging.folders.values():
            for edit in folder.find_edits():
                if edit.path not in real:
                    changes.append(self._judge_copy(folder, edit))
        return changes

    def _find_lost_mounts(self) -> None:
        """Find the mounts that were lost since the last survey, because somebody outside replaced what they cover."""
        for path in (*self.staging.mounts, *self.staging.links):
            if self._pins.has_moved(path):
                self._pins.renew(path)
                self._lost.add(path)
                self.mount_losses += 1

    def _list_files(self) -> dict[Path, list[Path]]:
        """List the files of each repository, watched start file and staged folder."""
        files = {}
        for place in self._repositories:
            files[place] = git.list_decisive_files(place)
        others = list(self._watched)
        for path, staged in self.staging.folders.items():
            if staged.place == path:
                others.append(path)
        for place in others:
            files[place] = list_start_files(place, self._scanner.roots)
        return files

    def _is_covered(self, path: Path) -> bool:
        """Check that commands cannot have changed a path. A file that was replaced from outside has lost its mount."""
        for one in self.protected:
            if not path.is_relative_to(one):
                continue
            is_lost = one in self._lost or self._pins.has_moved(one)
            if not is_lost:
                return True
        return False

    def _judge(self, place: Path, edit: FileEdit) -> _Change:
        roots = self._scanner.roots
        if place in self._repositories:
            where = place.parent if edit.path == place else place
            old = git.drop_dangerous_settings(place, edit, roots)
            dangers = git.list_dangers(place, edit, roots)
        else:
            where = place.parent
            old = edit.old
            dangers = self._list_start_dangers(place, edit)
        accept = partial(self._accepted.accept, place, edit)
        refuse = partial(self._accepted.revert, place, edit, old, roots)
        return _Change(where, edit, dangers, accept, refuse)

    def _list_start_dangers(self, place: Path, edit: FileEdit) -> list[str]:
        """Name a changed start file, unless a question would tell nothing new."""
        if place not in self._watched or place in self._absent:  # a folder of hooks, or a protected path
            return [place.name]
        if is_ci_file(place):
            self._ci_files[edit.path] = None
            return []
        is_gone_with_folder = edit.new is None and not place.parent.exists()
        if is_gone_with_folder or self._is_copy(place, edit) or is_harmless_module_list(place, edit.new):
            return []
        return [place.name]

    def _is_copy(self, place: Path, edit: FileEdit) -> bool:
        """Check that a new file equals an accepted one with the same path in the workspace, as in a new worktree."""
        new = edit.new
        if edit.old or new is None:
            return False
        if new.data is None or not stat.S_ISREG(new.mode):
            return False
        if not edit.path.is_relative_to(place):
            return False
        name = edit.path.relative_to(place)
        for other, copies in self._accepted.places.items():
            if not other.is_relative_to(self._root):
                continue
            parts = other.relative_to(self._root).parts
            has_same_path = place.parts[-len(parts) :] == parts
            if has_same_path and copies.get(other / name) == new:
                return True
        return False

    def _judge_copy(self, folder: StagedFolder, edit: FileEdit) -> _Change:
        def accept() -> None:
            folder.apply(edit)
            self._accepted.accept(folder.place, edit)

        where = folder.folder.parent
        name = str(edit.path.relative_to(where))
        if edit.new is None:
            dangers = [f"{name} (removed)"]
        elif folder.place == folder.folder:
            dangers = [name]
        else:
            dangers = git.list_dangers(folder.place, edit, self._scanner.roots)
        return _Change(where, edit, dangers, accept, folder.reset)

    async def _settle(self, changes: list[_Change], require: Require) -> list[str]:
        """Ask one question about all dangerous changes, and do what follows from the answer."""
        dangerous = [change for change in changes if change.dangers]
        refusal = ""
        if dangerous:
            refusal = await self._ask(dangerous, require)
        notes = []
        for change in changes:
            is_refused = bool(change.dangers and refusal)
            note = _carry_out(change, is_refused)
            if note:
                notes.append(note)
        self._update_copies()
        self._warnings += notes
        if dangerous and not refusal:
            self._watch_new_programs()
            self._save()
        if not refusal:
            return notes
        if not notes:
            refusal += ". The changes were disabled: each file has its accepted content again"
        return [refusal, *notes]

    async def _ask(self, dangerous: list[_Change], require: Require) -> str:
        """Ask about dangerous changes. Return the refusal, or an empty text."""
        dangers: dict[Path, dict[str, None]] = {}
        for change in dangerous:
            names = dangers.setdefault(change.where, {})
            names.update(dict.fromkeys(change.dangers))
        places = []
        for where, names in dangers.items():
            places.append(f"{', '.join(names)} in {where}")
        text = f"let git, editors or shells run what changed here: {'; '.join(places)}"
        subject = dangerous[0].where if len(dangers) == 1 else self._root
        edits = [change.edit for change in dangerous]
        try:
            await require(str(subject), text, lambda: format_edits(edits))
        except DeniedError as error:
            return str(error)
        return ""

    def _update_copies(self) -> None:
        for folder in self.staging.folders.values():
            folder.update(self._accepted.places.get(folder.place, {}))

    def _find_watched(self, path: Path) -> Path | None:
        """Return the start file that a path is or belongs to."""
        places = (path, *path.parents)
        if not self._is_watchable(path):
            for place in places:
                if place in self._absent:
                    return place
            return None
        for place in places:
            if place in self._targets:
                return self._targets[place]
        found = find_start_place(path)
        if found is None or not self._is_inside(found.parent):
            return None
        return found

    def _is_inside(self, path: Path) -> bool:
        return any(map(path.is_relative_to, self._scanner.roots))

    def _warn_of_ci_files(self) -> None:
        """Name the files of CI servers that changed since the last call. Nothing runs them here."""
        if not self._ci_files:
            return
        names = [os.path.relpath(path, self._root) for path in self._ci_files]
        text = ", ".join(names[:_MAX_NAMED])
        more_count = len(names) - _MAX_NAMED
        if more_count > 0:
            text += f" and {more_count} more"
        self._warnings.append(f"a CI server will run what changed here; read it before you push: {text}")
        self._ci_files.clear()

    def _warn_of_gaps(self) -> None:
        """Warn once if repositories may be missing."""
        gaps = []
        if not self._scanner.is_complete:
            gaps.append("the workspace has too many folders for a complete search")
        if self._scanner.closed:
            gaps.append(f"{min(self._scanner.closed)} cannot be listed")
        for gap in gaps:
            if gap not in self._gaps:
                self._gaps.add(gap)
                self._warnings.append(f"git repositories were not searched everywhere: {gap}")


def _contains_any(folder: Path, paths: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for path in paths)


def _carry_out(change: _Change, is_refused: bool) -> str:
    """Do what follows from the answer about a change. Return a sentence if that failed."""
    try:
        if is_refused:
            change.refuse()
        else:
            change.accept()
    except (OSError, GooseLikeError) as error:
        next_step = "may be active; look at it before you run git or an editor" if is_refused else "stays as it was"
        return f"{change.edit.path} {next_step}: {error}"
    return ""


async def _allow(subject: str, text: str, detail: Callable[[], str]) -> None:
    pass


async def _refuse_unattended(subject: str, text: str, detail: Callable[[], str]) -> None:
    raise DeniedError(f"not allowed, as nobody could be asked: {text}")
