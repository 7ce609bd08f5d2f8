"""Servers that are reached over HTTP: streamable HTTP and SSE, with the real server of the SDK."""

import asyncio
import json
import re
import signal
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from goose_like.core.tool import ToolError
from tests.toolkits.mcp.servers import desk, find_port, serve, start_at, wait_until


@pytest.mark.parametrize(("transport", "eras"), [("http", ["2026-07-28", "2025-11-25"]), ("sse", ["2025-11-25"])])
async def test_calls(tmp_path, transport, eras):
    with serve(transport) as url:
        for era in eras:
            (tmp_path / era).mkdir()
            async with desk(tmp_path / era) as session:
                known = "" if era.startswith("2026") else era
                demo = session.connect(url=url, transport=transport, era=known)
                assert (await demo.list_definitions()).era == era
                assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"
                assert await demo.call_tool("count", {}) == "done"
                assert "50 % step 2\n" in session.shown
                assert await demo.read_resource("note://one") == "the first note"
                assert str(await demo.call_tool("greet", {})).startswith("cancel")
                mark = session.root / "mark"
                call = asyncio.create_task(demo.call_tool("wait", {"path": str(mark)}))
                await wait_until(mark.exists)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                await wait_until(lambda mark=mark: mark.read_text() == "cancelled")
                await demo.close()
            assert session.logged == []


async def test_a_server_that_starts_again_during_a_session(tmp_path):
    async with desk(tmp_path) as session:
        port = find_port()
        server = start_at("http", port)
        demo = session.connect(url=f"http://127.0.0.1:{port}/mcp", era="2025-11-25")
        assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"
        server.send_signal(signal.SIGKILL)
        server.wait()
        with pytest.raises(ToolError, match=r"failed during the call of add|broke off its answer for add"):
            await demo.call_tool("add", {"a": 1, "b": 2})
        server = start_at("http", port)
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


class Faulty(BaseHTTPRequestHandler):
    """A server of the old era with a fault, which the path names."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        fault = self.path.strip("/")
        method = message["method"]
        if fault == "login":
            self.answer(401, "text/plain", b"who are you?")
        elif fault == "website":
            self.answer(200, "text/html", b"<html>Hello</html>")
        elif fault == "elsewhere":
            self.send_response(307)
            self.send_header("location", "http://example.org/mcp")
            self.end_headers()
        elif fault == "broken":
            self.answer(500, "text/plain", b"out of order")
        elif fault == "silent":
            time.sleep(2)
            self.close_connection = True
        elif method == "initialize":
            info = {"name": "faulty", "version": "1"}
            version = message["params"]["protocolVersion"]
            self.reply(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/call" and fault == "huge":
            self.reply(message, {"content": [{"type": "text", "text": "x" * 70_000_000}]})
        elif method == "tools/call" and fault == "cut":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"jsonrpc"')
            self.close_connection = True
        elif "id" in message:
            self.answer(404, "text/plain", b"")
        else:
            self.answer(202, "text/plain", b"")

    def reply(self, message, result):
        data = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.answer(200, "application/json", json.dumps(data).encode())

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # the client has left
            self.wfile.write(body)

    def do_GET(self):
        self.answer(405, "text/plain", b"")

    def log_message(self, *_):
        """Be silent."""


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("login", "it wants a login (HTTP 401); the person can log in with: goose-like mcp login demo"),
        ("website", "cannot be reached: Unexpected content type: text/html"),
        ("elsewhere", "Redirect to http://example.org/mcp not followed"),
        ("broken", "(HTTP 500)"),
        ("silent", "cannot be reached: it gave no answer in 1 s"),
        ("huge", "failed during the call of echo (the server's answer is too large; it was cut off)"),
        ("cut", "failed during the call of echo (peer closed connection"),
    ],
)
async def test_faults(tmp_path, fault, reason):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        async with desk(tmp_path) as session:
            url = f"http://127.0.0.1:{server.server_port}/{fault}"
            limit_s = 1 if fault == "silent" else 60
            faulty = session.connect(url=url, era="2025-11-25", start_timeout_s=limit_s)
            with pytest.raises(ToolError, match=re.escape(reason)):
                await faulty.call_tool("echo", {})
            (line,) = session.logged
            assert line.startswith("the MCP server demo failed (")
    finally:
        server.shutdown()
        server.server_close()
