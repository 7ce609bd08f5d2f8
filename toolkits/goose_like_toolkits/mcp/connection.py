"""A connection to a server: it starts on the first use, and starts again after a failure."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Literal, TypeVar

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import ImageResult, ToolError

from .definitions import Definitions
from .elicitation import Elicitor
from .failures import SessionLostError, explain
from .link import Link
from .listing import follow_changes, list_everything
from .results import ResultReader
from .running_call import RunningCall
from .server import ServerConfig
from .starting import Listeners, Starter
from .surroundings import Surroundings
from .tool_request import ToolRequest

T = TypeVar("T")

PROBE_S = 3.0
"""The wait for an answer to the first message of the new protocol. Old servers may ignore it."""

_MAX_STARTS = 2
_MAX_QUESTIONS = 10
"""Those of a server in one call."""
_ALIVE_S = 5.0
_MAX_PROBLEM_CHARACTERS = 300
_AT_END = "the session is at its end; no MCP server is called any more"

State = Literal["not started", "starting", "running", "failed"]
_Send = Callable[[Any, RunningCall], Awaitable[T]]
"""Sends a request through the SDK's client and returns its result."""


class Connection:
    """A server that is running or reachable. It starts on the first use, and once more after it failed.

    It may start again as soon as a call did well. `era` is the version of the protocol, if it is known; a server of
    unknown era is asked, and started anew if it does not understand the question. `state` and `problem` are for the
    person.
    """

    def __init__(
        self, server: ServerConfig, surroundings: Surroundings, *, era: str = "", probe_s: float = PROBE_S
    ) -> None:
        self.server = server
        self.era = era
        self.state: State = "not started"
        self.problem = ""
        self.on_list_changed: Callable[[], None] = _ignore
        self._around = surroundings
        self._probe_s = probe_s
        self._elicitor = Elicitor(server.name, surroundings.notifier)
        self._link: Link | None = None
        self._following: asyncio.Task[None] | None = None
        self._mode = ""
        self._starts = 0
        self._starting = asyncio.Lock()
        self._opening: asyncio.Task[Link] | None = None
        self._calls: set[RunningCall] = set()
        self._is_suspect = False
        self._was_started = False
        self._is_closed = False
        self._told_problem = ""

    # --- requests

    async def list_definitions(self) -> Definitions:
        """List what the server offers, and start it if needed. Raise ToolError if that fails."""

        async def send(client: Any, _: RunningCall) -> Definitions:
            definitions, problem = await list_everything(client)
            if problem and problem != self._told_problem:
                self._told_problem = problem
                self._log(problem)
            return definitions

        definitions = await self._request("the list of what it offers", send, counts=False)
        self.era = definitions.era
        return definitions

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> str | ImageResult:
        """Call a tool. Cancelling cancels the call at the server.

        Raises:
            ToolError: the call failed, or the server did.
        """

        async def send(client: Any, call: RunningCall) -> Any:
            return await ToolRequest(client, name, dict(arguments), call.show_progress).run(self._visit)

        await self._announce(name, arguments)
        host_count = self._count_hosts()
        try:
            result = await self._request(name, send)
        except ToolError as error:
            notes = await self._inspect_failure(host_count)
            quoted = [f"[{note}]" for note in notes]
            raise ToolError("\n".join([str(error), *quoted])) from error
        if result.is_error:
            notes = await self._inspect_failure(host_count)
        else:
            notes = await self._inspect_changes()
        return self._read(name).read_call(result, notes)

    async def read_resource(self, uri: str) -> str | ImageResult:
        """Read a resource. Raise ToolError if that fails."""

        async def send(client: Any, _: RunningCall) -> Any:
            return await client.read_resource(uri, cache_mode="bypass")

        result = await self._request_until_answered(f"the resource {uri}", send)
        return self._read(uri).read_resource(result.contents)

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """Return the text of a prompt. Raise ToolError if that fails."""

        async def send(client: Any, _: RunningCall) -> Any:
            return await client.get_prompt(name, dict(arguments))

        result = await self._request_until_answered(f"the prompt {name}", send)
        return self._read(name).read_prompt(result.messages)

    def _read(self, source: str) -> ResultReader:
        return ResultReader(self._around.outputs, f"{self.server.name} {source}")

    async def _announce(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Announce that a call may change files.

        Raises:
            ToolError: the session only reads, and nobody can make sure of that.
        """
        workspace = self._around.workspace
        if workspace.mode == "read-only" and not self._is_here:
            raise ToolError(
                f"not allowed: call {name}: the MCP server {self.server.name} is reached over HTTP, so nothing here "
                "makes sure that a call only reads, and this session only reads; do without it, and say so in your "
                "answer"
            )
        if workspace.mode != "read-only" and self._is_here:
            text = json.dumps(arguments, ensure_ascii=False)
            is_confined = workspace.mode != "full"
            await workspace.announce_change(None, [self.server.name, name, text], is_confined=is_confined)

    async def _inspect_changes(self) -> Sequence[str]:
        if not self._is_here:
            return ()
        return await self._around.workspace.inspect_changes()

    async def _inspect_failure(self, host_count: int) -> Sequence[str]:
        """Return what `_inspect_changes` does, and the hosts that the person allowed during the call."""
        notes = []
        hosts = await self._wait_for_hosts(host_count)
        if hosts:
            listing = ", ".join(hosts)
            notes.append(f"the person has allowed {listing} meanwhile; the server did not wait for that: call it again")
        return [*notes, *await self._inspect_changes()]

    def _count_hosts(self) -> int:
        return len(self._around.workspace.hosts.granted)

    async def _wait_for_hosts(self, count: int) -> Sequence[str]:
        """Wait for open answers about hosts. Return the hosts that the person allowed since there were `count`."""
        if not self._is_here:
            return ()
        hosts = self._around.workspace.hosts
        await hosts.wait_for_answers()
        return hosts.granted[count:]

    async def _request(self, what: str, send: _Send[T], *, counts: bool = True) -> T:
        """Send a request and return its result. A result that `counts` lets a server start again after a failure.

        Raises:
            ToolError: there is no result.
        """
        link = await self._get_link()
        try:
            result = await self._send(what, send, link)
        except SessionLostError:
            async with self._starting:
                await self._drop(link)
            link = await self._get_link()
            result = await self._send(what, send, link)
        if counts:
            self._starts = 0
        return result

    async def _request_until_answered(self, what: str, send: _Send[T]) -> T:
        """Send a request that changes nothing, and again if the person allows a host: servers give up soon."""
        host_count = self._count_hosts()
        try:
            result = await self._request(what, send)
        except ToolError:
            if not await self._wait_for_hosts(host_count):
                raise
        else:
            if not await self._wait_for_hosts(host_count):
                return result
        return await self._request(what, send)

    async def _send(self, what: str, send: _Send[T], link: Link) -> T:
        limit_s = self.server.timeout_s
        limit = asyncio.timeout(limit_s)
        try:
            async with limit, self._run(limit) as call:
                return await send(link.client, call)
        except asyncio.CancelledError:
            self._is_suspect = True  # it may work on
            raise
        except GooseLikeError:
            raise
        except Exception as error:
            if not limit.expired():
                await link.settle(error)
                raise explain(self.server.name, what, link, error, self._outlook) from error
            self._is_suspect = True
            lost = ""
            if link.stdio and link.stdio.has_wrong_ids:
                lost = ", and answers with wrong ids"
            raise ToolError(
                f"the MCP server {self.server.name} gave no answer for {what} in {limit_s:g} s{lost}; the call was "
                "cancelled, but may have had an effect: check that, or ask for less at once"
            ) from error

    @asynccontextmanager
    async def _run(self, limit: asyncio.Timeout) -> AsyncIterator[RunningCall]:
        call = RunningCall(limit, self.server.timeout_s, self._around.show)
        self._calls.add(call)
        try:
            with self._around.workspace.pause_for_questions(limit):
                yield call
        finally:
            self._calls.discard(call)

    # --- what the server says by itself

    async def _answer_question(self, params: Any) -> tuple[str, Any]:
        """Ask the person for the server. The time limits of its calls stand still meanwhile.

        A server that asks without a call, or again and again, gets no answer.
        """
        calls = list(self._calls)
        if not calls or max(call.question_count for call in calls) >= _MAX_QUESTIONS:
            self._log("asked a question that is not shown: no call runs, or it asked too often")
            return "cancel", None
        with ExitStack() as paused:
            for call in calls:
                paused.enter_context(call.pause())
            # With several calls, the SDK does not tell which of them asks.
            asking = asyncio.create_task(self._elicitor.answer(params), context=calls[-1].context.copy())
            try:
                return await asking
            finally:
                asking.cancel()

    async def _visit(self, error: Any) -> bool:
        """Ask the person to visit the addresses without which a call is refused. Return True if that was done."""
        from mcp.shared.exceptions import UrlElicitationRequiredError
        from mcp_types import URL_ELICITATION_REQUIRED

        if error.error.code != URL_ELICITATION_REQUIRED:
            return False
        for params in UrlElicitationRequiredError.from_error(error.error).elicitations:
            action, _ = await self._answer_question(params)
            if action != "accept":
                return False
        return True

    def _handle(self, message: Any) -> None:
        """Handle a notification."""
        method = getattr(message, "method", "")
        if str(method).endswith("/list_changed"):
            self.on_list_changed()

    def _note_end(self, link: Link) -> None:
        """Note that the server ended by itself: one line for the person."""
        words = link.stdio.last_words if link.stdio else ()
        why = link.end
        if words:
            why = f"{why}: {words[-1]}"
        self._fail(why)

    def _fail(self, why: str) -> None:
        self.state = "failed"
        self.problem = " ".join(why.split())[:_MAX_PROBLEM_CHARACTERS]
        self._log(f"failed ({self.problem}); {self._outlook}")

    @property
    def _outlook(self) -> str:
        """The consequence of a failure, for the person."""
        if self._starts >= _MAX_STARTS:
            return "it stays off"
        if self._is_here:
            return "the next call starts it again"
        return "the next call tries it again"

    def _log(self, text: str) -> None:
        self._around.notifier.log(f"the MCP server {self.server.name} {text}")

    # --- the life of the server

    async def close(self) -> None:
        """End the server and everything that it started, also a start that runs."""
        self._is_closed = True
        if self._opening:
            self._opening.cancel()
        async with self._starting:
            await self._drop(self._link)

    async def follow_mode(self) -> None:
        """End a server that was started with the rights of another sandbox mode. It starts again when it is needed."""
        async with self._starting:
            if self._is_in_other_mode():
                await self._drop(self._link)
                self._starts = 0

    @property
    def _is_here(self) -> bool:
        return self.server.transport == "stdio"

    def _is_in_other_mode(self) -> bool:
        return self._is_here and self._link is not None and self._mode != self._around.workspace.mode

    async def _get_link(self) -> Link:
        """Return the open link, after a start if there is none.

        Raises:
            ToolError: the server does not start, or failed too often.
        """
        await self.follow_mode()
        async with self._starting:
            if self._is_closed:
                raise ToolError(_AT_END)
            if self._is_suspect and self._link:
                await self._check_alive(self._link)
            if self._link and self._link.is_open:
                return self._link
            await self._drop(self._link)
            self._link = await self._start_until_closed()
            if self._was_started:
                self.on_list_changed()  # another start may offer something else
            self._was_started = True
            self._following = asyncio.create_task(self._follow_changes(self._link.client))
            return self._link

    async def _check_alive(self, link: Link) -> None:
        """Check that a server answers at all after a call without answer; otherwise end it."""
        from mcp.shared.exceptions import MCPError

        self._is_suspect = False
        try:
            async with asyncio.timeout(_ALIVE_S):
                await link.client.list_tools(cache_mode="bypass")
        except MCPError:
            return  # an error is an answer, and a closed link is noticed anyway
        except TimeoutError:
            self._log("does not answer any more; it is started anew")
            await self._drop(link)

    async def _drop(self, link: Link | None) -> None:
        """End a link, unless another one has taken its place."""
        if link is None or link is not self._link:
            return
        self._link = None
        if self._following:
            self._following.cancel()
            await asyncio.wait({self._following})
        await link.close()
        if self.state != "failed":
            self.state = "not started"

    async def _start_until_closed(self) -> Link:
        """Start the server, or raise ToolError if the session ends before it has started."""
        self._opening = asyncio.create_task(self._start())
        try:
            await asyncio.wait({self._opening})
        except asyncio.CancelledError:
            self._opening.cancel()
            await asyncio.wait({self._opening})
            raise
        finally:
            opening = self._opening
            self._opening = None
        if opening.cancelled():
            raise ToolError(_AT_END)
        return opening.result()

    async def _start(self) -> Link:
        if self._starts >= _MAX_STARTS:
            raise ToolError(
                f"the MCP server {self.server.name} failed {self._starts} times ({self.problem}) and stays off; do "
                "without it, and tell the person about it"
            )
        self._starts += 1
        self.state = "starting"
        self._mode = self._around.workspace.mode
        listeners = Listeners(self._answer_question, self._handle, self._note_end)
        try:
            server = self._around.expand(self.server)
            link = await Starter(server, self._around, listeners, self._probe_s).start(self.era)
        except GooseLikeError as error:
            self._fail(str(error))
            does_not = "does not start" if self._is_here else "cannot be reached"
            raise ToolError(f"the MCP server {self.server.name} {does_not}: {error}") from error
        except BaseException:
            self.state = "not started"
            self._starts -= 1
            raise
        self.state = "running"
        self.problem = ""
        return link

    async def _follow_changes(self, client: Any) -> None:
        """Learn about changes of the lists. Servers of the old era send notifications without being asked."""
        from mcp.client.subscriptions import SubscriptionLost
        from mcp.shared.exceptions import MCPError

        try:
            await follow_changes(client)
        except (MCPError, SubscriptionLost) as error:
            self.problem = f"changes of its lists are not followed: {error}"


def _ignore() -> None:
    return None
