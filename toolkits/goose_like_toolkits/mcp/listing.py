"""What a server offers, as it lists it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from .definitions import Definitions, PromptArgument, PromptDefinition, ResourceDefinition, ToolDefinition

_MAX_PAGES = 100


async def list_everything(client: Any) -> tuple[Definitions, list[str]]:
    """List tools, prompts and resources of a server. Return them, and a line for each that cannot be used.

    Raises:
        Exception: the server gave no list, see the SDK's client.
    """
    offered = client.server_capabilities
    tools: list[ToolDefinition] = []
    problems: list[str] = []
    if offered.tools is not None:
        async for tool in _walk(client.list_tools, "tools"):
            problem = _find_problem(tool.input_schema)
            if problem:
                problems.append(f"offers a tool that is left out, {tool.name}: its schema is wrong: {problem}")
            else:
                tools.append(_read_tool(tool))
    prompts = []
    if offered.prompts is not None:
        async for prompt in _walk(client.list_prompts, "prompts"):
            prompts.append(_read_prompt(prompt))
    resources = []
    if offered.resources is not None:
        async for resource in _walk(client.list_resources, "resources"):
            resources.append(_read_resource(resource, resource.uri, is_template=False))
        async for template in _walk(client.list_resource_templates, "resource_templates"):
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
        problems,
    )


async def _walk(ask: Callable[..., Awaitable[Any]], field: str) -> AsyncIterator[Any]:
    """Yield the entries of all pages of a list. A server that does not know the list has none of them."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND

    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        try:
            page = await ask(cursor=cursor, cache_mode="bypass")
        except MCPError as error:
            if error.error.code == METHOD_NOT_FOUND:
                return
            raise
        for entry in getattr(page, field):
            yield entry
        cursor = page.next_cursor
        if not cursor:
            return


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
