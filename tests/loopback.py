"""A server on 127.0.0.1 that plays canned HTTP/1.1 responses over bare sockets and keeps what it was asked.

    async with Loopback([sse(said("hello")), Response(429, headers={"retry-after": "1"})]) as server: ...
    with threaded([...]) as server: ...         # the same from a thread, for a command in a process of its own

Bare sockets, so that a response may be cut anywhere, be split anywhere, and say what no HTTP library would say.
"""

import asyncio
import json
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Response:
    """The answer to one request: each piece in its own write with `pause_s` after it, then silence for `hang_s`.

    Without a length or `transfer-encoding` among `headers` the body ends with the connection; `is_reset` breaks it.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    pause_s: float = 0.0
    hang_s: float = 0.0
    is_reset: bool = False

    def head(self) -> bytes:
        names = {name.lower() for name in self.headers}
        headers = dict(self.headers)
        if not names & {"content-length", "transfer-encoding"}:
            headers["connection"] = "close"
        return b"".join(
            [
                b"HTTP/1.1 %d X\r\n" % self.status,
                *(f"{k}: {v}\r\n".encode("latin-1") for k, v in headers.items()),
                b"\r\n",
            ]
        )


@dataclass(frozen=True)
class Asked:
    """A request as it came over the wire."""

    head: bytes
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Loopback:
    """Plays `responses` one a request; the last one again and again once they are used up."""

    def __init__(self, responses: Sequence[Response], tls: ssl.SSLContext | None = None) -> None:
        self._responses = list(responses)
        self._tls = tls
        self.requests: list[Asked] = []

    async def __aenter__(self) -> "Loopback":
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def play(self, *responses: Response) -> None:
        """Begin anew with other responses."""
        self._responses, self.requests = list(responses), []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    def _response(self, asked: Asked) -> Response:
        response = self._responses[min(len(self.requests), len(self._responses) - 1)]
        self.requests.append(asked)
        return response

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request and return whether the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
        response = self._response(Asked(head, body))
        writer.write(response.head())
        for piece in response.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(response.pause_s)
        await asyncio.sleep(response.hang_s)
        if response.is_reset:
            # Without lingering, a close is a reset to the other side.
            link = writer.get_extra_info("socket")
            if not writer.transport.is_closing():  # the other side may have gone first
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return b"connection: close" not in response.head() and not response.is_reset


@contextmanager
def threaded(responses: Sequence[Response] | Loopback) -> Iterator[Loopback]:
    """The server on a loop of its own in a thread; one that decides for itself is given as it is."""
    server = responses if isinstance(responses, Loopback) else Loopback(responses)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


# --- answers as chat completions stream them


def chunk(delta: Any = None, finish: str | None = None, **keys: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}], **keys}


def usage(prompt: int = 10, completion: int = 5, cached: int = 0) -> dict[str, Any]:
    details = {"cached_tokens": cached}
    return {
        "choices": [],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details},
    }


def said(text: str) -> list[dict[str, Any]]:
    """The chunks of a plain answer."""
    return [chunk({"role": "assistant", "content": ""}), chunk({"content": text}), chunk(finish="stop"), usage()]


def called(*calls: tuple[str, str, str]) -> list[dict[str, Any]]:
    """The chunks of an answer that calls tools: (id, name, arguments)."""
    items = [
        {"index": at, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (id_, name, arguments) in enumerate(calls)
    ]
    return [*(chunk({"tool_calls": [item]}) for item in items), chunk(finish="tool_calls"), usage()]


def events(chunks: Sequence[dict[str, Any]], *, end: str = "\n", is_done: bool = True) -> bytes:
    """The chunks as an event stream."""
    lines = [f"data: {json.dumps(entry, ensure_ascii=False)}{end}{end}" for entry in chunks]
    return "".join([*lines, *([f"data: [DONE]{end}{end}"] if is_done else [])]).encode("utf-8", "surrogatepass")


def sse(chunks: Sequence[dict[str, Any]], **how: Any) -> Response:
    """A whole answer in HTTP chunks, on a connection that stays open."""
    body = events(chunks)
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return Response(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}, [framed], **how)


def raw(*pieces: bytes, kind: str = "text/event-stream", **how: Any) -> Response:
    """Any bytes as a body that ends with the connection."""
    return Response(200, {"content-type": kind}, pieces, **how)


def refusal(status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Response:
    body = json.dumps({"error": {"message": message, **error}}).encode()
    head = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    return Response(status, head, [body])


def listed(*models: str) -> Response:
    """A list of models."""
    body = json.dumps({"object": "list", "data": [{"id": model, "object": "model"} for model in models]}).encode()
    return Response(200, {"content-type": "application/json", "content-length": str(len(body))}, [body])


# --- answers as Anthropic's messages stream them


def started(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 10, **usage}}}


def block(index: int, start: Any, *deltas: Any) -> list[dict[str, Any]]:
    """A block of content from its start to its stop."""
    grown = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    begun = {"type": "content_block_start", "index": index, "content_block": start}
    return [begun, *grown, {"type": "content_block_stop", "index": index}]


def words(index: int, *pieces: str) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def thought(index: int, text: str, signature: str) -> list[dict[str, Any]]:
    thinking = {"type": "thinking_delta", "thinking": text}
    signed = {"type": "signature_delta", "signature": signature}
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, thinking, signed)


def wish(index: int, id_: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    """A tool call whose arguments come in pieces."""
    start = {"type": "tool_use", "id": id_, "name": name, "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def ended(stop: Any = "end_turn", **usage: int) -> list[dict[str, Any]]:
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5, **usage}},
        {"type": "message_stop"},
    ]


def named(entries: Sequence[Any], *, end: str = "\n") -> bytes:
    """The events as an event stream, each with its name."""
    texts = (f"event: {e['type']}{end}data: {json.dumps(e, ensure_ascii=False)}{end}{end}" for e in entries)
    return "".join(texts).encode("utf-8", "surrogatepass")


def answer(*blocks: list[dict[str, Any]], stop: str = "end_turn", **usage: int) -> Response:
    """A whole answer of Anthropic's in HTTP chunks, on a connection that stays open."""
    body = named([started(**usage), *(entry for entries in blocks for entry in entries), *ended(stop)])
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return Response(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}, [framed])
