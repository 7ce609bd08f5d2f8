"""Compare `goose-like serve` with a bare Starlette app that relays the same streams.

    python bench/serve.py [--rounds N] [--streams 200] [--chunks 500]

The model is another process with OpenAI's wire format that writes each chunk separately. Throughput: chunks per second
over all streams. First words: from the request to the first text of the answer. Memory: growth of the server's peak per
stream. Own work, in processor time: parsing a request of 200 messages, building the exchange and answering, with a
model that says one word, compared with the same for one message.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MESSAGES, REQUESTS = 200, 60
TARGETS = {"throughput": 0.7, "first": 2.0, "memory_kb": 200, "own_ms": 15}
WORD = "word "


# --- the model


async def serve_model(port: int, chunks: int) -> None:
    """Serve a model that streams this number of chunks."""
    common = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench"}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        text = b"data: %s\n\n" % json.dumps({**common, "choices": [choice]}).encode()
        return b"%x\r\n%s\r\n" % (len(text), text)

    word, last = event({"content": WORD}), event({}, "stop")
    done = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.split(b":")[1]))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for _ in range(chunks):
                    writer.write(word)
                    await writer.drain()
                    await asyncio.sleep(0)
                writer.write(last + done)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1000)
    await server.serve_forever()


# --- the clients


@dataclasses.dataclass
class StreamResult:
    """The time of the first word, and the number of words."""

    first_s: float = 0.0
    words: int = 0


async def read_stream(port: int, body: bytes) -> StreamResult:
    began, result = time.monotonic(), StreamResult()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"POST /v1/query HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n"
    writer.write(b"%scontent-length: %d\r\n\r\n%s" % (head, len(body), body))
    rest = b""
    while data := await reader.read(65536):
        rest += data
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and b'"delta"' in line:
                result.first_s = result.first_s or time.monotonic() - began
                result.words += line.count(WORD.encode())
    writer.close()
    return result


def read_memory_kb(pid: int, field: str) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def wait_until_open(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


def run_load(kind: str, streams: int, chunks: int, home: str) -> dict[str, float]:
    """Start one server and measure all streams at once."""
    model_port, port = find_free_port(), find_free_port()
    url = f"http://127.0.0.1:{model_port}/v1"
    env = {**os.environ, "GOOSE_LIKE_HOME": home, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
    limits = [f"--max-concurrent{which}={streams * 2}" for which in ("", "-per-client")]
    ours = [sys.executable, "-m", "goose_like", "serve", "--port", str(port), "--model", "openai:bench", *limits]
    commands = {"bare": [sys.executable, str(HERE / "floor_serve.py"), str(port), url], "ours": ours}
    playing = [sys.executable, __file__, "--model", str(model_port), "--chunks", str(chunks)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(playing) as loopback, subprocess.Popen(commands[kind], env=env, **quiet) as server:
        try:
            return asyncio.run(measure_streams(server.pid, model_port, port, streams, chunks))
        finally:
            server.terminate()
            loopback.terminate()


async def measure_streams(pid: int, model_port: int, port: int, streams: int, chunks: int) -> dict[str, float]:
    await asyncio.gather(wait_until_open(model_port), wait_until_open(port))
    body = json.dumps({"messages": [{"role": "human", "content": "go"}], "timezone": "UTC"}).encode()
    await asyncio.gather(*(read_stream(port, body) for _ in range(5)))
    before, began = read_memory_kb(pid, "VmRSS"), time.monotonic()
    results = await asyncio.gather(*(read_stream(port, body) for _ in range(streams)))
    took = time.monotonic() - began
    firsts = sorted(one.first_s for one in results)
    return {
        "throughput": sum(one.words for one in results) / took,
        "first": firsts[int(len(firsts) * 0.99) - 1],
        "lost": sum(one.words != chunks for one in results),
        "memory_kb": (read_memory_kb(pid, "VmHWM") - before) / streams,
    }


# --- one request's own work


class OneWordModel:
    """A model that answers with one word."""

    async def stream(self, _: object) -> Any:
        from goose_like.core.events import MessageCompleted
        from goose_like.core.message import Message

        yield MessageCompleted(message=Message.assistant(WORD))

    async def close(self) -> None:
        pass


def make_conversation(length: int) -> bytes:
    """Return a request with this number of messages and a widget's data in every fourth."""
    uuid = "38181a68-9650-4940-84fb-a3f29c8869f3"
    source = {"widget_uuid": uuid, "origin": "Bench", "id": "prices", "input_args": {"symbol": "SAMP"}}
    arguments = {"data_sources": [source]}
    rows = json.dumps([{"date": f"2026-01-{day:02}", "close": day * 1.5} for day in range(1, 20)])
    turn = [
        {"role": "human", "content": "what is the price, and what does it mean for the rest of the year?"},
        {"role": "ai", "content": json.dumps({"function": "get_widget_data", "input_arguments": arguments})},
        {
            "role": "tool",
            "function": "get_widget_data",
            "input_arguments": arguments,
            "data": [{"items": [{"content": rows, "data_format": {"data_type": "object"}}]}],
        },
        {"role": "ai", "content": "It closed at 28.5, and that says little about the rest of the year. " * 5},
    ]
    messages = [*(turn * (length // 4))[: length - 1], {"role": "human", "content": "and now?"}]
    param = {"name": "symbol", "type": "ticker", "description": "The ticker.", "current_value": "SAMP"}
    widget = {"uuid": uuid, "origin": "Bench", "widget_id": "prices", "name": "Prices", "description": "Closing prices"}
    widgets = {
        "primary": [],
        "secondary": [{**widget, "params": [param], "metadata": {}}],
        "extra": [],
    }  # none to fetch
    return json.dumps({"messages": messages, "timezone": "UTC", "widgets": widgets}).encode()


async def measure_own_work_ms() -> dict[int, float]:
    """Return the median milliseconds of a request by its number of messages."""
    from goose_like.config.profile_loader import load_profile
    from goose_like.core.notifier import Notifier
    from goose_like.providers.base import Model, ModelPair
    from goose_like.serve.middleware import RequestRecord
    from goose_like.serve.openbb.endpoints import stream_answer
    from goose_like.serve.openbb.request import parse_query
    from goose_like.serve.service import EmptyWorkspace, Service, restrict_profile
    from goose_like.serve.settings import Settings

    profile, _ = restrict_profile(load_profile("openbb")[0], ())
    prompt = Model(OneWordModel(), "bench", "bench:bench")  # type: ignore[arg-type]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        nowhere = EmptyWorkspace(folder, mode="read-only", approval="auto", notifier=Notifier())
        service = Service(Settings(signing_key=b"bench"), profile, ModelPair(prompt, prompt), nowhere)
        for length in (1, MESSAGES):
            body, took = make_conversation(length), []
            for _ in range(REQUESTS):
                began = time.process_time()
                async for _ in stream_answer(parse_query(body), service, RequestRecord("query")):
                    pass
                took.append((time.process_time() - began) * 1000)
            found[length] = statistics.median(took)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=500)
    parser.add_argument("--model", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        asyncio.run(serve_model(options.model, options.chunks))
        return
    found: dict[str, list[dict[str, float]]] = {"bare": [], "ours": []}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(options.rounds):
            for kind, figures in found.items():
                figures.append(run_load(kind, options.streams, options.chunks, home))

    def median(kind: str, name: str) -> float:
        return statistics.median(one[name] for one in found[kind])

    for kind in found:
        print(
            f"{kind}: {median(kind, 'throughput'):,.0f} chunks/s, first words p99 {median(kind, 'first'):.2f} s, "
            f"{sum(one['lost'] for one in found[kind]):.0f} streams lost, {median(kind, 'memory_kb'):.0f} kB a stream"
        )
    more_kb = median("ours", "memory_kb") - median("bare", "memory_kb")
    print(
        f"throughput {median('ours', 'throughput') / median('bare', 'throughput'):.2f}x "
        f"(target: at least {TARGETS['throughput']}x), first words p99 "
        f"{median('ours', 'first') / median('bare', 'first'):.2f}x (target: {TARGETS['first']:g}x), "
        f"{more_kb:.0f} kB more a stream (target: {TARGETS['memory_kb']})"
    )
    own = asyncio.run(measure_own_work_ms())
    print(
        f"own work: {own[MESSAGES]:.1f} ms with {MESSAGES} messages (target: {TARGETS['own_ms']} ms), "
        f"{own[1]:.1f} ms with one"
    )


if __name__ == "__main__":
    main()
