"""What the requests of one worker share: models with their connections, a workspace, the key; and which ones run."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Limits, Profile
from goose_like.core.notifier import Notifier
from goose_like.providers.base import Models
from goose_like.providers.registry import open_models
from goose_like.serve.openbb.discovery import TOOLKIT
from goose_like.serve.openbb.query import Query
from goose_like.serve.openbb.state import Seal
from goose_like.workspace.workspace import Workspace

from .settings import Settings


class Nowhere(Workspace):
    """An empty folder, for toolkits that touch no machine: nothing is found out, started or asked for a request."""

    async def ready(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Service:
    """A worker's parts. `workspace` is None where each request gets one of its own: that of the current folder.
    `tools` are the names of the profile's, which none of the client's may have.
    """

    settings: Settings
    profile: Profile
    models: Models
    seal: Seal
    workspace: Workspace | None
    tools: frozenset[str] = frozenset()
    running: set[asyncio.Timeout] = field(default_factory=set)

    def profile_for(self, query: Query) -> Profile:
        """The profile with the request in its toolkit's config."""
        told = tuple(
            choice.model_copy(update={"config": {**choice.config, "query": query}})
            if choice.name == TOOLKIT
            else choice
            for choice in self.profile.toolkits
        )
        return self.profile.model_copy(update={"toolkits": told})

    @property
    def limits(self) -> Limits:
        """The profile's limits, and the server's where those are lower."""
        limits, settings = self.profile.limits, self.settings
        time_s = min(settings.time_s, limits.time_s or settings.time_s)
        costs = [cost for cost in (settings.cost_usd, limits.cost_usd) if cost is not None]
        return limits.model_copy(update={"time_s": time_s, "cost_usd": min(costs, default=None)})

    @contextmanager
    def stoppable(self, turn: asyncio.Timeout) -> Iterator[None]:
        """Within, `stop` ends the turn as if its time were up."""
        self.running.add(turn)
        try:
            yield
        finally:
            self.running.discard(turn)

    def stop(self) -> None:
        """Ends every turn that runs, now."""
        for turn in self.running:
            turn.reschedule(asyncio.get_running_loop().time())


@asynccontextmanager
async def open_service(settings: Settings, profile: Profile) -> AsyncIterator[Service]:
    """The parts for a profile, open until the block is left. All that a request needs is opened once before, so that
    what is missing is told now and not to the first client.

    Raises:
        GooseLikeError: what to install or set first.
    """
    async with AsyncExitStack() as stack:
        models = open_models(profile)
        for provider in models.providers:
            stack.push_async_callback(provider.close)
        workspace = None
        if not settings.toolkits:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="goose-like-serve-"))
            workspace = Nowhere(Path(folder), mode="read-only", approval="auto", notifier=Notifier())
            stack.push_async_callback(workspace.close)
        async with build_exchange(profile, Notifier(), workspace=workspace, models=models) as rehearsed:
            tools = frozenset(rehearsed.tools)
        yield Service(settings, profile, models, Seal(settings.seal_key), workspace, tools)
