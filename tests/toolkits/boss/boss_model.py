"""A model that plays three bosses, Jarvis > Coder > ExtendLibrary, and decides by its memory.

The model takes the action after the newest one of the log, so a killed and resumed run takes the same actions. Tests
use it as a provider (`DecidingProvider`) or as a server with OpenAI's wire format (`BossServer`).
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.providers.base import Delta, Request
from tests.fakes import FakeProvider
from tests.loopback import Asked, Loopback, Response, called, said, sse

GOAL = "Give the mean and the median of 1, 2, 3, 10."
RESULT = "mean 4.0, median 2.5"
MARKS = "marks.txt"
FILES = ("jarvis_plan.md", "jarvis_logs.md", "coder_plan.md", "coder_logs.md", "extend_plan.md", "extend_logs.md")
LIBRARY = "library.py"

_MEAN = 'def mean(values):\n    """Their sum through their number."""\n    return sum(values) / len(values)\n'
_MEDIAN = (
    'def median(values):\n    """The middle one, or the mean of both."""\n    half = len(values) // 2\n'
    "    ordered = sorted(values)\n    return mean(ordered[half:][:1] + ordered[~half:][:1])\n"
)
_CODE = {"mean": (_MEAN, "assert mean([1, 3]) == 2"), "median": (_MEDIAN, "assert median([3, 1, 2, 5]) == 2.5")}
_LAST = re.compile(r"^- (\d+) · ", re.MULTILINE)

Action = tuple[str, dict[str, Any]]


def make_config(max_round: int = 30) -> dict[str, Any]:
    """Describe Jarvis: each boss has its own plan and log, and all share one library."""

    def files(name: str) -> dict[str, str]:
        return {"plan": f"{name}_plan.md", "logs": f"{name}_logs.md", "code_library": LIBRARY}

    extend = {
        "name": "extend_library",
        "description": "Puts one function into the library.",
        "memory_files": files("extend"),
        "branches": {"write_code": {}, "save_code": {}, "update_plan": {}},
    }
    coder = {
        "name": "coder",
        "description": "Writes functions and tries them.",
        "memory_files": files("coder"),
        "branches": {"extend_library": {"boss": extend}, "run_code": {}, "re_plan": {}, "update_plan": {}},
    }
    return {
        "name": "jarvis",
        "memory_files": files("jarvis"),
        "branches": {"coder": {"boss": coder}, "run_code": {}, "ask_user": {}, "update_plan": {}},
        "max_round": max_round,
    }


def choose_action(texts: Sequence[str], tools: Sequence[str]) -> str | Action:
    """Choose the answer: a plan if there are no tools, else the action after the newest one of the log."""
    if not tools:
        return _plan(texts[0])
    goal, memory = texts[0], texts[-1]
    log = memory.rpartition("\n# " + goal.split("\n")[0] + "\n")[2]
    done = _LAST.findall(log)
    here = int(done[-1]) if done else 0
    if "coder" in tools:
        return _jarvis()[here]
    return _coder()[here] if "extend_library" in tools else _extend(goal)[here]


def _plan(question: str) -> str:
    if "<reason for a new plan>" in question:
        return "- [x] mean\n- [ ] median, which takes mean\n- [ ] Check both\n"
    return "Here it is:\n\n- [ ] Begin\n- [ ] Check\n"


def _run(who: str, code: str) -> Action:
    """Return a call of code that leaves a mark in a file."""
    return "run_code", {"code": f'print("{who}", file=open("{MARKS}", "a"))\n{code}'}


def _jarvis() -> list[Action]:
    return [
        ("update_plan", {"done": [], "current": 1}),
        ("coder", {"goal": "Have mean and median in the library.\nSay when they are."}),
        ("update_plan", {"done": [1], "current": 2}),
        _run(
            "jarvis",
            'from library import mean, median\nx = [1, 2, 3, 10]\nprint(f"mean {mean(x)}, median {median(x)}")',
        ),
        ("update_plan", {"done": [1, 2]}),
        ("finish", {"result": RESULT, "summary": "gave both"}),
    ]


def _coder() -> list[Action]:
    return [
        ("extend_library", {"goal": "Write mean"}),
        _run("coder-mean", "import library\nprint(library.mean([2, 4]))"),
        ("re_plan", {"reason": "median takes mean"}),
        ("extend_library", {"goal": "Write median"}),
        _run("coder-median", "import library\nprint(library.median([1, 5]))"),
        ("update_plan", {"done": [1, 2, 3]}),
        ("finish", {"result": "mean and median are there", "summary": "wrote mean and median"}),
    ]


def _extend(goal: str) -> list[Action]:
    name = goal.split()[-1]
    code, tests = _CODE[name]
    return [
        ("write_code", {"code": code, "tests": tests if name == "mean" else f"from library import mean\n{tests}"}),
        ("save_code", {"done": [1]}),
        ("update_plan", {"done": [1, 2]}),
        ("finish", {"result": f"{name} is there", "summary": f"wrote {name}"}),
    ]


class DecidingProvider(FakeProvider):
    """The model as a provider."""

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        await asyncio.sleep(0)
        texts = [message.text for message in request.messages if message.role == "user"]
        chosen = choose_action(texts, [tool.name for tool in request.tools])
        if isinstance(chosen, str):
            answer = Message.assistant(chosen)
        else:
            answer = Message.assistant("", [ToolCall(id="", name=chosen[0], arguments=json.dumps(chosen[1]))])
        yield MessageCompleted(message=answer, usage=Usage(input_tokens=10, output_tokens=5))


class BossServer(Loopback):
    """The model as an HTTP server."""

    def __init__(self) -> None:
        super().__init__([])

    def _response(self, asked: Asked) -> Response:
        self.requests.append(asked)
        body = asked.json
        joined, *others = [_text(message["content"]) for message in body["messages"] if message["role"] == "user"]
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        # The wire joins neighbouring messages: with tools, the goal and the memory.
        first = joined.split("\n\n", 1) if tools else [joined]
        chosen = choose_action([*first, *others], tools)
        if isinstance(chosen, str):
            return sse(said(chosen))
        return sse(called(("", chosen[0], json.dumps(chosen[1]))))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
