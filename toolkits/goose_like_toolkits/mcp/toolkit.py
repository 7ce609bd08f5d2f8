"""McpToolkit: the tools, resources and prompts of MCP servers."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import JsonValue
from typing_extensions import override

from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.toolkit import make_kept_tool
from goose_like.config.bundles import list_roots
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import InnerCall, Tool, ToolOptions, accept_any
from goose_like.toolkit import (
    ImageResult,
    Notifier,
    PromptSubmitted,
    PromptVerdict,
    Requirements,
    Resource,
    ToolError,
    Toolkit,
    tool,
)

from .config import expand_server, load_servers
from .definitions import Definitions, DefinitionStore
from .offer import DEFAULT_TOKENS, KnownServer, ListedTool, Offer, list_tools, matches, plan_offer
from .server import ServerConfig
from .server_state import ServerState

if TYPE_CHECKING:
    from .connection import Connection
    from .mentions import ResourceMention

NOT_INSTALLED = "MCP servers need the package `mcp`, which is not installed: pip install 'goose-like[mcp]'"

_SCHEME = "mcp:"
"""The start of a resource's address for other agents: `mcp:SERVER/URI`."""

_START_WAIT_S = 20.0
"""How long a search waits for servers that start."""

_MAX_FOUND = 8
_MAX_FOUND_CHARACTERS = 16_000
_MAX_LISTING_CHARACTERS = 4_000
_MAX_ERROR_SCHEMA = 2_000
_MAX_CHANGE_CHARACTERS = 4_000
_MAX_RESOURCES = 100


class McpToolkit(Toolkit):
    """Tools, resources and prompts of MCP servers. A server starts with its first use."""

    file_kind: ClassVar[str] = "MCP servers"

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        budget = self.config.get("definition_tokens", DEFAULT_TOKENS)
        if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:
            raise ProfileError(f"`definition_tokens` takes a number, not {budget!r}", ("config", "definition_tokens"))
        servers, problems = load_servers(self.config, self.project)
        if servers and find_spec("mcp") is None:
            problems = [NOT_INSTALLED]
            servers = []
        for problem in problems:
            self.notifier.log(f"MCP: {problem}")
        self.workspace.open_folders(list_roots())
        store = DefinitionStore()
        self._states: dict[str, ServerState] = {}
        for server in servers:
            self._states[server.name] = ServerState(server, store, self.notifier, self._connect, self._show_start)
        self._listed: dict[str, tuple[Definitions, tuple[ListedTool, ...]]] = {}
        known = [self._describe(state) for state in self._states.values()]
        self._offer: Offer = plan_offer(known, budget, defers=self.exchange_view.defers_tools)
        self._tools: tuple[Tool, ...] = self._build_tools()

    @classmethod
    @override
    def describe_files(cls, project: ProjectConfig) -> Sequence[str]:
        from .reach import describe_project  # only a person who decides about trust reads it

        return describe_project(project)

    @override
    def prompt(self) -> str:
        return self._offer.prompt

    @override
    def tools(self) -> tuple[Tool, ...]:
        # The same in the whole session, whatever the servers list later: the prompt is cached.
        return self._tools

    @override
    def commands(self) -> tuple[SlashCommand, ...]:
        summary = "Show the MCP servers, or the tools of one"
        overview = SlashCommand(
            "mcp", summary, self._show, "[SERVER]", choices=lambda context: list(self._states), anytime=True
        )
        commands = {overview.name: overview}
        for state in self._states.values():
            if not state.first or not state.first.prompts:
                continue
            from .prompts import build_command  # many servers have none

            for prompt in state.first.prompts:
                built = build_command(state, prompt)
                commands.setdefault(built.name, built)
        return tuple(commands.values())

    @override
    async def on_turn_start(self) -> None:
        for state in self._states.values():
            if state.first is None:
                state.start()

    @override
    def context_updates(self) -> Mapping[str, str]:
        updates: dict[str, str] = {}
        for state in self._states.values():
            if not state.changed:
                continue
            listed = [each for each in self._list_tools(state) if each.definition.name in state.changed]
            if listed:
                text = "\n".join(each.format() for each in listed)
                updates[f"changed tools of the MCP server {state.name}"] = text[:_MAX_CHANGE_CHARACTERS]
        return updates

    @override
    async def on_prompt_submitted(self, prompt: PromptSubmitted) -> PromptVerdict | None:
        if "@" not in prompt.text:
            return None
        from .mentions import find_mentions  # few messages need it

        mentions = find_mentions(prompt.text, self._states)
        if not mentions:
            return None
        texts = await asyncio.gather(*map(self._read_mention, mentions))
        return PromptVerdict(context="\n\n".join(texts))

    @override
    def mention_choices(self) -> Sequence[tuple[str, str]]:
        choices = []
        for state in self._states.values():
            for resource in state.current.resources if state.current else ():
                if not resource.is_template:
                    choices.append((f"{state.name}:{resource.uri}", resource.description or resource.name))
        return choices

    @override
    def resources(self) -> Sequence[Resource]:
        listed: list[Resource] = []
        if not self._has_resources():
            return listed  # the tool that would read them is not there
        for state in self._states.values():
            for each in state.current.resources if state.current else ():
                uri = f"{_SCHEME}{state.name}/{each.uri}"
                name = each.name or each.uri
                listed.append(Resource(uri, name, each.description, each.media_type, each.is_template))
        return listed

    @override
    def resource_call(self, uri: str) -> InnerCall | None:
        server, _, own_uri = uri.removeprefix(_SCHEME).partition("/")
        if not uri.startswith(_SCHEME) or server not in self._states:
            return None
        return InnerCall(make_kept_tool(self.read_mcp_resource), {"server": server, "uri": own_uri})

    @override
    async def close(self) -> None:
        await asyncio.gather(*(state.close() for state in self._states.values()))

    @tool(native="tool_search", read_only=True, kind="search", title="Find tools for {query}", time_limit_s=None)
    async def find_tools(self, query: str) -> str:
        """Find tools of MCP servers, with their arguments. Call them with call_tool.

        Args:
            query: What you want to do, such as "create issue", or the name of a tool or server.
        """
        from .search import format_found, list_by_server, search_tools

        notes = await self._wait_for_starts()
        usable = self._list_usable()
        found = search_tools([each for listed in usable.values() for each in listed], query)
        if found:
            answer = format_found(found, _MAX_FOUND_CHARACTERS, _MAX_FOUND)
        else:
            listing = list_by_server(usable, _MAX_LISTING_CHARACTERS)
            answer = f"no tool fits {query!r}; these are there:\n{listing}"
        return "\n".join([answer, *notes])

    @tool(native="tool_search", calls_another=True, title="{name}", time_limit_s=None)
    async def call_tool(self, name: str, arguments: dict[str, JsonValue] = {}) -> InnerCall:  # noqa: B006
        """Call a tool that find_tools found.

        Args:
            name: The whole name, such as mcp__SERVER__TOOL.
            arguments: The arguments of that tool.
        """
        await self._wait_for_starts()
        listed = self._find_tool(name)
        called = self._build_tool(listed, is_searched=True)
        return InnerCall(called, arguments)

    @tool(read_only=True, kind="fetch", title="Read {uri} of {server}", time_limit_s=None)
    async def read_mcp_resource(self, server: str, uri: str = "") -> str | ImageResult:
        """Read a resource of an MCP server.

        Args:
            server: The name of the server.
            uri: The resource, or nothing for a list of all.
        """
        if server not in self._states:
            raise ToolError(f"no MCP server {server!r}; {did_you_mean(server, self._states)}")
        state = self._states[server]
        connection = await state.open()
        if not uri:
            return _list_resources(state)
        parts = await connection.read_resource(uri)
        return _join(parts)

    def _show(self, context: Any, words: str) -> None:
        """Show the servers, or the tools of the one that is named."""
        from .overview import describe_row, describe_server, draw_table  # only a person who looks needs it

        if words and words not in self._states:
            raise UsageError(f"no MCP server {words!r}; {did_you_mean(words, self._states)}")
        if words:
            state = self._states[words]
            context.show(describe_server(state, self._list_tools(state)))
            return
        rows = []
        for state in self._states.values():
            rows.append(describe_row(state, self._list_tools(state), self._offer))
        context.show(draw_table(rows, self._offer))

    def _list_tools(self, state: ServerState) -> tuple[ListedTool, ...]:
        """List the tools of a server as they are now, without those that no pattern of the profile names."""
        if state.current is None:
            return ()
        definitions, tools = self._listed.get(state.name, (None, ()))
        if definitions is not state.current:
            tools = list_tools(state.server, state.current)
            if "tools" in self.config:
                patterns = self.config["tools"]
                tools = tuple(each for each in tools if matches(each.name, patterns))
            self._listed[state.name] = (state.current, tools)
        return tools

    def _show_start(self, name: str) -> None:
        self.notifier.status(f"starting the MCP server {name}")

    def _connect(self, server: ServerConfig, era: str) -> "Connection":
        # A session that uses no server must not wait for these imports.
        from .connection import Connection
        from .surroundings import Surroundings

        around = Surroundings(
            self.workspace,
            self.notifier,
            self.report_progress,
            self.session.outputs,
            expand_server,
            _find_auth,
        )
        return Connection(server, around, era=era)

    def _describe(self, state: ServerState) -> KnownServer:
        """Describe a server for the prompt, as it is stored."""
        first = state.first
        if first is None:
            return KnownServer(state.name, is_known=False)
        return KnownServer(
            state.name,
            self._list_tools(state),
            first.instructions,
            announces_changes=first.announces_changes,
        )

    def _build_tools(self) -> tuple[Tool, ...]:
        tools = [self._build_tool(listed) for listed in self._offer.sent]
        if self._offer.has_search:
            for method in (self.find_tools, self.call_tool):
                tools.append(_make_search(method, self._offer))
        if self._has_resources():
            tools.append(make_kept_tool(self.read_mcp_resource))
        for listed in self._offer.deferred:
            deferred = self._build_tool(listed)
            tools.append(replace(deferred, spec=replace(deferred.spec, deferred_group=listed.server)))
        return tuple(tools)

    def _has_resources(self) -> bool:
        return any(state.first and state.first.resources for state in self._states.values())

    def _build_tool(self, listed: ListedTool, *, is_searched: bool = False) -> Tool:
        state = self._states[listed.server]

        async def call(**arguments: Any) -> str | ImageResult:
            try:
                return await state.call_tool(listed.definition.name, arguments)
            except ToolError as error:
                if not is_searched:
                    raise
                raise ToolError(_add_schema(str(error), listed)) from error

        # The connection has a limit of its own, which progress of the server extends.
        options = ToolOptions(
            time_limit_s=None,
            needs_permission=True,
            get_version=lambda: state.describe_version(listed.definition.name),
        )
        return Tool(listed.spec, call, accept_any, options)

    async def _wait_for_starts(self) -> list[str]:
        """Wait for servers that start, and return sentences about those whose tools are unknown still."""
        unknown = [state for state in self._states.values() if state.current is None]
        for state in unknown:
            state.start()
        if unknown:
            await asyncio.gather(*(state.wait_for_start(_START_WAIT_S) for state in unknown))
        changed = [state for state in self._states.values() if state.has_news]
        if changed:  # else each call would wait for a round of the event loop
            with suppress(GooseLikeError):  # calls say what is wrong
                await asyncio.gather(*(state.open() for state in changed))
        return [f"[{state.name}: {state.condition}]" for state in unknown if state.current is None]

    def _list_usable(self) -> dict[str, Sequence[ListedTool]]:
        """List the tools of all servers that no rule denies, as they are now."""
        usable: dict[str, Sequence[ListedTool]] = {}
        for state in self._states.values():
            tools = self._list_tools(state)
            usable[state.name] = [each for each in tools if self.workspace.judge_tool(each.name) != "deny"]
        return usable

    def _find_tool(self, name: str) -> ListedTool:
        """Find a tool by its whole name, or by the server's own if only one has it.

        Raises:
            ToolError: there is none.
        """
        known: dict[str, ListedTool] = {}
        own: dict[str, list[ListedTool]] = {}
        for state in self._states.values():
            for each in self._list_tools(state):
                known[each.name] = each
                own.setdefault(each.definition.name, []).append(each)
        if name in known:
            return known[name]
        if len(own.get(name, ())) == 1:
            return own[name][0]
        raise ToolError(f"no tool {name!r} of an MCP server; {did_you_mean(name, known)}; look for it with find_tools")

    async def _read_mention(self, mention: "ResourceMention") -> str:
        """Read a resource that the person names. A failure is told to both."""
        from .mentions import format_resource

        try:
            connection = await self._states[mention.server].open()
            found = _join(await connection.read_resource(mention.uri))
        except GooseLikeError as error:
            self.notifier.log(f"@{mention.server}:{mention.uri} was not read: {error}")
            return f"[{mention.uri} of the MCP server {mention.server!r} could not be read: {error}]"
        text = found.text if isinstance(found, ImageResult) else found
        return format_resource(mention, text)


def _make_search(method: Callable[..., Any], offer: Offer) -> Tool:
    """Make a tool of the search. The server of a model stands for it if the search finds nothing else."""
    search = make_kept_tool(method)
    if offer.has_later:
        return replace(search, spec=replace(search.spec, native=""))
    return search


def _find_auth(server: ServerConfig) -> Any:
    from .login import build_auth  # few servers need a login

    return build_auth(server)


def _add_schema(text: str, listed: ListedTool) -> str:
    """Add the arguments of a tool to an error: the model may have called it without having read them."""
    schema = json.dumps(listed.spec.schema, ensure_ascii=False)
    if len(schema) > _MAX_ERROR_SCHEMA:
        return text
    return f"{text}\n[arguments of {listed.name}: {schema}]"


def _list_resources(state: ServerState) -> str:
    resources = state.current.resources if state.current else ()
    lines = []
    for resource in resources[:_MAX_RESOURCES]:
        about = resource.description or resource.name
        lines.append(f"{resource.uri}  {' '.join(about.split())}".rstrip())
    if len(resources) > _MAX_RESOURCES:
        lines.append(f"[{len(resources) - _MAX_RESOURCES} more]")
    return "\n".join(lines) or f"the MCP server {state.name!r} lists no resources"


def _join(parts: Sequence[str | ImageResult]) -> str | ImageResult:
    """Join the parts of a resource: all texts, with the first image."""
    texts = [part for part in parts if isinstance(part, str)]
    images = [part for part in parts if isinstance(part, ImageResult)]
    text = "\n".join(texts)
    if not images:
        return text or "[empty]"
    return replace(images[0], text="\n".join(filter(None, (text, images[0].text))))
