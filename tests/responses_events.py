"""Answers as the Responses API streams them: the events of each item, and whole answers for `tests.loopback`.

answered = stream(reason(0, "rs_1", "hm", encrypted="SECRET"), speak(1, "msg_1", "hel", "lo"))
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.loopback import Response

Event = dict[str, Any]


def reason(index: int, id_: str, text: str = "", *, encrypted: str | None = "ENC") -> list[Event]:
    """Return the events of a reasoning item with a summary."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    item = {"type": "reasoning", "id": id_, "summary": summary, "encrypted_content": encrypted}
    place = {"item_id": id_, "output_index": index, "summary_index": 0}
    shown = [{"type": "response.reasoning_summary_text.delta", "delta": text, **place}] if text else []
    return [_add(index, {**item, "summary": [], "encrypted_content": ""}), *shown, _finish(index, item)]


def speak(index: int, id_: str, *pieces: str, phase: str | None = None) -> list[Event]:
    """Return the events of a message."""
    content = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
    item: Event = {"type": "message", "id": id_, "role": "assistant", "status": "completed", "content": content}
    if phase:
        item["phase"] = phase
    place = {"item_id": id_, "output_index": index, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", "delta": piece, "logprobs": [], **place} for piece in pieces]
    started = {**item, "status": "in_progress", "content": []}
    return [_add(index, started), *deltas, _finish(index, item)]


def call(
    index: int, id_: str, call_id: str, name: str, *pieces: str, status: str = "completed", **more: str
) -> list[Event]:
    """Return the events of a function call whose arguments come in pieces. `more` are further keys of its item."""
    item = {"type": "function_call", "id": id_, "call_id": call_id, "name": name, "status": status, **more}
    place = {"item_id": id_, "output_index": index}
    deltas = [{"type": "response.function_call_arguments.delta", "delta": piece, **place} for piece in pieces]
    started = {**item, "status": "in_progress", "arguments": ""}
    return [_add(index, started), *deltas, _finish(index, {**item, "arguments": "".join(pieces)})]


def search(index: int, number: int, found: Sequence[Any]) -> list[list[Event]]:
    """Return the events of a search of tools, and of the tools that it found."""
    shared = {"call_id": None, "execution": "server", "status": "completed"}
    paths = [tool["name"] for tool in found]
    asked = {"type": "tool_search_call", "id": f"tsc_{number}", "arguments": {"paths": paths}, **shared}
    given = {"type": "tool_search_output", "id": f"tso_{number}", "tools": list(found), **shared}
    events = []
    for place, item in enumerate((asked, given), index):
        events.append([_add(place, {**item, "status": "in_progress"}), _finish(place, item)])
    return events


def call_patch(index: int, id_: str, call_id: str, **operation: str) -> list[Event]:
    """Return the events of a call of `apply_patch`."""
    item = {"type": "apply_patch_call", "id": id_, "call_id": call_id, "operation": operation, "status": "completed"}
    return [_add(index, {**item, "status": "in_progress"}), _finish(index, item)]


def build_usage(input_tokens: int = 10) -> Event:
    """Return the usage of an answer of five tokens."""
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens + 5,
    }


def build_response(items: Sequence[Event], status: str = "completed", **keys: Any) -> Event:
    """Return a whole answer. `keys` replace its other keys."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m1",
        "status": status,
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": build_usage(),
        **keys,
    }


def stream(*groups: Iterable[Event], status: str = "completed", **keys: Any) -> list[Event]:
    """Return all events of an answer, from its creation to its end."""
    events = [event for group in groups for event in group]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    created = {"type": "response.created", "response": build_response([], "in_progress", usage=None)}
    ended = {"type": f"response.{status}", "response": build_response(items, status, **keys)}
    return number([created, *events, ended])


def number(events: Iterable[Event]) -> list[Event]:
    """Number events."""
    return [{**event, "sequence_number": index} for index, event in enumerate(events)]


def encode(events: Sequence[Event]) -> bytes:
    """Encode events as an event stream, each with its name."""
    texts = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return "".join(texts).encode("utf-8", "surrogatepass")


def respond(*groups: Iterable[Event], **how: Any) -> Response:
    """Return a whole answer in HTTP chunks, on a connection that stays open."""
    body = encode(stream(*groups, **how))
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return Response(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}, [framed])


def _add(index: int, item: Event) -> Event:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _finish(index: int, item: Event) -> Event:
    return {"type": "response.output_item.done", "output_index": index, "item": item}
