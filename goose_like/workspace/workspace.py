"""The workspace: the only port to files and processes."""

import asyncio
import hashlib
import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path

from typing_extensions import override

from goose_like.config.paths import FOLDER_ADVICE, config_folder, describe_file_error
from goose_like.config.private_folder import PrivateFolder, check_temporary_files
from goose_like.config.profile import ApprovalMode, SandboxMode, WorkspaceSettings
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import PermissionKind
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_daemon_thread, run_in_thread
from goose_like.workspace.network.host_access import HostAccess
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.permissions.policy import Access, Grant, describe_rules, format_change
from goose_like.workspace.permissions.shell_state import shell_state
from goose_like.workspace.processes.pool import SpawnerPool
from goose_like.workspace.processes.process import MAX_OUTPUT_BYTES, Process, SpawnerClient
from goose_like.workspace.repositories.audit import RepositoryAudit
from goose_like.workspace.sandbox.file_owners import CLOSED_FILES_ADVICE, find_file_owners, open_user_namespace
from goose_like.workspace.sandbox.ignored import IgnoredFiles
from goose_like.workspace.sandbox.mechanism import SandboxMechanism
from goose_like.workspace.sandbox.path_rules import Rules, build_rules, resolve_path
from goose_like.workspace.sandbox.scope import SandboxScope, narrow_rules
from goose_like.workspace.sandbox.visible_repository import VisibleRepository, find_visible_repository

from .files import FileAccess
from .programs import build_safe_path, find_program
from .sandbox import bubblewrap, environment

_SPAWNER_DELAY_S = 1.0
"""Delay before the first spawner starts. By then the first model request is on its way, and the processor is free."""

ChangeListener = Callable[[Path | None, Sequence[str], str, bool], Awaitable[None]]
"""Called with the real path before a file is written, and with None and the arguments before a command that writes.
The last two arguments are the folder of a command, and whether a sandbox confines it."""


class Workspace(FileAccess):
    """A folder, and everything that a session may do in it and with it.

    The sandbox is entered with the first command, or soon after `prepare_sandbox`. Mode `full` has no sandbox and no
    path checks. In mode `read-only`, neither commands nor tools can change anything.

    The workspace of a subagent has a `parent`: each action needs the permission of both, whatever `mode` and `approval`
    say. They share /tmp, session grants, change listeners and the repository audit, but not their processes.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        mode: SandboxMode,
        approval: ApprovalMode,
        notifier: Notifier,
        session_folder: Path | None = None,
        grants: set[Grant] | None = None,
        parent: "Workspace | None" = None,
        settings: WorkspaceSettings | None = None,
    ) -> None:
        """Create the workspace. New answers of the person for the session are added to `grants`.

        The settings of a parent hold for its children too.
        """
        root, above = resolve_path(root), parent._permissions if parent else None
        ignored = parent._ignored if parent else IgnoredFiles(root, settings.paths.hide if settings else ())
        lists = settings.permissions if settings else None
        permissions = Permissions(root, mode, approval, notifier, grants=grants, parent=above, lists=lists)
        super().__init__(root, permissions, ignored, parent._shown_paths if parent else set())
        self._notifier = notifier
        self._parent = parent
        self.settings: WorkspaceSettings = parent.settings if parent else settings or WorkspaceSettings()
        self.hosts = HostAccess(self._permissions, self.settings.network.allow)
        self._outputs = session_folder / "outputs" if session_folder else None
        self._change_listeners: list[ChangeListener] = [parent.announce_change] if parent else []
        self._preparing = asyncio.Lock()
        above_mechanism = parent._mechanism if parent else None
        self._mechanism: SandboxMechanism = SandboxMechanism(self._permissions, notifier, above_mechanism)
        self._spawners = SpawnerPool(self._start_spawner)
        self._private_tmp: PrivateFolder | None = None
        self._cleaned_settings: PrivateFolder | None = None
        self._audit: RepositoryAudit | None = None
        self._frozen_rules: Rules | None = None
        self._has_closed_files = False
        self._drawn_mode = self.mode

    @property
    def mode(self) -> SandboxMode:
        """The sandbox mode in effect."""
        return self._permissions.mode

    @property
    def approval(self) -> ApprovalMode:
        """The approval mode of the profile."""
        return self._permissions.approval

    @property
    def rules_text(self) -> str:
        """The rules of this workspace in one line, for the model."""
        notes = [self._landlock_advice] if self._mechanism.is_landlocked else []
        notes += [problem] if self.mode != "full" and (problem := self._repository.problem) else []
        return " ".join([describe_rules(self.mode, self.approval), *(f"Also, {note}." for note in notes)])

    @property
    def _landlock_advice(self) -> str:
        is_read_only = self.mode == "read-only"
        return bubblewrap.READ_ONLY_LANDLOCK_ADVICE if is_read_only else bubblewrap.LANDLOCK_ADVICE

    @property
    def can_ask_for_network(self) -> bool:
        """True if commands start without network, but may get it on request."""
        return self.mode in ("read-only", "workspace") and self._permissions.decide("network") != "refuse"

    @property
    def has_network(self) -> bool:
        """True if all commands have network access."""
        return self.mode in ("workspace+network", "full")

    @property
    def is_child(self) -> bool:
        """True for the workspace of a subagent."""
        return self._parent is not None

    @property
    def tmp(self) -> Path:
        """The private folder that commands see as /tmp. In mode `full` it is an ordinary folder."""
        if self._parent:
            return self._parent.tmp  # shared, so that files can be handed over
        self._private_tmp = self._private_tmp or PrivateFolder("tmp")
        return self._private_tmp.path

    def path_in_sandbox(self, path: Path) -> str:
        """Return the path under which a command sees a file of the private folder."""
        is_mounted = self.mode != "full" and self._mechanism.has_mounts
        return str(Path("/tmp", path.relative_to(self.tmp)) if is_mounted else path)

    def is_private(self, path: str | Path) -> bool:
        """Check whether a path leads into the private folder, which is removed at the end."""
        return self.mode != "full" and self.resolve(path).is_relative_to(self.tmp)

    async def __aenter__(self) -> "Workspace":
        if self.mode != "full":
            _ = self._mechanism.problem  # start the check now, `prepare_sandbox` needs the answer
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prepare_sandbox(self) -> None:
        """Check that commands can be sandboxed here, and ask the person if they cannot. Schedule the sandbox start.

        Raise SandboxError if there is no sandbox here, and nobody allowed commands without one, and GooseLikeError if
        commands would have no folder for temporary files.
        """
        check_temporary_files()
        if self.mode != "full":
            await self._mechanism.confines()
        access: Access = "full" if self.mode == "full" else "workspace"
        self._spawners.request_later(_SPAWNER_DELAY_S, access)

    async def close(self) -> None:
        """End all processes, audit what they left without asking anyone, and remove the private folder."""
        await self._spawners.close()
        audit, self._audit = self._audit, None
        if audit and not (self._parent and self._parent._audit):  # a parent audits what its child left
            for sentence in await audit.finish():
                self._notifier.log(sentence)
        if self._private_tmp is not None:
            await run_in_thread(self._private_tmp.remove)
            self._private_tmp = None
        if self._cleaned_settings is not None:
            self._cleaned_settings.remove()
            self._cleaned_settings = None

    # --- changes and permissions

    def add_change_listener(self, listener: ChangeListener) -> None:
        """Call `listener` before each change."""
        self._change_listeners.append(listener)

    @override
    async def announce_change(
        self, path: Path | None, argv: Sequence[str], folder: str = "", is_confined: bool = True
    ) -> None:
        if self._audit:
            await self._audit.prepare_change()
        for listener in self._change_listeners:
            await listener(path, argv, folder or str(self.root), is_confined)

    async def ask_loss(self, line: str, folder: str, problem: str) -> None:
        """Ask about a command that deletes what undo cannot keep. Raise DeniedError after a no."""
        subject = line if folder == str(self.root) else f"cd {shlex.quote(folder)} && {line}"
        text = f"delete or overwrite without a way back ({problem}): {subject}"
        await self._permissions.require("deletion", subject, text, line=line)

    async def require_permission(
        self, kind: PermissionKind, subject: str, text: str, detail: Callable[[], str] = str, *, doubt: str = ""
    ) -> bool:
        """Return once the action is allowed. Ask the person if the policy says so, one question at a time.

        Return True if the person allowed exactly this subject; False if the policy or a session grant allows it. Raise
        DeniedError if the action is not allowed; the message tells the model what to do instead.

        Args:
            kind: the kind of action.
            subject: the exact action, as shown to the person. A permanent answer holds for this subject alone.
            text: the action in a few words.
            detail: computes the full change (a diff) where `text` does not say everything.
            doubt: a reason to ask the person, whatever the policy and answers for the session allow.
        """
        return await self._permissions.require(kind, subject, text, detail, doubt=doubt)

    async def require_input(self, text: str, *, process: str, earlier: str, folder: str) -> None:
        """Return once a text may be typed into a running process. It is judged like a command for a shell.

        `earlier` is all text that was typed into the process before, which may have begun a command. No rule and no
        answer for the session allows typed text: its meaning depends on the process.

        Raises:
            DeniedError: the text is not allowed, or would lose what undo cannot keep.
        """
        line = earlier + text
        subject = f"type into {process}: {text}"
        typed = f"typed before:\n{earlier}" if earlier else "nothing was typed before"
        token = shell_state.set(lambda: typed)
        try:
            await self._permissions.require("command", subject, subject, line=line, has_prefix=False)
        finally:
            shell_state.reset(token)
        if self.mode != "read-only":
            await self.announce_change(None, ["bash", "-c", line], folder, is_confined=self.mode != "full")

    # --- processes

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        access: Access = "workspace",
        writes: bool = True,
        descriptors: Mapping[int, int] = {},
        subject: str | None = None,
        is_own: bool = False,
        scope: SandboxScope | None = None,
        folder: str | Path = "",
    ) -> Process:
        """Start a command. Nothing else in goose_like starts commands for a model.

        Args:
            argv: the program and its arguments.
            cwd: the working folder as the command sees it; the workspace by default.
            env: variables in addition to those of `build_environment`.
            access: `network` and `full` need permission unless the mode includes them, instead of that of mode `ask`.
            writes: the command may change files; listeners are called before it starts.
            descriptors: those of the command by its numbers, which the caller closes; without 0 its input is empty.
            subject: the text shown in a question; the command line by default.
            is_own: the person typed the command, so no question is asked.
            scope: the command sees no more than this, in a sandbox apart from other commands. Processes with an equal
                scope and access share a sandbox, set up when the first of them starts. A command with more network
                than the mode includes has a sandbox of its own, which ends with it.
            folder: the folder that the command enters first, for the question.

        Raises:
            DeniedError: the access was refused, or the scope names a hidden path.
            SandboxError: there is no sandbox here, and nobody allowed commands without one.
            GooseLikeError: the command cannot be started.
        """
        if (mode := self.mode) == "full":
            access = "full"
        elif access == "network" and self.has_network:
            access = "workspace"
        line = subject if subject and Path(argv[0]).name == "bash" else shlex.join(argv)
        if access != "workspace" and "/" not in argv[0]:
            argv = [self.find_program(argv[0]), *argv[1:]]
        way = f"cd {shlex.quote(str(folder))} && " if folder and self.root != Path(folder) else ""
        subject = way + (subject or line)
        is_approved, require = is_own, partial(self._permissions.require, line=line)
        if access == "network" and not is_own:
            # Another folder has other settings of git or npm, so an answer for the session does not hold there.
            is_approved = await require("network", subject, f"network access for: {subject}", line=way + line)
        elif access == "full" and self.mode != "full" and not is_own:
            is_approved = await require("sandbox", subject, f"no sandbox for: {subject}")
        if writes and not is_approved:
            await require("command", subject, f"run: {subject}", is_at_root=not way)
        if writes and (is_own or self.mode != "read-only"):
            is_confined = self.mode != "full" and access != "full"
            await self.announce_change(None, argv, str(folder or self.root / (cwd or "")), is_confined)
        if mode != self.mode:
            raise DeniedError(format_change(f"run: {subject}", self.mode))
        spawner = await self._get_spawner(access, scope)
        return await spawner.spawn(argv, self.root / (cwd or ""), env or {}, descriptors, subject)

    @contextmanager
    def pause_for_questions(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Let a time limit stand still while the person is asked about a host that a running command needs."""
        self.hosts.limits.add(limit)
        try:
            yield
        finally:
            self.hosts.limits.discard(limit)

    def find_program(self, name: str) -> str:
        """Return the path of a program that runs with network or without a sandbox: one outside the workspace.

        Raises:
            GooseLikeError: there is none.
        """
        if program := find_program(name, self.root):
            return program
        if self.mode == "full":  # commands can write everywhere
            return name
        raise GooseLikeError(f"there is no {name!r} on the PATH outside the workspace; install it")

    @override
    async def _warn_of_writers(self) -> None:
        if self.mode != "read-only" and await self._spawners.has_processes():
            text = (
                "processes of earlier turns still run; they keep their rights, and may write while this turn only reads"
            )
            self._notifier.log(text)

    async def run_internal(self, argv: list[str], limit_bytes: int = MAX_OUTPUT_BYTES) -> tuple[int, bytes]:
        """Run a short command of our own in the sandbox, unasked. Return its exit code and output; 0 at the limit."""
        spawner = await self._get_spawner("workspace")
        path = f"{build_safe_path(self.root)}{os.pathsep}{Path(sys.executable).parent}"  # for `rg`
        process = await spawner.spawn(argv, Path("/"), {"PATH": path})
        output, code = bytearray(), None
        try:
            if await process.read_all(output.extend, limit_bytes):
                code = await process.wait()
        finally:
            if code is None:
                await process.stop(0)
        return code or 0, bytes(output)

    def explain_limits(self, code: int, output: str) -> list[str]:
        """Explain which limits of the sandbox a failed command may have met, to the model and to the person."""
        from goose_like.workspace.sandbox.limits import explain_limits  # only needed after a failure

        found = [] if self.mode == "full" else list(explain_limits(self.settings.resources, code, output))
        for sentence in found:
            self._notifier.log(sentence)
        is_denied = any(words in output for words in ("Permission denied", "Operation not permitted"))
        if is_denied and self._mechanism.is_landlocked:
            found.append(self._landlock_advice)
        if is_denied and self._has_closed_files:
            found.append(CLOSED_FILES_ADVICE)
        return found

    async def inspect_changes(self, timeout_s: float | None = 0.5) -> list[str]:
        """Ask about hooks and settings that a command left for git or a shell, and disable what is refused.

        Call this after each command, and give the model the sentences, also about refused hosts. A scan that takes
        longer than `timeout_s` continues, and the next call judges its result. The exchange makes a last call in each
        turn, without a limit. When the session ends, anything left is disabled.
        """
        audit = None if self.is_turn_read_only else self._audit  # the next turn asks about others' changes
        is_last = timeout_s is None and not self._parent and not await self._spawners.has_processes()
        require = partial(self.require_permission, "repository")
        found = await audit.inspect(require, timeout_s, is_last=is_last) if audit else []
        self._log_warnings()
        return [*found, *self.hosts.take_refusals()]

    def _log_warnings(self) -> None:
        for sentence in self._audit.take_warnings() if self._audit else ():
            self._notifier.log(sentence)

    async def _get_spawner(self, access: Access, scope: SandboxScope | None = None) -> SpawnerClient:
        self._follow_mode()
        if self._audit:
            await self._audit.prepare_change()
        losses = self._audit.mount_losses if self._audit else 0
        spawner = await asyncio.shield(self._spawners.request(access, scope, mount_losses=losses))
        if self._audit:  # the first spawner starts it
            await self._audit.prepare_change()
        return spawner

    async def _start_spawner(self, access: Access, scope: SandboxScope | None) -> SpawnerClient:
        passed = self.settings.variables.allow
        async with self._preparing:
            if access == "full" or self.mode == "full" or not await self._mechanism.confines():
                return SpawnerClient(variables=environment.build_environment(is_confined=False, allowed=passed))
        await self._freeze_rules()
        rules = self._frozen_rules or self._first_rules
        if scope is not None:
            rules = await run_in_daemon_thread(partial(narrow_rules, rules, self.root, scope))
        limits, network = self.settings.resources, access == "network" or self.has_network
        has_mounts = self._mechanism.has_mounts
        is_staged = scope is None and has_mounts and self.mode != "read-only"
        staging = self._audit.staging if self._audit and is_staged else None
        is_read_only = self.mode == "read-only" or not has_mounts
        variables = environment.build_environment(is_confined=True, is_read_only=is_read_only, allowed=passed)
        if has_mounts:
            namespace = await run_in_thread(self._open_user_namespace, rules)
            line = bubblewrap.build_bwrap_command(
                rules,
                network=network,
                tmpfs_mb=limits.tmpfs_mb,
                staging=staging,
                cleaned=self._write_cleaned_settings(rules),
                user_namespace=namespace,
            )
        else:
            namespace = None
            line = bubblewrap.build_plain_command(rules, self.root, self._repository.commit_folders, network=network)
            variables = bubblewrap.move_tmp(variables, self.tmp)
        confinement = bubblewrap.build_confinement(limits, staging, is_isolated=has_mounts, network=network)
        has_proxy = not network and scope is None and has_mounts
        if access == "network":
            variables["PATH"] = environment.drop_writable_folders(variables["PATH"], rules)
        if has_proxy:
            variables |= environment.PROXY_VARIABLES
        spawner = SpawnerClient(line, variables, confinement, namespace)
        spawner.is_for_one_command = access == "network"
        if has_proxy:
            spawner.listen(environment.PROXY_PORT, self._serve_proxy)
        return spawner

    def _open_user_namespace(self, rules: Rules) -> int | None:
        """Open a user namespace for commands of root where the workspace has files of other users; None elsewhere."""
        owners = find_file_owners((self.root, *self._repository.commit_folders))
        if owners is None:
            return None
        self._has_closed_files = True
        hidden = [path for path, rule in rules.table.items() if rule == "hidden" and self.root in path.parents]
        if any(path.is_dir() for path in hidden):
            return None  # otherwise git could look into a hidden folder, and would take its files for deleted
        with suppress(OSError):  # commands read these files, and fail to write them
            namespace = open_user_namespace(owners)
            self._has_closed_files = False
            return namespace
        return None

    def _write_cleaned_settings(self, rules: Rules) -> dict[Path, Path]:
        """Write the texts that commands see instead of settings with credentials, and return the files."""
        if not rules.cleaned:
            return {}
        self._cleaned_settings = self._cleaned_settings or PrivateFolder("tmp")
        files = {}
        for path, text in rules.cleaned.items():
            file = self._cleaned_settings.path / hashlib.sha256(text).hexdigest()
            file.write_bytes(text)
            files[path] = file
        return files

    async def _serve_proxy(self, listener: socket.socket, spawner: SpawnerClient) -> None:
        from goose_like.workspace.network.proxy import serve_proxy  # only needed once a command connects

        await serve_proxy(listener, self.hosts, spawner)

    # --- sandbox

    @property
    @override
    def _rules(self) -> Rules | None:
        """The rules now. Protected paths are missing until `_freeze_rules`, which runs before anything is written."""
        self._follow_mode()
        return None if self.mode == "full" else self._frozen_rules or self._first_rules

    def _follow_mode(self) -> None:
        """Draw the rules again, and leave the sandbox of earlier commands, if the person narrowed the mode."""
        if self._drawn_mode == self.mode:
            return
        self._drawn_mode = self.mode
        self._spawners.retire()
        self.__dict__.pop("_first_rules", None)
        if self._frozen_rules:
            self._frozen_rules = self._draw_rules(self._audit.protected) if self._audit else None

    @cached_property
    def _first_rules(self) -> Rules:
        return self._draw_rules()

    @override
    async def _freeze_rules(self) -> None:
        """Freeze the rules before the first command or write: all files that exist now belong to the person."""
        if self._parent:  # the parent's files come first: those that exist now may be the parent's own work
            await self._parent._freeze_rules()
        async with self._preparing:
            if self.mode != "full" and self._frozen_rules is None:
                _ = self.tmp  # create the folder here, not in two threads at once
                self._frozen_rules, self._audit = await run_in_daemon_thread(self._start_audit)
                if (problem := self._repository.problem) and not self._parent:
                    self._notifier.log(f"{problem}; start goose-like in that folder, or use --sandbox full")
                self._log_warnings()

    @override
    def _is_start_file(self, place: Path) -> bool:
        return self._audit is not None and self._audit.is_start_file(place)

    @override
    def _accept_change(self, place: Path, data: bytes) -> None:
        if self._audit:
            self._audit.accept_file(place, data)

    def _start_audit(self) -> tuple[Rules, RepositoryAudit | None]:
        if self.mode == "read-only" or self._permissions.decide("repository") == "allow":
            return self._draw_rules(), None
        if self._parent and self._parent._audit:
            return self._draw_rules(self._parent._audit.protected), self._parent._audit
        if self._is_inside(config := resolve_path(config_folder())):
            config.mkdir(parents=True, exist_ok=True)  # otherwise a command could create it, with answers inside
        try:
            audit = RepositoryAudit(self.root, self._repository.commit_folders)
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
            writable=self._repository.commit_folders,
            protected=(*protected, *self._ignored.ignore_files),
            hidden=self._ignored.find_paths(),
            outputs=self._outputs,
            shown=self.settings.paths.read,
            is_read_only=self.mode == "read-only",
        )

    @cached_property
    def _repository(self) -> VisibleRepository:
        return find_visible_repository(self.root)

    def _is_inside(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in (self.root, *self._repository.commit_folders))
