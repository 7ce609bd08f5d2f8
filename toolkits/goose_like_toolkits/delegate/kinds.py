"""Kinds of subagents: from profiles, and from agent files, which narrow the profile of the parent."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.turn_request import find_model_label
from goose_like.config.agent_file import AgentFile
from goose_like.config.profile import ModelChoice, Profile, ToolkitChoice
from goose_like.core.errors import GooseLikeError
from goose_like.providers.base import ModelPair
from goose_like.providers.registry import open_model

_READERS = frozenset(("grep", "glob", "ls", "find", "search", "searchfiles", "listfiles", "listdir", "listdirectory"))
"""Names of tools in other agents that only read, and that the shell stands in for."""


@dataclass(frozen=True, slots=True)
class SubagentKind:
    """A profile, and for an agent file its description, its part of the prompt, and its model."""

    profile: Profile
    description: str = ""
    prompt: str = ""
    model: str = ""


def make_kind(agent: AgentFile, parent: Profile) -> SubagentKind:
    """Narrow the parent's profile to the tools of an agent file. Tools that only read make the sandbox read-only."""
    profile = parent
    if agent.tools is not None:
        names = {_get_letters(name) for name in agent.tools}
        picks = [(choice, list(_pick_tools(choice, names))) for choice in parent.toolkits]
        toolkits = tuple(
            choice.model_copy(update={"config": {**choice.config, "tools": [tool for tool, _ in picked]}})
            for choice, picked in picks
            if picked
        )
        changes: dict[str, object] = {"toolkits": toolkits}
        # A nested delegate has no more rights than this kind.
        if not any(writes for choice, picked in picks if choice.name != "delegate" for _, writes in picked):
            changes["sandbox"] = "read-only"
        profile = parent.model_copy(update=changes)
    return SubagentKind(profile, agent.description, agent.prompt, agent.model)


def _pick_tools(choice: ToolkitChoice, names: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield the tools of a toolkit that have one of the names, ours or another agent's, and whether they may write."""
    kind = load_toolkit(choice.name)
    for tool in kind.tool_names():
        options = getattr(kind, tool).__tool__
        found = names & {_get_letters(name) for name in (tool, *options.aliases)}
        if found and tool in choice.config.get("tools", [tool]):
            yield tool, options.parallel is not True and not found <= _READERS


def _get_letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.partition("(")[0])).lower()


@asynccontextmanager
async def open_kind_models(
    name: str, own: ModelPair, parent: Profile, log: Callable[[str], None]
) -> AsyncIterator[ModelPair | None]:
    """Open the model of a kind until the end of the block. Give None for the parent's, also if it cannot be used."""
    current, model = own.processor, None
    provider = current.label.partition(":")[0]
    try:
        label = find_model_label(name, provider) if name else ""
        if label not in ("", current.label):
            choice = ModelChoice(model=label)
            if parent.processor and parent.processor.provider == choice.provider:
                choice = choice.model_copy(update={"base_url": parent.processor.base_url})
            model = open_model(choice)
    except (GooseLikeError, ValueError) as error:
        log(f"{current.label} works for the delegate, since the model {name!r} can't be used: {error}")
    try:
        yield ModelPair(model, own.accelerator) if model else None
    finally:
        if model:
            await model.provider.close()
