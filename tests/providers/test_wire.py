"""The wire suite: faults at every point of an answer, from both vendors, over loopback.

    python -m pytest tests/providers/test_wire.py --wire 1

A faulty answer comes first, then the same answer without a fault. The result must be this answer, whole and once, after
one request or, if the fault hides a part of it, after two. Faults that hide nothing must not cost a second request.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from goose_like.core.events import MessageCompleted, Retrying, TextDelta
from goose_like.core.message import Message, Text, Thinking, ToolCall, Verbatim
from goose_like.providers.retry import stream_with_retries
from tests.loopback import Loopback, Response, called, chunk, ended, raw, started, thought, usage, wish, words
from tests.providers.vendors import ANTHROPIC, OPENAI, QUICK_RETRIES, REQUEST, RESPONSES, VENDORS, Vendor, set_keys_only
from tests.responses_events import call, reason, speak, stream

WIRES = pytest.mark.parametrize("vendor", VENDORS.values(), ids=lambda vendor: vendor.wire)

PING = {"type": "ping"}
PIECES = ("gr", "üße ", "😀\n<b>", ' "data: \\')
CALLS = (("11", '{"command":"ls"}'), ("12", '{"command":"pwd"}'))
PARTS = (Text(text="".join(PIECES)), *(ToolCall(id=id_, name="shell", arguments=text) for id_, text in CALLS))
EVENTS: Mapping[str, Sequence[Any]] = {
    "chat": [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm"}),
        *(chunk({"content": piece}) for piece in PIECES),
        chunk({"tool_calls": [{"index": 0, "id": "11", "type": "function", "function": {"name": "shell"}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": CALLS[0][1][:9]}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": CALLS[0][1][9:]}}]}),
        chunk(called(("12", "shell", CALLS[1][1]))[0]["choices"][0]["delta"] | {"role": "assistant"}),
        chunk(finish="tool_calls"),
        usage(),
    ],
    "messages": [
        started(),
        PING,
        *thought(0, "hm", "SIG"),
        *words(1, *PIECES),
        *wish(2, "11", "shell", CALLS[0][1][:9], CALLS[0][1][9:]),
        *wish(3, "12", "shell", CALLS[1][1]),
        *ended("tool_use"),
    ],
    "responses": stream(
        reason(0, "rs_1", "hm", encrypted="SECRET"),
        speak(1, "msg_1", *PIECES, phase="commentary"),
        call(2, "fc_1", "11", "shell", CALLS[0][1][:9], CALLS[0][1][9:]),
        call(3, "fc_2", "12", "shell", CALLS[1][1]),
    ),
}
EVENTS["chat"][-3]["choices"][0]["delta"]["tool_calls"][0]["index"] = 1
ANSWERS = {
    "chat": Message(
        role="assistant",
        parts=(Thinking(text="hm"), *PARTS),
        verbatim=Verbatim(wire="chat", origin="127.0.0.1", items=({"reasoning_content": "hm"},)),
    ),
    "responses": Message(
        role="assistant",
        parts=(Thinking(text="hm"), *PARTS),
        verbatim=Verbatim(wire="responses", origin="127.0.0.1", items=EVENTS["responses"][-1]["response"]["output"]),
    ),
    "messages": Message(
        role="assistant",
        parts=(Thinking(text="hm"), *PARTS),
        verbatim=Verbatim(
            wire="messages",
            origin="127.0.0.1",
            items=(
                {"type": "thinking", "thinking": "hm", "signature": "SIG"},
                {"type": "text", "text": "".join(PIECES)},
                {"type": "tool_use", "id": "11", "name": "shell"},
                {"type": "tool_use", "id": "12", "name": "shell"},
            ),
        ),
    ),
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


@pytest.fixture
def step(request: pytest.FixtureRequest) -> int:
    """The distance between two points."""
    return int(request.config.getoption("--wire"))


@dataclass
class Wire:
    """One client and one server. `check` plays an answer with a fault."""

    vendor: Vendor
    server: Loopback
    provider: Any
    good: Response = field(init=False)

    def __post_init__(self) -> None:
        self.good = raw(encode(self.vendor))

    async def check(
        self,
        fault: Response,
        point: object,
        *,
        is_harmless: bool = False,
        is_timed: bool = False,  # a busy machine may be silent, too
        has_ids: bool = True,
    ) -> None:
        self.server.play(replace(fault, broken="the fault"), self.good)
        deltas = []
        async with asyncio.timeout(60):
            async for delta in stream_with_retries(self.provider, REQUEST, QUICK_RETRIES):
                if isinstance(delta, Retrying):
                    assert delta.text.startswith(f"{self.vendor.name} at 127.0.0.1:"), point
                    assert "\n" not in delta.text, point
                    deltas.clear()
                else:
                    deltas.append(delta)
        done = deltas[-1]
        assert isinstance(done, MessageCompleted)
        found, expected = done.message, ANSWERS[self.vendor.wire]
        if not has_ids:
            found, expected = (remove_ids(message) for message in (found, expected))
        assert found == expected, point
        assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == found.text, point
        assert len(self.server.requests) <= (1 if is_harmless else 3 if is_timed else 2), point


@asynccontextmanager
async def connect(vendor: Vendor, stall_s: float = 50) -> AsyncGenerator[Wire, None]:
    async with Loopback([]) as server:
        provider = vendor.provider(vendor.choice(server.base_url, stall_s=stall_s))
        yield Wire(vendor, server, provider)
        await provider.close()


def remove_ids(message: Message) -> Message:
    parts = (part.model_copy(update={"id": ""}) if isinstance(part, ToolCall) else part for part in message.parts)
    return message.model_copy(update={"parts": tuple(parts), "verbatim": None})


def encode(vendor: Vendor, events: Sequence[Any] | None = None) -> bytes:
    return vendor.encode(EVENTS[vendor.wire] if events is None else events) + vendor.done


# --- bytes

ByteFault = Callable[[bytes, int], Response]


def _frame(*pieces: bytes) -> Response:
    framed = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
    return Response(200, {"transfer-encoding": "chunked"}, [*framed, b"0\r\n\r\n"])


HARMLESS: dict[str, ByteFault] = {
    "split": lambda body, at: _frame(body[:at], body[at:]),
    "dripping": lambda body, at: raw(body[:at], *(bytes([byte]) for byte in body[at : at + 9]), body[at + 9 :]),
}
HARMFUL: dict[str, ByteFault] = {
    "cut": lambda body, at: raw(body[:at]),
    "reset": lambda body, at: raw(body[:at], pause_s=0.001, is_reset=True),
    "shorter than its length": lambda body, at: Response(
        200, {"content-length": str(len(body) + 1), "connection": "close"}, [body[:at]]
    ),
    "cut HTTP chunk": lambda body, at: Response(
        200, {"transfer-encoding": "chunked", "connection": "close"}, [b"%x\r\n" % len(body), body[:at]]
    ),
    "garbage": lambda body, at: raw(body[:at], b"\x00\xff\x00", body[at:]),
    "a lost byte": lambda body, at: raw(body[:at], b"\x00", body[at + 1 :]),
    "half a character": lambda body, at: raw(body[:at], b"\xf0\x9f", body[at:]),
}


def _points(body: bytes, step: int) -> list[int]:
    return sorted({*range(0, len(body), step), *(range(len(body) - 3, len(body) + 1) if step > 1 else [len(body)])})


@WIRES
@pytest.mark.parametrize("name", [*HARMLESS, *HARMFUL])
async def test_a_fault_at_a_byte(vendor: Vendor, name: str, step: int) -> None:
    body = encode(vendor)
    async with connect(vendor) as wire:
        for at in _points(body, step):
            await wire.check((HARMLESS | HARMFUL)[name](body, at), at, is_harmless=name in HARMLESS)


@WIRES
async def test_silence_at_a_byte(vendor: Vendor, step: int) -> None:
    body = encode(vendor)
    async with connect(vendor, stall_s=0.1) as wire:
        for at in _points(body, 5 * step):
            await wire.check(raw(body[:at], hang_s=30), at, is_timed=True)


# --- the whole stream


def _whole_answer(vendor: Vendor) -> bytes:
    """Encode the answer as a server does that does not stream."""
    calls = [{"id": id_, "type": "function", "function": {"name": "shell", "arguments": text}} for id_, text in CALLS]
    texts = {"content": PARTS[0].text, "reasoning_content": "hm"}  # type: ignore[union-attr]
    choice = {"index": 0, "message": {"role": "assistant", **texts, "tool_calls": calls}, "finish_reason": "tool_calls"}
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "SIG"},
        {"type": "text", "text": texts["content"]},
        *({"type": "tool_use", "id": id_, "name": "shell", "input": json.loads(text)} for id_, text in CALLS),
    ]
    documents = {
        "chat": {"object": "chat.completion", "choices": [choice]},
        "messages": {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": {}},
        "responses": EVENTS["responses"][-1]["response"],
    }
    return json.dumps(documents[vendor.wire], indent=1).encode()


def _without_end(vendor: Vendor) -> bytes:
    """Encode the answer without its finish reason, or stop reason."""
    events = json.loads(json.dumps(EVENTS[vendor.wire]))
    if vendor is OPENAI:
        events[-2]["choices"][0]["finish_reason"] = None
    elif vendor is RESPONSES:
        events[-1]["response"]["status"] = None
    else:
        events[-2]["delta"]["stop_reason"] = None
    return encode(vendor, events)


VARIANTS: dict[str, Callable[[Vendor], bytes]] = {
    "BOM": lambda v: b"\xef\xbb\xbf" + encode(v, EVENTS[v.wire][v is OPENAI :]),  # before a chunk with content
    "CRLF": lambda v: encode(v).replace(b"\n", b"\r\n"),
    "CR": lambda v: encode(v).replace(b"\n", b"\r"),
    "no space": lambda v: encode(v).replace(b"data: {", b"data:{").replace(b"data: [D", b"data:[D"),
    "no names": lambda v: b"".join(line for line in encode(v).splitlines(True) if not line.startswith(b"event:")),
    "no empty lines": lambda v: encode(v).replace(b"\n\n", b"\n"),
    "no last line end": lambda v: encode(v).rstrip(b"\n"),
    "no end mark": lambda v: v.encode(EVENTS[v.wire][: -1 if v is ANTHROPIC else None]),
    "no finish reason": _without_end,
    "comments": lambda v: b": ping\n\n" + encode(v).replace(b"\n", b"\n: ping\n"),
    "no stream": _whole_answer,
}


@WIRES
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["split", "cut"])
async def test_another_stream_at_a_byte(vendor: Vendor, variant: str, name: str, step: int) -> None:
    body = VARIANTS[variant](vendor)
    async with connect(vendor) as wire:
        for at in _points(body, step * 2 if step > 1 else 1):
            is_harmless = name == "split" or at == len(body)
            await wire.check((HARMLESS | HARMFUL)[name](body, at), at, is_harmless=is_harmless)


@WIRES
@pytest.mark.parametrize("kind", ["", "text/plain", "application/json", "text/html", "application/x-ndjson", "\xff"])
async def test_another_content_type(vendor: Vendor, kind: str) -> None:
    async with connect(vendor) as wire:
        for body in (encode(vendor), _whole_answer(vendor)):
            await wire.check(raw(body, kind=kind), kind, is_harmless=True)


# --- events

EXTRAS = {
    "comment": b": ping\n\n",
    "ping": b'event: ping\ndata: {"type": "ping"}\n\n',
    "unknown event": b'event: fanfare\ndata: {"type": "fanfare"}\n\n',
    "null": b"data: null\n\n",
    "empty data": b"data:\n\n",
    "empty choices": b'data: {"choices": []}\n\n',
    "unknown key": b"fanfare: 5\n",
    "other keys": b"retry: 5\nid: 7\n\n",
    "broken JSON": b'data: {"a": \n\n',
    "no UTF-8": b'data: {"a": "\xff"}\n\n',
    "a list": b"data: [1]\n\n",
    "a number": b"data: 5\n\n",
    "an error": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}\n\n',
    "a page": b"<html>\n\n",
}
HARMFUL_EXTRAS = {"broken JSON", "no UTF-8", "a list", "a number", "an error", "a page"}


@WIRES
@pytest.mark.parametrize("extra", EXTRAS)
async def test_an_extra_event(vendor: Vendor, extra: str) -> None:
    events = EVENTS[vendor.wire]
    async with connect(vendor) as wire:
        for at in range(len(events) + 1):
            body = vendor.encode(events[:at]) + EXTRAS[extra] + vendor.encode(events[at:]) + vendor.done
            await wire.check(raw(body), at, is_harmless=extra not in HARMFUL_EXTRAS)


@WIRES
async def test_an_event_twice(vendor: Vendor) -> None:
    """An event twice is the same event, where the wire format can tell: a piece of text is one more piece."""
    events = EVENTS[vendor.wire]
    async with connect(vendor) as wire:
        for at, event in enumerate(events):
            text = json.dumps(event)
            is_piece = "content_block_delta" in text or (
                '"id": "1' not in text and ('content": "' in text or "argum" in text)
            )
            if not is_piece or '"content": ""' in text:
                await wire.check(raw(encode(vendor, [*events[: at + 1], event, *events[at + 1 :]])), at)


# --- values


def _walk(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield (*path, key)
        yield from _walk(node[key], (*path, key))


def _is_kept_as_it_comes(path: tuple[Any, ...]) -> bool:
    """Return whether a value belongs to an item of a response that nobody reads before the server gets it back."""
    is_in_item = bool({"item", "output"} & set(path))
    return is_in_item and path[-1] not in ("call_id", "name", "arguments", "text")


def _change(vendor: Vendor, change: Callable[[Any, Any], bool]) -> Iterator[tuple[tuple[Any, ...], bytes]]:
    """Yield each place in the answer, and the answer after `change(holder, key)` has changed the place."""
    events = EVENTS[vendor.wire]
    for path in _walk(events):
        if vendor is RESPONSES and _is_kept_as_it_comes(path):
            continue
        copy = json.loads(json.dumps(events))
        holder = copy
        for key in path[:-1]:
            holder = holder[key]
        if change(holder, path[-1]):
            yield path, _encode_renamed(vendor, copy)


def _encode_renamed(vendor: Vendor, events: Sequence[Any]) -> bytes:
    """Encode changed events under their own names."""
    if vendor is OPENAI:
        return encode(vendor, events)
    named = zip(EVENTS[vendor.wire], events, strict=True)
    return "".join(f"event: {old['type']}\ndata: {json.dumps(new)}\n\n" for old, new in named).encode()


def _set(value: Any) -> Callable[[Any, Any], bool]:
    def change(holder: Any, key: Any) -> bool:
        holder[key] = value
        return True

    return change


def _loosen(holder: Any, key: Any) -> bool:
    """Write numbers as texts, and ids as numbers."""
    if type(holder[key]) is int:
        holder[key] = str(holder[key])
    elif key == "id" and holder[key].isdigit():
        holder[key] = int(holder[key])
    return key == "id" or str(holder[key]).isdigit()


def _float(holder: Any, key: Any) -> bool:
    holder[key] = float(holder[key]) if type(holder[key]) is int else holder[key]
    return isinstance(holder[key], float)


def _remove(holder: Any, key: Any) -> bool:
    """Remove a value, unless an answer without it is one more valid answer."""
    content = ("content", "reasoning_content", "choices", "tool_calls", "function", "arguments", "input")
    if not isinstance(holder, dict) or key in (*content, "text", "thinking", "signature", "partial_json"):
        return False
    if key == "delta" and "finish_reason" in holder:
        return False
    del holder[key]
    return True


def _nullify(holder: Any, key: Any) -> bool:
    if holder == EVENTS["chat"][-2]["choices"][0] and key == "finish_reason":
        return False
    is_removable = isinstance(holder, dict) and _remove(dict(holder), key)
    if is_removable:
        holder[key] = None
    return is_removable


CHANGES: dict[str, Callable[[Any, Any], bool]] = {
    "a yes": _set(True),
    "a list": _set([7.5]),
    "a float": _float,
    "a loose type": _loosen,
    "nothing": _remove,
    "null": _nullify,
}
HARMLESS_CHANGES = {"a float", "a loose type"}


@WIRES
@pytest.mark.parametrize("name", CHANGES)
async def test_another_value(vendor: Vendor, name: str) -> None:
    async with connect(vendor) as wire:
        for path, body in _change(vendor, CHANGES[name]):
            has_ids = path[-1] not in ("id", "call_id")
            await wire.check(raw(body), path, is_harmless=name in HARMLESS_CHANGES, has_ids=has_ids)


def test_the_answer_has_every_kind_of_event() -> None:
    kinds = {event["type"] for event in EVENTS["messages"]}
    assert kinds == {"message_start", "ping", *(f"content_block_{part}" for part in ("start", "delta", "stop"))} | {
        "message_delta",
        "message_stop",
    }
