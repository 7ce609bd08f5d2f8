"""The body of a request: the JSON of both dialects, converted to a `Query`.

Unknown fields are ignored, and every field is read as tolerantly as possible.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from goose_like.core.errors import GooseLikeError
from goose_like.serve.body import describe_json_type, describe_wrong_field, parse_object

from .client_tools import choose_aliases
from .query import Dialect, Query, decode_json, list_objects, to_text

ORCHESTRATOR = "openbb-copilot"
"""The Workspace's own agent. Its `ai` messages are tasks for other agents, so they count as the user's."""

STATE_KEY = "goose_like"
"""The key of our signed state, beside a call's arguments or in its `extra_state`."""

_WORKSPACE_FIELDS = {
    "urls",
    "tools",
    "timezone",
    "workspace_state",
    "workspace_options",
    "api_keys",
    "force_web_search",
    "skills_catalog",
    "selected_skills",
}
_ARGUMENT_KEYS = {"input_arguments", "copilot_function_call_arguments"}
_ITEM_KEYS = {"content", "url"}
_STATUS_KEYS = {"status", "message", "data"}
_MAX_ERRORS = 20


class RequestError(GooseLikeError):
    """A body that cannot be read; `errors` has `loc`, `msg` and `type` of each error, as clients expect them."""

    def __init__(self, *errors: dict[str, Any]) -> None:
        super().__init__("; ".join(error["msg"] for error in errors))
        self.errors = errors


def parse_query(body: bytes, max_messages: int = 2_000, reserved_names: Collection[str] = ()) -> Query:
    """Parse the body of a query. No tool of the client gets one of the `reserved_names`.

    Raises:
        RequestError: the body is not JSON, or a required field is missing or unusable.
    """
    data = load_object(body)
    messages = data.get("messages")
    if messages is None or messages == []:
        raise _build_error("too_short", "messages list cannot be empty", "messages")
    if not isinstance(messages, list):
        text = f"messages: expected a list, not {describe_json_type(messages)}"
        raise _build_error("list_type", text, "messages")
    if len(messages) > max_messages:
        text = f"{len(messages)} messages are more than the maximum of {max_messages}"
        raise _build_error("too_long", text, "messages")
    try:
        query = Query.model_validate(_read_body(data))
    except ValidationError as error:
        raise RequestError(*_format_errors(error, data)) from None
    return query.model_copy(update={"tools": choose_aliases(query.tools, reserved_names)})


def load_object(body: bytes) -> dict[str, Any]:
    """Load a JSON object; see `parse_object`.

    Raises:
        RequestError: the body is something else.
    """
    try:
        return parse_object(body)
    except ValueError as error:
        raise _build_error("json_invalid", str(error)) from None


def _build_error(kind: str, text: str, *loc: str) -> RequestError:
    return RequestError({"loc": ("body", *loc), "msg": text, "type": kind})


def _format_errors(error: ValidationError, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for detail in error.errors(include_url=False, include_context=False)[:_MAX_ERRORS]:
        loc = detail["loc"]
        if loc[0] == "messages":
            loc = (*loc[:2], *loc[3:])  # pydantic puts the role in the third place
        elif loc[0] == "widgets" and isinstance(body["widgets"], list):
            loc = (loc[0], *loc[2:])  # only `WidgetTiers` has tiers here
        text = describe_wrong_field(detail)
        if detail["type"].startswith("union_tag"):
            loc = (*loc, "role")
            text = "a message's role is one of human, ai, tool"
        place = ".".join(map(str, loc))
        yield {"loc": ("body", *loc), "msg": f"{place}: {text}", "type": detail["type"]}


# --- from the client's JSON to the fields of a query


def _read_body(body: dict[str, Any]) -> dict[str, Any]:
    widgets = body.get("widgets")
    if widgets is None:
        widgets = {}
    elif isinstance(widgets, list):
        widgets = {"secondary": widgets}
    return {
        **body,
        "dialect": _detect_dialect(body),
        "messages": [_read_message(entry) for entry in body["messages"]],
        "widgets": widgets,
        "context": _read_contexts(body.get("context")),
    }


def _detect_dialect(body: dict[str, Any]) -> Dialect:
    """Detect the dialect of the client.

    The shape of the widgets decides: only `copilot` sends a plain list. Without widgets, any field that only
    `workspace` has decides. Without such a field, the result is `copilot` if a context, a call or a result has the
    form of 2024.
    """
    widgets = body.get("widgets")
    if widgets is not None:
        return "copilot" if isinstance(widgets, list) else "workspace"
    contexts = body.get("context") or []
    if not isinstance(contexts, list):
        contexts = [contexts]
    if any(map(_has_items, contexts)) or not _WORKSPACE_FIELDS.isdisjoint(body):
        return "workspace"
    has_old_field = "use_docs" in body or contexts or any(map(_has_old_form, body["messages"]))
    return "copilot" if has_old_field else "workspace"


def _has_items(context: object) -> bool:
    data = _to_object(context).get("data")
    return "items" in _to_object(data)


def _has_old_form(message: object) -> bool:
    """Tell whether a message is a call or a result in the form of 2024."""
    fields = _to_object(message)
    role = fields.get("role")
    if role == "tool":
        return not isinstance(fields.get("data"), list)
    if role != "ai":
        return False
    call = _find_call(fields.get("content"))
    return call is not None and "widget_uuid" in _get_arguments(call)


def _read_message(entry: Any) -> object:
    match entry:
        case {"role": "ai"}:
            return _read_answer(entry)
        case {"role": "tool"}:
            return _read_result(entry)
    return entry


def _read_answer(entry: Mapping[str, Any]) -> dict[str, Any]:
    content = entry.get("content")
    call = _find_call(content)
    if call:
        return {
            "role": "call",
            "function": call["function"],
            "arguments": _get_arguments(call),
            "state": _get_state(call),
        }
    agent_id = to_text(entry.get("agent_id"))
    role = "human" if agent_id == ORCHESTRATOR else "ai"
    return {"role": role, "content": to_text(content), "agent_id": agent_id}


def _read_result(entry: Mapping[str, Any]) -> dict[str, Any]:
    data = entry.get("data")
    if data is None:
        data = entry.get("content")
    if not isinstance(data, list):
        data = [data]
    return {
        "role": "tool",
        "function": entry.get("function"),
        "arguments": _get_arguments(entry),
        "outcomes": [_read_outcome(each) for each in data],
        "state": _get_state(entry),
    }


def _find_call(content: Any) -> dict[str, Any] | None:
    """Find the function call in the content of an `ai` message: an object, or JSON text that may be encoded twice."""
    if isinstance(content, str) and content.lstrip().startswith(("{", '"')):
        content = decode_json(content)
    if not isinstance(content, dict) or _ARGUMENT_KEYS.isdisjoint(content):
        return None
    return content if isinstance(content.get("function"), str) else None


def _get_arguments(fields: Mapping[str, Any]) -> dict[str, Any]:
    return _to_object(fields.get("input_arguments")) or _to_object(fields.get("copilot_function_call_arguments"))


def _get_state(fields: Mapping[str, Any]) -> str:
    extra_state = _to_object(fields.get("extra_state"))
    for state in (fields.get(STATE_KEY), extra_state.get(STATE_KEY)):
        if isinstance(state, str):
            return state
    return ""


def _to_object(value: object) -> dict[str, Any]:
    """Return an object, or the object in a JSON text; an empty object for anything else."""
    if isinstance(value, str):
        value = decode_json(value)
    return value if isinstance(value, dict) else {}


def _read_outcome(data: Any) -> dict[str, Any]:
    match data:
        case {"items": list()}:
            citations = list_objects(data.get("extra_citations"))
            return {"items": _read_items(data), "citations": citations}
        case {"error_type": kind}:
            content = to_text(data.get("content"))
            return {"message": f"{to_text(kind)}: {content}", "is_error": True}
        case {"status": "success" | "warning" | "error" as status} if data.keys() <= _STATUS_KEYS:
            message = to_text(data.get("message"))
            if not message:
                message = status
            elif status != "success":
                message = f"{status}: {message}"
            return {"items": _read_items(data.get("data")), "message": message, "is_error": status == "error"}
    return {"items": _read_items(data)}


def _read_items(data: Any) -> list[dict[str, Any]]:
    """Read the items of an outcome or a context. Data without items is one item."""
    match data:
        case None:
            return []
        case {"items": list(entries)}:
            return list(map(_read_item, entries))
    return [_read_item(data)]


def _read_item(entry: Any) -> dict[str, Any]:
    if isinstance(entry, dict) and not _ITEM_KEYS.isdisjoint(entry):
        return entry
    return {"content": entry}


def _read_contexts(value: Any) -> Any:
    entries = value or []
    if isinstance(value, str):
        entries = [value]
    if not isinstance(entries, list):
        return value
    contexts = []
    for entry in entries:
        if entry in ("", None):
            continue
        if isinstance(entry, str):
            entry = {"data": entry}
        if isinstance(entry, dict):
            entry = {**entry, "items": _read_items(entry.get("data"))}
        contexts.append(entry)
    return contexts
