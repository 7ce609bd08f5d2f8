"""The one way from a profile and a notifier to an exchange: journal, models, toolkits in order of need, prompt."""

import graphlib
import inspect
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from goose_like import __version__
from goose_like.agent.compaction.base import Moderator
from goose_like.config.profile import ApprovalMode, Limits, Profile, ToolkitChoice
from goose_like.core.entry_points import did_you_mean, load
from goose_like.core.errors import GooseLikeError, ProfileError, at_place
from goose_like.core.events import SessionStarted
from goose_like.core.notifier import Notifier
from goose_like.core.tool import Tool
from goose_like.providers.base import Models, Patience
from goose_like.providers.registry import open_models
from goose_like.sessions.session import Session
from goose_like.workspace.child import Narrowed
from goose_like.workspace.policy import task_in_words
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace

from .exchange import Exchange
from .goose09 import load_toolkit
from .journal import Journal
from .toolkit import Requirements, Toolkit
from .toolkit_guard import Guarded, code_of
from .view import ExchangeView

_IN_A_FOLDER = "You are goose_like, a developer agent. You do what the user asks in the current folder."
_ELSEWHERE = "You are goose_like, an assistant. You do what the user asks with the tools that you have."


@asynccontextmanager
async def build_exchange(
    profile: Profile,
    notifier: Notifier,
    *,
    session: Session | None = None,
    workspace: Workspace | None = None,
    within: Workspace | None = None,
    limits: Limits | None = None,
    patience: Patience = Patience(),
    models: Models | None = None,
    profile_within: Profile | None = None,
) -> AsyncIterator[Exchange]:
    """The exchange of a profile, open until the block is left; then toolkits, models and processes are closed.

    Without a `session` a temporary one is used, without a `workspace` that of the current folder, without `models`
    those of the profile. Those that are given stay the caller's to close.

    Args:
        within: the workspace of the exchange that this one works for. Without a `workspace` of its own it gets a
            `Narrowed` one of that, and undo is kept there.
        profile_within: what its toolkits take for the profile, and build exchanges within this one by; the profile
            itself where none is given.

    Raises:
        ProfileError: a toolkit, provider or requirement that is unknown, missing or circular; its `path` is the
            place in the profile.
        CredentialError: when there is no model to work with.
        SandboxError: commands can't be confined here, and nobody allows to do without.
    """
    async with AsyncExitStack() as stack:
        if session is None:
            session = Session.temporary()
            stack.callback(session.close)
        journal = Journal(session.history, session, notifier)
        stack.callback(journal.close)
        if models is None:
            models = open_models(profile)
            for provider in models.providers:
                stack.push_async_callback(provider.close)
        if workspace is None:
            kind = (
                partial(Workspace, Path.cwd(), grants=session.grants) if within is None else partial(Narrowed, within)
            )
            workspace = await stack.enter_async_context(
                kind(
                    mode=profile.sandbox,
                    approval=profile.approval,
                    notifier=journal,
                    session_folder=session.folder,
                )
            )
        undo = None
        if session.is_kept and within is None:
            undo = Undo(session.folder / "undo", workspace.root, journal.history, workspace.run, journal)
            workspace.before_change(undo.before_change)
            stack.push_async_callback(undo.close)
        limits = limits or profile.limits
        view = ExchangeView(journal.history, models, journal)
        toolkits: dict[str, Toolkit] = {}
        guarded: list[Guarded] = []
        for index, choice in _in_order_of_need(profile.toolkits):
            with code_of(choice.name, "toolkits", index):
                made = await _toolkit(
                    choice,
                    toolkits,
                    journal,
                    exchange_view=view,
                    workspace=workspace,
                    session=session,
                    limits=limits,
                    profile=profile_within or profile,
                )
            toolkits[choice.name] = made
            guarded.append(Guarded(choice.name, made, journal))
            stack.push_async_callback(guarded[-1].close)
        listed = [(choice.name, toolkits[choice.name]) for choice in profile.toolkits]
        tools = _tools(listed)
        moderator = _moderator(profile, session, guarded)
        journal.emit(
            SessionStarted(
                version=__version__,
                name=session.name,
                cwd=str(workspace.root),
                profile=profile.name,
                models={"processor": models.processor.label, "accelerator": models.accelerator.label},
                tools=tuple(tools),
                goes_on=session.goes_on,
            )
        )
        await workspace.ready()
        yield Exchange(
            models=models,
            moderator=moderator,
            system=_system(listed, workspace.approval),  # only now is known whether there is a sandbox
            tools=tools,
            journal=journal,
            session=session,
            limits=limits,
            patience=patience,
            workspace=workspace,
            undo=undo,
            begins=[each.begin for each in guarded],
            demands=[each.demand for each in guarded],
            doubts=[each.doubt for each in guarded],
            news={each.name: each.news for each in guarded},
            commands={made.name: made for toolkit in toolkits.values() for made in toolkit.commands()},
        )


def _in_order_of_need(choices: tuple[ToolkitChoice, ...]) -> list[tuple[int, ToolkitChoice]]:
    """The toolkits, each after those that it requires, with its place in the profile."""
    places = {choice.name: index for index, choice in enumerate(choices)}
    needs: dict[str, set[str]] = {}
    for index, choice in enumerate(choices):
        if places[choice.name] != index:
            raise ProfileError(f"toolkit {choice.name!r} is listed twice; remove one", ("toolkits", index))
        for alias, wanted in choice.requires.items():
            if wanted not in places:
                raise ProfileError(
                    f"toolkit {choice.name!r} requires {wanted!r}, which is not in this profile's list of toolkits; "
                    + did_you_mean(wanted, places),
                    ("toolkits", index, "requires", alias),
                )
        needs[choice.name] = set(choice.requires.values())
    try:
        order = list(graphlib.TopologicalSorter(needs).static_order())
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1]
        text = f"toolkits require each other in a circle: {' -> '.join(reversed(circle))}; remove one `requires`"
        raise ProfileError(text, ("toolkits", places[circle[0]], "requires")) from error
    return [(places[name], choices[places[name]]) for name in order]


async def _toolkit(choice: ToolkitChoice, built: dict[str, Toolkit], notifier: Notifier, **kwargs: Any) -> Toolkit:
    kind = load_toolkit(choice.name)
    requires = Requirements(choice.name, {alias: built[name] for alias, name in choice.requires.items()})
    try:
        inspect.signature(kind).bind(notifier, requires, config=choice.config, **kwargs)
    except TypeError as error:
        raise GooseLikeError(
            f"toolkit {choice.name!r} can't be made: {error} for its __init__; let it take "
            "`self, notifier, requires, **kwargs`: accept **kwargs and pass them to super().__init__"
        ) from error
    return await kind.prepared(notifier, requires, config=choice.config, **kwargs)


def _moderator(profile: Profile, session: Session, toolkits: list[Guarded]) -> Moderator:
    with at_place("moderator"):
        kind = cast(type[Moderator], load("goose_like.moderator", profile.moderator.name))
        return kind(
            profile.moderator.config,
            keep=session.keep_result,
            live=lambda: [section for each in toolkits for section in each.live()],
        )


def _tools(toolkits: list[tuple[str, Toolkit]]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = {}
    for index, (name, toolkit) in enumerate(toolkits):
        with code_of(name, "toolkits", index):
            for tool in toolkit.tools():
                if tool.name in tools:
                    both = f"{owners[tool.name]!r} and {name!r}"
                    raise ProfileError(
                        f"two toolkits have a tool {tool.name!r}: {both}; leave one out, pick among the tools of one "
                        "(`config: {tools: [...]}`), or rename one of the two"
                    )
                tools[tool.name], owners[tool.name] = tool, name
    return tools


def _system(toolkits: list[tuple[str, Toolkit]], approval: ApprovalMode) -> str:
    """The system prompt: the same bytes in every step of a session, so that prompt caches hold."""
    is_here = any(toolkit.touches_machine for _, toolkit in toolkits)
    parts = [_IN_A_FOLDER if is_here else _ELSEWHERE, task_in_words(approval)]
    for index, (name, toolkit) in enumerate(toolkits):
        with code_of(name, "toolkits", index):
            parts.append(toolkit.prompt().strip())
    return "\n\n".join(filter(None, parts))
