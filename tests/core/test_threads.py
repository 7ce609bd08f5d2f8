"""Tests of threads: values, errors, context and cancellation."""

import asyncio
import concurrent.futures
import threading

import pytest

from goose_like.core.events import SessionStarted, Status
from goose_like.core.threads import is_running, run_in_daemon_thread, run_in_executor, run_in_thread
from goose_like.core.tool import current_call
from goose_like.launch.output import StdoutWriter


async def test_value_and_error():
    def fails() -> int:
        raise LookupError("nowhere")

    assert await run_in_daemon_thread(lambda: 3) == 3
    assert await run_in_thread(max, 1, 2, key=abs) == 2
    with pytest.raises(LookupError, match="nowhere"):
        await run_in_daemon_thread(fails)


async def test_a_loop_runs_in_its_own_thread_only():
    loop = asyncio.get_running_loop()
    assert is_running(loop)
    assert not await run_in_thread(is_running, loop)

    async def ask_another_loop() -> bool:
        return is_running(loop)

    assert not await run_in_thread(asyncio.run, ask_another_loop())


STOPS = (
    StopIteration("it leaves"),
    GeneratorExit("it leaves"),
    SystemExit("it leaves"),
    KeyboardInterrupt("it leaves"),
)
CANCELLATIONS = (concurrent.futures.CancelledError("it leaves"), asyncio.CancelledError("it leaves"))


@pytest.mark.parametrize("error", [*STOPS, *CANCELLATIONS], ids=repr)
async def test_every_exception_of_a_thread_reaches_its_caller(error):
    def leaves() -> int:
        raise error

    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        for call in (run_in_thread(leaves), run_in_daemon_thread(leaves), run_in_executor(executor, leaves)):
            with pytest.raises(RuntimeError, match=f"{type(error).__name__}: it leaves"):
                await asyncio.wait_for(call, 60)


async def test_the_thread_belongs_to_its_tool_call():
    token = current_call.set("c1")
    try:
        assert await run_in_daemon_thread(lambda: current_call.get("none")) == "c1"
    finally:
        current_call.reset(token)


async def test_a_cancelled_call_is_not_awaited():
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(60)
        ended.set()

    task = asyncio.create_task(run_in_daemon_thread(work))
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    may_end.set()
    assert await asyncio.to_thread(ended.wait, 60)


async def test_the_first_line_of_a_stream_is_that_of_the_sessions_start(capsys):
    out = StdoutWriter("stream-json")
    out.notify(Status(text="fetching"))
    started = SessionStarted(version="1", name="n", cwd="/", profile="p", models={}, tools=())
    out.notify(started)
    out.notify(Status(text="thinking"))
    kinds = [line.partition(",")[0] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ['{"type":"session_started"', '{"type":"status"']
