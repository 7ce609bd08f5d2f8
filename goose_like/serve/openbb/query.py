"""A parsed request: values that are the same for both dialects of the protocol and know nothing of HTTP."""

from typing import Any, Literal

from pydantic import JsonValue

from goose_like.core.message import FrozenModel, Utf8Text

Dialect = Literal["copilot", "workspace"]
"""`copilot`: the protocol of 2024 (`copilots.json`), which has only two events; `workspace`: the one of openbb-ai 2."""


class WidgetParam(FrozenModel):
    """A parameter of a widget and its current value on the dashboard."""

    name: Utf8Text
    type: str = "string"
    description: Utf8Text = ""
    default_value: JsonValue = None
    current_value: JsonValue = None
    options: tuple[JsonValue, ...] = ()
    has_options_endpoint: bool = False
    is_multiple: bool = False


class Widget(FrozenModel):
    """A part of the dashboard that has data. `origin` and `widget_id` are empty in the dialect `copilot`.

    `tier`: `primary` was picked by the user, `secondary` is on the dashboard, `extra` can be added to it.
    """

    uuid: str
    name: Utf8Text
    description: Utf8Text = ""
    origin: Utf8Text = ""
    widget_id: Utf8Text = ""
    params: tuple[WidgetParam, ...] = ()
    metadata: dict[str, JsonValue] = {}
    tier: Literal["primary", "secondary", "extra"] = "primary"

    @property
    def current_values(self) -> dict[str, JsonValue]:
        """Current or default values of the parameters by name, without those that have neither."""
        values = {p.name: p.default_value if p.current_value is None else p.current_value for p in self.params}
        return {name: value for name, value in values.items() if value is not None}


class ClientTool(FrozenModel):
    """A tool that the client can run on one of its MCP servers."""

    name: Utf8Text
    server_id: Utf8Text = ""
    url: Utf8Text = ""
    endpoint: Utf8Text = ""
    description: Utf8Text = ""
    input_schema: dict[str, Any] = {}


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
