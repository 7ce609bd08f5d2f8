"""Tests of the application under uvicorn in the test's own event loop, for settings that the command does not have."""

import asyncio
import json
import re
import socket
from contextlib import asynccontextmanager
from functools import partial

import pytest

pytest.importorskip("uvicorn")

import httpx2
import uvicorn

from goose_like.config.profile import ModelChoice, ToolkitChoice
from goose_like.config.profile_loader import load_profile
from goose_like.serve.app import create_app
from goose_like.serve.middleware import Metrics
from goose_like.serve.settings import Settings
from goose_like.serve.turn import FAULT
from goose_like.toolkit import Toolkit, tool
from tests import ROOT
from tests.loopback import Loopback, Response, chunk, events, raw

HEAD = "POST /v1/query HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


class FaultyMetrics(Metrics):
    """Metrics with a fault of ours in each way to use them but the counting of requests."""

    def count_vote(self, vote):
        raise TypeError("no votes")

    def export(self):
        raise TypeError("no metrics")

    @property
    def running_queries(self):
        raise TypeError("no queries")


@asynccontextmanager
async def serving(monkeypatch, responses, *, toolkits=(), metrics=None, **settings):
    """Start a server whose model sends these responses; yield its port and metrics."""
    async with Loopback(responses) as model:
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        profile = load_profile("openbb")[0]
        listed = (*profile.toolkits, *(ToolkitChoice(name=name) for name in toolkits))
        profile = profile.model_copy(update={"processor": ModelChoice(model="openai:m"), "toolkits": listed})
        metrics = metrics or Metrics()
        factory = partial(create_app, Settings(signing_key=b"k" * 32, **settings), [profile], lambda: metrics)
        config = uvicorn.Config(factory, factory=True, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            running = asyncio.create_task(server.serve([listener]))
            try:
                yield port, metrics
            finally:
                server.should_exit = True
                await running


async def send(port, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode())
    return reader, writer


async def ask(port, body):
    text = json.dumps(body)
    return await send(port, f"{HEAD}connection: close\r\ncontent-length: {len(text.encode())}\r\n\r\n{text}")


async def wait_until(is_so):
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    async with serving(monkeypatch, [raw()], body_timeout_s=0.05) as (port, metrics):
        reader, writer = await send(port, f'{HEAD}content-length: 100\r\n\r\n{{"messages"')
        assert b" 408 " in await reader.readline()
        await wait_until(lambda: metrics.running_queries == 0)
        writer.close()


async def test_a_client_that_leaves_while_it_sends_leaves_nothing(monkeypatch):
    async with serving(monkeypatch, [raw()]) as (port, metrics):
        _, writer = await send(port, f'{HEAD}content-length: 100\r\n\r\n{{"messages"')
        await wait_until(lambda: metrics.running_queries == 1)
        writer.close()
        await wait_until(lambda: metrics.running_queries == 0)


@pytest.mark.parametrize("header", ["host: [::1", "host: 127.0.0.1\r\norigin: http://["])
async def test_a_name_that_is_none_is_refused(monkeypatch, header):
    async with serving(monkeypatch, [raw()]) as (port, _):
        reader, writer = await send(port, f"GET /healthz HTTP/1.1\r\n{header}\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize("path", ["/v1/query", "/v1/feedback", "/metrics"])
async def test_a_fault_is_answered_with_a_sentence(monkeypatch, path):
    async with (
        serving(monkeypatch, [raw()], metrics=FaultyMetrics()) as (port, _),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        response = await (client.get(path) if path == "/metrics" else client.post(path, json={"vote": "up"}))
    assert response.status_code == 500
    assert response.json() == {"detail": FAULT}


@pytest.mark.parametrize("path", ["/v1/query", "/v1/chat/completions"])
async def test_clients_do_not_learn_the_address_of_the_models_server(monkeypatch, path):
    body = {"messages": [{"role": "human" if path == "/v1/query" else "user", "content": "x"}], "model": "openbb"}
    async with (
        serving(monkeypatch, [Response(404)]) as (port, _),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        answer = (await client.post(path, json=body)).text
    assert "openai: " in answer
    assert "127.0.0.1" not in answer


async def test_a_page_without_an_origin_is_refused_without_false_advice(monkeypatch):
    async with serving(monkeypatch, [raw()]) as (port, _):
        reader, writer = await send(port, "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: null\r\n\r\n")
        answer = await reader.read(2_000)
        assert b" 403 " in answer
        assert b"--origin" not in answer
        writer.close()


async def test_a_stream_is_kept_open_while_nothing_comes(monkeypatch):
    words = events([chunk({"content": "at last"})], is_done=False)
    end = events([chunk(finish="stop")])
    async with serving(monkeypatch, [raw(b": wait\n\n", words, end, pause_s=0.3)], keep_alive_s=0.02) as (port, _):
        for body in ({"timezone": "UTC"}, {"widgets": []}):
            reader, writer = await ask(port, body | {"messages": [{"role": "human", "content": "x"}]})
            await reader.readuntil(b"\r\n\r\n")
            answer = b"".join([piece async for piece in read_pieces(reader)])
            assert answer.startswith(b"event: copilotMessageChunk\n")
            assert b"at last" in answer
            assert b"\n:\n\n" in answer
            writer.close()


async def read_pieces(reader):
    """Read the chunks of a response body."""
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()


class Chatty(Toolkit):
    """A toolkit that logs while it closes."""

    @tool
    async def look(self) -> str:
        """Look around."""
        return "seen"

    async def close(self):
        self.notifier.log("one thing more")
        for _ in range(5):
            await asyncio.sleep(0)
        self.notifier.log("and another")


@pytest.fixture
def chatty(monkeypatch, tmp_path):
    (tmp_path / "chatty-1.dist-info").mkdir()
    (tmp_path / "chatty-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: chatty\nVersion: 1\n")
    points = f"[goose_like.toolkit]\nchatty = {__name__}:Chatty\n"
    (tmp_path / "chatty-1.dist-info/entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    return "chatty"


async def test_after_a_call_comes_nothing(monkeypatch, chatty):
    call = {"index": 0, "id": "c", "function": {"name": "get_widget_data", "arguments": '{"widget_uuid": "w"}'}}
    calls = events([chunk({"tool_calls": [call]}), chunk(finish="tool_calls")])
    async with serving(monkeypatch, [raw(calls)], toolkits=[chatty]) as (port, _):
        widgets = {"secondary": [{"uuid": "w", "origin": "o", "widget_id": "i", "name": "n"}]}
        reader, writer = await ask(port, {"messages": [{"role": "human", "content": "x"}], "widgets": widgets})
        await reader.readuntil(b"\r\n\r\n")
        answer = b"".join([piece async for piece in read_pieces(reader)])
        assert answer.split(b"\n\n")[-2].startswith(b"event: copilotFunctionCall")
        writer.close()


async def test_a_tool_of_the_client_may_have_the_name_of_one_that_runs_here(monkeypatch, chatty):
    call = {"index": 0, "id": "c", "function": {"name": "mcp_look", "arguments": "{}"}}
    calls = events([chunk({"tool_calls": [call]}), chunk(finish="tool_calls")])
    async with serving(monkeypatch, [raw(calls)], toolkits=[chatty]) as (port, _):
        theirs = [{"name": "look", "server_id": "mcp"}]
        reader, writer = await ask(port, {"messages": [{"role": "human", "content": "x"}], "tools": theirs})
        await reader.readuntil(b"\r\n\r\n")
        answer = b"".join([piece async for piece in read_pieces(reader)])
        assert b'"function":"execute_agent_tool","input_arguments":{"server_id":"mcp","tool_name":"look"' in answer
        writer.close()


async def test_a_client_that_reads_no_more_is_left(monkeypatch):
    word = events([chunk({"content": "x" * 50_000})], is_done=False)
    async with serving(monkeypatch, [raw(*[word] * 400, hang_s=600)], send_timeout_s=0.2) as (port, metrics):
        _, writer = await ask(port, {"messages": [{"role": "human", "content": "x"}]})
        writer.transport.pause_reading()
        await wait_until(lambda: metrics.running_queries == 1)
        await wait_until(lambda: metrics.running_queries == 0)
        assert b'ending="cancelled"' in metrics.export()
        writer.transport.abort()


def test_shared_modules_do_not_depend_on_a_protocol():
    files = [file for file in (ROOT / "goose_like/serve").glob("*.py") if file.name != "app.py"]
    assert [file.name for file in files if re.search(r"(?m)^\s*(from|import) .*\bopenbb\b", file.read_text())] == []
