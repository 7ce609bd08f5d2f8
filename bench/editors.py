"""Measure sessions of an editor. `python bench/editors.py [--rounds N]`.

First the time from a prompt to the request at the model's server: of `goose-like acp`, and of a process that reads
lines and runs turns without a protocol, in turn. Then the memory of 20 sessions, and the time of 20 turns beside each
other.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

SESSIONS = 20
PROMPTS = 30
TARGET_RATIO = 1.1
ANSWER = b"".join(
    b"data: %s\n\n" % json.dumps({"choices": [choice]}).encode()
    for choice in (
        {"index": 0, "delta": {"role": "assistant", "content": "done"}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    )
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"


FLOOR = """
import asyncio
import sys

from goose_like.api import Agent


async def main():
    async with Agent() as agent:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while await reader.readline():
            await agent.run("hello")
            print(flush=True)


asyncio.run(main())
"""


class ModelServer(asyncio.Protocol):
    """A server that answers each request at once, and notes when the newest one began."""

    began_s = 0.0

    def __init__(self) -> None:
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.buffer:
            ModelServer.began_s = time.monotonic()
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        lines = head.lower().split(b"\r\n")
        (length,) = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")]
        if len(body) >= length:
            self.buffer = b""
            answer = ANSWER + b"data: [DONE]\n\n"
            self.transport.write(HEAD % len(answer) + answer)


class Editor:
    """The editor's side of the protocol, as raw lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.number = 0
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self.reading = asyncio.create_task(self.read())

    async def read(self) -> None:
        assert self.process.stdout
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "method" not in message:
                self.answers[message["id"]].set_result(message["result"])

    async def request(self, method: str, **params: Any) -> Any:
        assert self.process.stdin
        self.number += 1
        answer = self.answers[self.number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        return await answer

    async def prompt(self, session: str) -> None:
        await self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hello"}])


@asynccontextmanager
async def open_editor(folder: Path) -> Any:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "goose_like", "acp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=folder,
        limit=10_000_000,
    )
    editor = Editor(process)
    await editor.request("initialize", protocolVersion=1)
    yield editor
    assert process.stdin
    process.stdin.close()
    await process.wait()


async def open_session(editor: Editor, folder: Path) -> str:
    opened = await editor.request("session/new", cwd=str(folder), mcpServers=[])
    session: str = opened["sessionId"]
    return session


def read_memory_kb(pid: int) -> int:
    """Read the memory of a process and of all below it; shared pages count in parts."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (own,) = [int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(read_memory_kb(int(child)) for child in children)


@asynccontextmanager
async def open_floor(folder: Path) -> Any:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", FLOOR), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=folder
    )
    yield process
    assert process.stdin
    process.stdin.close()
    await process.wait()


async def run_floor(process: asyncio.subprocess.Process) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"go\n")
    await process.stdout.readline()


async def measure_requests(folder: Path, rounds: int) -> None:
    own: list[float] = []
    floor: list[float] = []
    async with open_editor(folder) as editor, open_floor(folder) as process:
        session = await open_session(editor, folder)
        await editor.prompt(session)
        await run_floor(process)
        for _ in range(rounds * PROMPTS):
            began_s = time.monotonic()
            await editor.prompt(session)
            own.append((ModelServer.began_s - began_s) * 1000)
            began_s = time.monotonic()
            await run_floor(process)
            floor.append((ModelServer.began_s - began_s) * 1000)
    ratio = statistics.median(own) / statistics.median(floor)
    print(f"prompt to request:  {statistics.median(own):.1f} ms, minimum {min(own):.1f}")
    print(f"without a protocol: {statistics.median(floor):.1f} ms, minimum {min(floor):.1f}")
    print(f"ratio {ratio:.2f}x, of the minima {min(own) / min(floor):.2f}x (target {TARGET_RATIO}x)")


async def measure_sessions(folder: Path) -> None:
    async with open_editor(folder) as editor:
        first = await open_session(editor, folder)
        await editor.prompt(first)
        one_kb = read_memory_kb(editor.process.pid)
        began_s = time.monotonic()
        await editor.prompt(first)
        one_s = time.monotonic() - began_s
        places = [folder / f"folder{number}" for number in range(SESSIONS - 1)]
        for place in places:
            place.mkdir()
        began_s = time.monotonic()
        sessions = [first, *await asyncio.gather(*[open_session(editor, place) for place in places])]
        opened_s = time.monotonic() - began_s
        await asyncio.gather(*map(editor.prompt, sessions))
        all_kb = read_memory_kb(editor.process.pid)
        began_s = time.monotonic()
        await asyncio.gather(*map(editor.prompt, sessions))
        all_s = time.monotonic() - began_s
    per_session_mb = (all_kb - one_kb) / (SESSIONS - 1) / 1024
    print(f"memory: {one_kb / 1024:.0f} MB with one session, {per_session_mb:.1f} MB for each further one")
    print(f"{SESSIONS - 1} sessions opened beside each other in {opened_s:.2f} s")
    print(f"{SESSIONS} turns beside each other: {all_s * 1000:.0f} ms; one turn: {one_s * 1000:.0f} ms")


async def main(rounds: int, work: Path) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(ModelServer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    os.environ |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "sk-0123456789abcdef"}
    await measure_requests(work, rounds)
    await measure_sessions(work)
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    with tempfile.TemporaryDirectory() as name:
        os.environ["GOOSE_LIKE_HOME"] = f"{name}/home"
        folder = Path(name, "work")
        folder.mkdir()
        asyncio.run(main(parser.parse_args().rounds, folder))
