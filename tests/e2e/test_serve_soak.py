"""Thousands of requests, many of them invalid, leave a server that works and holds no more resources than before.

`--soak N` sets the number (CI: 150). The full test, with figures:

    python -m pytest -s tests/e2e/test_serve_soak.py --soak 10000
"""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from openbb_ai.models import QueryRequest

from tests.e2e.crowd import Crowd, Letter
from tests.e2e.serving import Server, build_body, serving, wait_until
from tests.faulty_model import STALL_S
from tests.faulty_model import __file__ as MODEL
from tests.processes import list_children
from tests.serve.request_bodies import any_body

SEED, AT_ONCE, LIMIT_MB, TOKEN = 7, 40, 2, "s3cret"
GROWTH_KB = 16_000
"""The memory that a worker may gain after the first tenth of the requests, which fill its caches."""
POOL = (os.cpu_count() or 1) + 4
"""Threads that asyncio keeps after first use."""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_is_the_same_after_a_crowd(place, tmp_path, count, letters, workers):
    (place.home / "config").mkdir()
    model = f"processor: {{model: 'openai:m', stall_s: {STALL_S}}}"
    (place.home / "config" / "profiles.yaml").write_text(f"soak: {{extends: openbb, {model}}}\n")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    # Each worker has a workspace for the profile and one for documents. Several workers share a folder for metrics.
    folders = 2 * workers + (workers > 1)
    with faulty_model() as url:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url, "TMPDIR": str(temporary)}
        words = ("--profile", "soak", "--token", TOKEN, "--max-body", str(LIMIT_MB), "--workers", str(workers))
        with serving(place, *words, env=env) as server:
            server.headers["authorization"] = f"Bearer {TOKEN}"
            wait_until(lambda: len([*temporary.iterdir()]) == folders)
            crowd = Crowd(server.url, TOKEN, letters, LIMIT_MB * 1_000_000, SEED)
            began, held = time.monotonic(), list[Held]()
            for tenth in (1, 4, 7, 10):
                asyncio.run(crowd.ask(count * tenth // 10, AT_ONCE))
                held.append(at_rest(server, temporary))
                print(f"{crowd.sent} requests in {time.monotonic() - began:.0f} s: {held[-1]}", flush=True)
            print(f"{dict(crowd.did)}; answered {dict(crowd.statuses)}")
            lines = server.log.read_text().splitlines()
            strange = Counter(line for line in lines if not re.match(r"\d{4}-\S+Z 127\.0\.0\.1 ", line))
            assert crowd.wrong == []
            assert strange.keys() <= {"goose-like: Invalid HTTP request received."}
            assert not server.sum_metric(r'goose_like_requests_total\{.*status="500"')
            first = held[0]
            assert held[-1].folders == folders
            wait_until(lambda: at_rest(server, temporary).files <= first.files + workers)
            last = Held.by(server, temporary)
            assert last.threads <= first.threads + POOL * workers
            warm = held[1]  # by then, each worker has loaded what it needs
            assert last.memory_kb <= warm.memory_kb + GROWTH_KB * workers


@pytest.fixture(scope="module")
def count(request):
    return request.config.getoption("--soak")


@pytest.fixture(scope="module")
def letters(count):
    return drawn_letters(max(5, count // 250))


@dataclass(frozen=True)
class Held:
    """The resources of all processes of a server, and its temporary folders."""

    memory_kb: int
    threads: int
    files: int
    folders: int

    @classmethod
    def by(cls, server: Server, temporary: Path) -> "Held":
        processes = [Path(f"/proc/{pid}") for pid in (server.process.pid, *list_children(server.process.pid))]
        status = "".join((process / "status").read_text() for process in processes)
        memory, threads = (
            sum(map(int, re.findall(rf"^{what}:\s*(\d+)", status, re.M))) for what in ("VmRSS", "Threads")
        )
        files = sum(len([*(process / "fd").iterdir()]) for process in processes)
        return cls(memory, threads, files, len([*temporary.iterdir()]))


def at_rest(server: Server, temporary: Path) -> Held:
    """Measure resources when nothing runs; a last query closes idle connections to the model."""
    server.post(build_body("anything"))
    wait_until(lambda: not server.sum_metric("goose_like_running"))
    return Held.by(server, temporary)


@contextmanager
def faulty_model() -> Iterator[str]:
    """Run the model as a process; yield its URL."""
    with subprocess.Popen([sys.executable, MODEL], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


# --- what nobody should send


def drawn(strategy: SearchStrategy[Any], count: int) -> list[Any]:
    """Draw this many values, the same ones each time."""
    found: list[Any] = []

    @seed(SEED)
    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(strategy)
    def take(value: Any) -> None:
        found.append(value)

    take()
    return found


def drawn_letters(count: int) -> list[Letter]:
    """Draw bodies of any kind, and valid and invalid ones by openbb-ai's models."""
    kind = {"content-type": "application/json"}
    letters = [Letter("POST", "/v1/query", kind, body) for body in drawn(any_body, 10 * count)]
    schema = QueryRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    components = {"schemas": schema.pop("$defs")}
    taken = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    answers = {"responses": {"200": {"description": "a stream"}}}
    about = {"openapi": "3.1.0", "info": {"title": "copilot", "version": "1"}, "components": components}
    document = {**about, "paths": {"/v1/query": {"post": {**taken, **answers}}}}
    operation = schemathesis.openapi.from_dict(document)["/v1/query"]["POST"]
    for mode in schemathesis.GenerationMode:
        for case in drawn(operation.as_strategy(generation_mode=mode), count):
            sent = requests.Request(**case.as_transport_kwargs(base_url="http://127.0.0.1")).prepare()
            letters.append(Letter("POST", "/v1/query", {**kind, "user-agent": "x"}, _bytes(sent.body)))
    return letters


def _bytes(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body or b"")
