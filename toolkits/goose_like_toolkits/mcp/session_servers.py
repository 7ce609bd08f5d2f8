"""The servers of a session, for all that needs more than the offer: most starts make none of them."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from goose_like.core.errors import GooseLikeError
from goose_like.core.spelling import did_you_mean
from goose_like.toolkit import ToolError

from .definitions import Definitions, DefinitionStore
from .offer_plan import ListedTool, list_tools
from .server import ServerConfig
from .server_state import ServerState
from .surroundings import Surroundings

if TYPE_CHECKING:
    from .connection import Connection

_START_WAIT_S = 20.0
"""How long a search waits for servers that start."""

_MAX_CHANGE_CHARACTERS = 4_000


class Servers:
    """The servers of a session by name, and the tools that they have now. Nothing starts before its first use."""

    def __init__(
        self,
        stored: Iterable[tuple[ServerConfig, Definitions | None]],
        patterns: Collection[str],
        around: Surroundings,
    ) -> None:
        """Take the servers with their definitions of the start. `patterns` are explained at `list_tools`."""
        self._patterns = patterns
        self._around = around
        self._listed: dict[str, tuple[Definitions, tuple[ListedTool, ...]]] = {}
        self.states: dict[str, ServerState] = {}
        store = DefinitionStore()
        for server, definitions in stored:
            state = ServerState(server, definitions, store, around.notifier, self._connect, self._show_start)
            self.states[server.name] = state

    def get(self, name: str) -> ServerState:
        """Return a server.

        Raises:
            ToolError: there is none of this name.
        """
        if name not in self.states:
            raise ToolError(f"no MCP server {name!r}; {did_you_mean(name, self.states)}")
        return self.states[name]

    def start_unknown(self) -> None:
        """Start the servers without stored definitions in the background."""
        for state in self.states.values():
            if state.first is None:
                state.start()

    async def wait_for_starts(self) -> list[str]:
        """Wait for servers that start, and return sentences about those whose tools are unknown still."""
        unknown = [state for state in self.states.values() if state.current is None]
        for state in unknown:
            state.start()
        if unknown:
            await asyncio.gather(*(state.wait_for_start(_START_WAIT_S) for state in unknown))
        changed = [state for state in self.states.values() if state.has_news]
        if changed:  # else each call would wait for a round of the event loop
            with suppress(GooseLikeError):  # calls say what is wrong
                await asyncio.gather(*(state.open() for state in changed))
        return [f"[{state.name}: {state.condition}]" for state in unknown if state.current is None]

    async def close(self) -> None:
        """End all servers and everything that they started."""
        await asyncio.gather(*(state.close() for state in self.states.values()))

    def list_tools(self, state: ServerState) -> tuple[ListedTool, ...]:
        """List the tools of a server as they are now, without those that no pattern of the profile names."""
        if state.current is None:
            return ()
        definitions, tools = self._listed.get(state.name, (None, ()))
        if definitions is not state.current:
            tools = list_tools(state.server, state.current, self._patterns)
            self._listed[state.name] = (state.current, tools)
        return tools

    def list_usable(self) -> dict[str, Sequence[ListedTool]]:
        """List the tools of all servers that no rule denies, as they are now."""
        judge = self._around.workspace.judge_tool
        usable: dict[str, Sequence[ListedTool]] = {}
        for state in self.states.values():
            usable[state.name] = [each for each in self.list_tools(state) if judge(each.name) != "deny"]
        return usable

    def find_tool(self, name: str) -> ListedTool:
        """Find a tool by its whole name, or by the server's own if only one has it.

        Raises:
            ToolError: there is none.
        """
        listed: list[ListedTool] = []
        for state in self.states.values():
            listed += self.list_tools(state)
        for tool in listed:
            if tool.name == name:
                return tool
        own = [tool for tool in listed if tool.definition.name == name]
        if len(own) == 1:
            return own[0]
        hint = did_you_mean(name, [tool.name for tool in listed])
        raise ToolError(f"no tool {name!r} of an MCP server; {hint}; look for it with find_tools")

    def describe_changes(self) -> Mapping[str, str]:
        """Describe the tools that are other ones than the prompt says, as facts for the model."""
        facts: dict[str, str] = {}
        for state in self.states.values():
            if not state.changed:
                continue
            changed = [each for each in self.list_tools(state) if each.definition.name in state.changed]
            if changed:
                text = "\n".join(each.format() for each in changed)
                facts[f"changed tools of the MCP server {state.name}"] = text[:_MAX_CHANGE_CHARACTERS]
        return facts

    def _show_start(self, name: str) -> None:
        self._around.notifier.status(f"starting the MCP server {name}")

    def _connect(self, server: ServerConfig, era: str) -> "Connection":
        # A session that uses no server must not wait for these imports.
        from .connection import Connection

        return Connection(server, self._around, era=era)
