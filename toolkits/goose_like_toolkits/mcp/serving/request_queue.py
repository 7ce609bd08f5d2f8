"""The work of requests, one after the other, with questions to their clients in both eras of the protocol."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goose_like.core.dataclass import dataclass
from goose_like.core.events import Answer

from .call import ClientCall, FrontEnd, OpenQuestion
from .forms import make_form, read_answer, takes_forms

_OTHER_CHARACTERS = re.compile(r"\W+")
_MAX_KEY_CHARACTERS = 64

Context = ServerRequestContext[Any, Any]
Params = types.CallToolRequestParams | types.GetPromptRequestParams | types.ReadResourceRequestParams
Work = Callable[[ClientCall], Awaitable[Any]]


@dataclass(slots=True)
class _Suspended:
    """A call whose client was told a question, and must come again with the answer until the timer ends."""

    call: ClientCall
    target: tuple[str, str]
    question: OpenQuestion
    timer: asyncio.TimerHandle


class RequestQueue:
    """Runs the work of all clients' requests one after the other.

    A question may stay open for `answer_limit_s`. In the era of 2026 nobody tells the server that a client has given up
    a question, so it holds up other calls for `patience_s` at most.
    """

    def __init__(self, front_end: FrontEnd, answer_limit_s: float, patience_s: float) -> None:
        self._front_end = front_end
        self._answer_limit_s = answer_limit_s
        self._patience_s = min(patience_s, answer_limit_s)
        self._turn = asyncio.Lock()
        self._waiting_count = 0
        self._suspended: dict[str, _Suspended] = {}

    async def answer(self, context: Context, params: Params, work: Work) -> Any:
        """Run the work of a request after that of those before, and return its result, or a question to the client.

        Raises:
            MCPError: the client brings an answer for which nothing waits.
            Exception: the work failed.
        """
        name = params.uri if isinstance(params, types.ReadResourceRequestParams) else params.name
        target = (type(params).__name__, name)
        if params.request_state is not None:
            return await self._resume(context, params, target)
        call = ClientCall(can_ask=takes_forms(context.session.client_capabilities))
        call.start(self._run(call, work))
        return await self._follow(call, context, target)

    async def close(self) -> None:
        """Stop the call that waits for an answer, if there is one, and wait for one that is being cancelled."""
        for suspended in list(self._suspended.values()):
            suspended.timer.cancel()
            await suspended.call.stop()
        async with self._turn:
            pass

    async def _run(self, call: ClientCall, work: Work) -> Any:
        self._waiting_count += 1
        try:
            self._hasten()
            await self._turn.acquire()
        finally:
            self._waiting_count -= 1
        try:
            self._front_end.call = call
            return await work(call)
        finally:
            self._front_end.call = None
            self._turn.release()

    async def _follow(self, call: ClientCall, context: Context, target: tuple[str, str]) -> Any:
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
                        return self._suspend(call, target, question)
                    case OpenQuestion() as question:
                        question.close(await self._ask(context, question))
                    case None:
                        return call.take_result()
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
            return _deny_late(self._answer_limit_s)
        except MCPError as error:
            return Answer(text=f"the client failed to ask: {error}")
        return read_answer(question.question, result)

    def _suspend(self, call: ClientCall, target: tuple[str, str], question: OpenQuestion) -> types.InputRequiredResult:
        """Ask by the result of the request, as in the era of 2026. The call waits for the next request."""
        state = secrets.token_urlsafe(24)
        timer = self._start_timer(state, self._answer_limit_s)
        self._suspended[state] = _Suspended(call, target, question, timer)
        if self._waiting_count:
            self._hasten()
        return _ask_by_result(state, question)

    def _start_timer(self, state: str, limit_s: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(limit_s, self._expire, state, limit_s)

    def _hasten(self) -> None:
        """Let open questions end soon, because a call waits for them."""
        ends_at = asyncio.get_running_loop().time() + self._patience_s
        for state, suspended in self._suspended.items():
            if suspended.timer.when() > ends_at:
                suspended.timer.cancel()
                suspended.timer = self._start_timer(state, self._patience_s)

    def _expire(self, state: str, limit_s: float) -> None:
        suspended = self._suspended.pop(state)
        suspended.question.close(_deny_late(limit_s))
        # Nobody follows the call any more. It ends after the denial is recorded.
        asyncio.get_running_loop().call_soon(suspended.call.cancel)

    async def _resume(self, context: Context, params: Params, target: tuple[str, str]) -> Any:
        """Go on with a call whose client brings an answer. Without one it is asked again, and gets no more time."""
        state = params.request_state or ""
        suspended = self._suspended.get(state)
        if suspended is None or suspended.target != target:
            raise MCPError(types.INVALID_PARAMS, "this requestState belongs to no call that waits; call the tool anew")
        answer = (params.input_responses or {}).get(_make_key(suspended.question))
        if not isinstance(answer, types.ElicitResult):
            return _ask_by_result(state, suspended.question)
        del self._suspended[state]
        suspended.timer.cancel()
        suspended.question.close(read_answer(suspended.question.question, answer))
        return await self._follow(suspended.call, context, target)


def _ask_by_result(state: str, question: OpenQuestion) -> types.InputRequiredResult:
    asked = types.ElicitRequest(params=make_form(question.question))
    return types.InputRequiredResult(input_requests={_make_key(question): asked}, request_state=state)


def _make_key(question: OpenQuestion) -> str:
    """Make the key of a question from what it is about: clients log it."""
    words = _OTHER_CHARACTERS.sub("_", question.question.subject)
    return words[:_MAX_KEY_CHARACTERS].strip("_") or "question"


def _deny_late(limit_s: float) -> Answer:
    return Answer(text=f"nobody answered within {limit_s:g} s")
