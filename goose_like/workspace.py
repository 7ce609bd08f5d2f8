"""The one port to files and processes: what it lets through is what the sandbox, the policy and the person allow."""

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

from . import repositories, sandbox
from .environment import environment
from .errors import DeniedError, GooseLikeError, SandboxError
from .events import Question
from .inspection import Inspection
from .jail import Jail
from .notifier import Notifier
from .policy import Kind, decide, refusal, rules_in_words
from .profile import ApprovalMode, SandboxMode
from .spawn import Process, Spawner

__all__ = ["Access", "Listener", "Process", "Workspace"]

Access = Literal["workspace", "network", "full"]

Listener = Callable[[Path | None, Sequence[str]], Awaitable[None]]
"""Told before a file is written (its real path) and before a command starts that may write (None, its words)."""


class Workspace:
    """A folder, and all that a session may do in it and with it.

    Making one costs nothing: the sandbox is entered with the first command, or by `ready` while the model thinks.
    In mode `full` there is neither sandbox nor jail.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        mode: SandboxMode,
        approval: ApprovalMode,
        notifier: Notifier,
        session_folder: Path | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.mode: SandboxMode = mode
        self.approval: ApprovalMode = approval
        self._notifier = notifier
        self._outputs = session_folder / "outputs" if session_folder else None
        self._listeners: list[Listener] = []
        self._granted: set[Kind] = set()
        self._asking = asyncio.Lock()
        self._entering = asyncio.Lock()
        self._spawners: dict[Access, asyncio.Task[Spawner]] = {}
        self._inspection: Inspection | None = None
        self._is_inspected = True
        self._is_probed = False

    @property
    def rules(self) -> str:
        """What is allowed, in one line for the model."""
        return rules_in_words(self.root, self.mode, self.approval)

    @cached_property
    def tmp(self) -> Path:
        """The private folder that commands see as /tmp; in mode `full` it is just a folder."""
        return Path(os.path.realpath(tempfile.mkdtemp(prefix="goose-like-")))

    async def __aenter__(self) -> "Workspace":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ready(self) -> None:
        """Finds out whether commands can be confined here, asks the person when not, and begins to enter the sandbox.

        Raises:
            SandboxError: they can't be, and nobody is there who allows to do without.
        """
        if self.mode == "workspace":
            await self._has_sandbox()
        self._entered("workspace" if self.mode == "workspace" else "full")

    async def close(self) -> None:
        """Ends everything that was started, looks once more at what it left, and removes the private folder."""
        await self._leave()
        if not self._is_inspected:
            for sentence in await self._inspect(self._refuse):
                self._notifier.log(sentence)
            await self._leave()
        if "tmp" in self.__dict__:
            await asyncio.to_thread(shutil.rmtree, self.tmp, ignore_errors=True)
            del self.tmp

    def before_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    # --- what needs a person's word

    async def permit(self, kind: Kind, subject: str, text: str) -> None:
        """Returns when it is allowed; one question at a time.

        Raises:
            DeniedError: it is not; the words are for the model and say what to do instead.
        """
        async with self._asking:
            if kind in self._granted or decide(kind, self.mode, self.approval) == "allow":
                return
            answer = await self._notifier.ask(Question(kind=kind, subject=subject, text=text))
            if not answer.is_allowed:
                raise DeniedError(refusal(kind, text, answer.by))
            if answer.choice == "allow_session":
                self._granted.add(kind)

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
    ) -> Process:
        """Starts a command: the only place in this program that does.

        Args:
            cwd: as the command sees it; the workspace by default.
            env: variables on top of the session's (see `environment`).
            access: `network` and `full` (no sandbox) are asked for where the mode does not give them.
            writes: whether it may change files; listeners are told before.
            stdin: a descriptor for its input, which stays the caller's; nothing by default.
            subject: what the person is shown in a question; the command line by default.

        Raises:
            DeniedError: the access was refused.
            SandboxError: there is no sandbox here, and nobody who allows to do without.
            GooseLikeError: the command can't be started.
        """
        if self.mode == "full":
            access = "full"
        subject = subject or shlex.join(argv)
        if access == "network":
            await self.permit("network", subject, f"network access for: {subject}")
        elif access == "full":
            await self.permit("sandbox", subject, f"no sandbox for: {subject}")
        if writes:
            self._is_inspected = False
            for listener in self._listeners:
                await listener(None, argv)
        spawner = await asyncio.shield(self._entered(access))
        variables = environment(is_confined=spawner.is_confined) | dict(env or {})
        return await spawner.spawn(argv, self.root / (cwd or ""), variables, stdin)

    def _entered(self, access: Access) -> "asyncio.Task[Spawner]":
        """The spawner of that kind, anew if it is gone."""
        task = self._spawners.get(access)
        if task is None or (task.done() and (task.cancelled() or task.exception() or not task.result().is_alive)):
            task = self._spawners[access] = asyncio.create_task(self._enter(access))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # told to who asks for it
        return task

    async def _enter(self, access: Access) -> Spawner:
        async with self._entering:
            if access == "full" or self.mode == "full" or not await self._has_sandbox():
                return Spawner()
            if self._inspection is None:
                await asyncio.to_thread(self._begin)
            return Spawner(sandbox.command(self._rules, network=access == "network"))

    async def _has_sandbox(self) -> bool:
        """Asked once; a person may decide to go on without."""
        if self._is_probed:
            return True
        why = await asyncio.to_thread(sandbox.why_unavailable)
        if why is None:
            self._is_probed = True
            return True
        try:
            await self.permit("sandbox", "this session", f"run commands without a sandbox, since {why}")
        except DeniedError as error:
            raise SandboxError(f"{why}; or run without one: --sandbox full") from error
        self.mode = "full"
        self._notifier.log(f"commands run without a sandbox: {why}")
        return False

    def _begin(self) -> None:
        """Takes stock before the first command: what is there now is the person's, and protected."""
        roots = (self.root, *self._git_folders)
        survey = repositories.Survey(roots)
        watched = [path for path, rule in self._rules.table.items() if rule == "protected"]
        inspection = Inspection(survey, (path for path in watched if self._lies_within(path)), self._run)
        found = [path for git in inspection.accepted for path in repositories.protected(git)]
        self.__dict__["_rules"] = self._draw(found)
        inspection.accepted = survey.look()  # with the folders `hooks` that were made just now
        self._inspection = inspection

    async def _leave(self) -> None:
        tasks, self._spawners = list(self._spawners.values()), {}
        for task in tasks:
            with suppress(GooseLikeError, OSError):
                await (await task).close()

    # --- what commands left behind

    async def inspect_changes(self) -> list[str]:
        """To be called after a command: asks about what git or a shell would run later, and undoes what is refused.

        Returns sentences for the model.
        """
        if self._inspection is None or decide("repository", self.mode, self.approval) == "allow":
            self._is_inspected = True
            return []
        return await self._inspect(lambda subject, text: self.permit("repository", subject, text))

    async def _inspect(self, permit: Callable[[str, str], Awaitable[None]]) -> list[str]:
        if self._inspection is None or decide("repository", self.mode, self.approval) == "allow":
            return []
        self._is_inspected = True
        return await self._inspection.look(permit)

    async def _refuse(self, subject: str, text: str) -> None:
        raise DeniedError(refusal("repository", text, "nobody"))

    async def _run(self, argv: list[str]) -> tuple[int, bytes]:
        """A short command of our own, in the sandbox."""
        spawner = await self._entered("workspace")
        process = await spawner.spawn(argv, Path("/"), environment(is_confined=True))
        output = b""
        while chunk := await process.read():
            output += chunk
        return await process.wait(), output

    # --- files

    def real(self, path: str | Path) -> Path:
        """Where a path leads after all links; what a command calls /tmp lies in the private folder."""
        return self._jail.real(path)

    def read_bytes(self, path: str | Path, limit_bytes: int | None = None) -> bytes:
        """A file's bytes; see `Jail.read_bytes`."""
        return self._jail.read_bytes(path, limit_bytes)

    async def write_bytes(self, path: str | Path, data: bytes) -> Path:
        """Replaces or makes a file, at once or not at all, where a command might; elsewhere the person is asked.

        Gives the real path that was written: that of the target where `path` is a link.

        Raises:
            DeniedError: outside the workspace and refused, or protected, or a secret.
            GooseLikeError, OSError: no place for a file.
        """
        place = self._jail.real(path)
        rule = self._jail.rule(place)
        if rule in ("hidden", "tmp"):
            raise DeniedError(f"{path} is hidden from you: it may hold secrets; write somewhere else")
        if rule == "protected":
            raise DeniedError(f"{path} is protected: git, a shell or goose-like run it; tell the person what to change")
        if rule == "read":
            await self.permit("outside", str(place), f"write {place}, which is outside the workspace")
        for listener in self._listeners:
            await listener(place, ())
        self._jail.write_bytes(place, data)
        return place

    @cached_property
    def _git_folders(self) -> tuple[Path, ...]:
        return repositories.enclosing(self.root)

    @cached_property
    def _rules(self) -> sandbox.Rules:
        return self._draw()

    @property
    def _jail(self) -> Jail:
        return Jail(self.root, self._rules if self.mode == "workspace" else None)

    def _draw(self, protected: Sequence[Path] = ()) -> sandbox.Rules:
        if self._outputs:
            self._outputs.mkdir(parents=True, exist_ok=True)
        rules = sandbox.rules(
            self.root, self.tmp, writable=self._git_folders, protected=protected, outputs=self._outputs
        )
        for path, rule in rules.table.items():
            if rule == "pin" and (source := rules.on_this_side(path)) != path:
                source.mkdir(parents=True, exist_ok=True)
        return rules

    def _lies_within(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in (self.root, *self._git_folders))
