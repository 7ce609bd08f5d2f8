"""A server on 127.0.0.1 that plays canned HTTP/1.1 responses over bare sockets and keeps what it was asked.

    async with Loopback([sse(said("hello")), Response(429, headers={"retry-after": "1"})]) as server: ...
    with threaded([...]) as server: ...         # the same from a thread, for a command in a process of its own

Bare sockets, so that a response may be cut anywhere, be split anywhere, and say what no HTTP library would say.

At its end the server holds every body that it got, and every event that it played, against the types of the vendors'
SDKs (`tests.sdk_types`). A broken answer says so: `raw(half, broken="it ends in an event")`.
"""

import asyncio
import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.sdk_types import check_body, check_event, is_wire

MAX_CHECKED = 200
"""Requests of one server whose bodies and events are checked; endurance tests send thousands."""


@dataclass(frozen=True)
class Response:
    """The answer to one request: each piece in its own write with `pause_s` after it, then silence for `hang_s`.

    Without a length or `transfer-encoding` among `headers` the body ends with the connection; `is_reset` breaks it.
    `broken` is the reason why no vendor's server sends such events; they are not checked.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    pause_s: float = 0.0
    hang_s: float = 0.0
    is_reset: bool = False
    broken: str = ""

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

    @property
    def path(self) -> str:
        return self.head.split(b" ")[1].partition(b"?")[0].decode()

    @property
    def is_beta(self) -> bool:
        return b"\r\nanthropic-beta:" in self.head.lower()


class Loopback:
    """Plays `responses` one a request; the last one again and again once they are used up.

    `odd_bodies` is the reason why the bodies that come do not fit the vendors' types; they are not checked.
    """

    def __init__(
        self, responses: Sequence[Response], tls: ssl.SSLContext | None = None, *, odd_bodies: str = ""
    ) -> None:
        self._responses = list(responses)
        self._tls = tls
        self._odd_bodies = odd_bodies
        self._played: list[tuple[Asked, Response]] = []
        self.requests: list[Asked] = []

    async def __aenter__(self) -> "Loopback":
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: object = None, *_: object) -> None:
        await self.stop()
        if kind is None:  # else the test has failed already
            self.check_types()

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check_types(self) -> None:
        """Check what went over the wire, at most `MAX_CHECKED` requests of it.

        Raises:
            AssertionError: An SDK does not know a body or an event.
        """
        for asked, response in self._played:
            if not is_wire(asked.path):
                continue
            try:
                if not self._odd_bodies and asked.body:
                    check_body(asked.path, asked.json, is_beta=asked.is_beta)
                for event in () if response.broken else _read_events(response):
                    check_event(asked.path, event, is_beta=asked.is_beta)
            except ValueError as error:
                raise AssertionError(f"{asked.path}: {str(error)[:1500]}") from error

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
        asked = Asked(head, body)
        response = self._response(asked)
        if len(self._played) < MAX_CHECKED:
            self._played.append((asked, response))
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


def _read_events(response: Response) -> Iterator[Any]:
    """Read the events of an event stream. An event without its end is none."""
    kind = response.headers.get("content-type", "")
    if response.status != 200 or not kind.startswith("text/event-stream"):
        return
    data = b"".join(response.pieces)
    if "transfer-encoding" in response.headers:
        data = b"".join(re.findall(rb"^[0-9a-f]+\r\n(.*?)\r\n(?=[0-9a-f]+\r\n)", data, re.DOTALL | re.MULTILINE))
    lines = re.sub(r"\r\n?", "\n", data.decode("utf-8", "surrogatepass"))
    *whole, _ = lines.split("\n\n")
    for event in whole:
        text = "\n".join(re.findall(r"^data: ?(.*)$", event, re.MULTILINE))
        if text and text != "[DONE]":
            yield json.loads(text)


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
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    server.check_types()


# --- answers as chat completions stream them


CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m1"}


def chunk(delta: Any = None, finish: str | None = None, **keys: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {**CHUNK, "choices": [choice], **keys}


def usage(prompt: int = 10, completion: int = 5, cached: int = 0) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**CHUNK, "choices": [], "usage": {**counts, "prompt_tokens_details": {"cached_tokens": cached}}}


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
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m1", "content": []}
    end = {"stop_reason": None, "stop_sequence": None}
    counts = {"input_tokens": 10, "output_tokens": 0, **usage}
    return {"type": "message_start", "message": {**message, **end, "usage": counts}}


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
