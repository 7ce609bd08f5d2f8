"""Ensemble: a session's components at work, on one stage."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from goose_like.toolkit import ToolError, Workspace

from .environment import Environment
from .roster import Member, Roster
from .stage import Answer, Message, Stage, StageError

_LOAD_S = 120.0


class Ensemble:
    """Starts the stage with the first call, loads what a call needs, and begins anew after the stage's end."""

    def __init__(
        self,
        workspace: Workspace,
        roster: Roster,
        environment: Environment,
        start: Callable[[], Awaitable[Stage]],
    ) -> None:
        """`start` gives a new stage that is set up."""
        self._workspace = workspace
        self._roster = roster
        self._environment = environment
        self._start = start
        self._stage: Stage | None = None
        self._loaded: list[str] = []
        self._lost = ""
        self._one_at_a_time = asyncio.Lock()

    async def command(self, member: Member, params: Message, limit_s: float) -> tuple[Message, list[str]]:
        """What a command of a component gives, with what else is to be told.

        Raises:
            ToolError: it failed, did not end in time, or the process died of it.
        """
        async with self._one_at_a_time:
            notes = await self._ready(member)
            stage = self._stage
            assert stage is not None
            answer: Message = await self._watched(stage.call("command", {"key": member.key, **params}, limit_s))
            return answer, notes

    async def run(self, config: Message, args: Sequence[str], limit_s: float) -> None:
        """Runs a copilot to its end.

        Raises:
            ToolError: it failed.
        """
        async with self._one_at_a_time:
            stage = await self._alive()
            await self._watched(stage.call("run", {"config": config, "args": list(args)}, limit_s))

    async def close(self) -> list[str]:
        """Has all finalised and ends the process; gives what went wrong."""
        stage, self._stage = self._stage, None
        return await stage.finish() if stage else []

    async def _ready(self, member: Member) -> list[str]:
        """The stage with this component and its resources; gives what was lost before."""
        for each in (*self._roster.needed(member), member):
            await self._environment.install(each.definition.pip, each.name)
        stage = await self._alive()
        lost, self._lost = self._lost, ""
        for each in (*self._roster.needed(member), member):
            if each.key not in self._loaded:
                needs = [{"key": need.key, "asked": need.asked} for need in each.needs]
                try:
                    await self._watched(
                        stage.call("load", {"key": each.key, "config": each.whole, "resources": needs}, _LOAD_S)
                    )
                except ToolError as error:
                    raise ToolError(f"{each.name} can't be made: {error}") from error
                self._loaded.append(each.key)
        return [lost] if lost else []

    async def _alive(self) -> Stage:
        if self._stage and self._stage.end:
            await self._drop()
        if self._stage is None:
            self._stage = await self._start()
        return self._stage

    async def _watched(self, work: Awaitable[Any]) -> Any:
        try:
            return await work
        except StageError:
            await self._drop()
            raise
        except asyncio.CancelledError:
            if self._stage and self._stage.end:
                await asyncio.shield(self._drop())
            raise

    async def _drop(self) -> None:
        """What is left of a stage that has ended."""
        stage, self._stage = self._stage, None
        gone, self._loaded = self._loaded, []
        names = [self._roster.members[key].name for key in gone if key in self._roster.members]
        held = f"; what these held is gone: {', '.join(names)}" if names else ""
        self._lost = f"the components' process is a new one{held}"
        if stage:
            await stage.close()
