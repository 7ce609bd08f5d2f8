"""Measure a batch beside a bare loop. `python bench/batch.py [--inputs N] [--workers N]`.

A model on loopback answers each request after 250 ms: with a command, and at the 20th request with a text. The bare
loop makes the same requests with httpx2, runs the commands with bash, and does nothing else.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2
from server import answer_completions, read_processor_s

STEPS = 20
DELAY_S = 0.25
TARGET = 0.8
RECIPE = """
version: 1.0.0
title: Bench
description: Twenty steps
prompt: "Work on {{ number }}."
parameters:
  - {key: number, input_type: string, requirement: required, description: a number}
"""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of a connection. The messages tell which step it is."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        fields = head.lower().split(b"content-length:")
        body = json.loads(await reader.readexactly(int(fields[1].split(b"\r\n")[0])))
        step = 1 + sum(message["role"] == "assistant" for message in body["messages"])
        await asyncio.sleep(DELAY_S)
        data = answer_completions(step, STEPS, f"echo step {step}")
        start = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(data)
        writer.write(start + data)


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await answer(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):  # the client is done, or the bench
        writer.close()


async def run_floor(url: str, inputs: int, workers: int) -> float:
    """Run the bare loops, and return their seconds."""
    slots = asyncio.Semaphore(workers)
    started = time.monotonic()
    async with (
        httpx2.AsyncClient(limits=httpx2.Limits(max_connections=workers)) as client,
        asyncio.TaskGroup() as group,
    ):
        for number in range(inputs):
            group.create_task(run_loop(client, url, number, slots))
    return time.monotonic() - started


async def run_loop(client: httpx2.AsyncClient, url: str, number: int, slots: asyncio.Semaphore) -> None:
    messages = [{"role": "user", "content": f"Work on {number}."}]
    async with slots:
        while call := await ask(client, url, messages):
            command = json.loads(call["function"]["arguments"])["command"]
            process = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=subprocess.PIPE)
            output, _ = await process.communicate()
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output.decode()})


async def ask(client: httpx2.AsyncClient, url: str, messages: list[dict]) -> dict | None:
    call = None
    body = {"model": "bench", "messages": messages, "stream": True}
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    call = (choice["delta"].get("tool_calls") or [call])[0]
    return call


async def run_batch(url: str, folder: Path, inputs: int, workers: int) -> tuple[float, float]:
    """Run the batch, and return its seconds and its seconds of processor time."""
    (folder / "work").mkdir()
    (folder / "work/r.yaml").write_text(RECIPE)
    (folder / "in.jsonl").write_text("".join(json.dumps({"number": str(n)}) + "\n" for n in range(inputs)))
    env = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench", "GOOSE_LIKE_HOME": str(folder / "home")}
    words = ["batch", "r.yaml", "../in.jsonl", "-o", "../r.jsonl", "--workers", str(workers), "--model", "openai:bench"]
    command = [sys.executable, "-m", "goose_like", *words, "--trust"]
    before_s = read_processor_s()
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(*command, env=env, cwd=folder / "work", stderr=subprocess.PIPE)
    _, errors = await process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode()[-2000:])
    return time.monotonic() - started, read_processor_s() - before_s


async def main(inputs: int, workers: int) -> None:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        batch_s, processor_s = await run_batch(url, Path(name), inputs, workers)
    floor_s = await run_floor(url, inputs, workers)
    print(f"{inputs} inputs of {STEPS} steps of {DELAY_S * 1000:.0f} ms, {workers} workers")
    print(f"bare loop: {floor_s:.1f} s, {inputs / floor_s:.2f} inputs/s")
    print(f"batch:     {batch_s:.1f} s, {inputs / batch_s:.2f} inputs/s, {floor_s / batch_s:.2f}x (target {TARGET}x)")
    print(f"processor time of an input: {processor_s / inputs:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.inputs, arguments.workers))
