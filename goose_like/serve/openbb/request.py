"""The body of a request: the JSON of both dialects, validated and converted to a `Query`.

Unknown fields are ignored, and every field is read as tolerantly as possible.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from goose_like.core.errors import GooseLikeError

from .query import (
    AddedContext,
    AgentMessage,
    ClientObject,
    ClientText,
    ClientTool,
    DataItem,
    Dialect,
    FunctionCall,
    FunctionResult,
    Outcome,
    Query,
    QueryMessage,
    UserMessage,
    Widget,
    decode_json,
    replace_nonfinite,
    to_text,
)

ORCHESTRATOR = "openbb-copilot"
"""The Workspace's own agent. Its `ai` messages are tasks for other agents, so they count as the user's."""

STATE_KEY = "goose_like"
"""The key of our signed state, beside a call's arguments or in its `extra_state`."""

_UNTIERED = "untiered"
"""The tier of widgets that come as a plain list; not a field of the JSON."""

_ARGUMENT_KEYS = {"input_arguments", "copilot_function_call_arguments"}
_MAX_ERRORS = 20

# --- conversion of loosely typed JSON


def _to_object(value: object) -> dict[str, Any]:
    """Return an object, or the object in a JSON text; an empty object for anything else."""
    found = decode_json(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) else {}


def _read_ai_content(value: object) -> dict[str, Any] | str:
    """Return the function call in an `ai` message, which may be an object or JSON text; else the message's text."""
    found = decode_json(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", '"') else value
    if isinstance(found, dict) and isinstance(found.get("function"), str) and _ARGUMENT_KEYS & found.keys():
        return found
    return to_text(value)


def _read_contexts(value: object) -> object:
    entries = [value] if isinstance(value, str) else value or []
    if not isinstance(entries, list):
        return value
    return [{"data": entry} if isinstance(entry, str) else entry for entry in entries if entry not in ("", None)]


def _read_tiers(value: object) -> object:
    return {_UNTIERED: value} if isinstance(value, list) else value


# --- the JSON of the body


class _BodyPart(BaseModel):
    model_config = ConfigDict(defer_build=True)


class _HumanEntry(_BodyPart):
    role: Literal["human"]
    content: str


class _AiEntry(_BodyPart):
    role: Literal["ai"]
    content: Annotated[dict[str, Any] | str, BeforeValidator(_read_ai_content)] = ""
    agent_id: ClientText = ""

    @property
    def is_workspace_dialect(self) -> bool:
        call = self.content if isinstance(self.content, dict) else {}
        has_sources = "data_sources" in _to_object(call.get("input_arguments"))
        return "agent_id" in self.model_fields_set or "extra_state" in call or has_sources


class _ToolEntry(_BodyPart):
    role: Literal["tool"]
    function: ClientText = ""
    input_arguments: ClientObject = {}
    copilot_function_call_arguments: ClientObject = {}
    data: Any = None
    content: Any = None
    extra_state: Any = None

    @property
    def is_workspace_dialect(self) -> bool:
        return isinstance(self.data, list) or bool({"input_arguments", "extra_state"} & self.model_fields_set)


class _WidgetTiers(_BodyPart):
    untiered: list[Widget] | None = None
    primary: list[Widget] | None = None
    secondary: list[Widget] | None = None
    extra: list[Widget] | None = None

    def flatten(self) -> tuple[Widget, ...]:
        others = ((tier, getattr(self, tier)) for tier in ("primary", "secondary", "extra"))
        tiers = [("primary", self.untiered), *others]
        return tuple(widget.model_copy(update={"tier": tier}) for tier, widgets in tiers for widget in widgets or ())


class _ContextEntry(_BodyPart):
    uuid: ClientText = ""
    name: ClientText = ""
    description: ClientText = ""
    data: Any = None
    metadata: ClientObject = {}


class _Body(_BodyPart):
    """A request's body. Some fields are here only because their presence tells the dialect."""

    messages: list[Annotated[_HumanEntry | _AiEntry | _ToolEntry, Field(discriminator="role")]]
    context: Annotated[list[_ContextEntry], BeforeValidator(_read_contexts)] = []
    widgets: Annotated[_WidgetTiers | None, BeforeValidator(_read_tiers)] = None
    urls: list[ClientText] | None = None
    tools: list[ClientTool] | None = None
    timezone: ClientText = ""
    workspace_state: ClientObject = {}
    workspace_options: ClientObject = {}
    api_keys: Any = None
    force_web_search: Any = None
    skills_catalog: Any = None
    selected_skills: Any = None

    @field_validator("messages", mode="before")
    @classmethod
    def _check_not_empty(cls, messages: object) -> object:
        if not messages:
            raise PydanticCustomError("too_short", "messages list cannot be empty")
        return messages

    @property
    def dialect(self) -> Dialect:
        """The dialect of the client.

        The shape of the widgets decides: only `copilot` sends a plain list. Without widgets, any field that only
        `workspace` has decides. Without such a field, the result is `copilot`, which has fewer events.
        """
        if self.widgets is not None:
            return "copilot" if _UNTIERED in self.widgets.model_fields_set else "workspace"
        is_workspace = (
            self.model_fields_set - {"messages", "context", "widgets"}
            or any(entry.is_workspace_dialect for entry in self.messages if not isinstance(entry, _HumanEntry))
            or any("items" in _to_object(context.data) for context in self.context)
        )
        return "workspace" if is_workspace else "copilot"


# --- from the body to the query


class RequestError(GooseLikeError):
    """A body that cannot be read; `errors` has `loc`, `msg` and `type` of each error, as clients expect them."""

    def __init__(self, errors: Iterable[Mapping[str, Any]]) -> None:
        self.errors = [dict(error) for error in errors]
        super().__init__("; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in self.errors))


def parse_query(body: bytes) -> Query:
    """Parse the body of a request.

    Raises:
        RequestError: the body is not JSON, or a required field is missing or unusable.
    """
    try:
        return _build_query(_validate(body))
    except ValidationError as error:
        raise RequestError(_format_errors(error)) from None


def _validate(body: bytes) -> _Body:
    try:
        return _Body.model_validate_json(body)
    except ValidationError as error:
        repaired = _repair_surrogates(body) if error.errors(include_input=False)[0]["type"] == "json_invalid" else None
        if repaired is None:
            raise
    return _Body.model_validate_json(repaired)


def _repair_surrogates(body: bytes) -> bytes | None:
    """Replace lone surrogates, which JavaScript strings may contain and UTF-8 may not."""
    if b"\\ud" not in body.lower():
        return None
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _format_errors(error: ValidationError) -> Iterator[dict[str, Any]]:
    for detail in error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_ERRORS]:
        loc = detail["loc"]
        if loc[:1] == ("messages",):
            loc = (*loc[:2], *loc[3:])  # pydantic puts the role in the third place
        if detail["type"].startswith("union_tag"):
            detail["msg"], loc = "a message's role is one of human, ai, tool", (*loc, "role")
        yield {**detail, "loc": ("body", *(key for key in loc if key != _UNTIERED))}


def _build_query(body: _Body) -> Query:
    return Query(
        dialect=body.dialect,
        messages=tuple(map(_build_message, body.messages)),
        widgets=body.widgets.flatten() if body.widgets else (),
        context=tuple(map(_build_context, body.context)),
        urls=tuple(body.urls or ()),
        tools=tuple(body.tools or ()),
        timezone=body.timezone,
        options=body.workspace_options,
        workspace=body.workspace_state,
    )


def _build_message(entry: _HumanEntry | _AiEntry | _ToolEntry) -> QueryMessage:
    match entry:
        case _HumanEntry(content=text):
            return UserMessage(text=text)
        case _AiEntry(content=dict(call)):
            arguments = _to_object(call.get("input_arguments")) or _to_object(
                call.get("copilot_function_call_arguments")
            )
            state = _get_state(call) or _get_state(_to_object(call.get("extra_state")))
            return FunctionCall(function=call["function"], arguments=replace_nonfinite(arguments), state=state)
        case _AiEntry(content=text, agent_id=agent_id):
            return UserMessage(text=text) if agent_id == ORCHESTRATOR else AgentMessage(text=text, agent_id=agent_id)
    data = entry.content if entry.data is None else entry.data
    return FunctionResult(
        function=entry.function,
        arguments=entry.input_arguments or entry.copilot_function_call_arguments,
        outcomes=tuple(map(_build_outcome, data if isinstance(data, list) else [data])),
        state=_get_state(_to_object(entry.extra_state)),
    )


def _get_state(fields: dict[str, Any]) -> str:
    text = fields.get(STATE_KEY)
    return text if isinstance(text, str) else ""


def _build_outcome(data: Any) -> Outcome:
    match data:
        case None:
            return Outcome()
        case {"items": list(items)}:
            extra = data.get("extra_citations")
            citations = replace_nonfinite(extra) if isinstance(extra, list) else ()
            return Outcome(
                items=_build_items(items), citations=tuple(one for one in citations if isinstance(one, dict))
            )
        case {"error_type": kind}:
            return Outcome(message=f"{to_text(kind)}: {to_text(data.get('content'))}", is_error=True)
        case {"status": "success" | "warning" | "error" as status} if data.keys() <= {"status", "message", "data"}:
            message, content = to_text(data.get("message")), data.get("data")
            return Outcome(
                items=() if content is None else _build_items([content]),
                message=": ".join(filter(None, ("" if status == "success" and message else status, message))),
                is_error=status == "error",
            )
    return Outcome(items=_build_items([data]))


def _build_items(data: Iterable[object]) -> tuple[DataItem, ...]:
    return tuple(map(_build_item, data))


def _build_item(data: object) -> DataItem:
    if not isinstance(data, dict) or not {"content", "url"} & data.keys():
        return DataItem(content=to_text(data))
    data_format = _to_object(data.get("data_format"))
    return DataItem(
        content=to_text(data.get("content")),
        url=to_text(data.get("url")),
        kind=to_text(data_format.get("data_type")) or "object",
        parse_as=to_text(data_format.get("parse_as")) or "table",
        filename=to_text(data_format.get("filename")),
        is_citable=data.get("citable") is not False,
    )


def _build_context(entry: _ContextEntry) -> AddedContext:
    return AddedContext(
        name=entry.name or "context",
        description=entry.description,
        uuid=entry.uuid,
        items=_build_outcome(entry.data).items,
        metadata=entry.metadata,
    )
