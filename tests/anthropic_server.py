"""A loopback server that binds thinking as Anthropic's API does, and refuses what that API refuses.

Each answer has thinking whose signature stands for everything before it: system prompt, tools and messages. The server
refuses a request with status 400 if a block of thinking was changed or stands after something else, or if an answer
comes back without one of its blocks. A request without any thinking passes: a client may leave out all of it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError

from tests.loopback import Asked, Loopback, Response, block, named, refusal
from tests.providers.vendor_rules import RefusedError, valid_for_anthropic

BODY = TypeAdapter(MessageCreateParamsStreaming)
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)

BETA_KEYS = frozenset({"fallbacks"})

Step = Mapping[str, Any]
"""`{"say": TEXT}`, `{"call": (NAME, ARGUMENTS)}`, or both; `search: [NAMES]` finds tools before.

`cut: True` breaks the answer off, `hang_s` waits then.

`{"web": BLOCKS}` are uses of the server's own tools and texts, with `searches` as their number. After `pause: True`
the client sends the answer back, and the next step goes on with it. `{"status": NUMBER}` refuses the request.
"""


class AnthropicServer(Loopback):
    """Plays steps, one a request. `problems` are the refusals of wrong requests."""

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__([])
        self._steps = list(steps)
        self._answers: list[list[dict[str, Any]]] = []
        self._bindings: dict[str, str] = {}
        self.problems: list[str] = []

    def _response(self, asked: Asked) -> Response:
        self.requests.append(asked)
        try:
            self.check(asked.json)
        except RefusedError as error:
            self.problems.append(str(error))
            return refusal(400, str(error), type="invalid_request_error")
        return self._play(asked.json)

    def check(self, body: Mapping[str, Any]) -> None:
        """Check a body.

        Raises:
            RefusedError: The API would refuse it.
        """
        try:
            _read_all(BODY.validate_python(body))
        except ValidationError as error:
            raise RefusedError(f"the body does not fit the SDK's type: {error}") from error
        known_keys = MessageCreateParamsStreaming.__annotations__.keys() | _list_base_keys() | BETA_KEYS
        _need(body.keys() <= known_keys, f"{sorted(body.keys() - known_keys)}: Extra inputs are not permitted")
        valid_for_anthropic(body)
        marks = [mark.get("ttl", "5m") for mark in _list_marks(body)]
        _need(marks == sorted(marks), "a ttl='1h' cache_control block must not come after a ttl='5m' block")
        thoughts = [entry for message in body["messages"] for entry in _list_thoughts(message)]
        for index, message in enumerate(body["messages"]):
            if message["role"] == "assistant" and thoughts:
                self._check_answer(body, index)

    def _check_answer(self, body: Mapping[str, Any], index: int) -> None:
        message = body["messages"][index]
        content = message["content"]
        if not _list_thoughts(message):
            called = {entry["id"] for entry in content if entry["type"] == "tool_use"}
            given = [entry for answer in self._answers for entry in answer if entry.get("id") in called]
            _need(not given, f"messages.{index}: a block of the answer is missing")
            return  # the start of an answer that broke off
        for place, entry in enumerate(content):
            if "signature" not in entry and "data" not in entry:
                continue
            bound_to = self._bindings.get(json.dumps(entry, sort_keys=True))
            where = f"messages.{index}.content.{place}"
            _need(bound_to is not None, f"{where}: `thinking` blocks cannot be modified")
            is_same = bound_to == _digest(body, index, content[:place])
            _need(is_same, f"{where}: The block is bound to a different conversation")
        _need(content in self._answers, f"messages.{index}: a block of the answer is missing")

    def _play(self, body: Mapping[str, Any]) -> Response:
        step = self._steps.pop(0) if self._steps else {"say": "done"}
        if "status" in step:
            return refusal(step["status"], "Overloaded", {"retry-after": "0"}, type="overloaded_error")
        blocks = self._build_answer(step, len(self._answers) + 1)
        self._bind(blocks, body)
        stop = "tool_use" if "call" in step else "end_turn"
        if step.get("pause"):
            stop = "pause_turn"
        counts = {"output_tokens": 5}
        if "searches" in step:
            counts["server_tool_use"] = {"web_search_requests": step["searches"], "web_fetch_requests": 0}
        events = [
            {"type": "message_start", "message": _build_message(body)},
            *(event for index, entry in enumerate(blocks) for event in _stream_block(index, entry)),
            *_end(stop, counts),
        ]
        for event in events:
            EVENT.validate_python(event)
        data = named(events)
        if step.get("cut"):
            data = data[: data.index(b"event: message_delta")]
        return Response(200, {"content-type": "text/event-stream"}, [data], hang_s=step.get("hang_s", 0))

    def _build_answer(self, step: Step, number: int) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": f"thought {number}", "signature": f"SIG-{number}"}
        ]
        if number % 3 == 0:
            blocks.append({"type": "redacted_thinking", "data": f"ENCRYPTED-{number}"})
        if number % 4 == 0:
            blocks[0]["thinking"] = ""  # newer models do not show all
        blocks += step.get("web", ())
        if "say" in step:
            blocks.append({"type": "text", "text": step["say"]})
        if "search" in step:
            blocks += _search(f"srvtoolu_{number}", step["search"])
        if "call" in step:
            name, arguments = step["call"]
            caller = {"type": "direct"}
            blocks.append(
                {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments, "caller": caller}
            )
        return blocks

    def _bind(self, blocks: list[dict[str, Any]], body: Mapping[str, Any]) -> None:
        *earlier, last = body["messages"]
        begun = last["content"] if last["role"] == "assistant" else []  # an answer that was paused
        count = len(earlier) if begun else len(body["messages"])
        whole = [*_remove_marks(begun), *blocks]
        self._answers.append(whole)
        for place, entry in enumerate(whole):
            if "signature" in entry or "data" in entry:
                digest = _digest(body, count, whole[:place])
                self._bindings[json.dumps(entry, sort_keys=True)] = digest


def _search(id_: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the blocks of a search of tools."""
    found = [{"type": "tool_reference", "tool_name": name} for name in names]
    call = {"type": "server_tool_use", "id": id_, "name": "tool_search_tool_bm25", "input": {"query": "a thing"}}
    content = {"type": "tool_search_tool_search_result", "tool_references": found}
    return [call, {"type": "tool_search_tool_result", "tool_use_id": id_, "content": content}]


def _digest(body: Mapping[str, Any], count: int, blocks: Sequence[Any]) -> str:
    """Hash everything before a block: system prompt, tools, the first messages and the blocks of its own message."""
    before = [body.get("system"), body.get("tools"), body["messages"][:count], list(blocks)]
    return sha256(json.dumps(_remove_marks(before), sort_keys=True).encode()).hexdigest()


def _remove_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [_remove_marks(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _remove_marks(entry) for key, entry in value.items() if key != "cache_control"}
    return value


def _list_marks(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    contents = [entry for message in body["messages"] for entry in message["content"]]
    for entry in [*body.get("tools", ()), *body.get("system", ()), *contents]:
        if "cache_control" in entry:
            yield entry["cache_control"]


def _list_thoughts(message: Mapping[str, Any]) -> list[Any]:
    return [entry for entry in message["content"] if entry["type"].endswith("thinking")]


def _read_all(value: Any) -> None:
    """Read the lists of a validated body, which pydantic checks one by one."""
    if isinstance(value, Mapping):
        for entry in value.values():
            _read_all(entry)
    elif not isinstance(value, str) and hasattr(value, "__iter__"):
        for entry in value:
            _read_all(entry)


def _list_base_keys() -> frozenset[str]:
    return frozenset(MessageCreateParamsStreaming.__required_keys__ | MessageCreateParamsStreaming.__optional_keys__)


def _build_message(body: Mapping[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": 1}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _stream_block(index: int, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a block, whose texts come in pieces."""
    match entry["type"]:
        case "text" if "citations" in entry:
            cited = [{"type": "citations_delta", "citation": citation} for citation in entry["citations"]]
            text = {"type": "text_delta", "text": entry["text"]}
            return block(index, {**entry, "text": "", "citations": []}, *cited, text)
        case "text":
            half = len(entry["text"]) // 2
            pieces = [entry["text"][:half], entry["text"][half:]]
            return block(index, {**entry, "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))
        case "thinking":
            deltas = [{"type": "signature_delta", "signature": entry["signature"]}]
            if entry["thinking"]:
                deltas.insert(0, {"type": "thinking_delta", "thinking": entry["thinking"]})
            return block(index, {**entry, "thinking": "", "signature": ""}, *deltas)
        case "tool_use" | "server_tool_use":
            arguments = json.dumps(entry["input"])
            delta = {"type": "input_json_delta", "partial_json": arguments}
            return block(index, {**entry, "input": {}}, delta)
    return block(index, entry)


def _end(stop: str, counts: Mapping[str, Any]) -> list[dict[str, Any]]:
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": counts}, {"type": "message_stop"}]


def _need(is_right: bool, problem: str) -> None:
    if not is_right:
        raise RefusedError(problem)
