"""Audit of the workspace: what commands left for git, editors and shells, and what would run outside the sandbox."""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from goose_like.config.paths import state_folder
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.workspace.sandbox.path_rules import Rules, resolve_path

from . import git
from .audit_record import AcceptedState, AuditRecord, Marks
from .file_copy import FileCopy, FileEdit, FilePins, format_edits, open_closed_folder, read_copy
from .git import RunCommand
from .staging import StagedFolder, Staging
from .start_files import StartFiles, list_start_files, revert_files

_MAX_FOLDERS = 50_000
_MAX_PINS = 200
_MAX_TOPS = 30
_CLOCK_TICK_NS = 50_000_000
_EXEC = re.compile(rb"^\s*(x|exec)\b", re.M)

Require = Callable[[str, str, Callable[[], str]], Awaitable[object]]
"""Asks for permission with a subject, a text and the detail; raises DeniedError if it is refused."""


class _Listing(NamedTuple):
    """The content of a folder when its change time was `changed_ns`; 0 if a later change may not show."""

    changed_ns: int
    below: list[str]
    repositories: list[str]  # those directly in this folder


class RepositoryScanner:
    """Finds every repository below some folders, including bare ones and pointers. A repeated scan is cheap.

    Git enters folders that cannot be listed. The first scan leaves them as they are. Later scans open them, because
    only a command can have closed them. If a killed session recorded those that were `closed`, the first scan does so.
    """

    def __init__(self, roots: Iterable[Path], closed: Iterable[str] | None = None) -> None:
        self.roots = [root for root in roots if root.is_dir()]
        self.is_complete = True
        self.closed = set(closed or ())
        """Folders that git can enter, and that could not be searched."""
        self._listings: dict[str, _Listing] = {}
        self._is_first = closed is None

    def scan(self) -> dict[Path, Marks]:
        """Return each repository (its git folder, or the file or link in its place) with its marks.

        No folder is skipped, not even `node_modules`, because a command could hide a repository there.
        """
        found: dict[Path, Marks] = {}
        pending, known = [str(root) for root in self.roots], self._listings
        self._listings = {}
        while pending and len(self._listings) < _MAX_FOLDERS:
            path = pending.pop()
            if path not in self._listings and (listing := self._list(path, known.get(path))):
                self._listings[path] = listing
                pending += listing.below
                found |= {repository: _read_marks(repository) for repository in map(Path, listing.repositories)}
        self.is_complete = not pending
        self._is_first = False
        return found

    def _list(self, path: str, known: _Listing | None) -> _Listing | None:
        try:
            return _list_folder(path, known)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            is_known = self._is_first or path in self.closed
            if not is_known and open_closed_folder(path):
                return self._list(path, None)
            if os.access(path, os.X_OK):
                self.closed.add(path)
            return None


def _list_folder(path: str, known: _Listing | None) -> _Listing:
    """List a folder, or return the known listing if the folder cannot have changed since."""
    changed_ns = os.lstat(path).st_ctime_ns
    if known and known.changed_ns == changed_ns:
        return known
    # A change within the clock tick after a listing would not show, so such a listing is not reused.
    is_lasting = time.time_ns() - changed_ns > _CLOCK_TICK_NS
    with os.scandir(path) as entries:
        kinds = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    # Names alone decide, since git follows links. A worktree's folder borrows `objects` and `refs` from the one above.
    names = kinds.keys()
    is_git = {"HEAD", "commondir"} <= names or ({"objects", "refs"} <= names and bool({"HEAD", "worktrees"} & names))
    repositories = [path] * is_git + [f"{path}/.git"] * (".git" in names)
    below = [f"{path}/{name}" for name, is_folder in kinds.items() if is_folder]
    return _Listing(changed_ns if is_lasting else 0, below, repositories)


def _read_marks(repository: Path) -> Marks:
    marks: Marks = {}
    for path in (*git.list_decisive_files(repository), repository / git.REBASE_TODO):
        with suppress(OSError):
            status = path.lstat()
            marks[path] = status.st_ino, status.st_ctime_ns
            if path != repository:  # the target of a link to a whole repository changes with every commit
                status = path.stat()
                marks[path] += status.st_ino, status.st_ctime_ns
    return marks


@dataclass(frozen=True, slots=True)
class _Finding:
    """A change that commands left: what is dangerous about it, and what follows from the answer."""

    place: Path
    dangers: list[str]
    edits: list[FileEdit]
    accept: Callable[[], None]
    refuse: Callable[[], Awaitable[None]]


class _Survey(NamedTuple):
    """All that changed since the last survey."""

    repositories: dict[Path, Marks]
    start_files: dict[Path, list[FileEdit]]
    staged: list[tuple[StagedFolder, list[FileEdit], list[FileEdit]]]


class RepositoryAudit:
    """Protects the repositories of a workspace, remembers what was accepted, and asks about changes.

    `protected` lists the paths that commands must not change. Instead of some, `staging` gives them copies to change.
    Files of new repositories are renamed inside the sandbox, so a link that a command puts in the way leads nowhere.
    """

    def __init__(self, root: Path, folders: Iterable[Path], run: RunCommand) -> None:
        """Survey the workspace and other git folders. Accept all but what a killed session may have left."""
        self._root = root
        self._run = run
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[_Survey] | None = None
        self._record = AuditRecord(root)
        former = self._record.former
        self._scanner = RepositoryScanner((root, *folders), former.closed if former else None)
        found = self._scanner.scan()
        self._warnings = self._describe_gaps()
        self._has_warned = bool(self._warnings)
        self._accepted = {path: self._recall_marks(path, marks) for path, marks in found.items()}
        own = [path for path, marks in found.items() if self._accepted[path] == marks]
        self.staging = Staging()
        self.protected = self._protect(own)
        self._pins = FilePins(self.protected[:_MAX_PINS])
        self._tops = {root, *(path.parent for path in own if path.name == ".git")}
        self._start_files = StartFiles(())

    def take_warnings(self) -> list[str]:
        """Return sentences for the person about what the first survey could not see, once."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def watch(self, rules: Rules) -> None:
        """Watch start files that commands can write, and paths of rules that do not exist. Save the record."""
        former = self._record.former
        own_state = resolve_path(state_folder())  # another session may create it at any time
        absent = [
            path
            for path, rule in rules.table.items()
            if rule in ("protected", "hidden") and path != own_state and not os.path.lexists(path)
        ]
        absent = [path for path in absent if any(path.is_relative_to(root) for root in self._scanner.roots)]
        tops = sorted(self._tops, key=lambda path: len(path.parts))[:_MAX_TOPS]
        names = {path for top in tops for path in list_start_files(top)}
        targets = {resolve_path(path) for path in names if os.path.lexists(path) or path.parent.is_symlink()}
        names = targets | {path.parent if path.parent.is_symlink() else path for path in names}
        watched = [*absent, *(path for path in sorted(names) if rules.get_rule(path) == "write")]
        self._start_files = StartFiles(watched, former.start_files if former else None)
        unreadable = self._start_files.find_unreadable()
        self._warnings += [f"{path} has so much content that changes there are not noticed" for path in unreadable]
        self._save()

    def is_start_file(self, path: Path) -> bool:
        """Check whether a program runs what a file says, so that the person is asked before it is written."""
        return self._start_files.find_path(path) is not None

    def accept_file(self, path: Path) -> None:
        """Accept a file as it is now, if it is a start file, because the person allowed to write it."""
        if place := self._start_files.find_path(path):
            self._start_files.accept(place, [FileEdit(path, None, read_copy(path))])
            self._save()

    def close(self, *, is_clean: bool) -> None:
        """Remove the copies after the last call of `inspect`, and the record, unless that call failed."""
        self.staging.close()
        self._pins.close()
        self._record.close(is_kept=not is_clean)

    async def inspect(self, require: Require, timeout_s: float | None = None) -> list[str]:
        """Find what changed since the last call, undo what `require` refuses, and return sentences for the model.

        A survey that takes longer than `timeout_s` continues in its thread, and the next call judges its result.
        """
        notes: list[str] = []
        async with self._lock:
            is_fresh = False
            while not is_fresh:  # a survey of an earlier call is followed by a new one
                is_fresh = self._task is None
                self._task = self._task or asyncio.create_task(asyncio.to_thread(self._survey))
                await asyncio.wait({self._task}, timeout=timeout_s)
                if not self._task.done():
                    break
                survey, self._task = self._task.result(), None
                notes += await self._judge(survey, require)
        return notes

    # --- at the start

    def _recall_marks(self, repository: Path, marks: Marks) -> Marks:
        """Return the marks to accept: of now, or as recorded for files that a killed session could change."""
        if (former := self._record.former) is None:
            return marks
        old = former.repositories.get(repository, {})
        covered = {path for path in marks if any(path.is_relative_to(one) for one in former.covered)}
        return {path: marks[path] if path in covered else old.get(path, ()) for path in marks}

    def _protect(self, repositories: list[Path]) -> list[Path]:
        """Find the hooks and settings of repositories and of the person's git configuration, and stage them."""
        configs = [Path.home() / name for name in (".gitconfig", ".config/git/config")]
        configs += [config for repository in repositories for config in git.list_settings_files(repository)]
        referenced = git.find_referenced_paths(configs, {path.parent for path in repositories if path.name == ".git"})
        # A folder that holds a repository or the whole workspace cannot be taken away from commands.
        tops = (self._root, *repositories)
        protected = [path for path in referenced if not any(one.is_relative_to(path) for one in tops)]
        for path in protected:
            if path.is_dir() and any(path.is_relative_to(root) for root in self._scanner.roots):
                self.staging.add(path)
        for repository in repositories:
            protected += git.list_decisive_files(repository)
            hooks = repository / "hooks"
            if not git.is_pointer(repository):
                with suppress(OSError):
                    if (repository / "objects").is_dir():
                        hooks.mkdir(exist_ok=True)  # otherwise a command could create it
                protected.append(hooks)
                if hooks.is_dir() and not hooks.is_symlink() and resolve_path(hooks) == hooks:
                    self.staging.add(hooks, git.list_settings_files(repository))
        return protected

    def _save(self) -> None:
        accepted = self._accepted, self._start_files.accepted
        self._record.write(AcceptedState(*accepted, self.protected, sorted(self._scanner.closed)))

    def _describe_gaps(self) -> list[str]:
        gaps = []
        if not self._scanner.is_complete:
            gaps.append("the workspace has so many folders that not all were searched for git repositories")
        if closed := sorted(self._scanner.closed):
            gaps.append(f"git repositories in {closed[0]} were not searched: the folder cannot be listed")
        return gaps

    # --- judging

    def _survey(self) -> _Survey:
        staged = [(folder, *folder.find_edits()) for folder in self.staging.folders.values()]
        return _Survey(self._scanner.scan(), self._start_files.find_edits(), staged)

    async def _judge(self, survey: _Survey, require: Require) -> list[str]:
        notes: list[str] = []
        if not self._has_warned and (notes := self._describe_gaps()):
            self._has_warned = True
        found = survey.repositories
        findings = []
        for repository, marks in found.items():
            accepted = self._accepted.get(repository, {})
            changed = {path for path, mark in marks.items() if accepted.get(path) != mark}
            changed = {path for path in changed if not self._is_covered(path)}
            if changed and (finding := self._judge_repository(repository, changed, found, accepted)):
                findings.append(finding)
        findings += [self._judge_start_files(path, edits) for path, edits in survey.start_files.items()]
        for folder, edits, real_edits in survey.staged:
            if edits:
                apply = partial(folder.apply, edits)
                findings.append(self._judge_staged(folder, edits, apply, folder.reset))
            if real_edits:
                adopt, revert = partial(folder.adopt, real_edits), partial(folder.revert, real_edits)
                findings.append(self._judge_staged(folder, real_edits, adopt, revert))
        notes += await self._settle(findings, require)
        self._accepted = found
        return notes

    def _is_covered(self, path: Path) -> bool:
        """Check that commands cannot have changed a path, or that its staged folder is judged instead."""
        above = [one for one in self.protected if path.is_relative_to(one)]
        staged = self.staging.folders.values()
        is_staged = any(path.is_relative_to(one.folder) or path in one.settings for one in staged)
        # A file that was replaced from outside has lost its mount.
        return is_staged or not all(map(self._pins.has_moved, above))

    async def _settle(self, findings: list[_Finding], require: Require) -> list[str]:
        """Ask one question about all dangerous findings, and do what follows from the answer."""
        dangerous = [finding for finding in findings if finding.dangers]
        refusal, notes = "", []
        if dangerous:
            places = (f"{', '.join(finding.dangers)} in {finding.place}" for finding in dangerous)
            text = f"let git, editors or shells run what a command changed: {'; '.join(places)}"
            subject = str(dangerous[0].place if len(dangerous) == 1 else self._root)
            try:
                await require(subject, text, lambda: format_edits(edit for one in dangerous for edit in one.edits))
            except DeniedError as error:
                refusal = str(error)
        for finding in findings:
            try:
                if finding.dangers and refusal:
                    await finding.refuse()
                else:
                    finding.accept()
            except (OSError, GooseLikeError) as error:
                notes.append(f"{finding.place}: {error}")
        if dangerous and not refusal:
            self._save()
        if refusal and not notes:
            refusal += ". It was disabled: changes were undone, and files of new repositories renamed to NAME.refused"
        return [refusal, *notes] if refusal else notes

    def _judge_start_files(self, path: Path, edits: list[FileEdit]) -> _Finding:
        async def refuse() -> None:
            revert_files(edits)

        return _Finding(path.parent, [path.name], edits, partial(self._start_files.accept, path, edits), refuse)

    def _judge_staged(
        self, folder: StagedFolder, edits: list[FileEdit], accept: Callable[[], None], undo: Callable[[], None]
    ) -> _Finding:
        dangers = []
        for edit in edits:
            if edit.path not in folder.settings:
                dangers.append(f"hook {edit.path.relative_to(folder.folder)}")
            elif edit.new is None:
                dangers.append(f"{edit.path.name} (removed)")
            else:
                dangers += self._list_dangerous_keys(edit.new, edit.old, folder.folder.parent)

        async def refuse() -> None:
            undo()

        return _Finding(folder.folder.parent, dangers, edits, accept, refuse)

    def _judge_repository(
        self, repository: Path, changed: set[Path], found: dict[Path, Marks], accepted: Marks
    ) -> _Finding | None:
        """Judge the changes of a repository that commands can write to, a new one for example."""
        foreign = git.find_foreign_pointer(repository, self._scanner.roots)
        to_run = {path: f"hook {path.name}" for path in git.list_hooks(repository) if path in changed}
        if foreign in changed:
            to_run[foreign] = f"{foreign.name} (leads elsewhere)"
        if (attributes := repository / "info/attributes") in changed:
            to_run[attributes] = "info/attributes"
        todo = repository / git.REBASE_TODO
        if todo in changed and ((copy := read_copy(resolve_path(todo))) is None or _EXEC.search(copy.data or b"x")):
            to_run[todo] = "git-rebase-todo (exec)"
        files = [file for file in git.list_settings_files(repository) if file in changed]
        keys = {file: names for file in files if (names := self._list_dangerous_keys_of(file, repository))}
        dangers = [*to_run.values(), *(name for names in keys.values() for name in names)]
        if not dangers:
            return None

        async def refuse() -> None:
            found[repository] = accepted  # judged again next time
            for path in to_run:
                await self._set_aside(path)
            for file, names in keys.items():
                await self._unset_keys(file, names, repository)

        edits = [FileEdit(path, None, read_copy(path)) for path in (*to_run, *keys)]
        return _Finding(repository, dangers, edits, lambda: None, refuse)

    def _list_dangerous_keys_of(self, file: Path, repository: Path) -> list[str]:
        target = resolve_path(file)
        is_inside = any(target.is_relative_to(root) for root in self._scanner.roots)
        return self._list_dangerous_keys(read_copy(target) if is_inside else None, None, repository)

    def _list_dangerous_keys(self, new: FileCopy | None, old: FileCopy | None, repository: Path) -> list[str]:
        """List the new or changed keys of a settings file that are not known to be harmless."""
        pairs = git.read_settings(new.data) if new else None
        if pairs is None:
            return ["settings (unreadable)"]
        before = (git.read_settings(old.data) if old else None) or set()
        keys = {key for key, value in pairs - before if not self._is_harmless(key, value, repository)}
        return sorted(f"setting {key}" for key in keys)

    def _is_harmless(self, key: str, value: str, repository: Path) -> bool:
        if key == "core.worktree":  # a submodule's, which stays inside the workspace
            return any(resolve_path(repository / value).is_relative_to(root) for root in self._scanner.roots)
        return git.is_harmless_key(key)

    # --- renaming

    async def _unset_keys(self, file: Path, keys: list[str], repository: Path) -> None:
        await self._run(["cp", "-PT", "--", str(file), _find_free_name(file)])
        for key in keys:
            await self._run(["git", "config", "--file", str(file), "--unset-all", key.removeprefix("setting ")])
        if self._list_dangerous_keys_of(file, repository):
            await self._set_aside(file)

    async def _set_aside(self, path: Path) -> str:
        """Rename a file and return its new name. Raise GooseLikeError if the file is still there."""
        free = _find_free_name(path)
        await self._run(["chmod", "u+rwx", "--", str(path.parent)])
        await self._run(["mv", "-nT", "--", str(path), free])
        if os.path.lexists(path):  # noqa: ASYNC240 - one system call
            raise GooseLikeError(f"{path} could NOT be disabled: remove it before git or a shell runs there")
        return os.path.basename(free)


def _find_free_name(path: Path) -> str:
    """Return PATH.refused, or PATH with the first free number."""
    names = (f"{path}{number}.refused" for number in ("", *range(2, 1000)))
    return next(name for name in names if not os.path.lexists(name))
