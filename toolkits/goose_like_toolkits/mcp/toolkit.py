"""McpToolkit: the tools, resources and prompts of MCP servers."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import JsonValue
from typing_extensions import override

from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.toolkit import make_kept_tool
from goose_like.config.bundles import list_roots
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import InnerCall, Tool, ToolOptions, ToolSpec, accept_any
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

from .offer import ALL_TOOLS, DEFAULT_TOKENS, Offer, OfferedTool
from .start import Sources, find_offer

if TYPE_CHECKING:
    from .mentions import ResourceMention
    from .server import ServerConfig
    from .session_servers import Servers

_SCHEME = "mcp:"
"""The start of a resource's address for other agents: `mcp:SERVER/URI`."""

_MAX_FOUND = 8
_MAX_FOUND_CHARACTERS = 16_000
_MAX_LISTING_CHARACTERS = 4_000
_MAX_ERROR_SCHEMA = 2_000


class McpToolkit(Toolkit):
    """Tools, resources and prompts of MCP servers. A server starts with its first use."""

    file_kind: ClassVar[str] = "MCP servers"

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        budget = self.config.get("definition_tokens", DEFAULT_TOKENS)
        if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:
            raise ProfileError(f"`definition_tokens` takes a number, not {budget!r}", ("config", "definition_tokens"))
        self._patterns: Sequence[str] = self.config.get("tools", ALL_TOOLS)
        self._sources = Sources(self.config, self.project)
        self._used_servers: Servers | None = None
        defers = self.exchange_view.defers_tools
        self._offer, problems = find_offer(self._sources, self._patterns, budget, defers=defers)
        for problem in problems:
            self.notifier.log(f"MCP: {problem}")
        self.workspace.open_folders(list_roots())
        self._tools: tuple[Tool, ...] = self._build_tools()

    @property
    def _servers(self) -> "Servers":
        """The servers. Most starts need none of them, only the offer."""
        if self._used_servers is None:
            self._used_servers = self._make_servers()
        return self._used_servers

    def _make_servers(self) -> "Servers":
        from .config import expand_server
        from .session_servers import Servers
        from .surroundings import Surroundings

        around = Surroundings(
            self.workspace,
            self.notifier,
            self.report_progress,
            self.session.outputs,
            expand_server,
            _find_auth,
        )
        return Servers(self._sources.servers, self._patterns, around)

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
            "mcp", summary, self._show, "[SERVER]", choices=lambda context: list(self._servers.states), anytime=True
        )
        commands = {overview.name: overview}
        for state in self._servers.states.values():
            if not state.first or not state.first.prompts:
                continue
            from .prompts import build_command  # many servers have none

            for prompt in state.first.prompts:
                built = build_command(state, prompt)
                commands.setdefault(built.name, built)
        return tuple(commands.values())

    @override
    async def on_turn_start(self) -> None:
        if self._offer.has_unknown:
            self._servers.start_unknown()

    @override
    def context_updates(self) -> Mapping[str, str]:
        used = self._used_servers
        return used.describe_changes() if used else {}

    @override
    async def on_prompt_submitted(self, prompt: PromptSubmitted) -> PromptVerdict | None:
        if "@" not in prompt.text:
            return None
        from .mentions import find_mentions  # few messages need it

        mentions = find_mentions(prompt.text, self._servers.states)
        if not mentions:
            return None
        texts = await asyncio.gather(*map(self._read_mention, mentions))
        return PromptVerdict(context="\n\n".join(texts))

    @override
    def mention_choices(self) -> Sequence[tuple[str, str]]:
        choices = []
        for state in self._servers.states.values():
            for resource in state.current.resources if state.current else ():
                if not resource.is_template:
                    choices.append((f"{state.name}:{resource.uri}", resource.description or resource.name))
        return choices

    @override
    def resources(self) -> Sequence[Resource]:
        listed: list[Resource] = []
        if not self._offer.has_resources:
            return listed  # the tool that would read them is not there
        for state in self._servers.states.values():
            for each in state.current.resources if state.current else ():
                uri = f"{_SCHEME}{state.name}/{each.uri}"
                name = each.name or each.uri
                listed.append(Resource(uri, name, each.description, each.media_type, each.is_template))
        return listed

    @override
    def resource_call(self, uri: str) -> InnerCall | None:
        if not uri.startswith(_SCHEME) or not self._offer.has_resources:
            return None
        address = uri.removeprefix(_SCHEME)
        for server in sorted(self._servers.states, key=len, reverse=True):  # a name may have slashes, too
            own_uri = address.removeprefix(f"{server}/")
            if own_uri and own_uri != address:
                return InnerCall(make_kept_tool(self.read_mcp_resource), {"server": server, "uri": own_uri})
        return None

    @override
    async def close(self) -> None:
        used = self._used_servers
        if used:
            await used.close()

    @tool(native="tool_search", read_only=True, kind="search", title="Find tools for {query}", time_limit_s=None)
    async def find_tools(self, query: str) -> str:
        """Find tools of MCP servers, with their arguments. Call them with call_tool.

        Args:
            query: What you want to do, such as "create issue", or the name of a tool or server.
        """
        from .search import format_found, list_by_server, search_tools

        notes = await self._servers.wait_for_starts()
        usable = self._servers.list_usable()
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
        await self._servers.wait_for_starts()
        found = self._servers.find_tool(name)
        called = self._build_tool(found.offer(), is_searched=True)
        return InnerCall(called, arguments)

    @tool(read_only=True, kind="fetch", title="Read {uri} of {server}", time_limit_s=None)
    async def read_mcp_resource(self, server: str, uri: str = "") -> str | ImageResult:
        """Read a resource of an MCP server.

        Args:
            server: The name of the server.
            uri: The resource, or nothing for a list of all.
        """
        from .resources import list_resources  # few servers have any

        state = self._servers.get(server)
        connection = await state.open()
        if not uri:
            return list_resources(state)
        return await connection.read_resource(uri)

    def _show(self, context: Any, words: str) -> None:
        """Show the servers, or the tools of the one that is named."""
        from .overview import describe_row, describe_server, draw_table  # only a person who looks needs it

        servers = self._servers
        if words and words not in servers.states:
            raise UsageError(f"no MCP server {words!r}; {did_you_mean(words, servers.states)}")
        if words:
            state = servers.states[words]
            context.show(describe_server(state, servers.list_tools(state)))
            return
        rows = []
        for state in servers.states.values():
            rows.append(describe_row(state, servers.list_tools(state), self._offer))
        context.show(draw_table(rows, self._offer))

    def _build_tools(self) -> tuple[Tool, ...]:
        tools = list(map(self._build_tool, self._offer.sent))
        if self._offer.has_search:
            for method in (self.find_tools, self.call_tool):
                tools.append(_make_search(method, self._offer))
        if self._offer.has_resources:
            tools.append(make_kept_tool(self.read_mcp_resource))
        for offered in self._offer.deferred:
            deferred = self._build_tool(offered)
            tools.append(replace(deferred, spec=replace(deferred.spec, deferred_group=offered.server)))
        return tuple(tools)

    def _build_tool(self, offered: OfferedTool, *, is_searched: bool = False) -> Tool:
        async def call(**arguments: Any) -> str | ImageResult:
            try:
                return await self._servers.get(offered.server).call_tool(offered.name, arguments)
            except ToolError as error:
                if not is_searched:
                    raise
                raise ToolError(_add_schema(str(error), offered.spec)) from error

        # The connection has a limit of its own, which progress of the server extends.
        options = ToolOptions(
            time_limit_s=None,
            needs_permission=True,
            get_version=lambda: self._servers.get(offered.server).describe_version(offered.name),
        )
        return Tool(offered.spec, call, accept_any, options)

    async def _read_mention(self, mention: "ResourceMention") -> str:
        """Read a resource that the person names. A failure is told to both."""
        from .mentions import format_resource

        try:
            connection = await self._servers.get(mention.server).open()
            found = await connection.read_resource(mention.uri)
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


def _find_auth(server: "ServerConfig") -> Any:
    from .login import build_auth  # few servers need a login

    return build_auth(server)


def _add_schema(text: str, spec: ToolSpec) -> str:
    """Add the arguments of a tool to an error: the model may have called it without having read them."""
    schema = json.dumps(spec.schema, ensure_ascii=False)
    if len(schema) > _MAX_ERROR_SCHEMA:
        return text
    return f"{text}\n[arguments of {spec.name}: {schema}]"
