"""Rules by which the vendors' servers refuse a conversation. Source: their API references.

valid_for_openai(asked.json)         # True, or a RefusedError that names the entry and the rule
valid_for_anthropic(asked.json)
"""

import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

_NAME = r"[a-zA-Z0-9_-]{1,64}"
_ID = r"[a-zA-Z0-9_-]+"
_IMAGE = r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*"

_KEYS_OF_ROLE = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
"""OpenAI's; it has no key for thinking."""

MARKS = 4


class RefusedError(ValueError):
    """A body that a vendor's server would refuse."""


def valid_for_openai(body: Mapping[str, Any]) -> bool:
    """Check a body for chat completions: each call has its result right after it, in the order of the calls.

    Raises:
        RefusedError: they don't.
    """
    _check_names(tool["function"]["name"] for tool in body.get("tools", ()))
    messages = body["messages"]
    awaited: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        role = message.get("role")
        with_place = f"message {at} ({role})"
        _need(role in _KEYS_OF_ROLE, with_place, "no such role")
        _need(set(message) <= _KEYS_OF_ROLE[role], with_place, f"keys {sorted(set(message) - _KEYS_OF_ROLE[role])}")
        _need(role != "system" or at == 0, with_place, "a system message stands first")
        if role == "tool":
            _need(bool(awaited), with_place, "an answer to no call")
            _need(message["tool_call_id"] == awaited.pop(0), with_place, "answers stand in the order of the calls")
            _need(isinstance(message["content"], str), with_place, "its content is text")
            continue
        _need(not awaited, with_place, f"the calls {awaited} have no answer before it")
        calls = message.get("tool_calls", [])
        _need("tool_calls" not in message or bool(calls), with_place, "an empty list of calls")
        _check_openai_content(message["content"], with_place, may_be_empty=bool(calls))
        awaited = [_check_openai_call(call, with_place) for call in calls]
        _check_new(awaited, seen, with_place)
    _need(not awaited, "the end", f"the calls {awaited} have no answer")
    _need(messages[-1]["role"] in ("user", "tool"), "the end", "there is nothing to answer")
    return True


def _check_openai_content(content: Any, place: str, *, may_be_empty: bool) -> None:
    if isinstance(content, str) or content is None:
        _need(bool(content) or may_be_empty, place, "it is empty")
        return
    _need(isinstance(content, list) and bool(content), place, "its content is text or a list of parts")
    for part in content:
        match part:
            case {"type": "text", "text": str(text), **rest}:
                _need(bool(text) and not rest, place, "an empty text")
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                _need(re.fullmatch(_IMAGE, url) is not None, place, "an image that is none")
            case _:
                raise RefusedError(f"{place}: no such part: {part}")


def _check_openai_call(call: Any, place: str) -> str:
    match call:
        case {"id": str(id_), "type": "function", "function": {"name": str(name), "arguments": str(arguments)}}:
            _check_names([name])
            _need(re.fullmatch(_ID, id_) is not None, place, f"the id {id_!r}")
            _check_object(arguments, place)
            return id_
    raise RefusedError(f"{place}: no such call: {call}")


def valid_for_anthropic(body: Mapping[str, Any]) -> bool:
    """Check a body for Anthropic's messages: thinking has its signature and an allowed place.

    Raises:
        RefusedError: they don't.
    """
    names = [tool["name"] for tool in body.get("tools", ())]
    _check_names(names)
    _need(len(names) == len(set(names)), "the tools", "Tool names must be unique")
    hosted = {tool["name"] for tool in body.get("tools", ()) if "input_schema" not in tool}
    _check_deferred(body)
    system, messages = body.get("system", []), body["messages"]
    blocks = [*body.get("tools", ()), *system, *(block for message in messages for block in message["content"])]
    _need(sum("cache_control" in block for block in blocks) <= MARKS, "the body", "too many marks for the cache")
    for block in system:
        _need(block["type"] == "text" and bool(block["text"].strip()), "system", "an empty text")
    _need(messages[0]["role"] == "user", "message 0", "the person speaks first")
    awaited: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        place = f"message {at} ({message.get('role')})"
        _need(set(message) == {"role", "content"}, place, f"keys {sorted(message)}")
        _need(message["role"] in ("user", "assistant", "system"), place, "no such role")
        if message["role"] == "system":
            _need(messages[at - 1]["role"] == "user", place, "a system message follows a user turn")
            following = [later["role"] for later in messages[at + 1 : at + 2]]
            _need(following in ([], ["assistant"]), place, "an answer follows a system message")
        content = message["content"]
        _need(isinstance(content, list) and bool(content), place, "it is empty")
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        _need(results == awaited, place, f"it answers {results} where {awaited} are called right before")
        first = [block["type"] for block in content[: len(results)]]
        _need(first == ["tool_result"] * len(results), place, "results stand before all else")
        for block in content:
            _check_block(block, message["role"], place, is_thinking="thinking" in body)
        is_paused = _check_hosted(content, hosted, place)
        _need(not is_paused or at == len(messages) - 1, place, "`server_tool_use` without a result")
        _need(not content[-1]["type"].endswith("thinking"), place, "it ends with thinking")
        awaited = [block["id"] for block in content if block["type"] == "tool_use"]
        _check_new(awaited, seen, place)
    _need(messages[-1]["role"] != "assistant" or is_paused, "the end", "there is nothing to answer")
    return True


def _check_deferred(body: Mapping[str, Any]) -> None:
    """Check tools that the server searches, and the results of its searches."""
    tools = body.get("tools", ())
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    _need(len(deferred) < len(tools) or not tools, "the tools", "at least one tool must not be deferred")
    for tool in deferred:
        place = f"tool {tool['name']}"
        _need("cache_control" not in tool, place, "cannot have both defer_loading and cache_control")
    searches = {tool["name"] for tool in tools if tool.get("type", "").startswith("tool_search_tool_")}
    names = {tool["name"] for tool in tools}
    for at, message in enumerate(body["messages"]):
        place = f"message {at} ({message.get('role')})"
        asked: list[str] = []
        for block in message["content"]:
            if block["type"] == "server_tool_use" and not block["name"].startswith("web_"):
                _need(block["name"] in searches, place, f"no tool {block['name']!r} in the request")
                asked.append(block["id"])
            if block["type"] == "tool_search_tool_result":
                _need(block["tool_use_id"] in asked, place, "a result of no search")
                asked.remove(block["tool_use_id"])
                for reference in block["content"].get("tool_references", ()):
                    name = reference["tool_name"]
                    _need(name in names, place, f"Tool reference {name!r} not found in available tools")
        _need(not asked, place, f"the searches {asked} have no result")


def _check_hosted(content: Sequence[Any], hosted: Set[str], place: str) -> bool:
    """Check the uses of the server's tools on the web, and return whether one has no result yet."""
    awaited: dict[str, str] = {}
    for block in content:
        if block["type"] == "server_tool_use" and block["name"].startswith("web_"):
            _need(block["name"] in hosted, place, f"{block['name']} is no tool of this request")
            awaited[block["id"]] = block["name"]
        elif block["type"] in ("web_search_tool_result", "web_fetch_tool_result"):
            name = awaited.pop(block["tool_use_id"], "")
            _need(block["type"] == f"{name}_tool_result", place, "a result of no `server_tool_use`")
    return bool(awaited)


def _check_block(block: Any, role: str, place: str, *, is_thinking: bool) -> None:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    match role, bare:
        case _, {"type": "text", "text": str(text), **rest}:
            _need(bool(text.strip()) and rest.keys() <= {"citations"}, place, "a text without a letter")
        case "user", {"type": "image", "source": source}:
            url = f"data:{source['media_type']};{source['type']},{source['data']}"
            _need(re.fullmatch(_IMAGE, url) is not None, place, "an image that is none")
        case "user", {"type": "tool_result", "tool_use_id": str(), "content": content, **rest}:
            _need(set(rest) <= {"is_error"}, place, f"keys {sorted(rest)}")
            _need(bool(content), place, "an empty result")
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                _check_block(part, role, place, is_thinking=is_thinking)
        case "assistant", {"type": "tool_use", "id": str(id_), "name": str(name), "input": dict(), **rest}:
            _need(re.fullmatch(_ID, id_) is not None, place, f"the id {id_!r}")
            _need(rest.keys() <= {"caller"}, place, f"keys {sorted(rest)}")
            _check_names([name])
        case "assistant", {"type": "server_tool_use", "id": str(), "name": str(), "input": dict(), **rest}:
            _need(rest.keys() <= {"caller"}, place, f"keys {sorted(rest)}")
        case "assistant", {"type": "tool_search_tool_result", "tool_use_id": str(), "content": dict(), **rest}:
            _need(not rest, place, f"keys {sorted(rest)}")
        case "assistant", {"type": str(kind), "tool_use_id": str(), "content": _} if kind.startswith("web_"):
            pass
        case "assistant", {"type": "thinking", "thinking": str(), "signature": str(signature), **rest}:
            _need(bool(signature) and not rest, place, "thinking without its signature")
            _need(is_thinking and bare == block, place, "thinking where none is asked for, or with a mark")
        case "assistant", {"type": "redacted_thinking", "data": str(data), **rest}:
            _need(bool(data) and not rest and is_thinking and bare == block, place, "thinking that is none")
        case _:
            raise RefusedError(f"{place}: no such block: {block}")


def _check_names(names: Any) -> None:
    for name in names:
        _need(re.fullmatch(_NAME, name) is not None, "a tool", f"the name {name!r}")


def _check_new(ids: Sequence[str], seen: set[str], place: str) -> None:
    for id_ in ids:
        _need(id_ not in seen, place, f"the id {id_!r} was used before")
        seen.add(id_)


def _check_object(text: str, place: str) -> None:
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False
    _need(is_object, place, f"arguments that are no JSON object: {text[:80]!r}")


def _need(is_so: bool, place: str, otherwise: str) -> None:
    if not is_so:
        raise RefusedError(f"{place}: {otherwise}")
