"""The body of a request as a query: what clients of either era send, read as one; what is wrong, by its field."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal
from uuid import UUID

from pydantic import ValidationError
from xxhash import xxh64

from goose_like.core.errors import GooseLikeError

from .body import (
    LISTED,
    AiMessage,
    Body,
    ContextEntry,
    HumanMessage,
    ParamEntry,
    ToolMessage,
    WidgetEntry,
    WidgetTiers,
    finite,
    mapping,
    words,
)
from .query import Ai, Asked, ClientTool, Context, Given, Human, Item, Query, Said, Widget, WidgetParam

ORCHESTRATOR = "openbb-copilot"
"""The Workspace's own agent: what it says as `ai` is a task for another one, in the person's place."""

STATE = "goose_like"
"""The key beside a call's arguments, or in its `extra_state`, that holds what we sent along for ourselves."""

_ERRORS = 20
_UNDEFINED = "<<UNDEFINED>>"

_Tier = Literal["primary", "secondary", "extra"]


class RequestError(GooseLikeError):
    """The body can't be read; `errors` says where and why as the protocol's clients know it: `loc`, `msg`, `type`."""

    def __init__(self, errors: Iterable[Mapping[str, Any]]) -> None:
        self.errors = [dict(error) for error in errors]
        super().__init__("; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in self.errors))


def read_query(body: bytes) -> Query:
    """What the client asks. What is unknown is ignored, and whatever could be meant is taken.

    Raises:
        RequestError: it is no JSON, or a field that is needed is missing or can't be what it is.
    """
    try:
        return _query(_validated(body))
    except ValidationError as error:
        raise RequestError(_told(error)) from None


def _validated(body: bytes) -> Body:
    try:
        return Body.model_validate_json(body)
    except ValidationError as error:
        mended = _mended(body) if error.errors(include_input=False)[0]["type"] == "json_invalid" else None
        if mended is None:
            raise
    return Body.model_validate_json(mended)


def _mended(body: bytes) -> bytes | None:
    """The body without halves of surrogate pairs, which JavaScript's strings may end in and UTF-8 can't hold."""
    if b"\\ud" not in body.lower():
        return None
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _told(error: ValidationError) -> Iterator[dict[str, Any]]:
    for one in error.errors(include_url=False, include_context=False, include_input=False)[:_ERRORS]:
        loc = one["loc"]
        if loc[:1] == ("messages",):
            loc = (*loc[:2], *loc[3:])  # the role by which it was read stands third
        if one["type"].startswith("union_tag"):
            one["msg"], loc = "a message's role is one of human, ai, tool", (*loc, "role")
        yield {**one, "loc": ("body", *(key for key in loc if key != LISTED))}


def _query(body: Body) -> Query:
    return Query(
        dialect=body.dialect,
        messages=tuple(map(_said, body.messages)),
        widgets=tuple(_widgets(body.widgets)) if body.widgets else (),
        context=tuple(map(_context, body.context)),
        urls=tuple(body.urls or ()),
        tools=tuple(ClientTool.model_validate(tool.model_dump()) for tool in body.tools or ()),
        timezone=body.timezone,
        options=body.workspace_options,
        workspace=body.workspace_state,
    )


def _said(message: HumanMessage | AiMessage | ToolMessage) -> Said:
    match message:
        case HumanMessage(content=text):
            return Human(text=text)
        case AiMessage(content=dict(call)):
            arguments = mapping(call.get("input_arguments")) or mapping(call.get("copilot_function_call_arguments"))
            state = _sealed(call) or _sealed(mapping(call.get("extra_state")))
            return Asked(function=call["function"], arguments=finite(arguments), state=state)
        case AiMessage(content=text, agent_id=agent):
            return Human(text=text) if agent == ORCHESTRATOR else Ai(text=text, agent_id=agent)
    data = message.content if message.data is None else message.data
    return Given(
        function=message.function,
        arguments=message.input_arguments or message.copilot_function_call_arguments,
        outcomes=tuple(map(_outcome, data if isinstance(data, list) else [data])),
        state=_sealed(mapping(message.extra_state)),
    )


def _sealed(beside: dict[str, Any]) -> str:
    """What we sent along, if it is there; nothing else than text was ever ours."""
    text = beside.get(STATE)
    return text if isinstance(text, str) else ""


def _outcome(data: Any) -> Given.One:
    match data:
        case None:
            return Given.One()
        case {"items": list(items)}:
            citations = data.get("extra_citations")
            cited = finite(citations) if isinstance(citations, list) else ()
            return Given.One(items=_items(items), citations=tuple(one for one in cited if isinstance(one, dict)))
        case {"error_type": kind}:
            return Given.One(message=f"{words(kind)}: {words(data.get('content'))}", is_error=True)
        case {"status": "success" | "warning" | "error" as status} if data.keys() <= {"status", "message", "data"}:
            message, more = words(data.get("message")), data.get("data")
            return Given.One(
                items=() if more is None else _items([more]),
                message=": ".join(filter(None, ("" if status == "success" and message else status, message))),
                is_error=status == "error",
            )
    return Given.One(items=_items([data]))


def _items(data: Iterable[object]) -> tuple[Item, ...]:
    return tuple(map(_item, data))


def _item(data: object) -> Item:
    """A piece of data; what has none of the known shapes is data itself."""
    if not isinstance(data, dict) or not {"content", "url"} & data.keys():
        return Item(content=words(data))
    form = mapping(data.get("data_format"))
    return Item(
        content=words(data.get("content")),
        url=words(data.get("url")),
        kind=words(form.get("data_type")) or "object",
        parse_as=words(form.get("parse_as")) or "table",
        filename=words(form.get("filename")),
        is_citable=data.get("citable") is not False,
    )


def _context(context: ContextEntry) -> Context:
    return Context(
        name=context.name or "context",
        description=context.description,
        uuid=context.uuid,
        items=_outcome(context.data).items,
        metadata=context.metadata,
    )


def _widgets(widgets: WidgetTiers) -> Iterator[Widget]:
    tiers: dict[str, _Tier] = {LISTED: "primary", "primary": "primary", "secondary": "secondary", "extra": "extra"}
    for name, tier in tiers.items():
        for place, widget in enumerate(getattr(widgets, name) or ()):
            uuid = widget.uuid or _uuid(widget)
            if not uuid:
                loc = ("body", "widgets", *([] if name == LISTED else [name]), place, "uuid")
                told = "a widget needs a uuid, or an origin and a widget_id that one is made of"
                raise RequestError([{"loc": loc, "msg": told, "type": "missing"}])
            yield Widget(
                uuid=uuid,
                name=widget.name or widget.widget_id or uuid,
                description=widget.description,
                origin=widget.origin,
                widget_id=widget.widget_id,
                params=tuple(map(_param, widget.params or ())),
                metadata=widget.metadata,
                tier=tier,
            )


def _uuid(widget: WidgetEntry) -> str:
    """The uuid of a widget that came without: by the Workspace's rule (openbb-ai 2.2), so that it knows it again."""
    if not (widget.origin and widget.widget_id):
        return ""
    return str(UUID(xxh64(f"origin={widget.origin}&widget_id={widget.widget_id}").hexdigest() * 2))


def _param(param: ParamEntry) -> WidgetParam:
    return WidgetParam(
        name=param.name,
        type=param.type,
        description=param.description,
        default_value=None if param.default_value == _UNDEFINED else param.default_value,
        current_value=param.current_value,
        options=tuple(param.options or ()),
        has_options_endpoint=bool(param.get_options),
        is_multiple=bool(param.multi_select),
    )
