"""A parsed request: values that are the same for both dialects of the protocol and know nothing of HTTP."""

import json
from math import isfinite
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AliasPath, BeforeValidator, ConfigDict, Field, JsonValue, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError, from_json

from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.workspace.documents.document import Document

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
        return {key: replace_nonfinite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [replace_nonfinite(entry) for entry in value]
    is_nonfinite = isinstance(value, float) and not isfinite(value)
    return None if is_nonfinite else value


def list_objects(value: object) -> list[dict[str, Any]]:
    """List the objects in a list of JSON values; anything else has none."""
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, dict)]


def _read_object(value: object) -> object:
    if isinstance(value, str):
        value = decode_json(value)
    return {} if value is None else replace_nonfinite(value)


def _read_value(value: object) -> object:
    return None if value == "<<UNDEFINED>>" else replace_nonfinite(value)


ClientText = Annotated[Utf8Text, BeforeValidator(to_text)]
ClientObject = Annotated[dict[str, Any], BeforeValidator(_read_object)]
_Value = Annotated[JsonValue, BeforeValidator(_read_value)]
_Flag = Annotated[bool, BeforeValidator(lambda value: value is not None and value)]
_NOT_FALSE = BeforeValidator(lambda value: value is not False)
_NULL_IS_EMPTY = BeforeValidator(lambda value: () if value is None else value)


class _ClientModel(FrozenModel):
    """A record that is read from the client's JSON; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


# --- the dashboard and the client's tools


class WidgetParam(_ClientModel):
    """A parameter of a widget and its current value on the dashboard."""

    name: ClientText
    type: ClientText = "string"
    description: ClientText = ""
    default_value: _Value = None
    current_value: _Value = None
    options: Annotated[tuple[_Value, ...], _NULL_IS_EMPTY] = ()
    has_options_endpoint: _Flag = Field(default=False, validation_alias="get_options")
    is_multiple: _Flag = Field(default=False, validation_alias="multi_select")

    @property
    def value(self) -> JsonValue:
        """The current value, or the default if there is none."""
        return self.default_value if self.current_value is None else self.current_value


class Widget(_ClientModel):
    """A part of the dashboard that has data. `origin` and `widget_id` are empty in the dialect `copilot`."""

    origin: ClientText = ""
    widget_id: ClientText = ""
    description: ClientText = ""
    params: Annotated[tuple[WidgetParam, ...], _NULL_IS_EMPTY] = ()
    metadata: ClientObject = {}
    uuid: ClientText = Field(default="", validate_default=True)
    name: ClientText = Field(default="", validate_default=True)

    @field_validator("uuid")
    @classmethod
    def _derive_uuid(cls, uuid: str, info: ValidationInfo) -> str:
        """Derive a missing uuid from origin and id as openbb-ai 2.2 does, so that the client recognizes it."""
        if uuid:
            return uuid
        origin = info.data.get("origin")
        widget_id = info.data.get("widget_id")
        if not (origin and widget_id):
            raise PydanticCustomError("missing", "a widget needs a uuid, or an origin and a widget_id")
        from xxhash import xxh64

        digest = xxh64(f"origin={origin}&widget_id={widget_id}".encode())
        return str(UUID(digest.hexdigest() * 2))

    @field_validator("name")
    @classmethod
    def _derive_name(cls, name: str, info: ValidationInfo) -> str:
        return name or info.data.get("widget_id") or info.data.get("uuid", "")

    @property
    def current_values(self) -> dict[str, JsonValue]:
        """Current or default values of the parameters by name, without those that have neither."""
        values = {param.name: param.value for param in self.params}
        return {name: value for name, value in values.items() if value is not None}


_Widgets = Annotated[tuple[Widget, ...], _NULL_IS_EMPTY]


class WidgetTiers(_ClientModel):
    """Widgets that the user picked, others on the dashboard, and widgets that can be added to it."""

    primary: _Widgets = ()
    secondary: _Widgets = ()
    extra: _Widgets = ()


class ClientTool(_ClientModel):
    """A tool that the client can run on one of its MCP servers. `alias` is its unique name for the model."""

    name: ClientText
    server_id: ClientText = ""
    url: ClientText = ""
    endpoint: ClientText = ""
    description: ClientText = ""
    input_schema: ClientObject = {}
    alias: ClientText = ""


class Skill(_ClientModel):
    """Instructions of the user for a kind of question. An entry of the catalog has no `content`."""

    slug: ClientText
    description: ClientText = ""
    content: ClientText = Field(default="", validation_alias="contentMarkdown")


# --- data


class DataItem(_ClientModel):
    """A piece of data: text (often JSON), a base64 file, or a URL. `kind` is `object`, `pdf`, `png` or similar.

    `document` is what the server read from the file.
    """

    content: ClientText = ""
    url: ClientText = ""
    kind: ClientText = Field(default="object", validation_alias=AliasPath("data_format", "data_type"))
    filename: ClientText = Field(default="", validation_alias=AliasPath("data_format", "filename"))
    is_citable: Annotated[bool, _NOT_FALSE] = Field(default=True, validation_alias="citable")
    document: Document | None = None


class AddedContext(_ClientModel):
    """Data that the user attached to the conversation."""

    name: ClientText = ""
    description: ClientText = ""
    items: tuple[DataItem, ...] = ()
    metadata: ClientObject = {}


# --- the conversation


class UserMessage(_ClientModel):
    """A message of the user."""

    role: Literal["human"] = "human"
    text: Utf8Text = Field(validation_alias="content")


class AgentMessage(_ClientModel):
    """An answer of an agent. `agent_id` names the agent if another one than this server answered."""

    role: Literal["ai"] = "ai"
    text: Utf8Text = Field(validation_alias="content")
    agent_id: Utf8Text = ""


class FunctionCall(_ClientModel):
    """A function call that an agent sent to the client. `state` is the signed state that came with it."""

    role: Literal["call"] = "call"
    function: ClientText
    arguments: ClientObject = {}
    state: Utf8Text = ""


class Outcome(_ClientModel):
    """Data or an error from one data source. `message` is the client's text about it."""

    items: tuple[DataItem, ...] = ()
    message: Utf8Text = ""
    is_error: bool = False
    citations: tuple[ClientObject, ...] = ()


class FunctionResult(_ClientModel):
    """The client's result of a function call, with one outcome for each requested data source, in their order."""

    role: Literal["tool"] = "tool"
    function: ClientText
    arguments: ClientObject = {}
    outcomes: tuple[Outcome, ...] = ()
    state: Utf8Text = ""


QueryMessage = UserMessage | AgentMessage | FunctionCall | FunctionResult


class Query(_ClientModel):
    """One request with its whole conversation: the protocol has no sessions."""

    dialect: Dialect
    messages: tuple[Annotated[QueryMessage, Field(discriminator="role")], ...]
    widgets: WidgetTiers = Field(default_factory=WidgetTiers)
    context: tuple[AddedContext, ...] = ()
    urls: Annotated[tuple[ClientText, ...], _NULL_IS_EMPTY] = ()
    tools: Annotated[tuple[ClientTool, ...], _NULL_IS_EMPTY] = ()
    selected_skills: Annotated[tuple[Skill, ...], _NULL_IS_EMPTY] = ()
    skills_catalog: Annotated[tuple[Skill, ...], _NULL_IS_EMPTY] = ()
    timezone: ClientText = ""
    workspace_options: ClientObject = {}
    workspace_state: ClientObject = {}

    @property
    def last_user_text(self) -> str:
        """The text of the user's last message."""
        message = self.last_user_message
        return message.text if message else ""

    @property
    def last_user_message(self) -> UserMessage | None:
        """The user's last message."""
        for message in reversed(self.messages):
            if isinstance(message, UserMessage):
                return message
        return None

    @property
    def all_widgets(self) -> tuple[Widget, ...]:
        """The widgets of all tiers."""
        return (*self.widgets.primary, *self.widgets.secondary, *self.widgets.extra)

    @property
    def offered_skills(self) -> tuple[Skill, ...]:
        """The skills that the model may read: none if the user chose one."""
        return () if self.selected_skills else self.skills_catalog

    def find_widget(self, uuid: str) -> Widget | None:
        """Return the widget with a uuid, or None."""
        for widget in self.all_widgets:
            if widget.uuid == uuid:
                return widget
        return None

    def find_tool(self, alias: str) -> ClientTool | None:
        """Return the client's tool with this name for the model, or None."""
        for tool in self.tools:
            if tool.alias == alias:
                return tool
        return None
