"""One call of a tool, with the rounds in which a server of the new era asks questions.

The SDK's own `call_tool` lists the tools after a call, to check the result against a schema. A list that is wrong would
cost a result that is fine, after the tool had its effect.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from goose_like.toolkit import ToolError

_MAX_ROUNDS = 10
_MAX_PAGES = 100
_WAIT_S = 0.2


class ToolRequest:
    """A call of a tool through an SDK client."""

    def __init__(self, client: Any, name: str, arguments: dict[str, Any], on_progress: Any) -> None:
        self._client = client
        self._name = name
        self._arguments = arguments
        self._on_progress = on_progress

    async def run(self, visit: Callable[[Any], Awaitable[bool]]) -> Any:
        """Return the SDK's result.

        `visit` takes the error of a server that wants the person to visit an address first, and returns whether the
        call is worth another try. It returns False for other errors.

        Raises:
            ToolError: the server asks on and on.
            Exception: see the SDK's client.
        """
        from mcp.shared.exceptions import MCPError

        try:
            return await self._run_rounds()
        except MCPError as error:
            is_solved = await self._relist(error) or await visit(error)
            if not is_solved:
                raise
        return await self._run_rounds()

    async def _run_rounds(self) -> Any:
        from mcp_types import InputRequiredResult

        responses: dict[str, Any] | None = None
        state: str | None = None
        for _ in range(_MAX_ROUNDS):
            result = await self._send(responses, state)
            if not isinstance(result, InputRequiredResult):
                return result
            responses = None
            if result.input_requests:
                responses = {}
                for key, asked in result.input_requests.items():  # a person reads one question at a time
                    responses[key] = await self._answer(key, asked)
            else:
                await asyncio.sleep(_WAIT_S)  # the server asks for time
            state = result.request_state
        raise ToolError(f"{self._name} asked for input {_MAX_ROUNDS} times and gave no result; do without it")

    async def _send(self, responses: dict[str, Any] | None, state: str | None) -> Any:
        from mcp_types import CallToolRequest, CallToolRequestParams

        params = CallToolRequestParams(
            name=self._name, arguments=self._arguments, input_responses=responses, request_state=state
        )
        request = CallToolRequest(params=params)
        kinds = _get_result_kinds()
        return await self._client.session.send_request(request, kinds, progress_callback=self._on_progress)

    async def _answer(self, key: str, asked: Any) -> Any:
        """Answer a question. Raise the SDK's error if it is one that goose-like does not answer."""
        from mcp.client.context import ClientRequestContext
        from mcp.shared.exceptions import MCPError
        from mcp_types import ErrorData

        session = self._client.session
        context = ClientRequestContext(session=session, request_id=key)
        answer = await session.dispatch_input_request(context, asked)
        if isinstance(answer, ErrorData):
            raise MCPError.from_error_data(answer)
        return answer

    async def _relist(self, error: Any) -> bool:
        """List the tools if the server misses headers about the arguments: the SDK learns them from the list."""
        from mcp_types import HEADER_MISMATCH

        if error.error.code != HEADER_MISMATCH:
            return False
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            cursor = page.next_cursor
            if cursor is None:
                break
        return True


@cache  # it takes longer to build than a call takes
def _get_result_kinds() -> Any:
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter[Any](CallToolResult | InputRequiredResult)
