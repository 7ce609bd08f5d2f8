"""Connections that send nothing or half a head, more connections than descriptors, and a log that stays small."""

import asyncio
import re
import resource
import socket

import httpx2
import pytest

pytest.importorskip("uvicorn")

from goose_like.serve.connection import LimitedConnection, LimitedLog
from tests.e2e.command import Place
from tests.e2e.serving import serving, wait_until

HEADS = {"nothing": b"", "half a head": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "}
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
async def port():
    """Run a server in this process whose heads must come within 0.2 s, and yield its port."""
    import uvicorn

    class Fast(LimitedConnection):
        head_timeout_s = 0.2

    async def answer(scope, receive, send):
        if scope["path"] == "/slow":
            await asyncio.sleep(0.6)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    server = uvicorn.Server(uvicorn.Config(answer, http=Fast, ws="none", lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(server.serve([listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await running


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("before", [b"", WHOLE], ids=["first", "second"])
async def test_a_head_must_come_in_time(port, kind, before):
    if before and kind == "nothing":
        pytest.skip("an idle connection between requests has a time limit of its own")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if before:
        writer.write(before)
        assert await reader.readuntil(b"\r\n\r\n")
    writer.write(HEADS[kind])
    async with asyncio.timeout(60):
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
    writer.close()


async def test_an_answer_may_take_longer(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(WHOLE.replace(b"healthz", b"slow"))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()


def test_a_server_without_descriptors_answers_again(tmp_path):
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    place = Place(tmp_path / "home", tmp_path / "work")
    with serving(place, "--model", place.script("done")) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (150, 150))
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(250)]
        for one in silent:
            one.send(HEADS["half a head"])
        # If all wait at once, asyncio's lines come first, and the limit of the log may leave out ours.
        wait_until(lambda: re.search("too many connections|out of system resource", server.log.read_text()))
        assert wait_until(lambda: _get_health(server))
        assert server.log.stat().st_size < 100_000
        for one in silent:
            one.close()


def _get_health(server):
    try:
        return server.get("/healthz").status_code == 200
    except httpx2.HTTPError:
        return False


def test_lines_beyond_the_limit_are_counted(capsys):
    log = LimitedLog()
    for number in range(100_000):
        log.write(f"line {number}")
    lines = capsys.readouterr().err.splitlines()
    assert 200 <= len(lines) < 2_000
    assert lines[0] == "line 0"
