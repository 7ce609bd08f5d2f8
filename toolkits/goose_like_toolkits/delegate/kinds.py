"""Kinds of subagents: from profiles, and from agent files, which narrow the profile of the parent."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.turn_request import open_named_model
from goose_like.config.agent_file import AgentFile, load_agent_files
from goose_like.config.profile import Effort, Profile, ToolkitChoice
from goose_like.config.tool_list import parse_tool
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError
from goose_like.core.spelling import normalize_name
from goose_like.providers.base import ModelPair


@dataclass(frozen=True, slots=True)
class SubagentKind:
    """A profile, and for an agent file its description, its part of the prompt, its model and effort."""

    profile: Profile
    description: str = ""
    prompt: str = ""
    model: str = ""
    effort: Effort | None = None


def load_kinds(project: ProjectConfig | None, parent: Profile) -> tuple[dict[str, SubagentKind], list[str]]:
    """Load the kinds of the agent files by name, and sentences about what cannot be used."""
    agents, problems = load_agent_files(project)
    kinds = {}
    for name, agent in agents.items():
        try:
            kinds[name], notes = make_kind(agent, parent)
            problems += notes
        except GooseLikeError as error:
            problems.append(f"skipped: {error}")
    return kinds, problems


def make_kind(agent: AgentFile, parent: Profile) -> tuple[SubagentKind, list[str]]:
    """Narrow the parent's profile to the tools of an agent file, and return notes about entries without effect.

    Tools that only read make the sandbox read-only.

    Raises:
        GooseLikeError: the file lists tools, but the parent has none of them.
    """
    profile, notes = parent, list[str]()
    if agent.tools is not None and "*" not in agent.tools:
        entries = {entry: parse_tool(entry) for entry in agent.tools}
        names = {entry: normalize_name(parsed[0]) for entry, parsed in entries.items() if parsed}
        picks = [(choice, list(_pick_tools(choice, set(names.values())))) for choice in parent.toolkits]
        found = {name for _, picked in picks for _, matched, _ in picked for name in matched}
        missing = ", ".join(entry for entry in entries if names.get(entry) not in found)
        if missing and not found:
            raise GooseLikeError(f"the agent {agent.name!r}: no tool here matches {missing}; name others in its file")
        if missing:
            notes.append(f"the agent {agent.name!r} works without {missing}: no tool here matches")
        if limited := ", ".join(entry for entry in entries if "(" in entry and names.get(entry) in found):
            notes.append(f"the agent {agent.name!r} gets {limited} without the limit in parentheses")
        toolkits = tuple(
            choice.model_copy(update={"config": {**choice.config, "tools": [tool for tool, *_ in picked]}})
            for choice, picked in picks
            if picked
        )
        changes: dict[str, object] = {"toolkits": toolkits}
        # A nested delegate has no more rights than this kind.
        if not any(writes for choice, picked in picks if choice.name != "delegate" for *_, writes in picked):
            changes["sandbox"] = "read-only"
        profile = parent.model_copy(update=changes)
    return SubagentKind(profile, agent.description, agent.prompt, agent.model, agent.effort), notes


def _pick_tools(choice: ToolkitChoice, names: set[str]) -> Iterator[tuple[str, set[str], bool]]:
    """Yield the tools of a toolkit that have some of the names, ours or another agent's.

    Yield these names with each tool, and whether the tool may write under one of them.
    """
    kind = load_toolkit(choice.name)
    for tool in kind.tool_names():
        options = getattr(kind, tool).__tool__
        found = names & set(map(normalize_name, (tool, *options.aliases)))
        if found and tool in choice.config.get("tools", [tool]):
            yield tool, found, not (kind.is_read_only or all(map(options.is_read_only, found)))


@asynccontextmanager
async def open_kind_models(
    kind: SubagentKind, own: ModelPair, parent: Profile, log: Callable[[str], None]
) -> AsyncIterator[ModelPair | None]:
    """Open the model of a kind until the end of the block. Give None for the parent's, also if it cannot be used."""
    current, model = own.processor, None
    try:
        model = open_named_model(kind.model, current, parent.processor, effort=kind.effort)
    except GooseLikeError as error:
        wanted = f"the model {kind.model!r}" if kind.model else f"the effort {kind.effort!r}"
        log(f"{current.label} works for the delegate, since {wanted} can't be used: {error}")
    try:
        yield ModelPair(model, own.accelerator) if model else None
    finally:
        if model:
            await model.provider.close()
