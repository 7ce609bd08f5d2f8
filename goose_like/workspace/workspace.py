"""The one port to files and processes: what it lets through is what the sandbox, the policy and the person allow."""

import asyncio
import fcntl
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

from goose_like.config import trust
from goose_like.config.paths import config_folder, state_folder
from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.config.trust import Approval
from goose_like.core.errors import DeniedError, GooseLikeError, SandboxError
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier

from . import git as repositories
from . import sandbox
from .diff import difference
from .environment import environment
from .files import Jail
from .policy import Decision, Grant, Kind, confinement, decide, refusal, rules_in_words
from .process import Process, Spawner, ending
from .repo_audit import Inspection
from .sandbox import Rule
from .scope import Reach, within

__all__ = ["Access", "Listener", "Process", "Reach", "Workspace", "ending"]

Access = Literal["workspace", "network", "full"]

_PRIVATE = "goose-like-tmp-"
_NEW_S = 60
_ENTER_AFTER_S = 1.0  # by then the first request is on its way, and nobody waits for the processor

Listener = Callable[[Path | None, Sequence[str]], Awaitable[None]]
"""Told before a file is written (its real path) and before a command starts that may write (None, its words)."""

Change = Callable[[bytes], bytes | None]
"""What a file is to hold, of what it holds (b"" where there is none); None to leave it as it is."""


class Workspace:
    """A folder, and all that a session may do in it and with it.

    Making one costs nothing: entering it begins to find out whether there is a sandbox, which is entered itself with
    the first command, or by `ready` while the model thinks.
    In mode `full` there is neither sandbox nor jail; in `read-only` nothing is changed, by a command or by a tool.
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
        """`grants` is what a person allowed for the session so far; what they allow here is added to it."""
        self.root = Path(os.path.realpath(root))
        self.mode = confinement(mode, approval)
        self.approval: ApprovalMode = approval
        self._notifier = notifier
        self._outputs = session_folder / "outputs" if session_folder else None
        self._listeners: list[Listener] = []
        self._grants = set() if grants is None else grants
        self._asking = asyncio.Lock()
        self._entering = asyncio.Lock()
        self._spawners: dict[tuple[Access, Reach | None], asyncio.Task[Spawner]] = {}
        self._inspection: Inspection | None = None
        self._stock: sandbox.Rules | None = None
        self._lock: int | None = None  # on the private folder
        self._soon: asyncio.TimerHandle | None = None

    @property
    def rules(self) -> str:
        """What is allowed, in one line for the model."""
        return rules_in_words(self.mode, self.approval)

    @property
    def may_ask_for_network(self) -> bool:
        """Whether commands have no network by themselves, and may be given it."""
        return self.mode in ("read-only", "workspace") and self.decision("network") != "refuse"

    @cached_property
    def tmp(self) -> Path:
        """The private folder that commands see as /tmp; in mode `full` it is just a folder. Locked while we live."""
        folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PRIVATE)))
        self._lock = _taken(folder)
        return folder

    def inside(self, path: Path) -> str:
        """Where a command sees what lies in the private folder."""
        return str(path if self.mode == "full" else Path("/tmp", path.relative_to(self.tmp)))

    async def __aenter__(self) -> "Workspace":
        if self.mode != "full":
            _ = self._probe  # `ready` has its answer sooner
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ready(self) -> None:
        """Finds out whether commands can be confined here, asks the person when not. The sandbox is entered soon after.

        Raises:
            SandboxError: they can't be, and nobody is there who allows to do without.
        """
        if self.mode != "full":
            await self._has_sandbox()
        access: Access = "full" if self.mode == "full" else "workspace"
        self._soon = asyncio.get_running_loop().call_later(_ENTER_AFTER_S, self._entered, access)

    async def close(self) -> None:
        """Ends everything that was started, and only then looks a last time at what it left: nobody is asked any more.

        Removes the private folder, and those of sessions that were killed.
        """
        await self._leave()
        if self._inspection is not None and not self._may_leave_anything:
            try:
                told = await self._inspection.look(self._refuse)
            except GooseLikeError as error:
                told = [f"there may be hooks or settings in the workspace that were not put out of effect: {error}"]
            for sentence in told:
                self._notifier.log(sentence)
            await self._leave()
        await self._remove_tmp()

    async def _remove_tmp(self) -> None:
        if "tmp" in self.__dict__:
            await asyncio.to_thread(_remove_private, self.tmp)
            if self._lock is not None:
                os.close(self._lock)
            del self.tmp

    def before_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def tell_change(self, path: Path | None, argv: Sequence[str]) -> None:
        """Tells those who listen what is going to change; the arguments are those of a `Listener`."""
        for listener in self._listeners:
            await listener(path, argv)

    # --- what needs a person's word

    def decision(self, kind: Kind) -> Decision:
        """What the policy says here of this kind of step, whatever a person answered since."""
        return decide(kind, self.mode, self.approval)

    async def permit(self, kind: Kind, subject: str, text: str, detail: Callable[[], str] = str) -> bool:
        """Returns when it is allowed, and whether by a person's word on this very subject; one question at a time.

        Args:
            subject: what exactly is allowed, as the person is shown it: an answer for good counts for this alone.
            text: what is to be done, in a few words.
            detail: gives what will happen where `text` does not say all of it.

        Raises:
            DeniedError: it is not; the words are for the model and say what to do instead.
        """
        async with self._asking:
            decision = self.decision(kind)
            if decision == "refuse":
                raise DeniedError(refusal(kind, text, "profile"))
            if decision == "allow" or self.is_granted(kind):
                return False
            question = Question(kind=kind, subject=subject, text=text, detail=detail())
            allowed = Approval(kind=kind, subject=question.subject)
            if question.may_last and allowed in trust.allowed_in(self.root).approvals:
                return True
            answer = await self._notifier.ask(question)
            if not answer.is_allowed:
                raise DeniedError(refusal(kind, text, answer.by))
            if answer.choice == "allow_session":
                self._grants.add((kind, self.mode, self.approval))
            elif answer.choice == "allow_always" and question.may_last:
                trust.approve(self.root, allowed)
            return True

    def is_granted(self, kind: Kind) -> bool:
        """Whether the person allowed steps of this kind, under this policy, for the session."""
        return (kind, self.mode, self.approval) in self._grants

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
        reach: Reach | None = None,
    ) -> Process:
        """Starts a command: the only place in this program that does.

        Args:
            cwd: as the command sees it; the workspace by default.
            env: variables on top of the session's (see `environment`).
            access: `network` and `full` (no sandbox) are asked for where the mode does not give them. A command that
                is asked about for that is not asked about again in approval `ask`.
            writes: whether it may change files; listeners are told before.
            stdin: a descriptor for its input, which stays the caller's; nothing by default.
            subject: what the person is shown in a question; the command line by default.
            is_own: the person typed it themselves, and is not asked.
            reach: it sees no more than that, in a sandbox apart from the commands'; processes of the same reach and
                access share one, as it was when the first of them started.

        Raises:
            DeniedError: the access was refused, or its reach names what is hidden.
            SandboxError: there is no sandbox here, and nobody who allows to do without.
            GooseLikeError: the command can't be started.
        """
        if self.mode == "full":
            access = "full"
        subject = subject or shlex.join(argv)
        is_seen = is_own
        if is_own:
            pass
        elif access == "network":
            is_seen = await self.permit("network", subject, f"network access for: {subject}")
        elif access == "full":
            is_seen = await self.permit("sandbox", subject, f"no sandbox for: {subject}")
        if writes and not is_seen:
            await self.permit("command", subject, f"run: {subject}")
        if writes and (is_own or self.mode != "read-only"):
            await self.tell_change(None, argv)
        spawner = await asyncio.shield(self._entered(access, reach))
        return await spawner.spawn(argv, self.root / (cwd or ""), env or {}, stdin)

    async def run(self, argv: list[str]) -> tuple[int, bytes]:
        """The exit code and all output of a short command of our own, in the sandbox; nobody is asked or told."""
        spawner = await self._entered("workspace")
        process = await spawner.spawn(argv, Path("/"), {})
        output = bytearray()
        try:
            while chunk := await process.read():
                output += chunk
            return await process.wait(), bytes(output)
        except asyncio.CancelledError:
            await process.stop(0)
            raise

    def _entered(self, access: Access, reach: Reach | None = None) -> "asyncio.Task[Spawner]":
        """The spawner of that kind, anew if it is gone."""
        task = self._spawners.get((access, reach))
        if task is None or (task.done() and (task.cancelled() or task.exception() or not task.result().is_alive)):
            task = self._spawners[access, reach] = asyncio.create_task(self._enter(access, reach))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # told to who asks for it
        return task

    async def _enter(self, access: Access, reach: Reach | None) -> Spawner:
        async with self._entering:
            if access == "full" or self.mode == "full" or not await self._has_sandbox():
                return Spawner(variables=environment(is_confined=False))
        await self._take_stock()
        rules = self._rules
        if reach is not None:
            rules = _with_folders(await asyncio.to_thread(within, rules, self.root, reach))
        line = sandbox.command(rules, network="network" in (access, *self.mode.split("+")))
        return Spawner(line, environment(is_confined=True))

    @cached_property
    def _probe(self) -> asyncio.Future[str | None]:
        """Why there is no sandbox, if there is none. Begins at once, in a thread."""
        return asyncio.get_running_loop().run_in_executor(None, sandbox.why_unavailable)

    async def _has_sandbox(self) -> bool:
        """Asked once; a person may decide to go on without."""
        why = await asyncio.shield(self._probe)
        if why is None:
            return True
        try:
            await self.permit("sandbox", "this session", f"run commands without a sandbox, since {why}")
        except DeniedError as error:
            if self.mode == "read-only":
                raise SandboxError(f"{why}; without a sandbox nothing can be made read-only") from error
            raise SandboxError(f"{why}; or run without one: --sandbox full") from error
        self.mode = "full"
        self._notifier.log(f"commands run without a sandbox: {why}")
        return False

    async def _take_stock(self) -> None:
        """Before the first command or write in a sandbox: what is there now is the person's, and protected."""
        async with self._entering:
            if self.mode != "full" and self._stock is None:
                _ = self.tmp  # made here, not in two threads at once
                if self.mode == "read-only":
                    self._stock = await asyncio.to_thread(self._draw)
                else:
                    self._stock, self._inspection = await asyncio.to_thread(self._begin)

    def _begin(self) -> tuple[sandbox.Rules, Inspection]:
        if self._lies_within(config := Path(os.path.realpath(config_folder()))):
            config.mkdir(parents=True, exist_ok=True)  # or a command could make it, with answers in it
        survey = repositories.Survey((self.root, *self._git_folders))
        gits = list(survey.look())
        configs = [*(Path.home() / name for name in (".gitconfig", ".config/git/config"))]
        configs += [config for git in gits for config in repositories.settings(git)]
        led_to = repositories.led_to(configs, {git.parent for git in gits if git.name == ".git"})
        found = [path for git in gits for path in repositories.protected(git)]
        # What holds a repository or all of the workspace can't be taken away from commands.
        found += [path for path in led_to if not any(git.is_relative_to(path) for git in (self.root, *gits))]
        rules = self._draw(found)
        ours = os.path.realpath(state_folder())  # another session may make it at any time
        kept = [path for path, rule in rules.table.items() if rule in ("protected", "hidden") and str(path) != ours]
        return rules, Inspection(survey, filter(self._lies_within, kept), self.run)

    async def _leave(self) -> None:
        if self._soon:
            self._soon.cancel()
        tasks, self._spawners = list(self._spawners.values()), {}
        for task in tasks:
            with suppress(GooseLikeError, OSError):
                await (await task).close()

    # --- what commands left behind

    async def inspect_changes(self, patience_s: float | None = 0.005) -> list[str]:
        """To be called after a command: asks about what git or a shell would run later, and undoes what is refused.

        Returns sentences for the model. Where a look takes longer than `patience_s` (some thousand folders) nobody
        waits for it: a person is asked after the next command. What nobody was asked about until `close` is put out
        of effect there.
        """
        if self._inspection is None or self._may_leave_anything:
            return []
        return await self._inspection.look(lambda subject, text: self.permit("repository", subject, text), patience_s)

    @property
    def _may_leave_anything(self) -> bool:
        return self.decision("repository") == "allow"

    async def _refuse(self, subject: str, text: str) -> None:
        raise DeniedError(refusal("repository", text, "nobody"))

    # --- files

    def real(self, path: str | Path) -> Path:
        """Where a path leads after all links; what a command calls /tmp lies in the private folder."""
        return self._jail.real(path)

    def is_private(self, path: str | Path) -> bool:
        """Whether a path leads into the private folder, which is removed at the end."""
        return self.mode != "full" and self.real(path).is_relative_to(self.tmp)

    def read_bytes(self, path: str | Path, limit_bytes: int | None = None) -> bytes:
        """A file's bytes; see `Jail.read_bytes`."""
        return self._jail.read_bytes(path, limit_bytes)

    def names(self, path: str | Path) -> list[str]:
        """What stands in a folder; see `Jail.names`."""
        return self._jail.names(path)

    async def write_bytes(self, path: str | Path, data: bytes) -> Path:
        """Replaces or makes a file, at once or not at all, where a command might; elsewhere the person is asked.

        Gives the real path that was written: that of the target where `path` is a link.

        Raises:
            DeniedError: refused, or protected, or a secret.
            GooseLikeError, OSError: no place for a file, or it was changed while the question was open.
        """
        place, rule = await self._writable(path)
        await self._permit_change(place, rule, data)
        await self.tell_change(place, ())
        self._jail.write_bytes(place, data)
        return place

    async def keep_bytes(self, path: str | Path, change: Change, *, at_end: bool = False) -> bool:
        """Writes a file of ours that the person gave a name: within the workspace that was their word for it.

        `change` is given what the file holds at the moment of writing, and gives what it is to hold. That is put there
        at once or not at all; `at_end` only what it has more is added, in one write. Gives whether anything was to do.

        Raises:
            DeniedError, GooseLikeError, OSError: as `write_bytes`, or of `change`.
        """
        place, rule = await self._writable(path)
        held = self._held(place) or b""
        if (data := change(held)) is None:
            return False
        if rule != "write":
            await self._permit_change(place, rule, data)
        await self.tell_change(place, ())
        held = self._held(place) or b""
        if (data := change(held)) is None:
            return False
        if at_end:
            self._jail.append_bytes(place, data[len(held) :])
        else:
            self._jail.write_bytes(place, data)
        return True

    async def _writable(self, path: str | Path) -> tuple[Path, Rule]:
        """The real path and its rule. Raises: DeniedError: nobody writes there."""
        await self._take_stock()
        place = self._jail.real(path)
        rule = self._jail.rule(place)
        if rule in ("hidden", "tmp"):
            raise DeniedError(f"{path} is hidden from you: it may hold secrets; write somewhere else")
        if rule == "protected":
            raise DeniedError(f"{path} is protected: git, a shell or goose-like run it; tell the person what to change")
        return place, rule

    async def _permit_change(self, place: Path, rule: Rule, data: bytes) -> None:
        shown: list[bytes | None] = []

        def detail() -> str:
            shown.append(self._held(place))
            return difference(shown[0], data)

        if rule == "read" and self.mode != "read-only":
            await self.permit("outside", str(place), f"write {place}, which is outside the workspace", detail)
        else:
            await self.permit("change", str(place), f"change {place}", detail)
        if shown and self._held(place) != shown[0]:
            raise GooseLikeError(f"{place} was changed while the question was open; look at it again")

    def _held(self, place: Path) -> bytes | None:
        """What a file holds before a change; None where there is none."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return self._jail.read_bytes(place)
        return None

    @cached_property
    def _git_folders(self) -> tuple[Path, ...]:
        return repositories.enclosing(self.root)

    @property
    def _rules(self) -> sandbox.Rules:
        """Those with what is protected, once stock was taken: that is before anything is written."""
        return self._stock or self._draw()

    @property
    def _jail(self) -> Jail:
        return Jail(self.root, None if self.mode == "full" else self._rules)

    def _draw(self, protected: Sequence[Path] = ()) -> sandbox.Rules:
        if self._outputs:
            self._outputs.mkdir(parents=True, exist_ok=True)
        return _with_folders(
            sandbox.rules(
                self.root,
                self.tmp,
                writable=self._git_folders,
                protected=protected,
                outputs=self._outputs,
                is_read_only=self.mode == "read-only",
            )
        )

    @property
    def branch(self) -> str:
        """The git branch that is checked out, or the commit's first letters; empty where there is no repository."""
        try:
            data = self.read_bytes(repositories.root_of(self.root) / ".git" / "HEAD", 1000)
        except (GooseLikeError, OSError):  # none, or a worktree, whose .git is a file
            return ""
        head = data.decode(errors="replace").strip()
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]

    def _lies_within(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in (self.root, *self._git_folders))


def _with_folders(rules: sandbox.Rules) -> sandbox.Rules:
    """The same rules; the pinned folders of the private /tmp are made."""
    for path, rule in rules.table.items():
        if rule == "pin" and (source := rules.on_this_side(path)) != path:
            source.mkdir(parents=True, exist_ok=True)
    return rules


def _taken(folder: Path) -> int | None:
    """Locks a folder as long as the descriptor that it gives is open; None if somebody else has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_private(own: Path) -> None:
    """Removes a private folder, and beside it those of ours that nobody has locked any more."""
    shutil.rmtree(own, ignore_errors=True)
    for folder in own.parent.glob(f"{_PRIVATE}*"):
        with suppress(OSError):
            status = folder.lstat()
            is_new = time.time() - status.st_ctime < _NEW_S  # perhaps not locked yet
            if status.st_uid == os.getuid() and not is_new and (lock := _taken(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
