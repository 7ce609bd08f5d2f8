"""The workspace: the only port to files and processes."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from goose_like.config.paths import config_folder, find_repository_root, state_folder
from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.errors import DeniedError, GooseLikeError, SandboxError
from goose_like.core.events import PermissionKind
from goose_like.core.notifier import Notifier

from . import git, sandbox
from .environment import build_environment
from .files import ContentUpdate, FileAccess, FileWriter
from .permissions import Permissions
from .policy import Access, Grant, describe_rules, format_refusal
from .private_tmp import PrivateTmp
from .process import Process, SpawnerClient, SpawnerPool
from .repo_audit import RepositoryAudit, find_protected_paths
from .rules import Rules, build_rules, resolve_path
from .scope import SandboxScope, narrow_rules

_SPAWNER_DELAY_S = 1.0
"""Delay before the first spawner starts. By then the first model request is on its way, and the processor is free."""

ChangeListener = Callable[[Path | None, Sequence[str]], Awaitable[None]]
"""Called with the real path before a file is written, and with None and the arguments before a command that writes."""


class Workspace:
    """A folder, and everything that a session may do in it and with it.

    The sandbox is entered with the first command, or soon after `prepare_sandbox`. Mode `full` has no sandbox and no
    path checks. In mode `read-only`, neither commands nor tools can change anything.
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
    ) -> None:
        """Create the workspace. New answers of the person for the session are added to `grants`."""
        self.root = Path(os.path.realpath(root))
        self._permissions = Permissions(self.root, mode, approval, notifier, grants=grants)
        self._notifier = notifier
        self._outputs = session_folder / "outputs" if session_folder else None
        self._change_listeners: list[ChangeListener] = []
        self._preparing = asyncio.Lock()
        self._spawners = SpawnerPool(self._start_spawner)
        self._private_tmp: PrivateTmp | None = None
        self._audit: RepositoryAudit | None = None
        self._frozen_rules: Rules | None = None

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
        return describe_rules(self.mode, self.approval)

    @property
    def can_ask_for_network(self) -> bool:
        """True if commands start without network, but may get it on request."""
        return self.mode in ("read-only", "workspace") and self._permissions.decide("network") != "refuse"

    @property
    def tmp(self) -> Path:
        """The private folder that commands see as /tmp. In mode `full` it is an ordinary folder."""
        self._private_tmp = self._private_tmp or PrivateTmp()
        return self._private_tmp.path

    @property
    def branch(self) -> str:
        """The current git branch, or the first 8 letters of the commit; empty outside a repository."""
        try:
            head = self.read_bytes(find_repository_root(self.root) / ".git" / "HEAD", 1000)
        except (GooseLikeError, OSError):  # no repository, or a worktree, where .git is a file
            return ""
        return git.parse_head(head)

    def path_in_sandbox(self, path: Path) -> str:
        """Return the path under which a command sees a file of the private folder."""
        return str(path if self.mode == "full" else Path("/tmp", path.relative_to(self.tmp)))

    async def __aenter__(self) -> "Workspace":
        if self.mode != "full":
            _ = self._sandbox_problem  # start the check now, `prepare_sandbox` needs the answer
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prepare_sandbox(self) -> None:
        """Check that commands can be sandboxed here, and ask the person if they cannot. Schedule the sandbox start.

        Raises:
            SandboxError: there is no sandbox here, and nobody allowed commands without one.
        """
        if self.mode != "full":
            await self._has_sandbox()
        self._spawners.request_later("full" if self.mode == "full" else "workspace", _SPAWNER_DELAY_S)

    async def close(self) -> None:
        """End all processes, audit what they left without asking anyone, and remove the private folder."""
        await self._spawners.close()
        if audit := self._active_audit:
            try:
                findings = await audit.inspect(_refuse_unattended)
            except GooseLikeError as error:
                findings = [f"hooks or settings that a command left in the workspace may still be active: {error}"]
            for sentence in findings:
                self._notifier.log(sentence)
            await self._spawners.close()
        await self._remove_tmp()

    async def _remove_tmp(self) -> None:
        if self._private_tmp is not None:
            await asyncio.to_thread(self._private_tmp.remove)
            self._private_tmp = None

    # --- change listeners

    def add_change_listener(self, listener: ChangeListener) -> None:
        """Call `listener` before each change."""
        self._change_listeners.append(listener)

    async def announce_change(self, path: Path | None, argv: Sequence[str]) -> None:
        """Call all change listeners. The arguments are those of a `ChangeListener`."""
        for listener in self._change_listeners:
            await listener(path, argv)

    # --- permissions

    async def require_permission(
        self, kind: PermissionKind, subject: str, text: str, detail: Callable[[], str] = str
    ) -> bool:
        """Return once the action is allowed. Ask the person if the policy says so, one question at a time.

        Args:
            kind: the kind of action.
            subject: the exact action, as shown to the person. A permanent answer holds for this subject alone.
            text: the action in a few words.
            detail: computes the full change (a diff) where `text` does not say everything.

        Returns:
            True if the person allowed exactly this subject; False if the policy or a session grant allows it.

        Raises:
            DeniedError: the action is not allowed; the message tells the model what to do instead.
        """
        return await self._permissions.require(kind, subject, text, detail)

    # --- processes

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        access: Access = "workspace",
        writes: bool = True,
        stdin: int | None = None,
        subject: str | None = None,
        is_own: bool = False,
        scope: SandboxScope | None = None,
    ) -> Process:
        """Start a command. Nothing else in goose_like starts commands for a model.

        Args:
            argv: the program and its arguments.
            cwd: the working folder as the command sees it; the workspace by default.
            env: variables in addition to those of `build_environment`.
            access: `network` and `full` need permission where the mode does not include them. After such a question,
                approval `ask` does not ask again.
            writes: the command may change files; listeners are called before it starts.
            stdin: a descriptor for its input, which the caller closes; empty input by default.
            subject: the text shown in a question; the command line by default.
            is_own: the person typed the command, so no question is asked.
            scope: the command sees no more than this, in a sandbox apart from other commands. Processes with an equal
                scope and access share a sandbox, set up when the first of them starts.

        Raises:
            DeniedError: the access was refused, or the scope names a hidden path.
            SandboxError: there is no sandbox here, and nobody allowed commands without one.
            GooseLikeError: the command cannot be started.
        """
        if self.mode == "full":
            access = "full"
        subject = subject or shlex.join(argv)
        is_approved = is_own
        if access == "network" and not is_own:
            is_approved = await self.require_permission("network", subject, f"network access for: {subject}")
        elif access == "full" and not is_own:
            is_approved = await self.require_permission("sandbox", subject, f"no sandbox for: {subject}")
        if writes and not is_approved:
            await self.require_permission("command", subject, f"run: {subject}")
        if writes and (is_own or self.mode != "read-only"):
            await self.announce_change(None, argv)
        spawner = await asyncio.shield(self._spawners.request(access, scope))
        return await spawner.spawn(argv, self.root / (cwd or ""), env or {}, stdin)

    async def run_internal(self, argv: list[str]) -> tuple[int, bytes]:
        """Run a short command of our own in the sandbox, without questions or announcements.

        Returns:
            The exit code and all output.
        """
        spawner = await self._spawners.request("workspace")
        process = await spawner.spawn(argv, Path("/"), {})
        output = bytearray()
        try:
            while chunk := await process.read():
                output += chunk
            return await process.wait(), bytes(output)
        except asyncio.CancelledError:
            await process.stop(0)
            raise

    async def _start_spawner(self, access: Access, scope: SandboxScope | None) -> SpawnerClient:
        async with self._preparing:
            if access == "full" or self.mode == "full" or not await self._has_sandbox():
                return SpawnerClient(variables=build_environment(is_confined=False))
        await self._freeze_rules()
        rules = self._rules
        if scope is not None:
            rules = await asyncio.to_thread(narrow_rules, rules, self.root, scope)
            rules.create_pinned_folders()
        line = sandbox.build_bwrap_command(rules, network="network" in (access, *self.mode.split("+")))
        return SpawnerClient(line, build_environment(is_confined=True))

    # --- sandbox

    @cached_property
    def _sandbox_problem(self) -> asyncio.Future[str | None]:
        """The reason why there is no sandbox here, if any. The check starts at once, in a thread."""
        return asyncio.get_running_loop().run_in_executor(None, sandbox.find_sandbox_problem)

    async def _has_sandbox(self) -> bool:
        """Check for a sandbox once. The person may decide to continue without one."""
        problem = await asyncio.shield(self._sandbox_problem)
        if problem is None:
            return True
        try:
            text = f"run commands without a sandbox, since {problem}"
            await self.require_permission("sandbox", "this session", text)
        except DeniedError as error:
            if self.mode == "read-only":
                raise SandboxError(f"{problem}; without a sandbox nothing can be made read-only") from error
            raise SandboxError(f"{problem}; or run without one: --sandbox full") from error
        self._permissions.mode = "full"
        self._notifier.log(f"commands run without a sandbox: {problem}")
        return False

    async def _freeze_rules(self) -> None:
        """Freeze the rules before the first command or write: all files that exist now belong to the person."""
        async with self._preparing:
            if self.mode != "full" and self._frozen_rules is None:
                _ = self.tmp  # create the folder here, not in two threads at once
                if self.mode == "read-only":
                    self._frozen_rules = await asyncio.to_thread(self._draw_rules)
                else:
                    self._frozen_rules, self._audit = await asyncio.to_thread(self._start_audit)

    def _start_audit(self) -> tuple[Rules, RepositoryAudit]:
        if self._is_inside(config := resolve_path(config_folder())):
            config.mkdir(parents=True, exist_ok=True)  # otherwise a command could create it, with answers inside
        scanner, protected = find_protected_paths(self.root, self._commit_folders)
        rules = self._draw_rules(protected)
        own_state = resolve_path(state_folder())  # another session may create it at any time
        watched = [path for path, rule in rules.table.items() if rule in ("protected", "hidden") and path != own_state]
        return rules, RepositoryAudit(scanner, filter(self._is_inside, watched), self.run_internal)

    def _draw_rules(self, protected: Sequence[Path] = ()) -> Rules:
        if self._outputs:
            self._outputs.mkdir(parents=True, exist_ok=True)
        rules = build_rules(
            self.root,
            self.tmp,
            writable=self._commit_folders,
            protected=protected,
            outputs=self._outputs,
            is_read_only=self.mode == "read-only",
        )
        rules.create_pinned_folders()
        return rules

    @property
    def _rules(self) -> Rules:
        """The rules now. Protected paths are missing until `_freeze_rules`, which runs before anything is written."""
        return self._frozen_rules or self._draw_rules()

    @cached_property
    def _commit_folders(self) -> tuple[Path, ...]:
        return git.find_commit_folders(self.root)

    def _is_inside(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in (self.root, *self._commit_folders))

    # --- repository audit

    async def inspect_changes(self, timeout_s: float | None = 0.005) -> list[str]:
        """Ask about hooks and settings that a command left for git or a shell, and disable what is refused.

        Call this after each command. A scan that takes longer than `timeout_s` (some thousand folders) continues in
        the background, and the next call judges its result. Anything left when the workspace closes is disabled then.

        Returns:
            Sentences for the model.
        """
        audit = self._active_audit
        return await audit.inspect(partial(self.require_permission, "repository"), timeout_s) if audit else []

    @property
    def _active_audit(self) -> RepositoryAudit | None:
        return None if self._permissions.decide("repository") == "allow" else self._audit

    # --- files

    def resolve(self, path: str | Path) -> Path:
        """Resolve a path through all links. A path below /tmp, as commands see it, leads into the private folder."""
        return self._files.resolve(path)

    def is_private(self, path: str | Path) -> bool:
        """Check whether a path leads into the private folder, which is removed at the end."""
        return self.mode != "full" and self.resolve(path).is_relative_to(self.tmp)

    def read_bytes(self, path: str | Path, limit_bytes: int | None = None) -> bytes:
        """Read a file; see `FileAccess.read_bytes`."""
        return self._files.read_bytes(path, limit_bytes)

    def list_folder(self, path: str | Path) -> list[str]:
        """List a folder; see `FileAccess.list_folder`."""
        return self._files.list_folder(path)

    async def write_bytes(self, path: str | Path, data: bytes) -> Path:
        """Create or replace a file atomically. Ask the person about places where a command could not write.

        Returns:
            The real path that was written: the target where `path` is a link.

        Raises:
            DeniedError: the write was refused, or the path is protected or a secret.
            GooseLikeError: the path cannot hold a file, or the file changed while the question was open.
            OSError: the operating system refused the write.
        """
        await self._freeze_rules()
        return await self._writer.write(path, data)

    async def update_own_file(self, path: str | Path, update: ContentUpdate, *, at_end: bool = False) -> bool:
        """Update one of our own files that the person named. Within the workspace, no question is asked.

        Args:
            path: the file.
            update: computes the new content at the moment of writing. The file is replaced atomically.
            at_end: append only what the new content has in addition, in one write.

        Returns:
            True if the file was written.

        Raises:
            DeniedError: see `write_bytes`.
            GooseLikeError: see `write_bytes`, or raised by `update`.
            OSError: see `write_bytes`.
        """
        await self._freeze_rules()
        return await self._writer.update(path, update, at_end=at_end)

    @property
    def _files(self) -> FileAccess:
        return FileAccess(self.root, None if self.mode == "full" else self._rules)

    @property
    def _writer(self) -> FileWriter:
        return FileWriter(self._files, self._permissions, lambda path: self.announce_change(path, ()))


async def _refuse_unattended(subject: str, text: str) -> None:
    raise DeniedError(format_refusal("repository", text, "nobody"))
