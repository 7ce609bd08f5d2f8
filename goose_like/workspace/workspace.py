"""The workspace: the only port to files and processes."""

import asyncio
import hashlib
import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from typing_extensions import override

from goose_like.config.private_folder import PrivateFolder, check_temporary_files
from goose_like.config.profile import ApprovalMode, SandboxMode, WorkspaceSettings
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import PermissionKind
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_daemon_thread, run_in_thread
from goose_like.workspace.evidence.ledger import Ledger
from goose_like.workspace.network.host_access import HostAccess
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.permissions.policy import (
    Access,
    Grant,
    describe_allowance,
    describe_looser_mode,
    describe_rules,
    format_change,
)
from goose_like.workspace.permissions.shell_state import shell_state
from goose_like.workspace.processes.pool import SpawnerPool
from goose_like.workspace.processes.process import MAX_OUTPUT_BYTES, Process, SpawnerClient
from goose_like.workspace.sandbox.denied_paths import DENY_WRITE_CHANGE
from goose_like.workspace.sandbox.file_owners import CLOSED_FILES_ADVICE, find_file_owners, open_user_namespace
from goose_like.workspace.sandbox.mechanism import SandboxMechanism
from goose_like.workspace.sandbox.path_rules import Rules, resolve_path
from goose_like.workspace.sandbox.scope import SandboxScope, narrow_rules

from .programs import build_safe_path, find_program
from .protected_files import ProtectedFiles
from .sandbox import bubblewrap, environment
from .unsaved_text import EditorFiles

_SPAWNER_DELAY_S = 1.0
"""Delay before the first spawner starts. By then the first model request is on its way, and the processor is free."""

ChangeListener = Callable[[Path | None, Sequence[str], str, bool], Awaitable[None]]
"""Called with the real path before a file is written, and with None and the arguments before a command that writes.
The last two arguments are the folder of a command, and whether a sandbox confines it."""


class Workspace(ProtectedFiles):
    """A folder, and everything that a session may do in it and with it.

    The sandbox is entered with the first command, or soon after `prepare_sandbox`. Mode `full` has no sandbox and no
    path checks. In mode `read-only`, neither commands nor tools can change anything.

    The workspace of a subagent has a `parent`: each action needs the permission of both, whatever `mode` and `approval`
    say. They share /tmp, session grants, change listeners and the repository audit, but not their processes.

    `variable_sources` give variables for each command that starts, in the context of the call that starts it.
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
        editor: EditorFiles | None = None,
    ) -> None:
        """Create the workspace. New answers of the person for the session are added to `grants`.

        The settings and the editor of a parent hold for its children too.
        """
        root = resolve_path(root)
        above = parent._permissions if parent else None
        lists = settings.permissions if settings else None
        permissions = Permissions(root, mode, approval, notifier, grants=grants, parent=above, lists=lists)
        if parent:
            settings = parent.settings
        settings = settings or WorkspaceSettings()
        super().__init__(
            root, permissions, settings, notifier, session_folder=session_folder, parent=parent, editor=editor
        )
        self.hosts = HostAccess(permissions, settings.network.allow)
        self._change_listeners: list[ChangeListener] = []
        self.variable_sources: list[Callable[[], Mapping[str, str]]] = parent.variable_sources if parent else []
        self.ledger: Ledger = parent.ledger if parent else Ledger(root, notifier)
        if parent:
            self._change_listeners.append(parent.announce_change)
            self.hosts.reached = parent.hosts.reached
        above_mechanism = parent._mechanism if parent else None
        self._mechanism: SandboxMechanism = SandboxMechanism(permissions, notifier, above_mechanism)
        self._spawners = SpawnerPool(self._start_spawner)
        self._internal_ends: set[asyncio.Future[None]] = set()  # of the short commands of our own that run
        self.unsaved.writers.append(self._has_writers)
        self._cleaned_settings: PrivateFolder | None = None
        self._has_closed_files = False

    @property
    def approval(self) -> ApprovalMode:
        """The approval mode of the profile."""
        return self._permissions.approval

    @property
    def is_unattended(self) -> bool:
        """True if nobody may be asked: each question is a no at once."""
        return self._permissions.is_unattended

    @property
    def rules_text(self) -> str:
        """The rules of this workspace in one line, for the model."""
        sentences = [describe_rules(self.mode, self.approval)]
        if self._mechanism.is_landlocked:
            sentences.append(f"Also, {self._landlock_advice}.")
        if self.mode == "full":
            return " ".join(sentences)
        beside = ", ".join(map(str, self.folders[1:]))
        if beside and self.mode != "read-only":
            sentences.append(f"You may also write in {beside}.")
        for repository in self._repositories:
            if repository.problem:
                sentences.append(f"Also, {repository.problem}.")
        return " ".join(sentences)

    @property
    def _landlock_advice(self) -> str:
        if self.mode == "read-only":
            return bubblewrap.READ_ONLY_LANDLOCK_ADVICE
        return bubblewrap.LANDLOCK_ADVICE

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

    def path_in_sandbox(self, path: Path) -> str:
        """Return the path under which a command sees a file of the private folder."""
        is_mounted = self.mode != "full" and self._mechanism.has_mounts
        if is_mounted:
            path = Path("/tmp", path.relative_to(self.tmp))
        return str(path)

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
        for problem in self._more_folders.problems:
            self._notifier.log(problem)
        if self.mode != "full":
            await self._mechanism.confines()
        access: Access = "full" if self.mode == "full" else "workspace"
        self._spawners.request_later(_SPAWNER_DELAY_S, access)

    async def close(self) -> None:
        """End all processes, audit what they left without asking anyone, and remove the private folder."""
        await self._spawners.close()
        if self._has_writers in self.unsaved.writers:
            self.unsaved.writers.remove(self._has_writers)
        audit = self._audit
        self._audit = None
        has_parent_audit = self._parent is not None and self._parent._audit is not None
        if audit and not has_parent_audit:  # a parent audits what its child left
            for sentence in await audit.finish():
                self._notifier.log(sentence)
        self._denied.remove_created()
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
        has_mounts = self._frozen_rules is not None and self.mode != "read-only"
        if has_mounts and self._denied.create_missing():
            self._retire_sandboxes()  # another session, or the person, has removed a folder
        if self._audit:
            await self._audit.prepare_change()
        if path is not None:
            await self.ledger.announce_write(path)
        for listener in self._change_listeners:
            await listener(path, argv, folder or str(self.root), is_confined)

    async def read_tree(self) -> str:
        """Return a hash of the files; empty where nothing is written, and if it is unknown."""
        if self.mode == "read-only":
            return ""
        return await self.ledger.read_tree(self.root)

    async def ask_loss(self, line: str, folder: str, problem: str) -> None:
        """Ask about a command that deletes what undo cannot keep. Raise DeniedError after a no."""
        subject = line
        if folder != str(self.root):
            subject = f"cd {shlex.quote(folder)} && {line}"
        text = f"delete or overwrite without a way back ({problem}): {subject}"
        await self._permissions.require("deletion", subject, text, line=line)

    def record_block(self, kind: PermissionKind, subject: str, reason: str) -> None:
        """Record that the sandbox blocked what a command tried, for `/permissions log`."""
        allowed_by = describe_allowance(kind, subject)
        self._permissions.record_refusal(kind, subject, "sandbox", allowed_by, reason)

    def record_blocked_write(self, command: str, message: str) -> None:
        """Record that a command could not write where the sandbox is read-only. The message names the place."""
        allowed_by = "sandbox full"
        if self.mode == "read-only":
            allowed_by = describe_looser_mode(self.mode, self.approval)
        elif any(name in message for name in self.settings.paths.deny_write):
            allowed_by = DENY_WRITE_CHANGE
        self._permissions.record_refusal("outside", command, "sandbox", allowed_by, message)

    async def require_permission(
        self,
        kind: PermissionKind,
        subject: str,
        text: str,
        detail: Callable[[], str] = str,
        *,
        doubt: str = "",
        version: str = "",
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
            version: the version of the tool that is called. Answers about another version do not count.
        """
        return await self._permissions.require(kind, subject, text, detail, doubt=doubt, version=version)

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
        is_apart: bool = False,
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
            scope: the command sees no more than this (with `is_wide`: all that other commands see, and this), in a
                sandbox apart from other commands. Processes with an equal scope and access share a sandbox, set up when
                the first of them starts. A command with more network than the mode includes has a sandbox of its own,
                which ends with it.
            folder: the folder that the command enters first, for the question.
            is_apart: no other command sees its process, so that its variables stay secret. All that it started ends
                with it. This holds in a sandbox only.

        Raises:
            DeniedError: the access was refused, or the scope names a hidden path.
            SandboxError: there is no sandbox here, and nobody allowed commands without one.
            GooseLikeError: the command cannot be started.
        """
        mode = self.mode
        if mode == "full":
            access = "full"
        elif access == "network" and self.has_network:
            access = "workspace"
        if subject and Path(argv[0]).name == "bash":
            line = subject
        else:
            line = shlex.join(argv)
        if access != "workspace" and "/" not in argv[0]:
            argv = [self.find_program(argv[0]), *argv[1:]]
        way = ""
        if folder and self.root != Path(folder):
            way = f"cd {shlex.quote(str(folder))} && "
        subject = way + (subject or line)
        is_approved = is_own or await self._require_access(access, subject, line, way)
        if writes and not is_approved:
            await self._permissions.require("command", subject, f"run: {subject}", line=line, is_at_root=not way)
        working_folder = self.root / (cwd or "")
        if writes and (is_own or self.mode != "read-only"):
            is_confined = self.mode != "full" and access != "full"
            await self.announce_change(None, argv, str(folder or working_folder), is_confined)
        is_apart = is_apart and access != "full"
        spawner = await self._get_spawner(access, scope, is_apart=is_apart)
        if is_apart:
            spawner.is_for_one_command = True
        async with self.unsaved.keep_from_editor():
            if mode != self.mode:
                raise DeniedError(format_change(f"run: {subject}", self.mode))
            variables = self._collect_variables(env or {})
            return await spawner.spawn(argv, working_folder, variables, descriptors, subject)

    def _collect_variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Add these variables of a command to those that the sources have for it."""
        collected: dict[str, str] = {}
        for source in self.variable_sources:
            collected |= source()
        return collected | dict(variables)

    async def _require_access(self, access: Access, subject: str, line: str, way: str) -> bool:
        """Ask about more access than the mode includes. Return True if the person allowed exactly this command."""
        if access == "network":
            # Another folder has other settings of git or npm, so an answer for the session does not hold there.
            text = f"network access for: {subject}"
            return await self._permissions.require("network", subject, text, line=way + line)
        if access == "full" and self.mode != "full":
            return await self._permissions.require("sandbox", subject, f"no sandbox for: {subject}", line=line)
        return False

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
        program = find_program(name, *self.folders)
        if program:
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

    async def run_internal(
        self, argv: list[str], limit_bytes: int = MAX_OUTPUT_BYTES, *, descriptors: Mapping[int, int] = {}
    ) -> tuple[int, bytes]:
        """Run a command of our own in the sandbox, unasked. Return its exit code and output; 0 at the limit.

        One with `descriptors` may run as long as the session: it only reads, and does not count as a running process.
        """
        spawner = await self._get_spawner("workspace")
        own_programs = str(Path(sys.executable).parent)  # for `rg`
        path = os.pathsep.join((build_safe_path(*self.folders), own_programs))
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        output = bytearray()
        code = None
        try:
            async with self.unsaved.keep_from_editor():
                if not descriptors:
                    self._internal_ends.add(end)
                process = await spawner.spawn(argv, Path("/"), {"PATH": path}, descriptors, is_counted=not descriptors)
            try:
                if await process.read_all(output.extend, limit_bytes):
                    code = await process.wait()
            finally:
                if code is None:
                    await process.stop(0)
        finally:
            self._internal_ends.discard(end)
            end.set_result(None)
        return code or 0, bytes(output)

    async def _has_writers(self) -> bool:
        """Return whether a command may run that can exchange a folder for a link, where others cannot anyway."""
        if self.mode == "full":
            return False  # in mode `read-only`, commands of earlier turns keep their rights
        await asyncio.gather(*self._internal_ends)
        return await self._spawners.has_processes()

    def explain_limits(self, code: int, output: str) -> list[str]:
        """Explain which limits of the sandbox a failed command may have met, to the model and to the person."""
        from goose_like.workspace.sandbox.limits import explain_limits  # only needed after a failure

        found: list[str] = []
        if self.mode != "full":
            found += explain_limits(self.settings.resources, code, output)
        for sentence in found:
            self._notifier.log(sentence)
        is_denied = "Permission denied" in output or "Operation not permitted" in output
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
        audit = self._audit
        if self.is_turn_read_only:  # the next turn asks about others' changes
            audit = None
        is_last = timeout_s is None and not self._parent and not await self._spawners.has_processes()
        found = []
        if audit:
            require = partial(self.require_permission, "repository")
            found = await audit.inspect(require, timeout_s, is_last=is_last)
        self._log_warnings()
        return [*found, *self.hosts.take_refusals()]

    async def _get_spawner(
        self, access: Access, scope: SandboxScope | None = None, *, is_apart: bool = False
    ) -> SpawnerClient:
        self._follow_mode()
        if self._audit:
            await self._audit.prepare_change()
        losses = self._audit.mount_losses if self._audit else 0
        spawner = await asyncio.shield(self._spawners.request(access, scope, mount_losses=losses, is_apart=is_apart))
        if self._audit:  # the first spawner starts it
            await self._audit.prepare_change()
        return spawner

    async def _start_spawner(self, access: Access, scope: SandboxScope | None) -> SpawnerClient:
        async with self._preparing:
            is_confined = access != "full" and self.mode != "full" and await self._mechanism.confines()
        if not is_confined:
            variables = environment.build_environment(is_confined=False, allowed=self.settings.variables.allow)
            return SpawnerClient(variables=variables)
        await self._freeze_rules()
        rules = self._frozen_rules or self._first_rules
        if scope is not None:
            rules = await run_in_daemon_thread(partial(narrow_rules, rules, self.root, scope))
        return await self._start_confined_spawner(rules, access, scope)

    async def _start_confined_spawner(self, rules: Rules, access: Access, scope: SandboxScope | None) -> SpawnerClient:
        limits = self.settings.resources
        network = access == "network" or self.has_network
        is_narrow = scope is not None and not scope.is_wide
        has_mounts = self._mechanism.has_mounts
        is_read_only = self.mode == "read-only" or not has_mounts
        staging = None
        if self._audit and not is_narrow and not is_read_only:
            staging = self._audit.staging
        variables = environment.build_environment(
            is_confined=True, is_read_only=is_read_only, allowed=self.settings.variables.allow
        )
        namespace = None
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
            line = bubblewrap.build_plain_command(rules, self.root, self._own_folders[1:], network=network)
            variables = bubblewrap.move_tmp(variables, self.tmp)
        if access == "network":
            variables["PATH"] = environment.drop_writable_folders(variables["PATH"], rules)
        has_proxy = not network and not is_narrow and has_mounts
        if has_proxy:
            variables |= environment.PROXY_VARIABLES
        confinement = bubblewrap.build_confinement(limits, staging, is_isolated=has_mounts, network=network)
        spawner = SpawnerClient(line, variables, confinement, namespace)
        spawner.is_for_one_command = access == "network"
        if has_proxy:
            spawner.listen(environment.PROXY_PORT, self._serve_proxy)
        return spawner

    def _open_user_namespace(self, rules: Rules) -> int | None:
        """Open a user namespace for commands of root where the workspace has files of other users; None elsewhere."""
        owners = find_file_owners(self._own_folders)
        if owners is None:
            return None
        self._has_closed_files = True
        for path, rule in rules.table.items():
            if rule == "hidden" and self.root in path.parents and path.is_dir():
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
        if self._cleaned_settings is None:
            self._cleaned_settings = PrivateFolder("tmp")
        files = {}
        for path, text in rules.cleaned.items():
            file = self._cleaned_settings.path / hashlib.sha256(text).hexdigest()
            file.write_bytes(text)
            files[path] = file
        return files

    async def _serve_proxy(self, listener: socket.socket, spawner: SpawnerClient) -> None:
        from goose_like.workspace.network.proxy import serve_proxy  # only needed once a command connects

        await serve_proxy(listener, self.hosts, spawner)

    @override
    def _retire_sandboxes(self) -> None:
        self._spawners.retire()
