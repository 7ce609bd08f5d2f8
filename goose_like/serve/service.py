"""The parts that all requests of one worker share: profiles, model connections, workspaces and running turns."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from typing_extensions import override

from goose_like.agent.build import build_exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.config.entry_points import CLIENT_TOOLKITS
from goose_like.config.private_folder import PrivateFolder
from goose_like.config.profile import Limits, ModelChoice, Profile, ToolkitChoice
from goose_like.core.errors import ProfileError
from goose_like.core.notifier import Notifier
from goose_like.core.spelling import did_you_mean
from goose_like.providers.base import ModelPair
from goose_like.providers.http_provider import HttpProvider
from goose_like.providers.registry import choose_models, find_provider_class, open_models
from goose_like.workspace.workspace import Workspace

from .documents.reader import DocumentReader
from .settings import Settings

CLIENT_TOOLKIT = CLIENT_TOOLKITS["OpenBB Workspace"]
"""The toolkit that every served profile has; its config also says how the profile presents itself to clients."""


class EmptyWorkspace(Workspace):
    """A workspace of an empty folder, for profiles without toolkits that access this machine."""

    @override
    async def prepare_sandbox(self) -> None:
        pass  # no audit and no sandbox check: nothing but the reader of documents is started here


@dataclass(frozen=True, slots=True)
class Service:
    """The shared parts of one worker for one profile.

    `workspace` is None if each request opens its own in the current folder, because the profile has toolkits that
    access this machine. `tool_names` are the profile's tools, whose names no client tool may have. `plain_profile` and
    `plain_tool_names` are without `CLIENT_TOOLKIT`, for clients that are no Workspace. All profiles of a worker
    share `running_turns` and `documents`.
    """

    settings: Settings
    profile: Profile
    models: ModelPair
    workspace: Workspace | None
    tool_names: frozenset[str] = frozenset()
    plain_profile: Profile = field(default_factory=Profile)
    plain_tool_names: frozenset[str] = frozenset()
    documents: DocumentReader | None = None
    running_turns: set[asyncio.Timeout] = field(default_factory=set)

    @property
    def limits(self) -> Limits:
        """The lower one of each limit of the profile and of the server."""
        return _compute_limits(self.profile, self.settings)

    def hide_addresses(self, text: str) -> str:
        """Replace the addresses of the models' servers in a text for clients."""
        for provider in self.models.providers:
            if isinstance(provider, HttpProvider):
                text = provider.hide_address(text)
        return text

    def stop_turns(self) -> None:
        """End every running turn now with a TimeoutError."""
        for turn in self.running_turns:
            turn.reschedule(asyncio.get_running_loop().time())


@asynccontextmanager
async def open_services(settings: Settings, profiles: Sequence[Profile]) -> AsyncIterator[dict[str, Service]]:
    """Open the shared parts for each profile, by name. Profiles with the same models share their connections.

    Building exchanges checks that nothing is missing.

    Raises:
        GooseLikeError: a key, package or setting is missing.
    """
    services: dict[str, Service] = {}
    opened: dict[tuple[ModelChoice, ModelChoice], ModelPair] = {}
    running_turns: set[asyncio.Timeout] = set()
    async with AsyncExitStack() as stack:
        documents = DocumentReader(_open_empty_workspace(stack), settings.file_hosts)
        for profile in profiles:
            choices = choose_models(profile)
            if choices not in opened:
                opened[choices] = open_models(profile)
                for provider in opened[choices].providers:
                    stack.push_async_callback(provider.close)
            models = opened[choices]
            workspace = None
            toolkit_names = {choice.name for choice in profile.toolkits}
            if toolkit_names.isdisjoint(settings.toolkits):
                workspace = _open_empty_workspace(stack)
            plain_profile = _remove_client_toolkit(profile)
            services[profile.name] = Service(
                settings,
                profile,
                models,
                workspace,
                tool_names=await _list_tool_names(profile, settings, models, workspace),
                plain_profile=plain_profile,
                plain_tool_names=await _list_tool_names(plain_profile, settings, models, workspace),
                documents=documents,
                running_turns=running_turns,
            )
        yield services


async def _list_tool_names(
    profile: Profile, settings: Settings, models: ModelPair, workspace: Workspace | None
) -> frozenset[str]:
    """Build an exchange for a profile, and return the names of its tools."""
    limits = _compute_limits(profile, settings)
    building = build_exchange(profile, Notifier(), workspace=workspace, models=models, limits=limits)
    async with building as exchange:
        return frozenset(exchange.tools)


def _compute_limits(profile: Profile, settings: Settings) -> Limits:
    limits = profile.limits
    time_s = min(settings.query_timeout_s, limits.time_s or settings.query_timeout_s)
    costs = [cost for cost in (settings.max_cost_usd, limits.cost_usd) if cost is not None]
    return limits.model_copy(update={"time_s": time_s, "cost_usd": min(costs, default=None)})


def _open_empty_workspace(stack: AsyncExitStack) -> EmptyWorkspace:
    folder = stack.enter_context(PrivateFolder("serve")).path
    workspace = EmptyWorkspace(folder, mode="read-only", approval="auto", notifier=Notifier())
    stack.push_async_callback(workspace.close)
    return workspace


def _remove_client_toolkit(profile: Profile) -> Profile:
    """Remove `CLIENT_TOOLKIT` from a profile unless another toolkit requires it."""
    for choice in profile.toolkits:
        if CLIENT_TOOLKIT in choice.requires.values():
            return profile
    kept = tuple(choice for choice in profile.toolkits if choice.name != CLIENT_TOOLKIT)
    return profile.model_copy(update={"toolkits": kept})


def describe_model_limits(choice: ModelChoice) -> str:
    """Describe the limits of a model for the people who read its answers; empty if there is nothing to say."""
    limits = []
    if choice.provider == "local":
        limits.append("a small model: it is slow and misreads figures, so check them")
    provider = find_provider_class(choice.provider)
    if not (choice.images and provider.info.takes_images):
        limits.append("it sees no pictures")
    return "; ".join(limits)


def restrict_profile(profile: Profile, allowed: Collection[str]) -> tuple[Profile, tuple[str, ...]]:
    """Remove toolkits that access this machine from a profile, except the `allowed` ones; add `CLIENT_TOOLKIT`.

    Returns the profile and the names of the removed toolkits.

    Raises:
        ProfileError: a toolkit requires a removed one, or the profile does not have an allowed one.
        GooseLikeError: a toolkit cannot be imported.
    """
    listed = [choice.name for choice in profile.toolkits]
    for name in allowed:
        if name not in (*listed, CLIENT_TOOLKIT):
            hint = did_you_mean(name, listed)
            raise ProfileError(f"--toolkit {name}: profile {profile.name!r} has no such toolkit; {hint}")
    kept: list[ToolkitChoice] = []
    removed: list[str] = []
    for choice in profile.toolkits:
        if choice.name in allowed or not load_toolkit(choice.name).has_local_access:
            kept.append(choice)
        else:
            removed.append(choice.name)
    _check_requirements(profile, removed)
    if CLIENT_TOOLKIT not in listed:
        kept.append(ToolkitChoice(name=CLIENT_TOOLKIT))
    return profile.model_copy(update={"toolkits": tuple(kept)}), tuple(removed)


def _check_requirements(profile: Profile, removed: Collection[str]) -> None:
    """Check that no toolkit of a profile requires one that is removed."""
    for index, choice in enumerate(profile.toolkits):
        if choice.name in removed:
            continue
        for alias, needed in choice.requires.items():
            if needed in removed:
                raise ProfileError(
                    f"toolkit {choice.name!r} requires {needed!r}, which accesses this machine and is left out; "
                    f"add --toolkit {needed} to offer it to all clients, or remove {choice.name!r} from the profile",
                    ("toolkits", index, "requires", alias),
                )
