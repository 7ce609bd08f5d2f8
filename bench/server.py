"""A loopback server with all three wire formats that measures time. Each answer calls `shell`, the last one is text.

The clock is CLOCK_MONOTONIC, which all processes of a machine share.
"""

import asyncio
import json
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass
class Recording:
    """Requests and times. `gaps_s[i]` lies between the last byte of answer i and the first byte of request i + 1.

    `exit_s` lies between the last answer and the end of the process.
    """

    steps: int
    command: Callable[[int], str] = "echo step {}".format
    bodies: list[bytes] = field(default_factory=list)
    first_byte_s: float = 0.0
    answered_s: float = 0.0
    gaps_s: list[float] = field(default_factory=list)
    exit_s: float = 0.0
    pid: int = 0
    peak_kb: int = 0  # memory of the process at its last request


class Connection(asyncio.Protocol):
    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if not self.buffer:
            if not self.recording.bodies:
                self.recording.first_byte_s = now
            else:
                self.recording.gaps_s.append(now - self.recording.answered_s)
        self.buffer += data
        head, separator, body = bytes(self.buffer).partition(b"\r\n\r\n")
        if not separator:
            return
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        if len(body) < length:
            return
        self.buffer.clear()
        self.recording.bodies.append(body)
        step, steps = len(self.recording.bodies), self.recording.steps
        if step == steps:
            self.recording.peak_kb = _read_peak_kb(self.recording.pid)
        answer_with = _choose_wire(head.partition(b"\r\n")[0])
        if b'"exec_command"' in body:
            answer_with = _answer_codex
        answer = answer_with(step, steps, self.recording.command(step))
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s"
            % (len(answer), answer)
        )
        self.recording.answered_s = time.monotonic()


def _read_peak_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def _choose_wire(request_line: bytes) -> Callable[[int, int, str], bytes]:
    if b"/messages" in request_line:
        return _answer_messages
    if b"/responses" in request_line:
        return _answer_responses
    return answer_completions


def _answer_responses(step: int, steps: int, command: str) -> bytes:
    return _create_response(step, steps, "shell", {"command": command})


def _answer_codex(step: int, steps: int, command: str) -> bytes:
    return _create_response(step, steps, "exec_command", {"cmd": command})


def _create_response(step: int, steps: int, tool: str, arguments: dict[str, str]) -> bytes:
    reasoning = {"type": "reasoning", "id": f"rs_{step}", "summary": [], "encrypted_content": f"secret-{step}" * 50}
    follower: dict[str, object] = {"type": "message", "id": f"msg_{step}", "role": "assistant", "status": "completed"}
    follower["content"] = [{"type": "output_text", "text": "done", "annotations": []}]
    if step < steps:
        follower = {"type": "function_call", "id": f"fc_{step}", "call_id": f"call_{step}", "status": "completed"}
        follower["name"] = tool
        follower["arguments"] = json.dumps(arguments)
    usage = {"input_tokens": 100 * step, "output_tokens": 20, "total_tokens": 100 * step + 20}
    response = {"id": "r", "object": "response", "status": "completed", "output": [reasoning, follower], "usage": usage}
    events = [
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.done", "output_index": 1, "item": follower},
        {"type": "response.completed", "response": response},
    ]
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json.dumps(event).encode()) for event in events
    )


def _answer_messages(step: int, steps: int, command: str) -> bytes:
    if step < steps:
        block = {"type": "tool_use", "id": f"call_{step}", "name": "shell", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": command})}
        stop = "tool_use"
    else:
        block, stop = {"type": "text", "text": ""}, "end_turn"
        delta = {"type": "text_delta", "text": "done"}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "bench", "content": []}
    message["usage"] = {"input_tokens": 100 * step, "output_tokens": 1}
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode()) for event in events
    )


def answer_completions(step: int, steps: int, command: str) -> bytes:
    if step < steps:
        call = {"index": 0, "id": f"call_{step}", "type": "function"}
        call["function"] = {"name": "shell", "arguments": json.dumps({"command": command})}
        delta, finish = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    else:
        delta, finish = {"role": "assistant", "content": "done"}, "stop"
    usage = {"prompt_tokens": 100 * step, "completion_tokens": 20, "total_tokens": 100 * step + 20}
    common = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    chunks = [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {**common, "choices": [], "usage": usage},
    ]
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


async def record(
    command: list[str],
    env: dict[str, str],
    steps: int,
    cwd: str,
    calls: Callable[[int], str] = "echo step {}".format,
) -> tuple[Recording, float]:
    """Run a command against the server. Return the recording, and the seconds from its start to its first byte.

    `calls` returns the shell command of an answer by its number.

    Raises:
        RuntimeError: the command failed, or did not make all its requests.
    """
    recording = Recording(steps, calls)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(recording), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for name, path in (("OPENAI", "/v1"), ("ANTHROPIC", "")):
        env = {**env, f"{name}_BASE_URL": f"http://127.0.0.1:{port}{path}", f"{name}_API_KEY": "bench"}
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    recording.pid = process.pid
    out, err = await process.communicate()
    recording.exit_s = time.monotonic() - recording.answered_s
    server.close()
    if process.returncode or len(recording.bodies) != steps:
        raise RuntimeError(f"{command} ended with {process.returncode}: {out[-500:]!r} {err[-2000:]!r}")
    return recording, recording.first_byte_s - started


def read_processor_s() -> float:
    """Return the processor time of all ended processes, which depends less on load than the clock."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def shuffle(subjects: Iterable[T], number: int) -> list[T]:
    """Return the subjects in another order for each round. A fixed one adds what a run leaves behind to the next."""
    ordered = list(subjects)
    random.Random(number).shuffle(ordered)
    return ordered


def print_medians(title: str, figures: Mapping[str, Sequence[float]]) -> None:
    """Print the median of each subject in milliseconds, and of its differences from the first one in the same round.

    Rounds differ more than subjects on a busy machine. A difference of medians would compare different rounds.
    """
    print(f"\n{title}")
    first = next(iter(figures.values()))
    base = statistics.median(first)
    for subject, values in figures.items():
        median = statistics.median(values)
        added = statistics.median(value - other for value, other in zip(values, first, strict=True))
        ratio = median / base
        least = min(values)
        print(f"  {subject:28} {median:8.1f} ms {ratio:6.2f}x {added:+8.1f} ms, least {least:.1f} ms")
