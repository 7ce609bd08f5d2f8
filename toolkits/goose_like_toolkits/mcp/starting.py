"""Starting a server or connecting to it, in the era of the protocol that it speaks."""

from collections.abc import Awaitable, Callable
from typing import Any

from goose_like import __version__
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError

from .failures import explain_start, quote_last_words
from .http import open_http
from .link import Link, SilentError, find_cause
from .server import ServerConfig
from .stdio import StdioTransport
from .surroundings import Surroundings

_MAX_ROUNDS = 10


class StartError(GooseLikeError):
    """A start that failed. `code` is that of the server's error, if it gave one."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Listeners:
    """The receivers of what a server says by itself: questions, notifications, and its end."""

    on_question: Callable[[Any], Awaitable[tuple[str, Any]]]
    on_notification: Callable[[Any], None]
    on_end: Callable[[Link], None]


class Starter:
    """Starts a server. It is asked for its era if that is unknown, and started anew if it does not understand that."""

    def __init__(self, server: ServerConfig, around: Surroundings, listeners: Listeners, probe_s: float) -> None:
        """Start nothing. `probe_s` is the wait for a process that may not know the new protocol."""
        self._server = server
        self._around = around
        self._listeners = listeners
        self._probe_s = probe_s

    async def start(self, era: str) -> Link:
        """Open a link.

        Raises:
            GooseLikeError: that fails in each era.
        """
        from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        limit_s = self._server.start_timeout_s
        is_old = era in HANDSHAKE_PROTOCOL_VERSIONS
        if not era and self._server.transport == "stdio":
            found = await self._try_to_open("auto", self._probe_s)
            if isinstance(found, Link):
                return found
            is_old = True
        if is_old:
            found = await self._try_to_open("legacy", limit_s)
            if isinstance(found, Link):
                return found
            if found.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise found
        found = await self._try_to_open("auto", limit_s)
        if isinstance(found, Link):
            return found
        raise found

    async def _try_to_open(self, mode: str, limit_s: float) -> Link | StartError:
        """Open a link, or return why that failed in a way that another era may change.

        Raises:
            GooseLikeError: the server cannot be started at all.
        """
        from mcp.shared.exceptions import MCPError

        link = Link(self._listeners.on_end)
        try:
            await link.open(self._build_client(await self._open_transport(link), mode), limit_s)
        except SilentError:
            return StartError(f"it gave no answer in {limit_s:g} s{quote_last_words(link)}")
        except GooseLikeError:
            raise
        except Exception as error:
            cause = find_cause(error)
            code = cause.error.code if isinstance(cause, MCPError) else None
            return StartError(explain_start(self._server.name, link, error), code)
        return link

    async def _open_transport(self, link: Link) -> Any:
        if self._server.transport == "stdio":
            link.stdio = StdioTransport(self._server, self._around, link.leave)
            return link.stdio
        auth = self._around.find_auth(self._server)
        return await open_http(self._server, auth, link.note_status)

    def _build_client(self, transport: Any, mode: str) -> Any:
        import mcp_types
        from mcp import Client

        async def elicit(context: Any, params: Any) -> mcp_types.ElicitResult:
            action, values = await self._listeners.on_question(params)
            return mcp_types.ElicitResult.model_validate({"action": action, "content": values})

        async def handle(message: Any) -> None:
            self._listeners.on_notification(message)

        return Client(
            transport,
            mode=mode,
            elicitation_callback=elicit,
            message_handler=handle,
            client_info=mcp_types.Implementation(name="goose-like", version=__version__),
            input_required_max_rounds=_MAX_ROUNDS,
        )
