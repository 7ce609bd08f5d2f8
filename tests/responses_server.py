"""A loopback server that treats reasoning as the Responses API does, and refuses what that API refuses.

Each answer has an encrypted reasoning item. The server refuses a request with status 400 if an item that it gave comes
back changed, without its reasoning or without the item after it; if the encrypted content is not its own; or if the
text before a reasoning item, or the tools, are not those for which the reasoning was made.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.loopback import Asked, Loopback, Response, refusal
from tests.responses_events import build_usage, call, call_patch, encode, reason, search, speak, stream
from tests.sdk_types import check_body, check_compact_body

Step = Mapping[str, Any]
"""`{"say": TEXT}`, `{"call": (NAME, ARGUMENTS)}`, `{"patch": OPERATION}`; `cut: True` breaks the answer off.

`search: [NAMES]` finds tools before a call.
"""


class RefusedError(ValueError):
    """A request that the API would refuse."""


@dataclass
class _Given:
    """An item that the server gave: its JSON, the items before it, and the item that must follow it."""

    item: Mapping[str, Any]
    before: Sequence[Any]
    tools: Sequence[Any]
    follower_id: str


class ResponsesServer(Loopback):
    """Plays steps, one a request. `problems` are the refusals."""

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__([])
        self._steps = list(steps)
        self._given: dict[str, _Given] = {}
        self._count = 0
        self.problems: list[str] = []

    def _response(self, asked: Asked) -> Response:
        self.requests.append(asked)
        if asked.path.endswith("/responses/compact"):
            return self._compact(asked.json)
        try:
            self.check(asked.json)
        except RefusedError as error:
            self.problems.append(str(error))
            return refusal(400, str(error), code="invalid_request_error")
        return self._play(asked.json)

    def check(self, body: Mapping[str, Any]) -> None:
        """Check a body.

        Raises:
            RefusedError: The API would refuse it.
        """
        try:
            check_body("/v1/responses", body)
        except ValueError as error:
            raise RefusedError(f"the body does not fit the SDK's type: {error}") from error
        items = body["input"]
        _need(items[0].get("role") == "developer", "the first item is not the developer's message")
        _need(body.get("store") is False, "the request is not stateless")
        for kind in ("function_call", "apply_patch_call"):
            name = kind.removesuffix("_call").replace("_", " ")
            waiting = set(_list_call_ids(items, kind))
            for item_id in _list_call_ids(items, f"{kind}_output"):
                _need(item_id in waiting, f"No tool call found for {name} call output with call_id {item_id}.")
                waiting.discard(item_id)
            _need(not waiting, f"No tool output found for {name} call {', '.join(sorted(waiting))}.")
        _check_search(body)
        for index, item in enumerate(items):
            if item.get("id"):
                self._check_item(items, index, body.get("tools", []))

    def _compact(self, body: Mapping[str, Any]) -> Response:
        """Give the messages of the user, and one item in place of the rest. Refuse calls without results."""
        check_compact_body(body)
        self._count += 1
        said = [item for item in body["input"] if item.get("role") == "user"]
        item = {"type": "compaction", "id": f"cmp_{self._count}", "encrypted_content": f"PACKED-{self._count}"}
        self._given[item["id"]] = _Given(item, (), (), "")
        answer = {"id": "resp_1", "object": "response.compaction", "created_at": 1, "output": [*said, item]}
        return Response(200, {}, [json.dumps({**answer, "usage": build_usage()}).encode()])

    def _check_item(self, items: Sequence[Any], index: int, tools: Sequence[Any]) -> None:
        item = items[index]
        given = self._given.get(item["id"])
        _need(given is not None, f"Item with id '{item['id']}' not found. Items are not persisted.")
        assert given is not None
        _need(item == given.item, f"The item '{item['id']}' was changed.")
        if item["type"] != "reasoning":
            before = items[index - 1].get("id", "")
            is_preceded = before in self._given and self._given[before].follower_id == item["id"]
            needs_reasoning = any(other.follower_id == item["id"] for other in self._given.values())
            _need(
                is_preceded or not needs_reasoning,
                f"Item '{item['id']}' was provided without its required 'reasoning' item.",
            )
            return
        follower = items[index + 1].get("id") if index + 1 < len(items) else None
        _need(follower == given.follower_id, f"Item '{item['id']}' was provided without its required following item.")
        _need(list(items[:index]) == list(given.before), f"The text before '{item['id']}' was changed.")
        _need(tools == given.tools, f"The tools before '{item['id']}' were changed.")

    def _play(self, body: Mapping[str, Any]) -> Response:
        step = self._steps.pop(0) if self._steps else {"say": "done"}
        self._count += 1
        number = self._count
        groups = [reason(0, f"rs_{number}", f"thought {number}", encrypted=f"SECRET-{number}")]
        if "say" in step:
            groups.append(speak(len(groups), f"msg_{number}", step["say"]))
        namespaces = _map_namespaces(body)
        if "search" in step:
            groups += search(len(groups), number, _select_namespaces(body, step["search"]))
        if "call" in step:
            name, arguments = step["call"]
            more = {"namespace": namespaces[name]} if name in namespaces else {}
            groups.append(call(len(groups), f"fc_{number}", f"call_{number}", name, json.dumps(arguments), **more))
        if "patch" in step:
            groups.append(call_patch(len(groups), f"apc_{number}", f"call_{number}", **step["patch"]))
        events = stream(*groups, usage=build_usage(len(json.dumps(body)) // 4))
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        self._remember(items, body)
        data = encode(events)
        if step.get("cut"):
            data = data[: data.index(b"event: response.completed")]
        return Response(200, {"content-type": "text/event-stream"}, [data])

    def _remember(self, items: Sequence[Mapping[str, Any]], body: Mapping[str, Any]) -> None:
        before = list(body["input"])
        for item, following in zip(items, [*items[1:], {}], strict=True):
            follower_id = following.get("id", "") if item["type"] == "reasoning" else ""
            self._given[item["id"]] = _Given(item, list(before), body.get("tools", []), follower_id)
            before.append(item)


def _map_namespaces(body: Mapping[str, Any]) -> dict[str, str]:
    """Map the functions of namespaces to these."""
    named = [tool for tool in body.get("tools", ()) if tool["type"] == "namespace"]
    return {function["name"]: tool["name"] for tool in named for function in tool["tools"]}


def _select_namespaces(body: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Select the functions with these names, in their namespaces."""
    selected = []
    for tool in body["tools"]:
        functions = [function for function in tool.get("tools", ()) if function["name"] in names]
        if functions:
            selected.append({**tool, "tools": functions})
    return selected


def _check_search(body: Mapping[str, Any]) -> None:
    """Check deferred tools, and what a search found."""
    tools = body.get("tools", ())
    namespaces = _map_namespaces(body)
    searches = any(tool["type"] == "tool_search" for tool in tools)
    _need(searches == bool(namespaces), "tool_search and deferred tools need each other")
    plain = {tool["name"] for tool in tools if tool["type"] == "function"}
    for item in body["input"]:
        kind = item.get("type", "")
        _need(searches or not kind.startswith("tool_search"), f"{kind} without tool_search in the tools")
        if kind == "function_call" and item["name"] not in plain:
            wanted = namespaces.get(item["name"])
            given = item.get("namespace")
            _need(given == wanted, f"Missing namespace for function_call '{item['name']}'.")


def _list_call_ids(items: Sequence[Mapping[str, Any]], kind: str) -> Iterator[str]:
    for item in items:
        if item.get("type") == kind:
            yield item["call_id"]


def _need(is_right: bool, problem: str) -> None:
    if not is_right:
        raise RefusedError(problem)
