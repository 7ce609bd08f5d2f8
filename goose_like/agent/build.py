"""The assembly of an exchange from a profile and a notifier: journal, models, workspace, toolkits, prompt."""

import asyncio
import graphlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import field, replace
from pathlib import Path
from typing import Any, cast

from goose_like import __version__
from goose_like.agent.compaction.moderators import Moderator
from goose_like.config.entry_points import BUILTIN_ENTRY_POINTS, load_entry_point
from goose_like.config.profile import Limits, Profile, ToolkitChoice, VerifyChoice
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ProfileError, UsageError, prefix_error_path
from goose_like.core.events import CallDisplay, SessionStarted
from goose_like.core.notifier import Notifier
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import Tool
from goose_like.providers.base import ModelPair
from goose_like.providers.registry import open_models
from goose_like.sessions.session import Session
from goose_like.workspace.more_folders import WRITABLE
from goose_like.workspace.permissions.policy import describe_task, effective_sandbox
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.unsaved_text import EditorFiles
from goose_like.workspace.workspace import Workspace

from .budget import Budget
from .exchange import Exchange
from .goose09 import load_toolkit
from .journal import Journal
from .present_toolkits import add_present_toolkits
from .printed_text import redirect_prints
from .subagent import EventRelay
from .tool_rules import apply_tool_rules
from .toolkit import Requirements, Toolkit
from .toolkit_hooks import ToolkitHooks, close_toolkit, toolkit_errors
from .verification import Verification
from .view import ExchangeView

_LOOK_DELAY_S = 0.3
"""Delay before undo looks at a large repository. By then the first model request is on its way."""

_DEVELOPER = (
    "You are goose_like, a developer agent. You do what the user asks in the current folder. "
    "The calls of one message run in order: each sees what those before it did."
)
_ASSISTANT = "You are goose_like, an assistant. You do what the user asks with the tools that you have."


@dataclass(frozen=True, slots=True)
class ClientPart:
    """What a client adds to a profile: a text for the end of the prompt, and tools by name that no toolkit may have.

    `editor` has the files of an editor, perhaps with text that nobody has saved.
    """

    prompt: str = ""
    tools: dict[str, Tool] = field(default_factory=dict)
    editor: EditorFiles | None = None


@asynccontextmanager
async def build_exchange(
    profile: Profile,
    notifier: Notifier,
    *,
    session: Session | None = None,
    project: ProjectConfig | None = None,
    workspace: Workspace | None = None,
    parent_workspace: Workspace | None = None,
    folder: Path | None = None,
    limits: Limits | None = None,
    parent_budget: Budget | None = None,
    rounds: int | None = None,
    models: ModelPair | None = None,
    toolkit_profile: Profile | None = None,
    client: ClientPart = ClientPart(),
    logs_prints: bool = False,
) -> AsyncIterator[Exchange]:
    """Build the exchange of a profile, and close everything that was opened at the end of the block.

    The defaults are a temporary session, a workspace in the current folder, and the profile's models. Arguments that
    the caller passes stay open. `project` has the trusted files of the repository. Toolkits whose files exist are
    added, unless the caller passes a workspace, a parent or a `toolkit_profile`. A subagent passes the
    `parent_workspace`, whose undo covers its changes, and the `parent_budget`, and works there or in `folder`, a
    worktree; it is never allowed more. `rounds` limits its own steps. Toolkits see `toolkit_profile`, or else
    `profile`. `client` adds to that. `logs_prints`: prints are logged.

    Raises:
        ProfileError: a toolkit, provider or requirement is unknown, missing or circular; `path` is its place.
        CredentialError: there is no model to work with.
        SandboxError: commands cannot be sandboxed here, and nobody allowed to run them without a sandbox.
    """
    async with AsyncExitStack() as stack:
        session = session or stack.enter_context(closing(Session.temporary()))
        journal = stack.enter_context(closing(Journal(session, notifier)))
        if logs_prints:
            stack.enter_context(redirect_prints(journal))
        if workspace is None and parent_workspace is None and toolkit_profile is None:  # others choose the toolkits
            profile = add_present_toolkits(profile, folder or Path.cwd(), project, journal)
        models = models or _open_models(profile, stack)
        budget = Budget(limits or profile.limits, session, parent_budget, rounds=rounds)
        _check_prices(profile, budget, models)
        left_out = set[str]()
        if workspace is None:
            workspace = _create_workspace(profile, journal, parent_workspace, folder, client.editor)
            await stack.enter_async_context(workspace)
            if workspace.mode == "read-only":
                left_out = _find_writing_toolkits(profile.toolkits, journal)
        shared_workspace = workspace
        journal.is_unattended = lambda: shared_workspace.is_unattended
        undo = None if parent_workspace else _start_undo(workspace, journal, stack)
        wiring = {
            "exchange_view": ExchangeView(session, models, journal, budget),
            "workspace": workspace,
            "session": session,
            "limits": budget.limits,
            "profile": toolkit_profile or profile,
            "project": project,
        }
        toolkits = await _create_toolkits(profile.toolkits, left_out, journal, stack, **wiring)
        hooks = await _connect_hooks(journal, toolkits, notifier, stack)
        tools = apply_tool_rules(_collect_tools(toolkits) | client.tools, workspace, hooks.calls)
        moderator = _create_moderator(profile, session, hooks)
        journal.emit(describe_start(profile, session, workspace, models, tools))
        await workspace.prepare_sandbox()  # the prompt describes it
        exchange = Exchange(
            models=models,
            moderator=moderator,
            system=_write_system_prompt(toolkits, workspace, profile, client.prompt),
            tools=tools,
            journal=journal,
            budget=budget,
            workspace=workspace,
            hooks=hooks,
            undo=undo,
            verification=_create_verification(profile, project, workspace, journal, budget, tools),
            hosted=profile.hosted,
            examples=[toolkit.examples for toolkit in toolkits.values() if toolkit.examples],
        )
        _tell_hosted_problems(exchange)
        yield exchange


async def _connect_hooks(
    journal: Journal, toolkits: Mapping[str, Toolkit], notifier: Notifier, stack: AsyncExitStack
) -> ToolkitHooks:
    """Create the hooks of the toolkits. Those of a parent hold too, and learn that a subagent starts and ends."""
    relay = notifier if isinstance(notifier, EventRelay) else None
    hooks = ToolkitHooks(
        journal,
        toolkits,
        parent=relay.parent_hooks if relay else None,
        subagent=relay.who if relay else "",
        is_resumed=bool(journal.history.turns),
    )
    journal.hooks = hooks
    stack.push_async_callback(hooks.end_session)
    if relay:
        context = await stack.enter_async_context(relay.tell_hooks(journal.history))
        hooks.add_context(context)
    return hooks


def can_keep_toolkits(before: Profile, after: Profile) -> bool:
    """Return whether an exchange can go on under another profile: only the models or the approval differ.

    Commands must have the same sandbox as before. `yolo` has another one: it does not protect git hooks.
    """
    changes = {"processor": after.processor, "accelerator": after.accelerator, "approval": after.approval}
    if before.model_copy(update={**changes, "sandbox": after.sandbox}) != after:
        return False
    if before.approval != after.approval and "yolo" in (before.approval, after.approval):
        return False
    old_sandbox = effective_sandbox(before.sandbox, before.approval)
    return old_sandbox == effective_sandbox(after.sandbox, after.approval)


def change_profile(exchange: Exchange, profile: Profile, stack: AsyncExitStack) -> Exchange:
    """Return the exchange under another profile, with the toolkits, the shell and the processes of before.

    Check `can_keep_toolkits` first. `stack` closes the new models.

    Raises:
        GooseLikeError: a model cannot be used, or its price is unknown although the cost has a limit.
    """
    workspace = exchange.workspace
    journal = exchange.journal
    models = _open_models(profile, stack)
    _check_prices(profile, exchange.budget, models)
    rules = workspace.rules_text
    if workspace.approval != profile.approval:
        workspace.change_approval(profile.approval)
    system = exchange.system.replace(rules, workspace.rules_text)
    for toolkit in exchange.hooks.toolkits.values():
        toolkit.use_profile(profile, models)
    journal.emit(describe_start(profile, journal.session, workspace, models, exchange.tools))
    changed = replace(exchange, models=models, system=system)
    _tell_hosted_problems(changed)
    return changed


def _tell_hosted_problems(exchange: Exchange) -> None:
    if exchange.workspace.is_child:
        return  # the parent has said it
    for problem in exchange.hosted_problems:
        exchange.journal.log(problem)


def _open_models(profile: Profile, stack: AsyncExitStack) -> ModelPair:
    models = open_models(profile)
    for provider in models.providers:
        stack.push_async_callback(provider.close)
    return models


def _check_prices(profile: Profile, budget: Budget, models: ModelPair) -> None:
    try:
        budget.check_prices([model.price_label for model in models.models])
    except ProfileError as error:
        if budget.limits.cost_usd == profile.limits.cost_usd:
            raise
        raise UsageError(str(error)) from error  # the limit is not one of the profile


def _create_verification(
    profile: Profile,
    project: ProjectConfig | None,
    workspace: Workspace,
    journal: Journal,
    budget: Budget,
    tools: Mapping[str, Tool],
) -> Verification | None:
    if workspace.is_child:  # the caller judges what a subagent did
        return None
    check = profile.verify
    if check is None and project and project.check:
        check = VerifyChoice(commands=(project.check,))
    return Verification(check, workspace, journal, budget, tools)


def _create_workspace(
    profile: Profile, journal: Journal, parent: Workspace | None, folder: Path | None, editor: EditorFiles | None
) -> Workspace:
    if folder is None:
        folder = parent.root if parent else Path.cwd()
    return Workspace(
        folder,
        mode=profile.sandbox,
        approval=profile.approval,
        notifier=journal,
        session_folder=journal.session.folder,
        grants=journal.session.grants,
        parent=parent,
        settings=profile,
        editor=editor,
    )


def _start_undo(workspace: Workspace, journal: Journal, stack: AsyncExitStack) -> Undo | None:
    session = journal.session
    if not session.is_kept:
        return None
    folder = session.folder / "undo"
    undo = Undo(folder, workspace.folders, session.history, workspace.run_internal, journal, workspace.ask_loss)
    workspace.add_change_listener(undo.on_change)
    workspace.ledger.hash_tree = undo.hash_tree
    workspace.ledger.take_signs = undo.watch.take_signs
    workspace.ledger.name_changes = undo.name_changes
    workspace.unsaved.keep = undo.keep_unsaved
    stack.push_async_callback(undo.close)
    if workspace.mode != "read-only":
        timer = asyncio.get_running_loop().call_later(_LOOK_DELAY_S, undo.prepare)
        stack.callback(timer.cancel)
    return undo


def describe_start(
    profile: Profile | None, session: Session, workspace: Workspace, models: ModelPair, tools: Mapping[str, Tool]
) -> SessionStarted:
    """Create the first event of an exchange."""
    labels = {"processor": models.processor.label, "accelerator": models.accelerator.label}
    displays: dict[str, CallDisplay] = {}
    for name, tool in tools.items():
        if tool.options.display != "whole":
            displays[name] = tool.options.display
    return SessionStarted(
        version=__version__,
        name=session.name,
        cwd=str(workspace.root),
        profile=profile.name if profile else "",
        models=labels,
        tools=tuple(tools),
        is_resumed=session.has_open_turn,
        sandbox=profile.sandbox if profile else "",
        approval=profile.approval if profile else "",
        displays=displays,
        folders=tuple(f"{folder}{WRITABLE}" for folder in workspace.folders[1:]),
        instructions=profile.instructions if profile else "",
    )


async def _create_toolkits(
    choices: Sequence[ToolkitChoice], left_out: set[str], journal: Journal, stack: AsyncExitStack, **wiring: Any
) -> dict[str, Toolkit]:
    """Create the toolkits, each after those that it requires. Return them by name, in the order of the profile."""
    toolkits: dict[str, Toolkit] = {}
    for index, choice in _sort_by_dependency(choices):
        if choice.name in left_out:
            continue
        with toolkit_errors(choice.name, "toolkits", index):
            kind = load_toolkit(choice.name)
            required = {alias: toolkits[name] for alias, name in choice.requires.items()}
            requires = Requirements(choice.name, required)
            toolkits[choice.name] = await kind.create(journal, requires, config=choice.config, **wiring)
        stack.push_async_callback(close_toolkit, choice.name, toolkits[choice.name], journal)
    return {choice.name: toolkits[choice.name] for choice in choices if choice.name in toolkits}


def _find_writing_toolkits(choices: Sequence[ToolkitChoice], journal: Journal) -> set[str]:
    """Find toolkits of other packages that may change something, and those that require them. Ours obey the workspace.

    A read-only session does without them.
    """
    found: set[str] = set()
    for index, choice in _sort_by_dependency(choices):
        with toolkit_errors(choice.name, "toolkits", index):
            is_ours = choice.name in BUILTIN_ENTRY_POINTS["goose_like.toolkit"]
            may_write = not is_ours and not load_toolkit(choice.name).is_read_only
        requires_writing = not found.isdisjoint(choice.requires.values())
        if may_write or requires_writing:
            found.add(choice.name)
            journal.log(f"toolkit {choice.name!r} is left out: it may change something, and this session is read-only")
    return found


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
        names = " -> ".join(reversed(circle))
        text = f"toolkits require each other in a circle: {names}; remove one `requires`"
        raise ProfileError(text, ("toolkits", indexes[circle[0]], "requires")) from error
    return [(indexes[name], choices[indexes[name]]) for name in order]


def _create_moderator(profile: Profile, session: Session, hooks: ToolkitHooks) -> Moderator:
    with prefix_error_path("moderator"):
        choice = profile.moderator
        kind = cast(type[Moderator], load_entry_point("goose_like.moderator", choice.name))
        moderator = kind(
            choice.config,
            save_result=session.save_result,
            state_sections=hooks.list_state_sections,
        )
        moderator.before_compaction = hooks.before_compaction
        return moderator


def _collect_tools(toolkits: Mapping[str, Toolkit]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = {}
    for index, (name, toolkit) in enumerate(toolkits.items()):
        with toolkit_errors(name, "toolkits", index):
            for tool in toolkit.tools():
                owner = owners.get(tool.name)
                if owner:
                    raise ProfileError(
                        f"two toolkits have a tool {tool.name!r}: {owner!r} and {name!r}; leave one out, pick among "
                        "the tools of one (`config: {tools: [...]}`), or rename one of the two"
                    )
                tools[tool.name] = tool
                owners[tool.name] = name
    return tools


def _write_system_prompt(
    toolkits: Mapping[str, Toolkit], workspace: Workspace, profile: Profile, client_prompt: str
) -> str:
    """Write the system prompt of this process. A session keeps its first one, and tells the model what differs.

    The task of a subagent is its message, and the person's instructions are for the parent.
    """
    is_local = any(toolkit.has_local_access for toolkit in toolkits.values())
    parts = [_DEVELOPER if is_local else _ASSISTANT]
    if not workspace.is_child:
        parts.append(describe_task(workspace.approval))
    for index, (name, toolkit) in enumerate(toolkits.items()):
        with toolkit_errors(name, "toolkits", index):
            parts.append(toolkit.prompt().strip())
    parts.append(client_prompt)
    if not workspace.is_child:
        parts.append(profile.instructions.strip())
    return "\n\n".join(filter(None, parts))
