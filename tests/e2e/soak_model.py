"""The model of the soak: each turn does one kind of work, which its number selects."""

import json
import re
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Sequence
from typing import Any

from tests.loopback import Asked, Loopback, Response, chunk, raw, refusal, sse, usage

Call = tuple[str, dict[str, Any] | str]
Step = str | Sequence[Call] | Response
WAIT = "echo waiting; sleep 300"
"""The command of a turn that the person stops."""

TEXT = "# Part {0}\n\nIt has **words**, `code`, a [link](https://example.org/{0}) and a list:\n\n- one\n- two {0}\n"


def shell(command: str) -> Call:
    return ("shell", {"command": command})


def answer(number: int, process: str) -> list[Step]:
    return [TEXT.format(number) * 3]


def run_commands(number: int, process: str) -> list[Step]:
    return [[shell(f"echo line {number}; pwd; cd .; export V{number % 5}={number}")], [shell("ls | wc -l")], "done"]


def write_files(number: int, process: str) -> list[Step]:
    name, text = f"part-{number % 40}.py", f"NUMBER = {number}\n" + "# words and words\n" * 20
    patch = {"before": f"NUMBER = {number}", "after": f"NUMBER = {number + 1}"}
    return [
        [("read_file", {"path": name})],
        [("write_file", {"path": name, "content": text})],
        [("patch_file", {"path": name, "patches": [patch]})],
        "written",
    ]


def change_files(number: int, process: str) -> list[Step]:
    name = f"made-{number % 40}.txt"
    return [[shell(f"seq {number % 50} > {name}; rm -f made-{(number + 7) % 40}.txt")], "changed"]


def fail(number: int, process: str) -> list[Step]:
    return [[shell(f"echo no {number} >&2; exit 3")], [("no_such_tool", {})], [("shell", '{"command": ')], "it failed"]


def break_off(number: int, process: str) -> list[Step]:
    """Answer with an error, then with half a stream, then well."""
    return [
        refusal(500, headers={"retry-after": "0"}),
        raw(b'data: {"choices": [{"delta": \n\n', broken="garbage"),
        "at last",
    ]


def read_together(number: int, process: str) -> list[Step]:
    return [[("read_file", {"path": name}) for name in ("notes.md", "data.csv", "none.txt")], "read"]


def print_much(number: int, process: str) -> list[Step]:
    return [[shell(f"seq {number} {number + 9_000}")], "much"]


def run_processes(number: int, process: str) -> list[Step]:
    starting, cancelling = (
        ("process", {"action": "start", "command": f"echo up {number}; sleep 300"}),
        ("process", {"action": "stop", "id": process}),
    )
    return [[starting], [cancelling], "ended"]


def plan_work(number: int, process: str) -> list[Step]:
    tasks = [{"description": f"task {at} of {number}", "status": "in-progress"} for at in range(3)]
    done = [{**task, "status": "complete"} for task in tasks]
    return [[("update_plan", {"tasks": tasks})], [("update_plan", {"tasks": done})], "planned"]


def wait_for_ever(number: int, process: str) -> list[Step]:
    return [[shell(WAIT)]]


KINDS: list[Callable[[int, str], list[Step]]] = [
    answer,
    run_commands,
    write_files,
    change_files,
    fail,
    break_off,
    read_together,
    print_much,
    run_processes,
    plan_work,
    wait_for_ever,
    change_files,
]


class SoakModel(Loopback):
    """Plays the turn whose number is the newest user message.

    `gaps_s` holds, by turn, the times between an answer and the next request of the same turn, with the work of tools
    between them. `summaries` counts the requests for summaries.
    """

    def __init__(self) -> None:
        super().__init__([])
        self.gaps_s: dict[int, list[float]] = {}
        self.summaries = 0
        self._turn = self._step = -1
        self._answered_s = 0.0

    async def _answer(self, reader: StreamReader, writer: StreamWriter) -> bool:
        is_open = await super()._answer(reader, writer)
        self._answered_s = time.monotonic()
        return is_open

    def _response(self, asked: Asked) -> Response:
        body = asked.json
        size = len(asked.body) // 4
        if "tools" not in body:
            self.summaries += 1
            return sse(
                [chunk({"content": "Goal: go on with the parts. State: well under way."}, "stop"), usage(size, 20)]
            )
        texts = [_join_text(message) for message in body["messages"]]
        # A user message can begin with facts or a reminder: the wire joins neighbouring user messages.
        number = int(re.findall(r"^turn (\d+)$", "\n".join(texts), re.MULTILINE)[-1])
        self._step = self._step + 1 if number == self._turn else 0
        if self._step:
            self.gaps_s.setdefault(number, []).append(time.monotonic() - self._answered_s)
        self._turn = number
        process = next((found[1] for text in reversed(texts) if (found := re.search(r"\b(p\d+): running", text))), "")
        steps = KINDS[number % len(KINDS)](number, process)
        step = steps[min(self._step, len(steps) - 1)]  # a reminder can ask for one more
        if isinstance(step, Response):
            return step
        if isinstance(step, str):
            return sse(
                [
                    *(chunk({"content": line}) for line in step.splitlines(keepends=True)),
                    chunk(finish="stop"),
                    usage(size, 9),
                ]
            )
        calls = [
            {
                "index": at,
                "id": f"c{number}-{self._step}-{at}",
                "type": "function",
                "function": {"name": name, "arguments": words if isinstance(words, str) else json.dumps(words)},
            }
            for at, (name, words) in enumerate(step)
        ]
        return answer_with([chunk({"tool_calls": calls})], "tool_calls", size)


def answer_with(chunks: list[dict[str, Any]], finish: str, size_tokens: int) -> Response:
    """Return an answer to a request of so many tokens."""
    return sse([*chunks, chunk(finish=finish), usage(size_tokens, 9)])


def _join_text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
