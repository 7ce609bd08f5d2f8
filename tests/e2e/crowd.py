"""Many random clients of a server: whole conversations, slow readers, early disconnects and invalid requests.

A seed decides what they do. A `Crowd` counts requests and collects the errors in their answers.
"""

import asyncio
import json
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.faulty_model import Call, Fault, Plan, Step
from tests.serve.workspace_client import ESTIMATES, FILINGS, PRICES, Parser, Sent, Workspace

ENDINGS = {
    "copilotFunctionCall",
    "copilotMessageChunk",
    "copilotMessageArtifact",
    "copilotCitationCollection",
    "copilotPromptSuggestions",
}
REFUSED = {400, 401, 403, 404, 405, 408, 413, 415, 422}

_SAYINGS = (
    "It closed at 104.5, and rose by 3 percent.",
    "data: x\nevent: copilotFunctionCall\ndata: {}\n\n",
    ': comment\r\n\r\nid: 1\nretry: 0\r{"delta": null}',
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint('data:')\n```\n",
    "gr\u00fc\u00df dich \U0001f600 \u2028\u2029\x85 \u00fcberall\n\n\n",
    "\x00\x1b[31mred\x1b[0m \ufeff",
)
_FAULTS: tuple[Fault, ...] = ("500", "429", "cut", "reset", "garbage", "stall", "silent")
_FETCHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_widget_data", {"widget_uuid": PRICES}),
    ("get_widget_data", {"widget_uuid": PRICES, "arguments": {"symbol": "OTHER"}}),
    ("get_widget_data", {"widget_uuid": ESTIMATES, "arguments": {"period": "annual"}}),
)
_TODAY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_extra_widget_data", {"widget_uuid": FILINGS}),
    ("get_params_options", {"widget_uuid": ESTIMATES, "param": "period"}),
    ("add", {"a": 2, "b": 3}),
)
_HERE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("show_table", {"name": "Prices", "rows": [{"day": "Mon", "close": 2.5}, {"day": "Tue", "close": None}]}),
    ("show_chart", {"name": "P", "kind": "line", "x": "d", "y": ["c"], "rows": [{"d": 1, "c": 2}, {"d": 2, "c": 1}]}),
    ("show_html", {"name": "Page", "html": "<p>data: x</p>"}),
    ("suggest_prompts", {"prompts": ["And the year before?", "Why?"]}),
)
_WRONG: tuple[Call, ...] = (
    ("get_widget_data", '{"widget_uuid": "no-such-widget"}'),
    ("get_widget_data", '{"widget_uuid": '),
    ("get_widget_data", "[]"),
    ("get_wigdet_data", "{}"),
    ("show_table", '{"name": 1}'),
    ("show_chart", '{"name": "P", "kind": "cube", "x": "d", "y": [], "rows": "no"}'),
)


def plan(draw: random.Random, name: str, is_today: bool, times: Sequence[int] = (1, 1, 2, 10)) -> Plan:
    """Plan up to six answers of the model; the last one has no call and may be long.

    The others are short, because the signed state of a call has a maximum size.
    """
    steps = []
    for at in range(draw.choice((1, 1, 2, 2, 3, 4, 6))):
        faults = tuple(draw.choices(_FAULTS, k=draw.choice((1, 1, 2)))) if draw.random() < 0.12 else ()
        said = "".join(draw.choices(_SAYINGS, k=draw.choice((1, 2, 5))))
        pieces, pause_s = draw.choice((1, 3, 30, 200)), draw.choice((0, 0, 0, 0.01))
        said = f"[{name}.{at} {said} {at}.{name}]"
        steps.append(Step(said=said, faults=faults, pieces=pieces, pause_s=pause_s))
    steps[-1] = steps[-1].model_copy(update={"times": draw.choice(times)})
    for at, step in enumerate(steps[:-1]):
        said = step.said if draw.random() < 0.5 else ""
        steps[at] = step.model_copy(update={"said": said, "calls": _calls(draw, is_today)})
    if draw.random() < 0.03:
        steps[-1] = Step(said="never said", faults=("400",))
    return Plan(name=name, steps=tuple(steps))


def _calls(draw: random.Random, is_today: bool) -> tuple[Call, ...]:
    kind = draw.random()
    if kind < 0.2:
        return tuple(draw.choices(_WRONG, k=draw.choice((1, 2))))
    right = _HERE if kind < 0.4 else (*_FETCHES, *_TODAY) if is_today else _FETCHES
    calls: list[Call] = [(name, json.dumps(given)) for name, given in draw.sample(right, k=draw.choice((1, 1, 2, 3)))]
    if kind > 0.9:
        calls.insert(draw.randrange(len(calls) + 1), draw.choice(_WRONG))
    return tuple(calls)


@dataclass(frozen=True)
class Letter:
    """A raw request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Crowd:
    """Many clients. `letters` are requests that no client should send, `limit_bytes` is the maximum of a body."""

    url: str
    token: str
    letters: Sequence[Letter]
    limit_bytes: int
    seed: int
    sent: int = 0
    did: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def ask(self, requests: int, at_once: int) -> None:
        """Run until this many requests were sent."""
        await asyncio.gather(*(self._live(requests, place) for place in range(at_once)))

    async def _live(self, requests: int, place: int) -> None:
        draw, turn = random.Random(f"{self.seed} {place} {self.sent}"), 0
        ways = {
            self._converse: 45,
            self._read_slowly: 6,
            self._leave: 22,
            self._send_letter: 18,
            self._hang_up: 5,
            self._misuse: 10,
            self._look_around: 4,
        }
        while self.sent < requests:
            (way,) = draw.choices([*ways], [*ways.values()])
            turn += 1
            name, self.did[way.__name__.strip("_")] = (
                f"{place}-{self.sent}-{turn}",
                self.did[way.__name__.strip("_")] + 1,
            )
            try:
                async with asyncio.timeout(120):
                    await way(draw, name)
            except Exception as error:
                self.wrong.append(f"{way.__name__} {name}: {error!r:.400}")

    # --- ways

    async def _converse(self, draw: random.Random, name: str) -> None:
        async with self._workspace(draw) as workspace:
            for turn in range(draw.choice((1, 1, 2, 3))):
                await self._check(workspace, plan(draw, f"{name}-{turn}", workspace.dialect == "workspace"))

    async def _read_slowly(self, draw: random.Random, name: str) -> None:
        async with self._workspace(draw, pause_s=draw.choice((0.01, 0.1))) as workspace:
            await self._check(workspace, plan(draw, name, workspace.dialect == "workspace", times=(200, 800)))

    async def _check(self, workspace: "Person", plan: Plan) -> None:
        """Send a plan, and compare the answer with it."""
        turn = await workspace.ask(plan.words)
        text = turn.text
        for step in plan.steps:
            if step.faults[-1:] == ("400",):
                assert "The answer failed" in text, f"no error was shown for {step}: {text[-300:]}"
            elif step.text:
                assert text.count(step.text) == 1, f"{text.count(step.text)} times {step.text[:80]} in {text[:300]}"
        for request in turn.requests:
            assert request, "an empty stream"
            assert request[-1].event in ENDINGS, f"the stream ended with {request[-1]}"

    async def _leave(self, draw: random.Random, name: str) -> None:
        """Disconnect during an answer, after some events or some time."""
        async with self._workspace(draw) as workspace:
            said = plan(draw, name, workspace.dialect == "workspace", times=(1, 10, 500))
            workspace.messages.append({"role": "human", "content": said.words})
            events, seconds = draw.choice((0, 1, 2, 5, 10**6)), draw.choice((0.001, 0.01, 0.05, 0.2, 1.0))
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds), aclosing(workspace.stream()) as stream:
                    async for _ in stream:
                        events -= 1
                        if events < 0:
                            break

    async def _send_letter(self, draw: random.Random, _: str) -> None:
        letter = draw.choice(self.letters)
        async with self._client() as client:
            how = {"headers": letter.headers, "content": letter.body}
            async with client.stream(letter.method, letter.path, **how) as response:
                await self._read(response, REFUSED)

    async def _hang_up(self, draw: random.Random, name: str) -> None:
        """Disconnect during or right after the request; some of the requests are not HTTP."""
        body = json.dumps({"messages": [{"role": "human", "content": plan(draw, name, True).words}]}).encode()
        fields = f"host: 127.0.0.1\r\nauthorization: Bearer {self.token}\r\ncontent-type: application/json\r\n"
        whole = f"POST /v1/query HTTP/1.1\r\n{fields}content-length: {len(body)}\r\n\r\n".encode() + body
        rubbish = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + draw.randbytes(200)
        self.sent += 1
        host, _, port = self.url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(draw.choice((whole, whole[: draw.randrange(len(whole))], rubbish)))
        await asyncio.sleep(draw.choice((0, 0.01, 0.1)))
        writer.transport.abort()

    async def _misuse(self, draw: random.Random, _: str) -> None:
        body = {"messages": [{"role": "human", "content": "x"}]}
        large = b'{"messages": [{"role": "human", "content": "' + b"x" * self.limit_bytes + b'"}]}'

        async def unmeasured() -> AsyncIterator[bytes]:
            for at in range(0, len(large), 100_000):
                yield large[at : at + 100_000]

        kind = {"content-type": "application/json"}
        method, path, how, status = draw.choice(
            [
                ("POST", "/v1/query", {"json": body, "headers": {"authorization": "Bearer wrong"}}, 401),
                ("POST", "/query", {"json": body, "headers": {"authorization": ""}}, 401),
                ("POST", "/v1/query", {"json": body, "headers": {"origin": "https://evil.example"}}, 403),
                ("POST", "/v1/query", {"json": body, "headers": {"host": "evil.example"}}, 403),
                ("POST", "/v1/query", {"content": large, "headers": kind}, 413),
                ("POST", "/v1/query", {"content": unmeasured(), "headers": kind}, 413),
                ("POST", "/v1/query", {"content": b"{}", "headers": {"content-type": "text/plain"}}, 415),
                ("POST", "/v1/query", {"json": {"messages": []}}, 422),
                ("GET", "/v1/query", {}, 405),
                ("GET", "/../../etc/passwd", {}, 404),
            ]
        )
        async with self._client() as client:
            try:
                response = await client.request(method, path, **how)
            except httpx2.TransportError:  # refused before all of a large body was sent
                assert status == 413, f"no answer where {status} was due"
                return
            assert response.status_code == status, f"{response.status_code}, not {status}: {response.text[:200]}"

    async def _look_around(self, draw: random.Random, _: str) -> None:
        async with self._client() as client:
            path = draw.choice(("/", "/healthz", "/metrics", "/agents.json", "/copilots.json"))
            response = await client.get(path)
            assert response.status_code == 200, f"{path}: {response.status_code}"
            voted = await client.post("/v1/feedback", json={"vote": draw.choice(("up", "down", 3))})
            assert voted.json() == {"status": "ok"}

    # --- parts

    async def _read(self, response: httpx2.Response, refused: set[int]) -> None:
        """Read an answer to its end: complete events, or an error in JSON."""
        if response.status_code != 200:
            report = json.loads(await response.aread()) if response.headers.get("content-type") else None
            assert response.status_code in refused, f"{response.status_code}: {report}"
        elif response.headers["content-type"].startswith("text/event-stream"):
            parser, events = Parser(), list[Sent]()
            async for piece in response.aiter_bytes():
                events += parser.feed(piece)
            assert parser.is_between, "the stream was cut within an event"
            assert events[-1].event in ENDINGS, f"the stream ended with {events[-1]}"

    def _workspace(self, draw: random.Random, pause_s: float = 0.0) -> "Person":
        return Person(
            self.url,
            draw.choice(("copilot", "workspace")),
            self.token,
            tools={"add": lambda given: given["a"] + given["b"]},
            transport=self._transport(small=pause_s > 0),
            records_text=draw.random() < 0.5,
            calls_as=draw.choice(("text", "twice", "object")),
            pause_s=pause_s,
        )

    def _client(self) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, transport=self._transport(), timeout=60)

    def _transport(self, small: bool = False) -> "Counted":
        options = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)] if small else None
        return Counted(self._count, httpx2.AsyncHTTPTransport(verify=False, socket_options=options))

    def _count(self, status: int | None) -> None:
        if status is None:
            self.sent += 1
        else:
            self.statuses[status] += 1


class Counted(httpx2.AsyncBaseTransport):
    """A transport that reports each request (None) and each response (its status)."""

    def __init__(self, count: Callable[[int | None], None], inner: httpx2.AsyncHTTPTransport) -> None:
        self._count = count
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._count(None)
        response = await self._inner.handle_async_request(request)
        self._count(response.status_code)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass
class Person(Workspace):
    """A Workspace that pauses after every 50 events."""

    pause_s: float = 0.0

    async def stream(self, body: dict[str, Any] | None = None) -> AsyncIterator[Sent]:
        async with aclosing(super().stream(body)) as events:
            count = 0
            async for sent in events:
                if self.pause_s and (count := count + 1) % 50 == 0:
                    await asyncio.sleep(self.pause_s)
                yield sent
