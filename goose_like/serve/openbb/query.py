"""A parsed request: values that are the same for both dialects of the protocol and know nothing of HTTP."""

import json
from math import isfinite
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError, from_json

from goose_like.core.message import FrozenModel, Utf8Text

Dialect = Literal["copilot", "workspace"]
"""`copilot`: the protocol of 2024 (`copilots.json`), which has only two events; `workspace`: the one of openbb-ai 2."""


# --- conversion of loosely typed JSON


def to_text(value: object) -> str:
    """Return a text as it is, None as an empty text, and any other value as JSON."""
    match value:
        case str():
            return value
        case None:
            return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def decode_json(text: str) -> object:
    """Decode JSON that may be encoded twice; return None if the text is not JSON."""
    try:
        value = from_json(text)
        return from_json(value) if isinstance(value, str) else value
    except ValueError:
        return None


def replace_nonfinite(value: Any) -> Any:
    """Replace NaN and infinity by null: neither sessions nor call arguments can store them."""
    if isinstance(value, dict):
        return {key: entry if type(entry) is str else replace_nonfinite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [entry if type(entry) is str else replace_nonfinite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _read_object(value: object) -> object:
    found = decode_json(value) if isinstance(value, str) else value
    return {} if found is None else replace_nonfinite(found)


def _read_list(value: object) -> object:
    return () if value is None else value


def _read_value(value: object) -> object:
    return None if value == "<<UNDEFINED>>" else replace_nonfinite(value)


ClientText = Annotated[Utf8Text, BeforeValidator(to_text)]
ClientObject = Annotated[dict[str, Any], BeforeValidator(_read_object)]
_Value = Annotated[JsonValue, BeforeValidator(_read_value)]
_Flag = Annotated[bool, BeforeValidator(lambda value: value is not None and value)]


class _ClientModel(FrozenModel):
    """A record that is read from the client's JSON as it is; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


# --- the query


class WidgetParam(_ClientModel):
    """A parameter of a widget and its current value on the dashboard."""

    name: ClientText
    type: ClientText = "string"
    description: ClientText = ""
    default_value: _Value = None
    current_value: _Value = None
    options: Annotated[tuple[_Value, ...], BeforeValidator(_read_list)] = ()
    has_options_endpoint: _Flag = Field(default=False, validation_alias="get_options")
    is_multiple: _Flag = Field(default=False, validation_alias="multi_select")


class Widget(_ClientModel):
    """A part of the dashboard that has data. `origin` and `widget_id` are empty in the dialect `copilot`.

    `tier`: `primary` was picked by the user, `secondary` is on the dashboard, `extra` can be added to it.
    """

    origin: ClientText = ""
    widget_id: ClientText = ""
    description: ClientText = ""
    params: Annotated[tuple[WidgetParam, ...], BeforeValidator(_read_list)] = ()
    metadata: ClientObject = {}
    tier: Literal["primary", "secondary", "extra"] = "primary"
    uuid: ClientText = Field(default="", validate_default=True)
    name: ClientText = Field(default="", validate_default=True)

    @field_validator("uuid")
    @classmethod
    def _derive_uuid(cls, uuid: str, info: ValidationInfo) -> str:
        """Derive a missing uuid from origin and id as openbb-ai 2.2 does, so that the client recognizes it."""
        origin, widget_id = info.data.get("origin"), info.data.get("widget_id")
        if uuid:
            return uuid
        if not (origin and widget_id):
            raise PydanticCustomError(
                "missing", "a widget needs a uuid, or an origin and a widget_id to derive one from"
            )
        from xxhash import xxh64

        return str(UUID(xxh64(f"origin={origin}&widget_id={widget_id}").hexdigest() * 2))

    @field_validator("name")
    @classmethod
    def _derive_name(cls, name: str, info: ValidationInfo) -> str:
        return name or info.data.get("widget_id") or info.data.get("uuid", "")

    @property
    def current_values(self) -> dict[str, JsonValue]:
        """Current or default values of the parameters by name, without those that have neither."""
        values = {p.name: p.default_value if p.current_value is None else p.current_value for p in self.params}
        return {name: value for name, value in values.items() if value is not None}


class ClientTool(_ClientModel):
    """A tool that the client can run on one of its MCP servers."""

    name: ClientText
    server_id: ClientText = ""
    url: ClientText = ""
    endpoint: ClientText = ""
    description: ClientText = ""
    input_schema: ClientObject = {}


class DataItem(FrozenModel):
    """A piece of data: text (often JSON), a base64 file, or a URL. `kind` is `object`, `pdf`, `png` or similar."""

    content: Utf8Text = ""
    url: Utf8Text = ""
    kind: str = "object"
    parse_as: str = "table"
    filename: Utf8Text = ""
    is_citable: bool = True


class AddedContext(FrozenModel):
    """Data that the user attached to the conversation."""

    name: Utf8Text
    description: Utf8Text = ""
    uuid: str = ""
    items: tuple[DataItem, ...] = ()
    metadata: dict[str, JsonValue] = {}


class UserMessage(FrozenModel):
    """A message of the user."""

    role: Literal["human"] = "human"
    text: Utf8Text


class AgentMessage(FrozenModel):
    """An answer of an agent. `agent_id` names the agent if another one than this server answered."""

    role: Literal["ai"] = "ai"
    text: Utf8Text
    agent_id: Utf8Text = ""


class FunctionCall(FrozenModel):
    """A function call that an agent sent to the client. `state` is the signed state that came with it."""

    role: Literal["call"] = "call"
    function: Utf8Text
    arguments: dict[str, Any] = {}
    state: Utf8Text = ""


class Outcome(FrozenModel):
    """Data or an error from one data source. `message` is the client's text about it."""

    items: tuple[DataItem, ...] = ()
    message: Utf8Text = ""
    is_error: bool = False
    citations: tuple[dict[str, Any], ...] = ()


class FunctionResult(FrozenModel):
    """The client's result of a function call, with one outcome for each requested data source, in their order."""

    role: Literal["tool"] = "tool"
    function: Utf8Text
    arguments: dict[str, Any] = {}
    outcomes: tuple[Outcome, ...] = ()
    state: Utf8Text = ""


QueryMessage = UserMessage | AgentMessage | FunctionCall | FunctionResult


class DataSource(FrozenModel):
    """A source of data that an answer may use, the arguments of the request for it, and the client's citations."""

    uuid: str = ""
    origin: Utf8Text = ""
    widget_id: Utf8Text = ""
    name: Utf8Text = ""
    description: Utf8Text = ""
    arguments: dict[str, JsonValue] = {}
    citations: tuple[dict[str, Any], ...] = ()
    is_citable: bool = True


class Query(FrozenModel):
    """One request with its whole conversation: the protocol has no sessions.

    `reserved_names` are names of the server's own tools, which no client tool may use.
    """

    dialect: Dialect
    messages: tuple[QueryMessage, ...]
    widgets: tuple[Widget, ...] = ()
    context: tuple[AddedContext, ...] = ()
    urls: tuple[Utf8Text, ...] = ()
    tools: tuple[ClientTool, ...] = ()
    timezone: str = ""
    options: dict[str, JsonValue] = {}
    workspace: dict[str, JsonValue] = {}
    reserved_names: frozenset[str] = frozenset()

    @property
    def last_user_text(self) -> str:
        """The text of the user's last message."""
        return next((message.text for message in reversed(self.messages) if isinstance(message, UserMessage)), "")

    def find_widget(self, uuid: str) -> Widget | None:
        """Return the widget with a uuid, or None."""
        return next((widget for widget in self.widgets if widget.uuid == uuid), None)
