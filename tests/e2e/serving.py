"""`goose-like serve` as a process, and a client for it."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.e2e.command import Place

PATIENCE_S = 60


def wait_until(is_so: Callable[[], Any]) -> Any:
    """Wait for a true value, and return it."""
    end = time.monotonic() + PATIENCE_S
    while not (given := is_so()):
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.02)
    return given


def build_body(text: str, **more: Any) -> dict[str, Any]:
    """Build the body of a first question in the dialect `workspace`."""
    return {"messages": [{"role": "human", "content": text}], "timezone": "UTC", **more}


@dataclass
class Server:
    """A running server."""

    process: "subprocess.Popen[str]"
    url: str
    log: Path
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, **how: Any) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers=self.headers, timeout=PATIENCE_S, **how)

    def get(self, path: str, **how: Any) -> httpx2.Response:
        with self.client() as client:
            return client.get(path, **how)

    def post(self, body: Any, path: str = "/v1/query", **how: Any) -> httpx2.Response:
        with self.client() as client:
            return client.post(path, json=body, **how)

    @contextmanager
    def stream(self, body: Any) -> Iterator[Iterator[tuple[str, Any]]]:
        """Send a query; yield an iterator over the events."""
        with self.client() as client, client.stream("POST", "/v1/query", json=body) as response:
            assert response.status_code == 200, response.read()
            yield _events(response)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def sum_metric(self, pattern: str) -> float:
        """Sum the metrics whose lines match a pattern from their start."""
        lines = self.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(pattern, line))


def _events(response: httpx2.Response) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def read_events(response: httpx2.Response) -> list[tuple[str, Any]]:
    """Read the events of a complete answer."""
    assert response.status_code == 200, response.text
    return list(_events(response))


def join_text(events: list[tuple[str, Any]]) -> str:
    """Join the text of an answer."""
    return "".join(data["delta"] for name, data in events if name == "copilotMessageChunk")


@contextmanager
def serving(place: Place, *options: str, env: dict[str, str] | None = None) -> Iterator[Server]:
    """Start the command and wait until it answers; stop it in the end."""
    log = place.home.parent / f"log-{len(list(place.home.parent.glob('log-*')))}"
    with log.open("w") as stderr:
        process = place.start("serve", "--port", "0", *options, env=env, stderr=stderr)
    try:
        first = process.stdout.readline() if process.stdout else ""
        found = re.search(r"http://\S+", first)
        assert found, f"{first}{log.read_text()}"
        server = Server(process, found[0], log)
        wait_until(lambda: _answers(server))
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _answers(server: Server) -> bool:
    try:
        return server.get("/healthz").status_code == 200
    except httpx2.TransportError:
        assert server.process.poll() is None, server.log.read_text()
        return False
