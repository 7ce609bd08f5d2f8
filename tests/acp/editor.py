"""An editor for tests: the other end of the connection, which keeps every message and answers questions."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from acp.connection import Connection, StreamDirection, StreamEvent
from acp.exceptions import RequestError

from goose_like.acp.lines import MAX_LINE_BYTES, Lines
from goose_like.acp.server import EditorServer
from goose_like.config.yaml_reader import format_document
from goose_like.launch.command_line import ProfileOptions

Json = dict[str, Any]
FULL = {"session": {"notices": {}, "compaction": {}}, "elicitation": {"form": {}}, "auth": {"terminal": True}}
FILES = FULL | {"fs": {"readTextFile": True, "writeTextFile": True}}


class Editor:
    """The editor's side. `choice` is the answer to permissions, None for never; `answer` that to questions in words.

    `buffers` has texts that nobody has saved. Requests in `failing` end in an error, those in `silent` never.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.received: list[Json] = []
        self.sent: list[Json] = []
        self.asked: list[Json] = []
        self.choice: str | None = "allow"
        self.answer = "blue"
        self.buffers: dict[str, str] = {}
        self.failing: set[str] = set()
        self.silent: set[str] = set()
        self.news = asyncio.Event()
        self.connection = Connection(self._handle, writer, reader, observers=[self._observe])

    def _observe(self, event: StreamEvent) -> None:
        kept = self.received if event.direction is StreamDirection.INCOMING else self.sent
        kept.append(event.message)
        self.news.set()

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        if is_notification:
            return None
        self.asked.append(params)
        self.news.set()
        if method in self.failing:
            raise RequestError.internal_error({"details": "no"})
        if method in self.silent:
            await asyncio.Event().wait()
        match method:
            case "elicitation/create":
                return {"action": "accept", "content": {"answer": self.answer}}
            case "fs/read_text_file":
                return {"content": self._read_file(params["path"])}
            case "fs/write_text_file":
                return self._write_file(params["path"], params["content"])
            case "session/request_permission":
                return await self._answer_permission()
        raise RequestError.method_not_found(method)

    def _read_file(self, path: str) -> str:
        return self.buffers[path] if path in self.buffers else Path(path).read_text()

    def _write_file(self, path: str, text: str) -> Json:
        """Replace the text of a buffer, and save it."""
        self.buffers.pop(path, None)
        Path(path).write_text(text)
        return {}

    async def _answer_permission(self) -> Json:
        if self.choice is None:
            await asyncio.Event().wait()
        if self.choice == "cancelled":
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": self.choice}}

    async def request(self, method: str, **params: Any) -> Any:
        """Send a request and return its result."""
        return await asyncio.wait_for(self.connection.send_request(method, params), 60)

    async def start(self, capabilities: Json = FULL) -> Json:
        """Introduce the editor."""
        answer: Json = await self.request("initialize", protocolVersion=1, clientCapabilities=capabilities)
        return answer

    async def open(self, folder: Any, **more: Any) -> str:
        """Open a session in a folder, and return its id."""
        opened = await self.request("session/new", cwd=str(folder), mcpServers=[], **more)
        name: str = opened["sessionId"]
        return name

    async def prompt(self, session: str, *blocks: Any) -> str:
        """Send a prompt of texts and other blocks, and return why it ended."""
        sent = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        done = await self.request("session/prompt", sessionId=session, prompt=sent)
        reason: str = done["stopReason"]
        return reason

    def list_updates(self, session: str, *kinds: str) -> list[Json]:
        """List the updates of a session, of all kinds or of some."""
        updates = []
        for message in self.received:
            params = message.get("params") or {}
            if message.get("method") == "session/update" and params["sessionId"] == session:
                if not kinds or params["update"]["sessionUpdate"] in kinds:
                    updates.append(params["update"])
        return updates

    def read_text(self, session: str, kind: str = "agent_message_chunk") -> str:
        """Join the texts of the updates of a kind."""
        return "".join(update["content"]["text"] for update in self.list_updates(session, kind))

    async def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for messages until a condition holds."""
        async with asyncio.timeout(60):
            while not condition():
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def open_editor(**options: Any) -> AsyncIterator[Editor]:
    """Connect an editor with a server in this process. The end of the block closes the pipe."""
    one, two = socket.socketpair()
    for end in (one, two):
        end.setblocking(False)
    server = EditorServer(
        ProfileOptions(**options), Lines(*await asyncio.open_connection(sock=one, limit=MAX_LINE_BYTES))
    )
    serving = asyncio.create_task(server.run())
    reader, writer = await asyncio.open_connection(sock=two, limit=MAX_LINE_BYTES)
    editor = Editor(reader, writer)
    try:
        yield editor
    finally:
        writer.close()
        await asyncio.wait_for(serving, 60)
        with suppress(ConnectionError):
            await editor.connection.close()


def write_profile(folder: Any, *steps: Any, **settings: Any) -> None:
    """Make the default profile of a home folder play a script."""
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    script = config / "script.yaml"
    script.write_text(format_document(list(steps)))
    model = {"model": f"scripted:{script}", "window": 10_000}
    profile = {"extends": "default", "sandbox": "full", "processor": model, "accelerator": model, **settings}
    (config / "profiles.yaml").write_text(json.dumps({"default": profile}))
