"""Kinds of subagents: from profiles, and from agent files, which narrow the profile of the parent."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.turn_request import open_named_model
from goose_like.config.agent_file import AgentFile, load_agent_files
from goose_like.config.profile import Effort, Profile, ToolkitChoice
from goose_like.config.tool_list import parse_tool
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.spelling import normalize_name
from goose_like.providers.base import ModelPair

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema


@dataclass(frozen=True, slots=True)
class SubagentKind:
    """A profile, and for an agent file its description, its part of the prompt, its model and effort.

    The answer of a recipe fits the `answer_schema`.
    """

    profile: Profile
    description: str = ""
    prompt: str = ""
    model: str = ""
    effort: Effort | None = None
    answer_schema: "AnswerSchema | None" = None


@dataclass(slots=True)
class _Selection:
    """The tools of one toolkit that an agent file names. `names` are their matching names, ours or another agent's."""

    choice: ToolkitChoice
    tools: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    may_write: bool = False

    def narrow_choice(self) -> ToolkitChoice:
        """Return the toolkit with only the named tools."""
        config = {**self.choice.config, "tools": self.tools}
        return self.choice.model_copy(update={"config": config})


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
    profile = parent
    notes: list[str] = []
    if agent.tools is not None and "*" not in agent.tools:
        names = _read_names(agent.tools)
        selections = [_select_tools(choice, set(names.values())) for choice in parent.toolkits]
        notes = _explain_entries(agent.name, agent.tools, names, selections)
        profile = _narrow_profile(parent, selections)
    kind = SubagentKind(profile, agent.description, agent.prompt, agent.model, agent.effort)
    return kind, notes


def _read_names(entries: Sequence[str]) -> dict[str, str]:
    """Read the name of a tool from each entry of a tool list. Leave out the entries that cannot be read."""
    names = {}
    for entry in entries:
        parsed = parse_tool(entry)
        if parsed:
            name, _ = parsed
            names[entry] = normalize_name(name)
    return names


def _select_tools(choice: ToolkitChoice, names: set[str]) -> _Selection:
    """Select the tools of a toolkit that have some of the names, and that the parent's profile enables."""
    kind = load_toolkit(choice.name)
    selection = _Selection(choice)
    for tool in kind.tool_names():
        options = getattr(kind, tool).__tool__
        own_names = {normalize_name(name) for name in (tool, *options.aliases)}
        found = names & own_names
        is_enabled = tool in choice.config.get("tools", [tool])
        if not found or not is_enabled:
            continue
        selection.tools.append(tool)
        selection.names |= found
        # The name can decide: of two names of one tool, one may only read.
        if not kind.is_read_only and not all(map(options.is_read_only, found)):
            selection.may_write = True
    return selection


def _explain_entries(
    agent: str, entries: Sequence[str], names: Mapping[str, str], selections: Sequence[_Selection]
) -> list[str]:
    """Return notes about the entries that match no tool, and about those whose limit has no effect.

    Raises:
        GooseLikeError: no entry matches a tool.
    """
    found = set[str]().union(*(selection.names for selection in selections))
    missing = []
    limited = []
    for entry in dict.fromkeys(entries):
        if names.get(entry) not in found:
            missing.append(entry)
        elif "(" in entry:
            limited.append(entry)
    notes = []
    if missing:
        listed = ", ".join(missing)
        if not found:
            raise GooseLikeError(f"the agent {agent!r}: no tool here matches {listed}; name others in its file")
        notes.append(f"the agent {agent!r} works without {listed}: no tool here matches")
    if limited:
        notes.append(f"the agent {agent!r} gets {', '.join(limited)} without the limit in parentheses")
    return notes


def _narrow_profile(parent: Profile, selections: Sequence[_Selection]) -> Profile:
    """Return the parent's profile with the selected tools only."""
    toolkits = []
    may_write = False
    for selection in selections:
        if not selection.tools:
            continue
        toolkits.append(selection.narrow_choice())
        # A nested delegate has no more rights than this kind.
        if selection.may_write and selection.choice.name != "delegate":
            may_write = True
    changes: dict[str, object] = {"toolkits": tuple(toolkits)}
    if not may_write:
        changes["sandbox"] = "read-only"
    return parent.model_copy(update=changes)


@asynccontextmanager
async def open_kind_models(
    kind: SubagentKind, own: ModelPair, parent: Profile, log: Callable[[str], None]
) -> AsyncIterator[ModelPair | None]:
    """Open the model of a kind until the end of the block. Give None for the parent's, also if it cannot be used."""
    current = own.processor
    model = None
    try:
        model = open_named_model(kind.model, current, parent.processor, effort=kind.effort)
    except GooseLikeError as error:
        wanted = f"the model {kind.model!r}" if kind.model else f"the effort {kind.effort!r}"
        log(f"{current.label} works for the delegate, since {wanted} can't be used: {error}")
    if model is None:
        yield None
        return
    try:
        yield ModelPair(model, own.accelerator)
    finally:
        await model.provider.close()
