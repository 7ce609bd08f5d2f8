"""A connection to a server: it starts on the first use, and starts again after a failure."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Literal, TypeVar

from goose_like import __version__
from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import ImageResult, ToolError

from .definitions import Definitions
from .elicitation import Elicitor
from .http import open_http
from .link import Link, SilentError, describe_error, find_cause
from .listing import list_everything
from .results import ResultReader
from .running_call import RunningCall
from .server import ServerConfig
from .stdio import StdioTransport
from .surroundings import Surroundings

T = TypeVar("T")

PROBE_S = 3.0
"""The wait for an answer to the first message of the new protocol. Old servers may ignore it."""

_MAX_STARTS = 2
_MAX_ROUNDS = 10
_ALIVE_S = 5.0
_MAX_SHOWN_CHARACTERS = 2_000

State = Literal["not started", "starting", "running", "failed"]


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
        self._mode = ""
        self._starts = 0
        self._starting = asyncio.Lock()
        self._calls: set[RunningCall] = set()
        self._is_suspect = False
        self._is_closed = False

    # --- requests

    async def list_definitions(self) -> Definitions:
        """List what the server offers, and start it if needed. Raise ToolError if that fails."""

        async def send(client: Any, _: RunningCall) -> Definitions:
            definitions, problems = await list_everything(client)
            for problem in problems:
                self._log(problem)
            return definitions

        definitions = await self._request("the list of what it offers", send, counts=False)
        self.era = definitions.era
        return definitions

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> str | ImageResult:
        """Call a tool. Cancelling cancels the call at the server.

        Raises:
            ToolError: the call failed, or the server did.
            DeniedError: the person, a rule or the profile forbids the call.
        """
        await self._require(name, arguments)

        async def send(client: Any, call: RunningCall) -> Any:
            return await client.call_tool(name, dict(arguments), progress_callback=call.show_progress)

        if self.server.transport != "stdio":
            result = await self._request(name, send)
            return self._read(name).read_call(result)
        workspace = self._around.workspace
        try:
            result = await self._request(name, send)
        except ToolError as error:
            notes = await workspace.inspect_changes()
            raise ToolError(_add_notes(str(error), notes)) from error
        return self._read(name).read_call(result, await workspace.inspect_changes())

    async def read_resource(self, uri: str) -> tuple[str | ImageResult, ...]:
        """Read a resource, which may have several parts. Raise ToolError if that fails."""

        async def send(client: Any, _: RunningCall) -> Any:
            return await client.read_resource(uri, cache_mode="bypass")

        result = await self._request(f"the resource {uri}", send)
        return tuple(self._read(uri).read_resource(part) for part in result.contents)

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """Return the text of a prompt. Raise ToolError if that fails."""

        async def send(client: Any, _: RunningCall) -> Any:
            return await client.get_prompt(name, dict(arguments))

        result = await self._request(f"the prompt {name}", send)
        return self._read(name).read_prompt(result.messages)

    async def close(self) -> None:
        """End the server and everything that it started."""
        self._is_closed = True
        async with self._starting:
            await self._drop()

    async def follow_mode(self) -> None:
        """End a server that was started with the rights of another sandbox mode. It starts again when it is needed."""
        async with self._starting:
            if self._link and self._is_in_other_mode():
                await self._drop()

    def _read(self, source: str) -> ResultReader:
        return ResultReader(self._around.outputs, f"{self.server.name} {source}")

    async def _require(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Return once a call is allowed, and announce that it may change files."""
        workspace = self._around.workspace
        is_here = self.server.transport == "stdio"
        if workspace.mode == "read-only" and not is_here:
            raise ToolError(
                f"not allowed: call {name}: the MCP server {self.server.name} is on another machine, where nobody can "
                "check that a call only reads, and this session only reads; do without it, and say so in your answer"
            )
        text = json.dumps(arguments, ensure_ascii=False)
        shown = text
        if len(text) > _MAX_SHOWN_CHARACTERS:
            shown = f"{text[:_MAX_SHOWN_CHARACTERS]}..."
        subject = f"{self.server.name} {name} {text}"
        await workspace.require_permission("command", subject, f"call {self.server.name} {name}: {shown}")
        if workspace.mode != "read-only" and is_here:
            await workspace.announce_change(None, [self.server.name, name, text])

    async def _request(self, what: str, send: Callable[[Any, RunningCall], Awaitable[T]], *, counts: bool = True) -> T:
        """Send a request and return its result. A result that `counts` lets a server start again after a failure.

        Raises:
            ToolError: there is no result.
        """
        link = await self._get_link()
        limit_s = self.server.timeout_s
        limit = asyncio.timeout(limit_s)
        try:
            async with limit, self._run(limit) as call:
                result = await send(link.client, call)
        except TimeoutError as error:
            if not limit.expired():
                raise ToolError(self._explain(what, link, error)) from error
            self._is_suspect = True
            raise ToolError(
                f"the MCP server {self.server.name} gave no answer for {what} in {limit_s:g} s; the call was "
                "cancelled, but may have had an effect: check that, or ask for less at once"
            ) from error
        except GooseLikeError:
            raise
        except Exception as error:
            raise ToolError(self._explain(what, link, error)) from error
        if counts:
            self._starts = 0
        return result

    @asynccontextmanager
    async def _run(self, limit: asyncio.Timeout) -> AsyncIterator[RunningCall]:
        call = RunningCall(limit, self.server.timeout_s, self._around.show)
        self._calls.add(call)
        try:
            with self._around.workspace.pause_for_questions(limit):
                yield call
        finally:
            self._calls.discard(call)

    def _explain(self, what: str, link: Link, error: BaseException) -> str:
        """Explain a failed request to the model."""
        name = self.server.name
        if not link.is_open:
            return (
                f"the MCP server {name} ended during the call of {what} ({link.describe_end()}); the call may have had "
                "an effect: check that before you repeat it; the server starts again with the next call"
            )
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        cause = find_cause(error)
        match cause:
            case MCPError():
                return f"the MCP server {name} refuses {what}: {cause.error.message} (error {cause.error.code})"
            case ValidationError():
                return f"the MCP server {name} gave an answer for {what} that breaks the protocol: {_shorten(cause)}"
            case _:
                return f"the answer of the MCP server {name} for {what} cannot be used: {describe_error(cause)}"

    # --- the life of the server

    async def _get_link(self) -> Link:
        async with self._starting:
            if self._is_closed:
                raise ToolError("the session is at its end; no MCP server is called any more")
            link = self._link
            if link and self._is_in_other_mode():
                await self._drop()
                self._starts = 0
                link = None
            if link and link.is_open and self._is_suspect:
                await self._check_alive(link)
            if link and link.is_open:
                return link
            if link:
                await self._drop()
            return await self._start()

    def _is_in_other_mode(self) -> bool:
        return self.server.transport == "stdio" and self._mode != self._around.workspace.mode

    async def _check_alive(self, link: Link) -> None:
        """Check that a server answers at all after a call without answer; otherwise end it."""
        from mcp.shared.exceptions import MCPError

        self._is_suspect = False
        try:
            async with asyncio.timeout(_ALIVE_S):
                await link.client.session.send_request(_build_ping(link.client), _get_any_result())
        except MCPError:
            return  # an error is an answer, and a closed link is noticed anyway
        except TimeoutError:
            self._log("does not answer any more; it is started anew")
            await self._drop()

    async def _drop(self) -> None:
        link = self._link
        self._link = None
        if link:
            await link.close()
        if self.state != "failed":
            self.state = "not started"

    async def _start(self) -> Link:
        """Start the server or connect to it.

        Raises:
            ToolError: it does not start, or failed too often.
        """
        if self._starts >= _MAX_STARTS:
            raise ToolError(
                f"the MCP server {self.server.name} failed {self._starts} times ({self.problem}) and stays off; do "
                "without it, and tell the person about it"
            )
        self._starts += 1
        self.state = "starting"
        try:
            link = await self._negotiate(self._around.expand(self.server))
        except GooseLikeError as error:
            self._fail(str(error))
            raise ToolError(f"the MCP server {self.server.name} does not start: {error}") from error
        except BaseException:
            self.state = "not started"
            raise
        self._link = link
        self.state = "running"
        self.problem = ""
        return link

    async def _negotiate(self, server: ServerConfig) -> Link:
        """Open a link in the era that the server speaks.

        Raises:
            GooseLikeError: there is none.
        """
        from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        limit_s = server.start_timeout_s
        if not self.era and server.transport == "stdio":
            first = await self._try_to_open(server, "auto", self._probe_s)
            if isinstance(first, Link):
                return first
        if self.era in HANDSHAKE_PROTOCOL_VERSIONS or (not self.era and server.transport == "stdio"):
            second = await self._try_to_open(server, "legacy", limit_s)
            if isinstance(second, Link):
                return second
            if second.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise second
        last = await self._try_to_open(server, "auto", limit_s)
        if isinstance(last, Link):
            return last
        raise last

    async def _try_to_open(self, server: ServerConfig, mode: str, limit_s: float) -> "Link | _StartError":
        """Open a link, or return why that failed in a way that another era may change.

        Raises:
            GooseLikeError: the server cannot be started at all.
        """
        from mcp.shared.exceptions import MCPError

        self._mode = self._around.workspace.mode
        link = Link(self._note_end)
        if server.transport == "stdio":
            link.stdio = StdioTransport(server, self._around, link.leave)
            transport: Any = link.stdio
        else:
            transport = await open_http(server, self._around.find_auth(server))
        try:
            await link.open(self._build_client(transport, mode), limit_s)
        except SilentError:
            return _StartError(f"it gave no answer in {limit_s:g} s{_quote_last_words(link)}")
        except GooseLikeError:
            raise
        except Exception as error:
            cause = find_cause(error)
            if link.stdio and not isinstance(cause, MCPError):
                return _StartError(link.describe_end())
            if isinstance(cause, MCPError):
                return _StartError(self._describe_refusal(link, cause), cause.error.code)
            return _StartError(describe_error(cause))
        return link

    def _describe_refusal(self, link: Link, error: Any) -> str:
        from mcp_types import CONNECTION_CLOSED

        if error.error.code == CONNECTION_CLOSED:
            return link.describe_end()
        return f"{error.error.message} (error {error.error.code}){_quote_last_words(link)}"

    def _build_client(self, transport: Any, mode: str) -> Any:
        import mcp_types
        from mcp import Client

        async def elicit(context: Any, params: Any) -> mcp_types.ElicitResult:
            action, values = await self._elicit(params)
            return mcp_types.ElicitResult.model_validate({"action": action, "content": values})

        async def handle(message: Any) -> None:
            self._handle(message)

        return Client(
            transport,
            mode=mode,
            elicitation_callback=elicit,
            message_handler=handle,
            client_info=mcp_types.Implementation(name="goose-like", version=__version__),
            input_required_max_rounds=_MAX_ROUNDS,
        )

    async def _elicit(self, params: Any) -> tuple[str, Any]:
        """Ask the person for a server. The time limits of its calls stand still meanwhile."""
        with ExitStack() as paused:
            for call in self._calls:
                paused.enter_context(call.pause())
            if len(self._calls) != 1:
                return await self._elicitor.answer(params)
            (call,) = self._calls
            asking = asyncio.create_task(self._elicitor.answer(params), context=call.context.copy())
            try:
                return await asking
            finally:
                asking.cancel()

    def _handle(self, message: Any) -> None:
        """Handle a notification of the server."""
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
        self.problem = " ".join(why.split())
        follows = "it starts again when it is needed"
        if self._starts >= _MAX_STARTS:
            follows = "it stays off"
        self._log(f"failed ({self.problem}); {follows}")

    def _log(self, text: str) -> None:
        self._around.notifier.log(f"the MCP server {self.server.name} {text}")


class _StartError(GooseLikeError):
    """A start that failed. `code` is that of the server's error, if it gave one."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


def _ignore() -> None:
    return None


def _quote_last_words(link: Link) -> str:
    words = link.stdio.last_words if link.stdio else ()
    if not words:
        return ""
    return "; it said last:\n" + "\n".join(words)


def _build_ping(client: Any) -> Any:
    """Build the smallest request of the era."""
    import mcp_types

    if client.session.discover_result is None:
        return mcp_types.PingRequest()
    return mcp_types.ListToolsRequest()


def _get_any_result() -> Any:
    import mcp_types

    return mcp_types.Result


def _shorten(error: Any) -> str:
    """Return the first problem of a validation, with its place."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}"


def _add_notes(text: str, notes: list[str]) -> str:
    return "\n".join([text, *(f"[{note}]" for note in notes)])
