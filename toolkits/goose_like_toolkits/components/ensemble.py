"""Ensemble: a session's components at work, all on one stage."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import ToolError
from goose_like.workspace.processes.process import Process
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like_toolkits.components.described.arguments import Checked
from goose_like_toolkits.components.described.kinds import Parameter
from goose_like_toolkits.components.environments.environment import Environment
from goose_like_toolkits.components.repositories.repository import OWN
from goose_like_toolkits.components.repositories.sources import Package, known_packages, topmost_package

from .config import Config
from .desk import Desk
from .member import Member
from .roster import Roster
from .sharing import Sharing
from .stage import INSIDE, Message, Stage, StageError, through
from .surroundings import Surroundings

_LOAD_S = 120.0


class Ensemble:
    """What becomes of a roster. The stage is started with the first call, and anew after its end."""

    def __init__(self, config: Config, around: Surroundings, roster: Roster, sharing: Sharing) -> None:
        self.roster = roster
        self._config = config
        self._around = around
        self._sharing = sharing
        self._environment = Environment(
            around.workspace, notifier=around.notifier, pip_params=config.pip_params, is_real=config.real
        )
        self._stage: Stage | None = None
        self._sources: list[Path] = []
        self._loaded: list[str] = []
        self._lost: list[str] | None = None
        self._is_closed = False
        self._one_at_a_time = asyncio.Lock()

    async def command(
        self, member: Member, name: str, parameter: Parameter | None, checked: Checked
    ) -> tuple[Any, list[str]]:
        """What a command of a component gives, with what else is to be told.

        Raises:
            ToolError: it failed, did not end in time, or the process died of it.
        """
        async with self._one_at_a_time:
            await self._ready(member)
            # Not before: assets come and go with the call before this one.
            param, live = self._sharing.resolved(parameter, checked)
            asked = {"key": member.key, "command": name, "param": param, "live": live, "assets": self._sharing.ids}
            answer = await self._call("command", asked, self._config.timeout_s)
            response, faults = self._sharing.taken(answer)
            return response, [*self._told_loss(), *faults]

    async def perform(self, method: Literal["construct", "run"], member: Member, args: Sequence[str]) -> None:
        """Constructs a component, or runs a copilot to its end, however long that takes.

        Raises:
            ToolError: it failed.
        """
        async with self._one_at_a_time:
            await self.installed(member)
            await self._alive(member)
            await self._call(method, {"config": self.roster.finder.given(member), "args": list(args)}, None)

    async def close(self) -> list[str]:
        """Ends a call that runs, has all finalised and ends the process; gives what went wrong."""
        self._is_closed = True
        if self._stage:
            await self._stage.interrupt()
        async with self._one_at_a_time:
            stage, self._stage = self._stage, None
            try:
                return await stage.finish() if stage else []
            finally:
                self._environment.close()

    # --- what a call needs

    async def _ready(self, member: Member) -> None:
        """The stage with this component and its resources."""
        wanted = [*self.roster.needed(member), member]
        for each in wanted:
            await self.installed(each)
        await self._alive(*wanted)
        for each in wanted:
            if each.key not in self._loaded:
                needs = [{"key": need.key, "asked": need.asked} for need in each.needs]
                try:
                    config = self.roster.finder.given(each)
                    await self._call("load", {"key": each.key, "config": config, "resources": needs}, _LOAD_S)
                except GooseLikeError as error:
                    raise ToolError(f"{each.name} can't be made: {error}") from error
                self._loaded.append(each.key)

    def _told_loss(self) -> list[str]:
        """What was lost since this was told last."""
        lost, self._lost = self._lost, None
        if lost is None:
            return []
        held = f"; what these held is gone: {', '.join(dict.fromkeys(lost))}" if lost else ""
        return [f"the components' process is a new one{held}"]

    async def installed(self, member: Member) -> None:
        """What it names in `setup.pip` is there, by the person's leave, and `concopilot` where that is wanted."""
        if self._config.setup:
            real = (("concopilot",),) if self._config.real else ()
            await self._environment.install((*real, *member.entry.pip), member.name)

    async def _installed_meanwhile(self, member: Member) -> None:
        """The same for one that another makes: what a process sees can't become more while it runs."""
        await self.installed(member)
        if new := self._unseen(member):
            raise ToolError(
                f"{member.name} is installed from {new[0]}, which the components' process sees from its next start on; "
                "tell the person to start this again"
            )

    def _unseen(self, *members: Member) -> list[Path]:
        """Where code of these lies that the process does not see, as it was started before."""
        paths = (path for member in members for path in self._environment.sources(member.entry.pip))
        return [path for path in paths if path not in self._sources]

    # --- the process

    async def _alive(self, *members: Member) -> None:
        """A process for these, which may be a new one."""
        if self._is_closed:
            raise ToolError("the session is at its end; no component is called any more")
        if self._stage and not self._stage.end and self._unseen(*members):
            for fault in await self._stage.finish():
                self._around.notifier.log(f"components: {fault}")
        if self._stage and self._stage.end:
            await self._drop()
        if self._stage is None:
            self._stage = await self._start()

    async def _start(self) -> Stage:
        around = self._around
        self._sources = self._environment.sources()
        reach, settings = self._placed()

        async def spawn(argv: Sequence[str], stdin: int) -> Process:
            return await around.workspace.spawn(
                argv,
                access="network" if self._config.network else "workspace",
                writes=False,
                descriptors={0: stdin},
                subject="the process of the components",
                scope=reach,
            )

        desk = Desk(around, self.roster.finder, self._sharing, self._installed_meanwhile, self._config.llm)
        python = await self._environment.python()
        return await Stage.start(spawn, python, settings, desk.answer, around.show)

    def _placed(self) -> tuple[SandboxScope, Message]:
        """What the process sees, and what it is told of that."""
        workspace, dot_folders = self._around.workspace, (".runtime", *self._config.dot_folders)
        named = [workspace.root / os.path.expanduser(each) for each in self._config.path]
        folders = [each.resolve() for each in named if os.path.isdir(each)]
        packages = self._packages()
        paths = dict.fromkeys((*folders, *(package.root for package in packages)))
        above = dict.fromkeys(folder for package in packages for folder in package.above)
        readable = (self._environment.folder, *self._sources, *folders, *(package.folder for package in packages))
        tmp = workspace.tmp / "components"
        tmp.mkdir(exist_ok=True)
        settings: Message = {
            "root": str(workspace.root),
            "paths": [str(path) for path in paths],
            "readable": [str(path) for path in readable],
            "listed": [str(path) for path in above],
            "dot_folders": list(dot_folders),
            "tmp": workspace.path_in_sandbox(tmp),
        }
        return SandboxScope(readable=(INSIDE, *readable), dot_folders=dot_folders), settings

    def _packages(self) -> list[Package]:
        """The topmost packages of components that are not installed with pip; of one name the first counts."""
        members = [member for member in self.roster.members.values() if not member.file.is_relative_to(OWN)]
        known = known_packages()
        installed = [known.pop(str(member.entry.coordinates), None) for member in members]
        found = (topmost_package(member.file, member.entry.package) for member in members)
        return [each for each in (*found, *installed, *known.values()) if each and each.folder.is_dir()]

    async def _call(self, method: str, params: Message, limit_s: float | None) -> Any:
        stage = self._stage
        assert stage is not None
        try:
            return await stage.call(method, params, limit_s)
        except StageError:
            await self._drop()
            raise
        except asyncio.CancelledError:
            if stage.end:
                await through(self._drop())
            raise

    async def _drop(self) -> None:
        """What is left of a stage that has ended."""
        stage, self._stage = self._stage, None
        gone, self._loaded = self._loaded, []
        self._sharing.lose()
        names = [self.roster.members[key].name for key in gone if key in self.roster.members]
        self._lost = [*(self._lost or ()), *names]
        if stage:
            await stage.close()
