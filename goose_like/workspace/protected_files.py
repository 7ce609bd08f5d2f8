"""File access by the rules of a workspace, and the audit of what commands leave for other programs."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

from typing_extensions import override

from goose_like.config.paths import FOLDER_ADVICE, config_folder, describe_file_error
from goose_like.config.private_folder import PrivateFolder
from goose_like.config.profile import SandboxMode, WorkspaceSettings
from goose_like.core.errors import GooseLikeError
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_daemon_thread
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.repositories.audit import RepositoryAudit
from goose_like.workspace.sandbox.denied_paths import DeniedPaths
from goose_like.workspace.sandbox.ignored import IgnoredFiles
from goose_like.workspace.sandbox.path_rules import Rules, build_rules, resolve_path
from goose_like.workspace.sandbox.visible_repository import VisibleRepository, find_visible_repository

from .files import FileAccess
from .more_folders import MoreFolders, find_more_folders
from .unsaved_text import EditorFiles, UnsavedText


class ProtectedFiles(FileAccess):
    """File access by the rules of a workspace, which are drawn again if the person narrows its mode.

    The first command or write freezes the rules: all files that exist then belong to the person. From then on, the
    repository audit asks about what commands leave for git, editors and shells.
    """

    def __init__(
        self,
        root: Path,
        permissions: Permissions,
        settings: WorkspaceSettings,
        notifier: Notifier,
        *,
        session_folder: Path | None,
        parent: "ProtectedFiles | None",
        editor: EditorFiles | None,
    ) -> None:
        self._more_folders = self._find_folders(root, settings, parent)
        ignored = parent._ignored if parent else IgnoredFiles((root, *self._more_folders.writable), settings.paths.hide)
        shown_paths = parent._shown_paths if parent else set[Path]()
        unsaved = parent.unsaved if parent else UnsavedText(editor, (root, *self._more_folders.writable))
        super().__init__(root, permissions, ignored, shown_paths, unsaved)
        self.settings = settings
        self._denied = DeniedPaths((root, *self._more_folders.writable), settings.paths.deny_write)
        self._notifier = notifier
        self._parent = parent
        self._opened_folders: list[Path] = parent._opened_folders if parent else []
        self._outputs = session_folder / "outputs" if session_folder else None
        self._private_tmp: PrivateFolder | None = None
        self._preparing = asyncio.Lock()
        self._audit: RepositoryAudit | None = None
        self._frozen_rules: Rules | None = None
        self._drawn_mode = self.mode

    @staticmethod
    def _find_folders(root: Path, settings: WorkspaceSettings, parent: "ProtectedFiles | None") -> MoreFolders:
        """Find the folders beside the workspace. A subagent in a worktree of its own only reads them.

        Changes in the worktree are merged or dropped at its end, but those in another folder could not be.
        """
        if parent is None:
            return find_more_folders(root, settings)
        above = parent._more_folders
        if root == parent.root:
            return above
        return MoreFolders(readable=(*above.readable, *above.writable))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that commands and tools change: the workspace and those beside it."""
        return (self.root, *self._more_folders.writable)

    @property
    def readable_folders(self) -> tuple[Path, ...]:
        """The folders beside the workspace that commands and tools only read."""
        return self._more_folders.readable

    @property
    def mode(self) -> SandboxMode:
        """The sandbox mode in effect."""
        return self._permissions.mode

    @property
    def tmp(self) -> Path:
        """The private folder that commands see as /tmp. In mode `full` it is an ordinary folder."""
        if self._parent:
            return self._parent.tmp  # shared, so that files can be handed over
        if self._private_tmp is None:
            self._private_tmp = PrivateFolder("tmp")
        return self._private_tmp.path

    def open_folders(self, folders: Iterable[Path]) -> None:
        """Let commands and tools read folders that a toolkit needs, wherever they are. Call this before the first one.

        A subagent sees the folders of its parent, and no others.
        """
        if self._parent:
            return
        self._opened_folders += folders
        self.__dict__.pop("_first_rules", None)

    def _retire_sandboxes(self) -> None:
        """Leave the sandboxes of earlier commands."""
        raise NotImplementedError

    @property
    @override
    def _rules(self) -> Rules | None:
        """The rules now. Protected paths are missing until `_freeze_rules`, which runs before anything is written."""
        self._follow_mode()
        if self.mode == "full":
            return None
        return self._frozen_rules or self._first_rules

    def _follow_mode(self) -> None:
        """Draw the rules again, and leave the sandbox of earlier commands, if the person narrowed the mode."""
        if self._drawn_mode == self.mode:
            return
        self._drawn_mode = self.mode
        self._retire_sandboxes()
        self.__dict__.pop("_first_rules", None)
        if self._frozen_rules:
            self._frozen_rules = None
            if self._audit:
                self._frozen_rules = self._draw_rules(self._audit.protected)

    @cached_property
    def _first_rules(self) -> Rules:
        return self._draw_rules()

    @override
    async def _freeze_rules(self) -> None:
        """Freeze the rules before the first command or write: all files that exist now belong to the person."""
        if self._parent:  # the parent's files come first: those that exist now may be the parent's own work
            await self._parent._freeze_rules()
        async with self._preparing:
            if self.mode == "full" or self._frozen_rules is not None:
                return
            _ = self.tmp  # create the folder here, not in two threads at once
            self._frozen_rules, self._audit = await run_in_daemon_thread(self._start_audit)
            if not self._parent:
                self._log_problems()
            self._log_warnings()

    def _log_problems(self) -> None:
        for repository in self._repositories:
            if repository.problem:
                self._notifier.log(f"{repository.problem}; start goose-like in that folder, or use --sandbox full")

    def _log_warnings(self) -> None:
        if not self._audit:
            return
        for sentence in self._audit.take_warnings():
            self._notifier.log(sentence)

    @override
    def _is_write_denied(self, place: Path) -> bool:
        return self._denied.covers(place)

    @override
    def _is_start_file(self, place: Path) -> bool:
        return self._audit is not None and self._audit.is_start_file(place)

    @override
    def _accept_change(self, place: Path, data: bytes) -> None:
        if self._audit:
            self._audit.accept_file(place, data)

    def _start_audit(self) -> tuple[Rules, RepositoryAudit | None]:
        if self.mode != "read-only":
            self._denied.create_missing()
        if self.mode == "read-only" or self._permissions.decide("repository") == "allow":
            return self._draw_rules(), None
        if self._parent and self._parent._audit:
            audit = self._parent._audit
            return self._draw_rules(audit.protected), audit
        config = resolve_path(config_folder())
        if self._is_inside(config):
            config.mkdir(parents=True, exist_ok=True)  # otherwise a command could create it, with answers inside
        try:
            audit = RepositoryAudit(self.folders, self._own_folders)
        except OSError as error:
            why = describe_file_error(error)
            raise GooseLikeError(f"the record of hooks can't be written, {why}; {FOLDER_ADVICE}") from error
        rules = self._draw_rules(audit.protected)
        audit.watch(rules)
        return rules, audit

    def _draw_rules(self, protected: Sequence[Path] = ()) -> Rules:
        if self._outputs:
            self._outputs.mkdir(0o700, parents=True, exist_ok=True)
        return build_rules(
            self.root,
            self.tmp,
            writable=self._own_folders[1:],
            protected=(*protected, *self._ignored.ignore_files, *self._denied.paths),
            hidden=self._ignored.find_paths(),
            outputs=self._outputs,
            shown=(*self.settings.paths.read, *map(str, self._more_folders.readable)),
            opened=self._opened_folders,
            is_read_only=self.mode == "read-only",
        )

    @cached_property
    def _repositories(self) -> tuple[VisibleRepository, ...]:
        """The repositories of the workspace and of the folders beside it."""
        return tuple(map(find_visible_repository, self.folders))

    @property
    def _own_folders(self) -> tuple[Path, ...]:
        """The folders that commands change, the workspace first, and the git folders that commits there write to."""
        git_folders = chain.from_iterable(repository.commit_folders for repository in self._repositories)
        return tuple(dict.fromkeys((*self.folders, *git_folders)))

    def _is_inside(self, path: Path) -> bool:
        """Check for a path in the workspace, a folder beside it, or a git folder that commits there write to."""
        return any(map(path.is_relative_to, self._own_folders))
