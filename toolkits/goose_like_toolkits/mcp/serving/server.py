"""The server: tools and slash commands of an exchange, and `run_task`."""

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from goose_like import __version__
from goose_like.agent.exchange import Exchange
from goose_like.agent.tool_call import call_tool
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import ToolCall, ToolResult
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import Tool

from .call import ClientCall
from .content import convert_result
from .prompts import Prompts
from .request_queue import Context, RequestQueue
from .resources import Resources
from .saved_files import SavedFiles
from .tasks import ServerBudget

_MAX_COMPLETIONS = 100
"""The most that the protocol takes."""


class ToolServer:
    """The handlers of the protocol. Calls of all clients run one after the other, each as a turn of its own.

    `offered` are the names of the exchange's tools that clients may use, and `own_tools` run beside the exchange.
    """

    def __init__(
        self,
        exchange: Exchange,
        offered: Mapping[str, Tool],
        own_tools: Mapping[str, Tool],
        budget: ServerBudget,
        prompts: Prompts,
        resources: Resources,
        queue: RequestQueue,
    ) -> None:
        self._exchange = exchange
        self._own_tools = own_tools
        self._budget = budget
        self._tools = {**offered, **own_tools}
        self._prompts = prompts
        self._resources = resources
        self._queue = queue

    def build(self) -> Server[Any]:
        """Build the server of the SDK."""
        root = self._exchange.workspace.root
        has_resources = self._resources.has_any()
        return Server(
            "goose-like",
            version=__version__,
            instructions=f"Tools of goose-like for the folder {root}. Calls run one after the other.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
            on_list_resources=self._list_resources if has_resources else None,
            on_list_resource_templates=self._list_templates if has_resources else None,
            on_read_resource=self._read_resource if has_resources else None,
        )

    async def _list_tools(self, context: Context, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe(tool) for tool in self._tools.values()])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        if params.name not in self._tools:
            hint = did_you_mean(params.name, self._tools)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; {hint}")
        arguments = json.dumps(params.arguments or {})
        client = _name_client(context)
        outputs = self._exchange.session.outputs

        async def work(call: ClientCall) -> types.CallToolResult:
            wanted = ToolCall(id=call.id, name=params.name, arguments=arguments)
            files = SavedFiles(outputs)
            result = await self._run(call, wanted, client)
            return convert_result(result, outputs, files.convert(result))

        return await self._queue.answer(context, params, work)

    async def _run(self, call: ClientCall, wanted: ToolCall, client: str) -> ToolResult:
        """Run a call as a turn, and return its result."""
        if wanted.name in self._own_tools:
            with self._budget.draw():
                outcome = await call_tool(self._own_tools, wanted)
            return ToolResult(call_id=call.id, output=outcome.output, is_error=outcome.is_error)
        with self._budget.draw(free_steps=1):
            end = await self._exchange.run_calls(f"{client} calls {wanted.name}", [wanted])
        result = call.result or ToolResult(call_id=call.id, output=end.detail or end.reason, is_error=True)
        used_up = self._budget.describe_end()
        if result.is_error and used_up:  # perhaps the tool asks a model
            result = result.model_copy(update={"output": f"{result.output}\n[{used_up}]"})
        return result

    async def _list_prompts(self, context: Context, params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=self._prompts.list_all())

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> Any:
        async def work(call: ClientCall) -> types.GetPromptResult:
            return await self._prompts.get(params.name, params.arguments or {})

        try:
            return await self._queue.answer(context, params, work)
        except GooseLikeError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error

    async def _complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        values: list[str] = []
        if isinstance(params.ref, types.PromptReference):
            try:
                values = await self._prompts.complete(params.ref.name, params.argument.value)
            except GooseLikeError as error:
                raise MCPError(types.INVALID_PARAMS, str(error)) from error
        shown = values[:_MAX_COMPLETIONS]
        has_more = len(shown) < len(values)
        return types.CompleteResult(completion=types.Completion(values=shown, total=len(values), has_more=has_more))

    async def _list_resources(self, context: Context, params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._resources.list_all())

    async def _list_templates(self, context: Context, params: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=self._resources.list_templates())

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> Any:
        client = _name_client(context)
        found = self._resources.find_call(params.uri)

        async def work(call: ClientCall) -> types.ReadResourceResult:
            wanted = ToolCall(id=call.id, name=found.tool.name, arguments=json.dumps(found.arguments))
            files = SavedFiles(self._exchange.session.outputs)
            result = await self._run(call, wanted, client)
            if result.is_error:
                raise MCPError(types.INVALID_PARAMS, result.output, {"uri": params.uri})
            return self._resources.build_result(params.uri, result, files)

        return await self._queue.answer(context, params, work)


def _name_client(context: Context) -> str:
    client = context.session.client_params
    return client.client_info.name if client else "an MCP client"


def _describe(tool: Tool) -> types.Tool:
    spec = tool.spec
    hints = types.ToolAnnotations(read_only_hint=tool.options.is_read_only(spec.name))
    return types.Tool(name=spec.name, description=spec.description, input_schema=spec.schema, annotations=hints)
