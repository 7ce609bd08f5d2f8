"""One server of a session: what it offered when the session began, its connection, and what the person accepted."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier
from goose_like.toolkit import ImageResult, ToolError

from .definitions import Definitions, DefinitionStore
from .server import ServerConfig

if TYPE_CHECKING:
    from .connection import Connection

_VERSION_DIGITS = 12


class ServerState:
    """A server of this session. Nothing starts before the first use.

    `first` are the definitions that the store had when the session began: the prompt is built from them. `current` are
    those that hold now, because they are stored or because the person accepted them. `changed` names the tools that
    are other ones than the prompt says, or new.
    """

    def __init__(
        self,
        server: ServerConfig,
        first: Definitions | None,
        store: DefinitionStore,
        notifier: Notifier,
        connect: "Callable[[ServerConfig, str], Connection]",
        show_start: Callable[[str], None],
    ) -> None:
        self.server = server
        self.first = first
        self.current = first
        self.changed: frozenset[str] = frozenset()
        self._store = store
        self._notifier = notifier
        self._connect = connect
        self._show_start = show_start
        self._connection: Connection | None = None
        self._must_check = True
        self._refused: frozenset[str] = frozenset()
        self._refused_definitions: Definitions | None = None
        self._lock = asyncio.Lock()
        self._start: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The name of the server."""
        return self.server.name

    @property
    def condition(self) -> str:
        """The state in a few words, for the person."""
        connection = self._connection
        if connection is None:
            return "not started"
        if connection.state == "failed":
            return f"failed: {connection.problem}"
        return connection.state

    @property
    def has_news(self) -> bool:
        """True if the connected server said that its lists changed, and nobody has looked yet."""
        return self._connection is not None and self._must_check

    def start(self) -> None:
        """Start the server in the background, unless that was done before."""
        if self._start is None:
            self._start = asyncio.create_task(self._start_quietly())

    async def wait_for_start(self, timeout_s: float) -> None:
        """Wait until a start in the background has ended, for some time."""
        if self._start is not None:
            await asyncio.wait({self._start}, timeout=timeout_s)

    async def _start_quietly(self) -> None:
        with suppress(GooseLikeError):  # the connection has told the person
            await self.open()

    async def open(self) -> "Connection":
        """Return the connection, once its definitions are those that the person knows or accepted.

        Raises:
            GooseLikeError: the server cannot be started or reached.
        """
        async with self._lock:
            if self._connection is None:
                era = self.current.era if self.current else ""
                self._connection = self._connect(self.server, era)
                self._connection.on_list_changed = self._note_change
            is_running = self._connection.state == "running"
            if not is_running:
                self._show_start(self.name)
            # A server that starts again may be another program by now.
            if self._must_check or not is_running:
                await self._check(self._connection)
            return self._connection

    def _note_change(self) -> None:
        self._must_check = True

    async def _check(self, connection: "Connection") -> None:
        """Compare what the server lists with what is known, and ask the person about differences."""
        listed = await connection.list_definitions()
        self._must_check = False
        if self.current is None:
            self._accept(listed, is_stored=True)
            return
        listed = _keep_order(self.current, listed)
        if listed != self._refused_definitions:
            await self._ask_about_drift(self.current, listed)

    async def _ask_about_drift(self, known: Definitions, listed: Definitions) -> None:
        from .drift import find_drift  # only a server that starts is compared

        drift = find_drift(known, listed)
        if not drift:
            self._accept(listed, is_stored=listed != known)
            return
        question = Question(
            kind="trust",
            subject=f"MCP server {self.name}",
            text=f"the MCP server {self.name!r} changed ({drift.describe()}). May the model use it as it is now?",
            detail=drift.format(),
        )
        answer = await self._notifier.ask(question)
        if answer.is_allowed:
            self._accept(listed, is_stored=answer.choice == "allow_always")
            return
        self._refused = drift.tools
        self._refused_definitions = listed
        advice = f"to accept it: goose-like mcp test {self.name}"
        self._notifier.log(f"MCP server {self.name!r}: what changed is not used; {advice}")

    def _accept(self, listed: Definitions, *, is_stored: bool) -> None:
        from .drift import find_drift

        self.current = listed
        if self.first is not None:
            self.changed = find_drift(self.first, listed).tools
        self._refused = frozenset()
        self._refused_definitions = None
        if not is_stored:
            return
        try:
            self._store.save(self.server, listed)
        except OSError as error:
            self._notifier.log(f"MCP server {self.name!r}: its tools cannot be stored: {error}")

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> str | ImageResult:
        """Call a tool.

        Raises:
            ToolError: the call failed, or the tool is not what the person accepted.
        """
        connection = await self.open()
        if name in self._refused:
            raise ToolError(
                f"{name} was not called: the MCP server {self.name!r} changed this tool, and the person did not accept "
                "that; use another tool, or tell the person to run: "
                f"goose-like mcp test {self.name}"
            )
        offered = [tool.name for tool in self.current.tools] if self.current else []
        if name not in offered:
            raise ToolError(f"the MCP server {self.name!r} no longer offers {name}; use another tool")
        return await connection.call_tool(name, arguments)

    def describe_version(self, name: str) -> str:
        """Describe the version of a tool by a hash of its definition and of its server."""
        tools = self.current.tools if self.current else ()
        definitions = [json.dumps(asdict(tool)) for tool in tools if tool.name == name]
        text = "\0".join([self.server.fingerprint, *definitions])
        return f"version {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:_VERSION_DIGITS]}"

    async def close(self) -> None:
        """End the server and everything that it started."""
        if self._start is not None:
            self._start.cancel()
            await asyncio.wait({self._start})
        if self._connection is not None:
            await self._connection.close()


def _keep_order(known: Definitions, listed: Definitions) -> Definitions:
    """Return the listed definitions with the known tools first, in their order: servers list theirs in any order."""
    places = {tool.name: index for index, tool in enumerate(known.tools)}
    tools = sorted(listed.tools, key=lambda tool: places.get(tool.name, len(places)))
    return replace(listed, tools=tuple(tools))
