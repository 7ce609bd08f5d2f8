"""What a client asks, whichever of the protocol's shapes it came in: frozen values that know nothing of HTTP."""

from typing import Any, Literal

from pydantic import JsonValue

from goose_like.core.message import Value, Words

Dialect = Literal["copilot", "workspace"]
"""`copilot`: the protocol of 2024 (`copilots.json`), whose clients know two events; `workspace`: openbb-ai 2's."""


class WidgetParam(Value):
    """A parameter of a widget, with the value that it has on the dashboard now."""

    name: Words
    type: str = "string"
    description: Words = ""
    default_value: JsonValue = None
    current_value: JsonValue = None
    options: tuple[JsonValue, ...] = ()
    has_options_endpoint: bool = False
    is_multiple: bool = False


class Widget(Value):
    """Something on the dashboard that has data. `origin` and `widget_id` are empty in the dialect `copilot`.

    `tier`: `primary` was picked by the person, `secondary` is on the dashboard, `extra` could be put there.
    """

    uuid: str
    name: Words
    description: Words = ""
    origin: Words = ""
    widget_id: Words = ""
    params: tuple[WidgetParam, ...] = ()
    metadata: dict[str, JsonValue] = {}
    tier: Literal["primary", "secondary", "extra"] = "primary"

    @property
    def current(self) -> dict[str, JsonValue]:
        """The parameters as they are set now, by name."""
        values = {p.name: p.default_value if p.current_value is None else p.current_value for p in self.params}
        return {name: value for name, value in values.items() if value is not None}


class ClientTool(Value):
    """A tool that the client can run (its MCP servers)."""

    name: Words
    server_id: Words = ""
    url: Words = ""
    endpoint: Words = ""
    description: Words = ""
    input_schema: dict[str, Any] = {}


class Context(Value):
    """Data that the person added to the conversation by hand."""

    name: Words
    description: Words = ""
    uuid: str = ""
    items: tuple["Item", ...] = ()
    metadata: dict[str, JsonValue] = {}


class Item(Value):
    """A piece of data: text (often JSON), a file in base64, or the address of one. `kind` is `object`, `pdf`, `png`."""

    content: Words = ""
    url: Words = ""
    kind: str = "object"
    parse_as: str = "table"
    filename: Words = ""
    is_citable: bool = True


class Human(Value):
    """What the person said."""

    role: Literal["human"] = "human"
    text: Words


class Ai(Value):
    """What a copilot answered. `agent_id` says which, if it was not this one."""

    role: Literal["ai"] = "ai"
    text: Words
    agent_id: Words = ""


class Asked(Value):
    """A function that a copilot asked the client to run. `state` is the text that it sent along for itself."""

    role: Literal["call"] = "call"
    function: Words
    arguments: dict[str, Any] = {}
    state: Words = ""


class Given(Value):
    """What the client gave for a function: an outcome for each data source that was asked for, in their order."""

    role: Literal["tool"] = "tool"
    function: Words
    arguments: dict[str, Any] = {}
    outcomes: tuple["Given.One", ...] = ()
    state: Words = ""

    class One(Value):
        """Data, or what went wrong. `message` is what the client says beside it."""

        items: tuple[Item, ...] = ()
        message: Words = ""
        is_error: bool = False
        citations: tuple[dict[str, Any], ...] = ()


class Source(Value):
    """What data came from that an answer may rest on, and the citations that the client gave with it.

    `arguments` are those that the data was asked for with.
    """

    uuid: str = ""
    origin: Words = ""
    widget_id: Words = ""
    name: Words = ""
    description: Words = ""
    arguments: dict[str, JsonValue] = {}
    citations: tuple[dict[str, Any], ...] = ()
    is_citable: bool = True


Said = Human | Ai | Asked | Given


class Query(Value):
    """One request, in full: the protocol has no sessions, so it brings the whole conversation.

    `reserved` are names of tools that run here, and which the client's get no tool of.
    """

    dialect: Dialect
    messages: tuple[Said, ...]
    widgets: tuple[Widget, ...] = ()
    context: tuple[Context, ...] = ()
    urls: tuple[Words, ...] = ()
    tools: tuple[ClientTool, ...] = ()
    timezone: str = ""
    options: dict[str, JsonValue] = {}
    workspace: dict[str, JsonValue] = {}
    reserved: frozenset[str] = frozenset()

    def widget(self, uuid: str) -> Widget | None:
        """The widget of that uuid, if it is there."""
        return next((widget for widget in self.widgets if widget.uuid == uuid), None)


Context.model_rebuild()
Given.model_rebuild()
Query.model_rebuild()
