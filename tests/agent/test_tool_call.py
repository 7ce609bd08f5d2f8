"""Tests of tool calls: every failure is a sentence that tells the model what to do."""

import asyncio
import functools
import json
import subprocess
import sys
import tempfile
import threading
from contextvars import ContextVar
from enum import Enum
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from goose_like.agent.tool_call import call_tool
from goose_like.config.profile import Limits
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Reminded, ToolFinished, ToolStarted
from goose_like.core.history import History
from goose_like.core.message import Message, ToolResult
from goose_like.core.tool import FinalResult, ImageResult, ToolError, make_tool, tool
from tests.agent.loop import echo, fail
from tests.fakes import ExchangeHarness, call, calls


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


async def test_a_name_of_another_agent_leads_to_the_tool_here():
    @tool(aliases=("edit_file", "str_replace"))
    def patch_file(): ...

    def write_file(): ...

    tools = {made.name: made for made in map(make_tool, (write_file, patch_file))}
    for name in ("edit_file", "EditFile", "strReplace", "str-replace"):
        outcome = await call_tool(tools, call(name))
        assert outcome.output == f"no tool {name!r}; use patch_file; the tools are: write_file, patch_file"
    del tools["patch_file"]  # what is not offered is not suggested
    assert "did you mean 'write_file'?" in (await call_tool(tools, call("edit_file"))).output


BAD = {
    "a=1": "invalid JSON: expected value at line 1 column 1",
    '{"a": 1}{"a": 2}': "invalid JSON: trailing characters at line 1 column 9",
    "null": "input should be an object, not None",
    "[1]": "input should be an object, not [1]",
    '{"a": "x"}': "field 'a': input should be a valid integer",
    '{"a": 1, "z": 2}': "there is no field 'z'",
    "{}": "field 'a' is missing",
    '{"a": 1, "p": {"x": "w"}}': "field 'p.x': input should be a valid integer",
    "[" * 100_000: "invalid JSON: recursion limit exceeded",
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


async def test_a_call_with_a_mask_does_not_run():
    def f(text: str):
        raise AssertionError("must not run")

    outcome = await run(f, {"text": "key = [masked:API_KEY]"})
    assert outcome.is_error
    assert outcome.output == (
        "f did not run: [masked:API_KEY] stands for a secret that you cannot see or write. Leave the secret where "
        "it is: change only the lines around it, or let a command read it from its file or variable"
    )


async def test_all_problems_of_a_call_are_named():
    def f(a: int, b: int): ...

    assert "for f: field 'a' is missing; field 'b' is missing; send" in (await run(f)).output


async def test_a_wrong_call_names_the_fields_of_the_tool():
    def without(): ...

    def optional(a: int = 1): ...

    outcome = await run(without, {"x": 1})
    assert outcome.output == "wrong arguments for without: there is no field 'x'; send one JSON object with no fields"
    assert (await run(optional, {"x": 1})).output.endswith("; send one JSON object with 'a' (optional)")


@pytest.mark.parametrize(("size", "shown"), [(78, f"'{'x' * 78}'"), (79, f"'{'x' * 76}...")])
async def test_a_wrong_value_is_shown_in_80_characters(size, shown):
    def f(a: int): ...

    assert f", not {shown}; send" in (await run(f, {"a": "x" * size})).output


async def test_an_exception_group_is_shown_whole():
    def f():
        raise ExceptionGroup("two", [ValueError("a"), ValueError("b")])

    def g():
        raise SyntaxError("odd", ("file.py", 3, 1, "x = (", 3, 2))

    lines = (await run(f)).output.splitlines()
    assert [lines[0], lines[2], lines[-1]] == [
        "ExceptionGroup: two (2 sub-exceptions)",
        "ValueError: a",
        "ValueError: b",
    ]
    assert " in f: raise ExceptionGroup(" in lines[1]
    assert (await run(g)).output.splitlines()[:3] == ['File "file.py", line 3', "    x = (", "    ^"]


async def test_exception_shows_frames_of_the_toolkit_only():
    def f():
        json.loads("{")

    outcome = await run(f)
    assert outcome.is_error
    first, *frames = outcome.output.splitlines()
    assert first.startswith("json.decoder.JSONDecodeError: Expecting property name")
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
        release.wait(60)

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
        assert f" in {function.__name__}: " in outcome.output  # the source line
    assert (await run(cancelled_inside)).is_error


async def test_each_error_of_a_group_is_told_with_its_line():
    def fail(number):
        raise ValueError(f"number {number}")

    async def gather():
        errors = []
        for number in (1, 2):
            try:
                fail(number)
            except ValueError as error:
                errors.append(error)
        raise ExceptionGroup("both failed", [errors[0], ExceptionGroup("inner", [errors[1]])])

    output = (await run(gather)).output
    assert output.startswith("ExceptionGroup: both failed (2 sub-exceptions)\n")
    assert "\nValueError: number 1\n" in output
    assert "\nValueError: number 2\n" in output
    assert output.count(" in fail: raise ValueError(") == 2


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


async def test_an_image_is_checked_and_may_be_replaced():
    def show(data: str):
        return ImageResult(bytes.fromhex(data), "a page", replacement="[seen]")

    outcome = await run(show, {"data": b"\x89PNG\r\n\x1a\n1".hex()})
    assert (outcome.output, outcome.is_error, outcome.replacement) == ("[image a page]", False, "[seen]")
    assert outcome.image is not None
    broken = await run(show, {"data": "00"})
    assert broken.is_error
    assert broken.output.startswith("a page is not a PNG")


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


# --- the calls of one message


def create_tracing_tools(trace):
    """Create tools that trace their calls: `look` (parallel), `change` (not), `help_out` (beside its own calls)."""

    async def run_traced(name: str) -> str:
        trace.append(f"+{name}")
        for _ in range(3):
            await asyncio.sleep(0)
        trace.append(f"-{name}")
        return name

    @tool(parallel=True)
    async def look(name: str):
        return await run_traced(name)

    @tool
    async def change(name: str):
        return await run_traced(name)

    @tool(parallel="same tool")
    async def help_out(name: str):
        return await run_traced(name)

    return look, change, help_out


def trace_call(kind, name):
    return call(kind, json.dumps({"name": name}), id=name)


async def test_parallel_calls_with_results_in_order(create_harness):
    first_may_end = asyncio.Event()

    @tool(parallel=True)
    async def first():
        await first_may_end.wait()  # only ends when the second ran beside it
        return "first"

    @tool(parallel=True)
    async def second():
        first_may_end.set()
        return "second"

    harness = create_harness([calls(call("first", id="a"), call("second", id="b")), "Done."], first, second)
    await harness.exchange.reply("Hi.")
    assert harness.outputs == ["first", "second"]
    assert [event.result.call_id for event in harness.events_of(ToolFinished)] == ["b", "a"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([("look", "a"), ("look", "b")], "+a +b -a -b"),
        ([("change", "a"), ("change", "b"), ("change", "c")], "+a -a +b -b +c -c"),
        (
            [("look", "a"), ("look", "b"), ("change", "c"), ("look", "d"), ("look", "e")],
            "+a +b -a -b +c -c +d +e -d -e",
        ),
        ([("look", "a"), ("help_out", "b"), ("look", "c")], "+a -a +b -b +c -c"),
        ([("help_out", "a"), ("help_out", "b"), ("look", "c")], "+a +b -a -b +c -c"),
        ([("look", "a"), ("none", "b"), ("look", "c")], "+a -a +c -c"),
    ],
)
async def test_only_adjacent_parallel_calls_overlap(create_harness, wanted, expected):
    trace = []
    message = calls(*(trace_call(*names) for names in wanted))
    harness = create_harness([message, "Done."], *create_tracing_tools(trace))
    await harness.exchange.reply("Hi.")
    assert " ".join(trace) == expected


KINDS = st.sampled_from(["look", "change", "help_out", "none"])


@given(st.lists(KINDS, max_size=8))
def test_a_call_sees_the_end_of_all_before_it_unless_both_are_parallel(kinds):
    trace: list[str] = []
    wanted = [trace_call(kind, f"{index}") for index, kind in enumerate(kinds)]

    async def run_calls(folder):
        harness = ExchangeHarness([calls(*wanted), "Done."], *create_tracing_tools(trace), folder=folder)
        await harness.exchange.reply("Hi.")
        harness.session.close()
        return harness.messages[2].tool_results if wanted else ()

    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(run_calls(Path(folder) / "s"))
    assert [result.call_id for result in results] == [one.id for one in wanted]
    ran = [index for index, kind in enumerate(kinds) if kind != "none"]
    assert [int(entry[1:]) for entry in trace if entry.startswith("+")] == ran
    for first, second in combinations(ran, 2):
        between = kinds[first : second + 1]
        if set(between) not in ({"look"}, {"help_out"}):
            assert trace.index(f"-{first}") < trace.index(f"+{second}")


@pytest.mark.parametrize("stop", ["cancel", "time limit", "disk"])
async def test_a_stop_between_calls_gives_each_a_result(create_harness, stop):
    started, ran = asyncio.Event(), []

    @tool(parallel=True)
    async def look(name: str):
        return name

    @tool
    async def wait():
        started.set()
        if stop == "disk":
            harness.session.close()  # no result can be written any more
        else:
            await asyncio.Event().wait()

    @tool
    async def change():
        ran.append("change")

    wanted = calls(trace_call("look", "a"), trace_call("look", "b"), call("wait", id="c"), call("change", id="d"))
    harness = create_harness([wanted], look, wait, change, limits=Limits(time_s=0.05 if stop == "time limit" else None))
    turn = asyncio.create_task(harness.exchange.reply("Hi."))
    await started.wait()
    if stop == "cancel":
        turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    assert ran == []
    assert [result.call_id for result in harness.messages[2].tool_results] == ["a", "b", "c", "d"]
    assert harness.outputs[:2] == ["a", "b"]
    assert all(result.is_error for result in harness.messages[2].tool_results[2:]) or stop == "disk"


async def test_an_error_does_not_stop_the_calls_after_it(create_harness):
    harness = create_harness([calls(call("fail", id="a"), call("echo", '{"text": "x"}', id="b")), "Done."], fail, echo)
    await harness.exchange.reply("Hi.")
    assert [result.is_error for result in harness.messages[2].tool_results] == [True, False]


SKIPPED = "not run: edit failed earlier in this message, and this call may write or commit"


@pytest.mark.parametrize(
    ("name", "arguments", "runs"),
    [
        ("write", '{"text": "git commit"}', False),
        ("edit", '{"path": "fine"}', False),
        ("look", "{}", True),
        ("plan", "{}", True),
        ("command", '{"line": "cat x"}', True),
        ("command", '{"line": "git commit"}', False),
        ("command", "[", False),
        ("unknown", "{}", False),
    ],
)
async def test_after_a_failed_edit_only_calls_that_change_nothing_run(create_harness, name, arguments, runs):
    @tool(edits=True)
    def edit(path: str):
        if path == "wrong":
            raise ToolError("no such place")
        return "saved"

    @tool(parallel=True)
    def look():
        return "looked"

    @tool(read_only=True)
    def plan():
        return "planned"

    @tool(reads_only_with=lambda given: given["line"].startswith("cat"))
    def command(line: str):
        return line

    def write(text: str):
        return text

    wanted = [
        call("edit", '{"path": "fine"}', id="a"),
        call("edit", '{"path": "wrong"}', id="b"),
        call(name, arguments, id="c"),
    ]
    script = [calls(*wanted), calls(call(name, arguments, id="d")), "Done."]
    harness = create_harness(script, edit, look, plan, command, write)
    await harness.exchange.reply("Hi.")
    first, failed, later = harness.messages[2].tool_results
    assert (first.is_error, failed.is_error, later.is_error) == (False, True, not runs)
    assert later.output.startswith(SKIPPED) == (not runs and name != "unknown")
    assert not harness.messages[4].tool_results[0].output.startswith(SKIPPED), "the next message begins anew"


async def test_remote_calls_are_handed_off_and_continued(create_harness):
    @tool(remote=True)
    def afar():
        return "not what the client gives"

    harness = create_harness(
        [calls(call("afar", id="r"), call("echo", '{"text": "here"}', id="l")), "Done."], echo, afar
    )
    assert (await harness.exchange.reply("Hi.")).reason == "handed_off"
    assert list(harness.exchange.history.open_calls) == ["r", "l"]
    assert [event.call.id for event in harness.events_of(ToolStarted)] == ["l"]
    end = await harness.exchange.reply(Message(role="tool", parts=(ToolResult(call_id="r", output="there"),)))
    assert end.reason == "stop"
    assert harness.outputs == ["there", "here"]
    assert [message.role for message in harness.messages] == ["user", "assistant", "tool", "assistant"]
    assert harness.events_of(Reminded) == []


@pytest.mark.parametrize(
    ("bad", "report"),
    [
        (call("afr", '{"place": "Kiel"}', id="bad"), "no tool 'afr'; did you mean 'afar'?"),
        (call("afar", '{"place": ', id="bad"), "wrong arguments for afar: invalid JSON"),
        (call("afar", '{"town": "Kiel"}', id="bad"), "wrong arguments for afar: field 'place' is missing"),
        (call("afar", '{"place": "Ys"}', id="bad"), "no place 'Ys'; there are Kiel and Bonn"),
    ],
)
async def test_a_remote_call_is_checked_before_it_is_handed_off(create_harness, bad, report):
    @tool(remote=True)
    def afar(place: str):
        if place not in ("Kiel", "Bonn"):
            raise ToolError(f"no place {place!r}; there are Kiel and Bonn")

    local, good = call("echo", '{"text": "here"}', id="l"), call("afar", '{"place": "Kiel"}', id="g")
    harness = create_harness(
        [calls(bad, local), calls(bad.model_copy(update={"id": "again"}), good, local)], echo, afar
    )
    assert (await harness.exchange.reply("Hi.")).reason == "handed_off"
    assert (len(harness.provider.requests), harness.outputs[0][: len(report)], harness.outputs[1]) == (
        2,
        report,
        "here",
    )
    assert [
        call_id for call_id in harness.exchange.history.open_calls if harness.exchange.history.is_open(call_id)
    ] == ["g"]
    finished = [event.result.call_id for event in harness.events_of(ToolFinished)]
    assert sorted(finished) == sorted(event.call.id for event in harness.events_of(ToolStarted))
    assert harness.replay() == harness.exchange.history
    harness.provider.script.append("Done.")
    end = await harness.exchange.reply(Message(role="tool", parts=(ToolResult(call_id="g", output="there"),)))
    assert (end.reason, harness.outputs[3]) == ("stop", "there")


async def test_broken_arguments_and_unknown_tools_go_back_to_the_model(create_harness):
    harness = create_harness([calls(call("echo", '{"text": ', id="a"), call("ech", id="b")), "Done."], echo)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    results = harness.messages[2].tool_results
    assert all(result.is_error for result in results)
    assert "invalid JSON" in results[0].output
    assert "did you mean 'echo'?" in results[1].output


async def test_long_output_goes_to_a_file(create_harness):
    text = "".join(f"{number}\n" for number in range(1000))
    harness = create_harness(
        [calls(call("echo", json.dumps({"text": text}), id="../up/c")), "Done."], echo, limits=Limits(output_bytes=400)
    )
    await harness.exchange.reply("Hi.")
    (file,) = harness.session.outputs.iterdir()
    assert file.read_text() == text
    assert str(file) in harness.outputs[0]
    assert len(harness.outputs[0]) < 700


async def test_a_final_result_ends_the_turn_and_no_model_reads_it(create_harness):
    def finish(words: str) -> FinalResult:
        """Finish."""
        return FinalResult(words, replacement="in short")

    harness = create_harness(
        [calls(call("finish", '{"words": "all done"}'), call("finish", "{}", id="c2")), "never"], finish
    )
    end = await harness.exchange.reply("go")
    assert (end.reason, end.exit_code, harness.provider.requests) == ("stop", 0, harness.provider.requests[:1])
    first, second = harness.exchange.history.messages[-1].tool_results
    assert (first.output, first.replacement, first.is_final) == ("all done", "in short", True)
    assert second.is_error
    assert not second.is_final
    again = History.replay(harness.session.read_events())
    assert again.has_final_result
    assert again == harness.exchange.history
    await harness.exchange.reply("more")  # a new turn asks the model again
    assert harness.exchange.history.messages[-1].text == "never"
