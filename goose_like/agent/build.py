"""The assembly of an exchange from a profile and a notifier: journal, models, workspace, toolkits, prompt."""

import graphlib
import inspect
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from goose_like import __version__
from goose_like.agent.compaction.base import Moderator
from goose_like.config.profile import ApprovalMode, Limits, Profile, ToolkitChoice
from goose_like.core.entry_points import did_you_mean, load_entry_point
from goose_like.core.errors import GooseLikeError, ProfileError, prefix_error_path
from goose_like.core.events import SessionStarted
from goose_like.core.notifier import Notifier
from goose_like.core.tool import Tool
from goose_like.providers.base import ModelPair
from goose_like.providers.registry import open_models
from goose_like.providers.retry import RetryPolicy
from goose_like.sessions.session import Session
from goose_like.workspace.child import ChildWorkspace
from goose_like.workspace.policy import describe_task
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace

from .exchange import Exchange
from .goose09 import load_toolkit
from .journal import Journal
from .limits import TurnLimits
from .toolkit import Requirements, Toolkit
from .toolkit_hooks import ToolkitGuard, ToolkitHooks, toolkit_errors
from .view import ExchangeView

_DEVELOPER = "You are goose_like, a developer agent. You do what the user asks in the current folder."
_ASSISTANT = "You are goose_like, an assistant. You do what the user asks with the tools that you have."


@asynccontextmanager
async def build_exchange(
    profile: Profile,
    notifier: Notifier,
    *,
    session: Session | None = None,
    workspace: Workspace | None = None,
    parent_workspace: Workspace | None = None,
    limits: Limits | None = None,
    retry_policy: RetryPolicy = RetryPolicy(),
    models: ModelPair | None = None,
    toolkit_profile: Profile | None = None,
) -> AsyncIterator[Exchange]:
    """Build the exchange of a profile, and close everything that was opened at the end of the block.

    The defaults are a temporary session, a workspace in the current folder, and the models of the profile. Arguments
    that the caller passes stay open. A subagent passes the `parent_workspace`: it gets a `ChildWorkspace`, and the undo
    of the parent covers its changes. Toolkits see `toolkit_profile`, or else `profile`.

    Raises:
        ProfileError: a toolkit, provider or requirement is unknown, missing or circular; `path` is its place.
        CredentialError: there is no model to work with.
        SandboxError: commands cannot be sandboxed here, and nobody allowed to run them without a sandbox.
    """
    async with AsyncExitStack() as stack:
        session = session or _open_temporary_session(stack)
        journal = Journal(session, notifier)
        stack.callback(journal.close)
        models = models or _open_models(profile, stack)
        workspace = workspace or await _open_workspace(profile, journal, parent_workspace, stack)
        undo = _start_undo(workspace, journal, stack) if session.is_kept and parent_workspace is None else None
        limits = limits or profile.limits
        toolkits, hooks = await _create_toolkits(
            profile.toolkits,
            journal,
            stack,
            exchange_view=ExchangeView(session, models, journal),
            workspace=workspace,
            session=session,
            limits=limits,
            profile=toolkit_profile or profile,
        )
        tools = _collect_tools(toolkits)
        moderator = _create_moderator(profile, session, hooks)
        journal.emit(describe_start(profile.name, session, workspace, models, tools))
        await workspace.prepare_sandbox()
        yield Exchange(
            models=models,
            moderator=moderator,
            system=_write_system_prompt(toolkits, workspace.approval),  # the sandbox, which it describes, is known now
            tools=tools,
            journal=journal,
            limits=TurnLimits(limits, session),
            retry_policy=retry_policy,
            workspace=workspace,
            hooks=hooks,
            undo=undo,
        )


def _open_temporary_session(stack: AsyncExitStack) -> Session:
    session = Session.temporary()
    stack.callback(session.close)
    return session


def _open_models(profile: Profile, stack: AsyncExitStack) -> ModelPair:
    models = open_models(profile)
    for provider in models.providers:
        stack.push_async_callback(provider.close)
    return models


async def _open_workspace(
    profile: Profile, journal: Journal, parent: Workspace | None, stack: AsyncExitStack
) -> Workspace:
    kind = (
        partial(Workspace, Path.cwd(), grants=journal.session.grants)
        if parent is None
        else partial(ChildWorkspace, parent)
    )
    return await stack.enter_async_context(
        kind(
            mode=profile.sandbox,
            approval=profile.approval,
            notifier=journal,
            session_folder=journal.session.folder,
        )
    )


def _start_undo(workspace: Workspace, journal: Journal, stack: AsyncExitStack) -> Undo:
    session = journal.session
    undo = Undo(session.folder / "undo", workspace.root, session.history, workspace.run_internal, journal)
    workspace.add_change_listener(undo.on_change)
    stack.push_async_callback(undo.close)
    return undo


def describe_start(
    profile: str, session: Session, workspace: Workspace, models: ModelPair, tools: Iterable[str]
) -> SessionStarted:
    """Create the first event of an exchange. `profile` and `tools` are names."""
    return SessionStarted(
        version=__version__,
        name=session.name,
        cwd=str(workspace.root),
        profile=profile,
        models={"processor": models.processor.label, "accelerator": models.accelerator.label},
        tools=tuple(tools),
        is_resumed=session.has_open_turn,
    )


async def _create_toolkits(
    choices: Sequence[ToolkitChoice], journal: Journal, stack: AsyncExitStack, **wiring: Any
) -> tuple[list[tuple[str, Toolkit]], ToolkitHooks]:
    """Create the toolkits in order of dependency. Return them by name, in the order of the profile, and their hooks."""
    toolkits: dict[str, Toolkit] = {}
    guards: list[ToolkitGuard] = []
    for index, choice in _sort_by_dependency(choices):
        with toolkit_errors(choice.name, "toolkits", index):
            toolkit = await _create_toolkit(choice, toolkits, journal, **wiring)
        toolkits[choice.name] = toolkit
        guards.append(ToolkitGuard(choice.name, toolkit, journal))
        stack.push_async_callback(guards[-1].close)
    return [(choice.name, toolkits[choice.name]) for choice in choices], ToolkitHooks(guards)


def _sort_by_dependency(choices: Sequence[ToolkitChoice]) -> list[tuple[int, ToolkitChoice]]:
    """Sort the toolkits, each after those that it requires, with their indexes in the profile."""
    indexes = {choice.name: index for index, choice in enumerate(choices)}
    required: dict[str, set[str]] = {}
    for index, choice in enumerate(choices):
        if indexes[choice.name] != index:
            raise ProfileError(f"toolkit {choice.name!r} is listed twice; remove one", ("toolkits", index))
        for alias, name in choice.requires.items():
            if name not in indexes:
                raise ProfileError(
                    f"toolkit {choice.name!r} requires {name!r}, which is not in this profile's list of toolkits; "
                    + did_you_mean(name, indexes),
                    ("toolkits", index, "requires", alias),
                )
        required[choice.name] = set(choice.requires.values())
    try:
        order = list(graphlib.TopologicalSorter(required).static_order())
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1]
        text = f"toolkits require each other in a circle: {' -> '.join(reversed(circle))}; remove one `requires`"
        raise ProfileError(text, ("toolkits", indexes[circle[0]], "requires")) from error
    return [(indexes[name], choices[indexes[name]]) for name in order]


async def _create_toolkit(
    choice: ToolkitChoice, created: dict[str, Toolkit], notifier: Notifier, **wiring: Any
) -> Toolkit:
    kind = load_toolkit(choice.name)
    requires = Requirements(choice.name, {alias: created[name] for alias, name in choice.requires.items()})
    try:
        inspect.signature(kind).bind(notifier, requires, config=choice.config, **wiring)
    except TypeError as error:
        raise GooseLikeError(
            f"toolkit {choice.name!r} can't be created: {error} for its __init__; let it take "
            "`self, notifier, requires, **kwargs`: accept **kwargs and pass them to super().__init__"
        ) from error
    return await kind.create(notifier, requires, config=choice.config, **wiring)


def _create_moderator(profile: Profile, session: Session, hooks: ToolkitHooks) -> Moderator:
    with prefix_error_path("moderator"):
        kind = cast(type[Moderator], load_entry_point("goose_like.moderator", profile.moderator.name))
        return kind(
            profile.moderator.config,
            save_result=session.save_result,
            state_sections=hooks.list_state_sections,
        )


def _collect_tools(toolkits: Sequence[tuple[str, Toolkit]]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = {}
    for index, (name, toolkit) in enumerate(toolkits):
        with toolkit_errors(name, "toolkits", index):
            for tool in toolkit.tools():
                if tool.name in tools:
                    both = f"{owners[tool.name]!r} and {name!r}"
                    raise ProfileError(
                        f"two toolkits have a tool {tool.name!r}: {both}; leave one out, pick among the tools of one "
                        "(`config: {tools: [...]}`), or rename one of the two"
                    )
                tools[tool.name], owners[tool.name] = tool, name
    return tools


def _write_system_prompt(toolkits: Sequence[tuple[str, Toolkit]], approval: ApprovalMode) -> str:
    """Write the system prompt, which stays the same in every step of a session so that prompt caches hold."""
    is_local = any(toolkit.has_local_access for _, toolkit in toolkits)
    parts = [_DEVELOPER if is_local else _ASSISTANT, describe_task(approval)]
    for index, (name, toolkit) in enumerate(toolkits):
        with toolkit_errors(name, "toolkits", index):
            parts.append(toolkit.prompt().strip())
    return "\n\n".join(filter(None, parts))
