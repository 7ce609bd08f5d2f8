"""Messages of the protocol as lines of JSON on standard input and output."""

import asyncio
import json
import os
import sys
from asyncio.streams import FlowControlMixin
from typing import Any

from goose_like.core.json_bytes import repair_json

MAX_LINE_BYTES = 64_000_000
"""A prompt with images is one line."""

REQUEST_ID = "_request_id"
"""The key in the parameters of a request that has its id, which the SDK does not give to handlers."""


class Lines:
    """The transport of a connection. It answers lines that are no messages, and drops `_meta`, which nobody reads."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls) -> "Lines":
        """Open standard input and output. Copies of both are closed at the end: other code still uses these."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        source = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        transport, protocol = await loop.connect_write_pipe(FlowControlMixin, target)
        return cls(reader, asyncio.StreamWriter(transport, protocol, None, loop))

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message."""
        self._writer.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Read the next message, or None at the end of the input."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                line = error.partial
                if not line:
                    return None
            except ConnectionError:  # a socket whose other end is gone: the input has ended
                return None
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                await self._refuse(-32600, f"a message may have {MAX_LINE_BYTES:,} bytes")
                continue
            if not line.strip():
                continue
            try:
                message = json.loads(repair_json(line))
            except (ValueError, RecursionError):
                await self._refuse(-32700, "this line is no JSON")
                continue
            if isinstance(message, dict) and isinstance(message.get("method", ""), str):
                return _prepare(message)
            await self._refuse(-32600, "this line is no message of JSON-RPC")

    async def close(self) -> None:
        """Close the output."""
        self._writer.close()

    async def _refuse(self, code: int, text: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})


def _prepare(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    if "method" not in message or not isinstance(params, dict):
        return message
    params = {key: value for key, value in params.items() if key != "_meta"}
    if "id" in message:
        params[REQUEST_ID] = message["id"]
    return message | {"params": params}
