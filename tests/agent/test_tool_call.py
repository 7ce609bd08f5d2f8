"""Tests of one tool call: every failure is a sentence that tells the model what to do."""

import asyncio
import functools
import json
import subprocess
import sys
import threading
from contextvars import ContextVar
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from goose_like.agent.tool_call import call_tool
from goose_like.core.errors import GooseLikeError
from goose_like.core.tool import ToolError, make_tool, tool
from tests.fakes import call


class Colour(Enum):
    red = "red"
    blue = "blue"


class Point(BaseModel):
    x: int
    title: str = "origin"


async def run(function, arguments: Any = "{}"):
    made = make_tool(function)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return await call_tool({made.name: made}, call(made.name, text))


async def test_arguments_are_converted():
    async def f(point: Point, colour: Colour, n: int = 2) -> str:
        return f"{point.x + 1} {colour.name} {n}"

    assert (await run(f, {"point": {"x": 1}, "colour": "blue"})).output == "2 blue 2"


async def test_empty_arguments_are_no_arguments():
    def f() -> None: ...

    assert (await run(f, "  ")).output == "done"


async def test_unknown_tool_has_near_name_and_list():
    tools = {name: make_tool(lambda: None) for name in ("shell", "read_file")}
    outcome = await call_tool(tools, call("shel"))
    assert outcome.is_error
    assert outcome.output == "no tool 'shel'; did you mean 'shell'? the tools are: shell, read_file"
    assert (await call_tool(tools, call("zzz"))).output == "no tool 'zzz'; the tools are: shell, read_file"
    assert (await call_tool({}, call("zzz"))).output == "no tool 'zzz'; the tools are: none"


BAD = {
    '{"a": 1': "no valid JSON: Expecting ',' delimiter at character 7 of 7",
    "a=1": "no valid JSON",
    '{"a": 1}{"a": 2}': "more than one JSON value",
    "null": "the arguments are null, not an object",
    "[1]": "the arguments are list, not an object",
    '{"a": "x"}': "field 'a': input should be a valid integer",
    '{"a": 1, "z": 2}': "there is no field 'z'",
    "{}": "field 'a' is missing",
    '{"a": 1, "p": {"x": "w"}}': "field 'p.x': input should be a valid integer",
    "[" * 100_000: "nested too deeply",
}


@pytest.mark.parametrize("arguments", BAD)
async def test_arguments_of_the_wrong_form(arguments):
    def f(a: int, p: Point = Point(x=1)):  # noqa: B008
        raise AssertionError("must not run")

    outcome = await run(f, arguments)
    assert outcome.is_error
    assert BAD[arguments] in outcome.output
    assert "send one JSON object with 'a', 'p' (optional)" in outcome.output
    assert len(outcome.output) < 400


async def test_exception_shows_frames_of_the_toolkit_only():
    def f():
        json.loads("{")

    outcome = await run(f)
    assert outcome.is_error
    first, *frames = outcome.output.splitlines()
    assert first.startswith("JSONDecodeError: Expecting property name")
    assert [frame.partition(" in ")[2] for frame in frames] == ['f: json.loads("{")']


async def test_our_own_errors_have_no_traceback():
    def f():
        raise ToolError("take another one")

    async def g():
        raise GooseLikeError("and another")

    assert (await run(f)).output == "take another one"
    outcome = await run(g)
    assert (outcome.output, outcome.is_error) == ("and another", True)


async def test_time_limit():
    @tool(time_limit_s=0.01)
    async def slow():
        await asyncio.Event().wait()

    release = threading.Event()

    @tool(time_limit_s=0.01)
    def blocking():
        release.wait(20)

    for function in (slow, blocking):
        outcome = await run(function)
        assert outcome.is_error
        assert "stopped after its time limit of 0.01 s; ask for less" in outcome.output
    release.set()


async def test_a_timeout_of_the_tools_own_is_told_as_such():
    async def f():
        raise TimeoutError("the server is slow")

    assert (await run(f)).output.startswith("TimeoutError: the server is slow")


async def test_exit_and_inner_cancellation_stay_within_the_call():
    def leave():
        sys.exit(3)

    async def leave_async():
        sys.exit(3)

    async def cancelled_inside():
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task

    def stop():
        raise StopIteration("end")

    for function, words in ((leave, "SystemExit: 3"), (leave_async, "SystemExit: 3"), (stop, "StopIteration: end")):
        outcome = await run(function)
        assert outcome.is_error
        assert words in outcome.output
    assert (await run(cancelled_inside)).is_error


async def test_cancellation_of_the_call_passes():
    started = asyncio.Event()

    async def f():
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(run(f))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_output_forms():
    def give(value):
        def f():
            return value

        return f

    assert (await run(give(Point(x=1)))).output == '{\n  "x": 1,\n  "title": "origin"\n}'
    assert (await run(give("as it is"))).output == "as it is"
    assert (await run(give(b"\xff\x00"))).output.startswith("the tool gave 2 bytes, which are no text; write them to")
    assert (await run(give(object()))).output.startswith("the tool gave a object, which has no text form")
    circle: list[Any] = []
    circle.append(circle)
    for value in (b"", object(), circle):
        assert (await run(give(value))).is_error


variable: ContextVar[str] = ContextVar("variable")


async def test_threads_see_the_context_of_the_call():
    variable.set("seen")
    names = []

    def f():
        names.append(threading.current_thread().name)
        return variable.get()

    assert (await run(f)).output == "seen"
    assert names == ["tool f"]


async def test_plain_functions_that_give_awaitables():
    async def inner(a: int) -> int:
        return a + 1

    @functools.wraps(inner)
    def outer(*args, **kwargs):
        return inner(*args, **kwargs)

    assert (await run(outer, {"a": 1})).output == "2"


def test_a_cancelled_plain_tool_does_not_hold_up_the_end_of_the_process():
    program = """
import asyncio, threading
from goose_like.core.message import ToolCall
from goose_like.core.tool import make_tool
from goose_like.agent.tool_call import call_tool
started = threading.Event()
def f():
    started.set()
    threading.Event().wait()
async def main():
    task = asyncio.create_task(call_tool({"f": make_tool(f)}, ToolCall(id="1", name="f", arguments="{}")))
    await asyncio.to_thread(started.wait)
    task.cancel()
    await asyncio.wait([task])
    print(task.cancelled())
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("True\n", "", 0)
