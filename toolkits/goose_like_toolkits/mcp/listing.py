"""What a server offers, as it lists it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from .definitions import Definitions, ToolDefinition
from .failures import describe_problem
from .prompts_and_resources import PromptArgument, PromptDefinition, ResourceDefinition

_MAX_PAGES = 100
_SHOWN_PROBLEMS = 5
_MAX_NAME_CHARACTERS = 80


async def list_everything(client: Any) -> tuple[Definitions, str]:
    """List tools, prompts and resources of a server. Return them, and a line about those that cannot be used.

    Raises:
        Exception: the server gave no list, see the SDK's client.
    """
    offered = client.server_capabilities
    lists = _Lists(client)
    tools: list[ToolDefinition] = []
    if offered.tools is not None:
        async for tool in lists.walk(client.list_tools, "tools"):
            problem = _find_problem(tool.input_schema)
            if problem:
                lists.leave_out(tool.name[:_MAX_NAME_CHARACTERS], f"its schema is wrong: {problem}")
            else:
                tools.append(_read_tool(tool))
    prompts = []
    if offered.prompts is not None:
        async for prompt in lists.walk(client.list_prompts, "prompts"):
            prompts.append(_read_prompt(prompt))
    resources = []
    if offered.resources is not None:
        async for resource in lists.walk(client.list_resources, "resources"):
            resources.append(_read_resource(resource, resource.uri, is_template=False))
        async for template in lists.walk(client.list_resource_templates, "resource_templates"):
            resources.append(_read_resource(template, template.uri_template, is_template=True))
    return (
        Definitions(
            era=client.protocol_version,
            instructions=client.instructions or "",
            tools=tuple(tools),
            prompts=tuple(prompts),
            resources=tuple(resources),
            announces_changes=bool(offered.tools and offered.tools.list_changed),
        ),
        lists.describe_left_out(),
    )


class _Lists:
    """The lists of a server, and the entries of them that are left out."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._left_out: list[str] = []

    def leave_out(self, name: str, why: str) -> None:
        """Note an entry that cannot be used."""
        self._left_out.append(f"{name} ({why})")

    def describe_left_out(self) -> str:
        """Describe what cannot be used in one line; empty if that is nothing."""
        if not self._left_out:
            return ""
        shown = ", ".join(self._left_out[:_SHOWN_PROBLEMS])
        more = len(self._left_out) - _SHOWN_PROBLEMS
        ending = f" and {more} more" if more > 0 else ""
        return f"lists what cannot be used and is left out: {shown}{ending}"

    async def walk(self, ask: Callable[..., Awaitable[Any]], field: str) -> AsyncIterator[Any]:
        """Yield the entries of all pages of a list. A server that does not know the list has none of them."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import METHOD_NOT_FOUND
        from pydantic import ValidationError

        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            try:
                page = await ask(cursor=cursor, cache_mode="bypass")
            except MCPError as error:
                if error.error.code == METHOD_NOT_FOUND:
                    return
                raise
            except ValidationError as error:
                page = await self._read_leniently(field, cursor, error)
            for entry in getattr(page, field):
                yield entry
            cursor = page.next_cursor
            if not cursor:
                return

    async def _read_leniently(self, field: str, cursor: str | None, error: Exception) -> Any:
        """Return a page without its malformed entries. The SDK refuses the whole page for one of them.

        Raises:
            Exception: the page itself is malformed: `error`, which the SDK gave.
        """
        import mcp_types
        from pydantic import ValidationError

        kinds: dict[str, tuple[str, Any, Any]] = {
            "tools": ("tools", mcp_types.ListToolsResult, mcp_types.Tool),
            "prompts": ("prompts", mcp_types.ListPromptsResult, mcp_types.Prompt),
            "resources": ("resources", mcp_types.ListResourcesResult, mcp_types.Resource),
            "resource_templates": (
                "resources/templates",
                mcp_types.ListResourceTemplatesResult,
                mcp_types.ResourceTemplate,
            ),
        }
        path, page_type, entry_type = kinds[field]
        key = page_type.model_fields[field].alias
        raw = await self._ask_unchecked(f"{path}/list", cursor)
        entries = raw.get(key)
        if not isinstance(entries, list):
            raise error
        kept = []
        for entry in entries:
            try:
                entry_type.model_validate(entry, by_name=False)
            except ValidationError as problem:
                self.leave_out(_find_name(entry), describe_problem(problem))
            else:
                kept.append(entry)
        return page_type.model_validate({**raw, key: kept}, by_name=False)

    async def _ask_unchecked(self, method: str, cursor: str | None) -> Any:
        """Ask for a page past the checks of the SDK, which has no public way for that."""
        session = self._client.session
        request: dict[str, Any] = {"method": method, "params": {}}
        if cursor is not None:
            request["params"]["cursor"] = cursor
        options: dict[str, Any] = {}
        session._stamp(request, options)
        return await session._dispatcher.send_raw_request(method, request["params"], options)


def _find_name(entry: object) -> str:
    """Find a name for an entry that may be anything."""
    if isinstance(entry, Mapping):
        for key in ("name", "uri", "uriTemplate"):
            if isinstance(entry.get(key), str):
                return str(entry[key])[:_MAX_NAME_CHARACTERS]
    return "an entry without a name"


def _find_problem(schema: Any) -> str:
    """Find what is wrong with a tool's schema: vendors refuse each request that has such a tool."""
    from jsonschema import Draft202012Validator, SchemaError

    if schema.get("type") != "object":
        return f"its type is {schema.get('type')!r}, not 'object'"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return str(error.message)
    return ""


def _read_tool(tool: Any) -> ToolDefinition:
    hints = tool.annotations
    return ToolDefinition(
        name=tool.name,
        title=tool.title or (hints and hints.title) or "",
        description=tool.description or "",
        input_schema=tool.input_schema,
        is_read_only=bool(hints and hints.read_only_hint),
    )


def _read_prompt(prompt: Any) -> PromptDefinition:
    arguments = [
        PromptArgument(name=argument.name, description=argument.description or "", is_required=bool(argument.required))
        for argument in prompt.arguments or ()
    ]
    return PromptDefinition(
        name=prompt.name,
        title=prompt.title or "",
        description=prompt.description or "",
        arguments=tuple(arguments),
    )


def _read_resource(resource: Any, uri: str, *, is_template: bool) -> ResourceDefinition:
    return ResourceDefinition(
        uri=str(uri),
        name=resource.title or resource.name,
        description=resource.description or "",
        media_type=resource.mime_type or "",
        is_template=is_template,
    )


async def follow_changes(client: Any) -> None:
    """Ask a server of the new era to say when a list of its changes. The client passes that on as a notification.

    Servers of the old era need not be asked.

    Raises:
        Exception: the server refuses that or is lost, see the SDK's client.
    """
    offered = client.server_capabilities
    has_tools = bool(offered.tools and offered.tools.list_changed)
    has_prompts = bool(offered.prompts and offered.prompts.list_changed)
    has_resources = bool(offered.resources and offered.resources.list_changed)
    if client.session.discover_result is None or not (has_tools or has_prompts or has_resources):
        return
    listening = client.listen(
        tools_list_changed=has_tools,
        prompts_list_changed=has_prompts,
        resources_list_changed=has_resources,
    )
    async with listening as changes:
        async for _ in changes:
            continue
