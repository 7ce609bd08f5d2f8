"""The server: tools of an exchange, and `run_task`, in both eras of the protocol."""

import asyncio
import json
import secrets
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goose_like import __version__
from goose_like.agent.exchange import Exchange
from goose_like.agent.tool_call import call_tool
from goose_like.core.dataclass import dataclass
from goose_like.core.events import Answer
from goose_like.core.message import ToolCall, ToolResult
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import Tool

from .call import ClientCall, FrontEnd, OpenQuestion
from .forms import make_form, read_answer, takes_forms
from .tasks import ServerBudget

_QUESTION = "question"
"""The key of the only question in a result that asks one."""

Context = ServerRequestContext[Any, Any]
Outcome = types.CallToolResult | types.InputRequiredResult


@dataclass(frozen=True, slots=True)
class _Suspended:
    """A call whose client was told a question, and must come again with the answer until the timer ends."""

    call: ClientCall
    name: str
    question: OpenQuestion
    timer: asyncio.TimerHandle


class ToolServer:
    """The handlers of the protocol. Calls of all clients run one after the other, each as a turn of its own.

    `offered` are the names of the exchange's tools that clients may use, and `own_tools` run beside the exchange.
    """

    def __init__(
        self,
        exchange: Exchange,
        front_end: FrontEnd,
        offered: Mapping[str, Tool],
        own_tools: Mapping[str, Tool],
        budget: ServerBudget,
        answer_limit_s: float,
    ) -> None:
        self._exchange = exchange
        self._front_end = front_end
        self._own_tools = own_tools
        self._budget = budget
        self._tools = {**offered, **own_tools}
        self._answer_limit_s = answer_limit_s
        self._turn = asyncio.Lock()
        self._suspended: dict[str, _Suspended] = {}

    def build(self) -> Server[Any]:
        """Build the server of the SDK."""
        root = self._exchange.workspace.root
        return Server(
            "goose-like",
            version=__version__,
            instructions=f"Tools of goose-like for the folder {root}. Calls run one after the other.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def close(self) -> None:
        """Stop the call that waits for an answer, if there is one, and wait for one that is being cancelled."""
        for suspended in list(self._suspended.values()):
            suspended.timer.cancel()
            await suspended.call.stop()
        async with self._turn:
            pass

    async def _list_tools(self, context: Context, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe(tool) for tool in self._tools.values()])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        if params.name not in self._tools:
            hint = did_you_mean(params.name, self._tools)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; {hint}")
        if params.request_state is not None:
            return await self._resume(context, params)
        call = ClientCall(can_ask=takes_forms(context.session.client_capabilities))
        wanted = ToolCall(id=call.id, name=params.name, arguments=json.dumps(params.arguments or {}))
        call.start(self._run(call, wanted, _name_client(context)))
        return await self._follow(call, context, params.name)

    async def _run(self, call: ClientCall, wanted: ToolCall, client: str) -> ToolResult:
        """Run a call when those before it have ended, and return its result."""
        async with self._turn:
            self._front_end.call = call
            try:
                if wanted.name in self._own_tools:
                    with self._budget.draw():
                        outcome = await call_tool(self._own_tools, wanted)
                    return ToolResult(call_id=call.id, output=outcome.output, is_error=outcome.is_error)
                with self._budget.draw(free_steps=1):
                    end = await self._exchange.run_calls(f"{client} calls {wanted.name}", [wanted])
            finally:
                self._front_end.call = None
        result = call.result or ToolResult(call_id=call.id, output=end.detail or end.reason, is_error=True)
        used_up = self._budget.describe_end()
        if result.is_error and used_up:  # perhaps the tool asks a model
            result = result.model_copy(update={"output": f"{result.output}\n[{used_up}]"})
        return result

    async def _follow(self, call: ClientCall, context: Context, name: str) -> Outcome:
        """Tell the client how a call gets on, until its end or a question. The end of the request ends the call."""
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        is_suspended = False
        try:
            while True:
                match await call.wait_for_update():
                    case str() as text:
                        call.progress_count += 1
                        await context.session.report_progress(call.progress_count, message=text)
                    case OpenQuestion() as question if is_modern:
                        is_suspended = True
                        return self._suspend(call, name, question)
                    case OpenQuestion() as question:
                        question.close(await self._ask(context, question))
                    case None:
                        return _convert(call.take_result(), self._exchange.session.outputs)
        finally:
            if not is_suspended:
                await call.stop()

    # --- questions

    async def _ask(self, context: Context, question: OpenQuestion) -> Answer:
        """Ask during a request, as in the era of 2025."""
        form = make_form(question.question)
        try:
            async with asyncio.timeout(self._answer_limit_s):
                result = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
        except TimeoutError:
            return self._deny_late()
        except MCPError as error:
            return Answer(text=f"the client failed to ask: {error}")
        return read_answer(question.question, result)

    def _suspend(self, call: ClientCall, name: str, question: OpenQuestion) -> types.InputRequiredResult:
        """Ask by the result of the request, as in the era of 2026. The call waits for the next request."""
        state = secrets.token_urlsafe(24)
        timer = asyncio.get_running_loop().call_later(self._answer_limit_s, self._expire, state)
        self._suspended[state] = _Suspended(call, name, question, timer)
        asked = types.ElicitRequest(params=make_form(question.question))
        return types.InputRequiredResult(input_requests={_QUESTION: asked}, request_state=state)

    def _expire(self, state: str) -> None:
        suspended = self._suspended.pop(state)
        suspended.question.close(self._deny_late())
        # Nobody follows the call any more. It ends after the denial is recorded.
        asyncio.get_running_loop().call_soon(suspended.call.cancel)

    def _deny_late(self) -> Answer:
        return Answer(text=f"nobody answered within {self._answer_limit_s:g} s")

    async def _resume(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        """Go on with a call whose client brings an answer. Without one it is asked again."""
        state = params.request_state or ""
        suspended = self._suspended.get(state)
        if suspended is None or suspended.name != params.name:
            raise MCPError(types.INVALID_PARAMS, "this requestState belongs to no call that waits; call the tool anew")
        del self._suspended[state]
        suspended.timer.cancel()
        answer = (params.input_responses or {}).get(_QUESTION)
        if not isinstance(answer, types.ElicitResult):
            return self._suspend(suspended.call, params.name, suspended.question)
        suspended.question.close(read_answer(suspended.question.question, answer))
        return await self._follow(suspended.call, context, params.name)


def _name_client(context: Context) -> str:
    client = context.session.client_params
    return client.client_info.name if client else "an MCP client"


def _describe(tool: Tool) -> types.Tool:
    spec = tool.spec
    hints = types.ToolAnnotations(read_only_hint=tool.options.is_read_only(spec.name))
    return types.Tool(name=spec.name, description=spec.description, input_schema=spec.schema, annotations=hints)


def _convert(result: ToolResult, outputs: Path) -> types.CallToolResult:
    """Convert a result to the parts of the protocol: its text, then its images and documents."""
    content: list[types.ContentBlock] = [types.TextContent(text=result.output)]
    for image in result.images:
        file = outputs / image.name
        data = b64encode(file.read_bytes()).decode()
        if image.is_document:
            blob = types.BlobResourceContents(uri=file.as_uri(), mime_type=image.media_type, blob=data)
            content.append(types.EmbeddedResource(resource=blob))
        else:
            content.append(types.ImageContent(data=data, mime_type=image.media_type))
    return types.CallToolResult(content=content, is_error=result.is_error)
