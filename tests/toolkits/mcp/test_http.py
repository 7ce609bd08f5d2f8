"""Servers that are reached over HTTP: streamable HTTP and SSE, with the real server of the SDK."""

import asyncio
import signal
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest

from goose_like.core.tool import ToolError
from tests.toolkits.mcp.servers import desk, script, wait_until


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(transport: str, port: int) -> "subprocess.Popen[bytes]":
    server = subprocess.Popen(script("demo_server.py", transport, str(port)), stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert server.poll() is None
            time.sleep(0.05)
        else:
            return server
    raise AssertionError("the server does not start")


@contextmanager
def serve(transport: str):
    """The address of a server that runs."""
    port = find_port()
    server = start(transport, port)
    try:
        path = "sse" if transport == "sse" else "mcp"
        yield f"http://127.0.0.1:{port}/{path}"
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize(("transport", "era"), [("http", "2026-07-28"), ("http", "2025-11-25"), ("sse", "2025-11-25")])
async def test_calls(tmp_path, transport, era):
    async with desk(tmp_path) as session:
        with serve(transport) as url:
            known = "" if era.startswith("2026") else era
            demo = session.connect(url=url, transport=transport, era=known)
            assert (await demo.list_definitions()).era == era
            assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"
            assert await demo.call_tool("count", {}) == "done"
            assert "50 % step 2\n" in session.shown
            assert await demo.read_resource("note://one") == ("the first note",)
            assert str(await demo.call_tool("greet", {})).startswith("cancel")
            mark = session.root / "mark"
            call = asyncio.create_task(demo.call_tool("wait", {"path": str(mark)}))
            await wait_until(mark.exists)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await wait_until(lambda: mark.read_text() == "cancelled")
            await demo.close()
    assert session.logged == []


async def test_a_server_that_starts_again_during_a_session(tmp_path):
    async with desk(tmp_path) as session:
        port = find_port()
        server = start("http", port)
        demo = session.connect(url=f"http://127.0.0.1:{port}/mcp", era="2025-11-25")
        assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"
        server.send_signal(signal.SIGKILL)
        server.wait()
        with pytest.raises(ToolError, match=r"ended during the call of add|broke off its answer for add"):
            await demo.call_tool("add", {"a": 1, "b": 2})
        server = start("http", port)
        try:
            assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"
        finally:
            server.kill()
            server.wait()


async def test_nobody_listens(tmp_path):
    async with desk(tmp_path) as session:
        nobody = session.connect(url=f"http://127.0.0.1:{find_port()}/mcp")
        with pytest.raises(ToolError, match=r"the MCP server demo cannot be reached: .*refused"):
            await nobody.call_tool("add", {"a": 1, "b": 2})


async def test_a_session_that_only_reads(tmp_path):
    async with desk(tmp_path, mode="read-only") as session:
        demo = session.connect(url="http://127.0.0.1:9/mcp")
        with pytest.raises(ToolError, match=r"is reached over HTTP, .* this session only reads"):
            await demo.call_tool("add", {"a": 1, "b": 2})
        assert demo.state == "not started"
