"""A fake OpenBB Workspace that talks either dialect over real HTTP.

    async with Workspace("http://127.0.0.1:7777", dialect="copilot") as workspace:
        await workspace.discover()
        turn = await workspace.ask("what is the price of SAMP?")

It keeps the conversation and sends all of it each time, reads the stream as the standard says (WHATWG, "Server-sent
events"), and gives the functions that it is asked for from a sample dashboard.
"""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import httpx2

PRICES = "38181a68-9650-4940-84fb-a3f29c8869f3"
ESTIMATES = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
FILINGS = "c276369e-e469-4689-b5fe-3f8c76f7c45a"

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Sent:
    """An event of a stream."""

    event: str
    data: Any


class Parser:
    """A parser of a stream that arrives in arbitrary pieces; an event ends with an empty line."""

    def __init__(self) -> None:
        self._rest = b""
        self._event, self._data = "", list[str]()

    def feed(self, chunk: bytes) -> list[Sent]:
        self._rest += chunk
        *lines, self._rest = self._rest.replace(b"\r\n", b"\n").split(b"\n")
        return [sent for line in lines if (sent := self._line(line.decode("utf-8")))]

    @property
    def is_between(self) -> bool:
        """Tell whether the last event is complete."""
        return not (self._rest or self._event or self._data)

    def _line(self, line: str) -> Sent | None:
        if not line:
            event, data = self._event, self._data
            self._event, self._data = "", []
            return Sent(event or "message", json.loads("\n".join(data))) if data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        return None


@dataclass(frozen=True)
class Widget:
    """A widget of the sample dashboard, with its rows by arguments."""

    uuid: str
    widget_id: str
    name: str
    description: str
    params: tuple[dict[str, Any], ...]
    rows: Callable[[dict[str, Any]], Rows]
    tier: Literal["primary", "secondary", "extra"] = "primary"
    origin: str = "Sample data"

    @property
    def current(self) -> dict[str, Any]:
        return {param["name"]: param.get("current_value", param.get("default_value")) for param in self.params}


def _prices(arguments: dict[str, Any]) -> Rows:
    closes = (101.5, 102.25, 100.75, 103.0, 104.5)
    return [
        {"symbol": arguments["symbol"], "date": f"2026-01-{day:02}", "close": close, "volume": 1000 * day}
        for day, close in enumerate(closes, 5)
    ]


def _estimates(arguments: dict[str, Any]) -> Rows:
    return [{"symbol": arguments["symbol"], "period": arguments["period"], "eps": 1.5, "analysts": 12}]


def _symbol(value: str) -> dict[str, Any]:
    return {"name": "symbol", "type": "ticker", "description": "The ticker.", "current_value": value}


DASHBOARD = (
    Widget(PRICES, "prices", "Historical Prices", "Daily closing prices", (_symbol("SAMP"),), _prices),
    Widget(
        ESTIMATES,
        "estimates",
        "Analyst Estimates",
        "What analysts expect",
        (
            _symbol("SAMP"),
            {
                "name": "period",
                "type": "string",
                "description": "Which reports.",
                "default_value": "quarter",
                "current_value": "quarter",
                "options": ["quarter", "annual"],
            },
        ),
        _estimates,
        "secondary",
    ),
    Widget(FILINGS, "filings", "Filings", "What was filed", (_symbol("SAMP"),), lambda _: [], "extra"),
)

UNPICKED = tuple(replace(widget, tier="secondary") for widget in DASHBOARD[:2])
"""The dashboard before the user picks widgets."""


@dataclass(frozen=True)
class Turn:
    """All events for one user message, which may take several requests."""

    requests: tuple[tuple[Sent, ...], ...]

    @property
    def events(self) -> list[Sent]:
        return [sent for request in self.requests for sent in request]

    @property
    def text(self) -> str:
        return join_text(self.events)

    def of(self, event: str) -> list[Any]:
        """Return the data of all events with a name."""
        return [sent.data for sent in self.events if sent.event == event]

    @property
    def calls(self) -> list[dict[str, Any]]:
        return self.of("copilotFunctionCall")


def join_text(events: list[Sent] | tuple[Sent, ...]) -> str:
    """Join the text of a stream."""
    return "".join(sent.data["delta"] for sent in events if sent.event == "copilotMessageChunk")


@dataclass
class Workspace:
    """A user's Workspace with the copilot at `base_url`.

    `records_text`: the words before a call are kept as a message of their own. `calls_as`: how a call is written down.
    `tools`: the functions of its MCP servers by name; `more`: further fields of each request.
    """

    base_url: str
    dialect: Literal["copilot", "workspace"] = "workspace"
    token: str = ""
    dashboard: tuple[Widget, ...] = DASHBOARD
    tools: dict[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    records_text: bool = True
    calls_as: Literal["text", "twice", "object"] = "text"
    transport: httpx2.AsyncBaseTransport | None = None
    query_url: str = "v1/query"

    async def __aenter__(self) -> "Workspace":
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers["Origin"] = "https://pro.openbb.co"
        self.http = httpx2.AsyncClient(
            base_url=self.base_url, headers=headers, transport=self.transport, timeout=60, trust_env=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def discover(self) -> dict[str, Any]:
        """Load the entry of `copilots.json` or `agents.json`, and use its URL from now on."""
        name = "agents.json" if self.dialect == "workspace" else "copilots.json"
        response = await self.http.get(name)
        response.raise_for_status()
        (entry,) = response.json().values()
        self.query_url = entry["endpoints"]["query"]
        return entry

    async def ask(self, text: str, limit: int = 20) -> Turn:
        """Send a user message, and answer function calls until there is an answer."""
        self.messages.append({"role": "human", "content": text})
        requests = []
        for _ in range(limit):
            events = tuple([sent async for sent in self.stream()])
            requests.append(events)
            if not self.take(events):
                return Turn(tuple(requests))
        raise AssertionError(f"{limit} requests, and still no answer: {self.messages[-2:]}")

    async def stream(self, body: dict[str, Any] | None = None) -> AsyncIterator[Sent]:
        """Yield the events of one request; a function call must be the last."""
        parser = Parser()
        async with self.http.stream("POST", self.query_url, json=body or self.body()) as response:
            if response.is_error:
                await response.aread()
            response.raise_for_status()
            assert response.headers["content-type"].startswith("text/event-stream")
            has_called = False
            async for chunk in response.aiter_bytes():
                for sent in parser.feed(chunk):
                    assert not has_called, f"{sent} came after a call"
                    has_called = sent.event == "copilotFunctionCall"
                    yield sent
        assert parser.is_between, "the stream was cut within an event"

    def body(self) -> dict[str, Any]:
        """Build the body with the whole conversation and the dashboard."""
        if self.dialect == "copilot":
            return {
                "messages": self.messages,
                "context": [],
                "widgets": [
                    {"uuid": w.uuid, "name": w.name, "description": w.description, "metadata": w.current}
                    for w in self.dashboard
                    if w.tier != "extra"
                ],
                "use_docs": False,
                **self.more,
            }
        tiers = {
            tier: [self._describe(w) for w in self.dashboard if w.tier == tier]
            for tier in ("primary", "secondary", "extra")
        }
        schema = {"type": "object", "properties": {}}
        tools = [
            {
                "server_id": "1",
                "name": name,
                "url": "http://127.0.0.1:1/mcp",
                "description": name,
                "input_schema": schema,
            }
            for name in self.tools
        ]
        return {
            "messages": self.messages,
            "widgets": tiers,
            "timezone": "Europe/Zurich",
            "workspace_options": {},
            "tools": tools or None,
            **self.more,
        }

    def take(self, events: tuple[Sent, ...]) -> bool:
        """Record the events and answer a call; return whether another request is needed."""
        text, calls = join_text(events), [sent.data for sent in events if sent.event == "copilotFunctionCall"]
        if text and (self.records_text or not calls):
            self.messages.append({"role": "ai", "content": text})
        for call in calls:
            once = json.dumps(call)
            content = {"text": once, "twice": json.dumps(once), "object": call}[self.calls_as]
            self.messages += [{"role": "ai", "content": content}, self.build_result(call)]
        return bool(calls)

    def build_result(self, call: dict[str, Any]) -> dict[str, Any]:
        """Build the message with a function's result."""
        function, arguments = call["function"], call["input_arguments"]
        message: dict[str, Any] = {"role": "tool", "function": function}
        if self.dialect == "copilot":
            return message | {"data": {"content": self._text_of(arguments["widget_uuid"], {})}}
        message |= {"input_arguments": arguments, "extra_state": call.get("extra_state", {})}
        match function:
            case "get_widget_data" | "get_extra_widget_data":
                return message | {"data": [self._source(source) for source in arguments["data_sources"]]}
            case "execute_agent_tool":
                result = self.tools[arguments["tool_name"]](arguments["parameters"])
                return message | {"data": [{"items": [{"content": json.dumps(result)}]}]}
            case "get_params_options":
                return message | {"data": [{"items": [{"content": json.dumps(self._options(arguments))}]}]}
            case _:
                return message | {"data": [{"status": "success", "message": "done"}]}

    def _source(self, source: dict[str, Any]) -> dict[str, Any]:
        widget = self._widget(source["widget_uuid"])
        if widget is None:
            return {"error_type": "not_found", "content": "there is no such widget"}
        assert (source["origin"], source["id"]) == (widget.origin, widget.widget_id)
        content = self._text_of(widget.uuid, source["input_args"])
        return {"items": [{"content": content, "data_format": {"data_type": "object", "parse_as": "table"}}]}

    def _text_of(self, uuid: str, arguments: dict[str, Any]) -> str:
        widget = self._widget(uuid)
        return json.dumps(widget.rows(widget.current | arguments)) if widget else "no such widget"

    def _options(self, arguments: dict[str, Any]) -> list[Any]:
        widgets = (w for w in self.dashboard if w.widget_id == arguments["id"])
        params = (param for w in widgets for param in w.params if param["name"] == arguments["param"])
        return next((list(param.get("options", [])) for param in params), [])

    def _widget(self, uuid: str) -> Widget | None:
        return next((widget for widget in self.dashboard if widget.uuid == uuid), None)

    def _describe(self, widget: Widget) -> dict[str, Any]:
        params = [dict(param) for param in widget.params]
        if widget.tier == "extra":
            for param in params:
                param["default_value"] = param.pop("current_value")
        return {
            "uuid": widget.uuid,
            "origin": widget.origin,
            "widget_id": widget.widget_id,
            "name": widget.name,
            "description": widget.description,
            "params": params,
            "metadata": {},
        }
