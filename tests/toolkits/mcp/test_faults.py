"""Faulty servers: a clear result for the model, one line for the person, one start more, and the session goes on."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from goose_like.core.tool import ToolError
from tests import ROOT
from tests.toolkits.mcp.servers import SCRIPTS, desk, script, wait_until

OLD = "2025-11-25"
LEFT_OUT = "the MCP server demo lists what cannot be used and is left out:"


def faulty(name: str) -> tuple[str, ...]:
    return script("faulty_server.py", name)


def count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


async def fail(connection, *arguments) -> str:
    """What the model reads of a call that fails."""
    with pytest.raises(ToolError) as caught:
        await connection.call_tool(*(arguments or ("echo", {})))
    return str(caught.value)


async def test_a_dead_server_is_started_twice_and_then_stays_off(tmp_path):
    async with desk(tmp_path) as session:
        dead = session.connect(*faulty("dead"), era=OLD)
        text = await fail(dead)
        assert text == "the MCP server demo does not start: exit code 1; it said last:\nno module named fish"
        assert dead.state == "failed"
        await fail(dead)
        assert "failed 2 times (exit code 1; it said last: no module named fish) and stays off" in await fail(dead)
        assert count_lines(session.root / "starts") == 2
        assert [line.rpartition("; ")[2] for line in session.logged] == [
            "the next call starts it again",
            "it stays off",
        ]


async def test_no_program(tmp_path):
    async with desk(tmp_path) as session:
        text = await fail(session.connect("no-such-program-here"))
        assert (
            text == "the MCP server demo does not start: can't start the command: no such command: no-such-program-here"
        )


async def test_a_server_that_hangs_at_the_start(tmp_path):
    async with desk(tmp_path) as session:
        hanging = session.connect(*faulty("hangs at the start"), era=OLD, start_timeout_s=0.5)
        assert await fail(hanging) == "the MCP server demo does not start: it gave no answer in 0.5 s"


@pytest.mark.parametrize(("fault", "probe_s"), [("exits at the probe", 60), ("silent at the probe", 1)])
async def test_a_server_that_does_not_survive_the_probe_starts_anew_in_the_old_era(tmp_path, fault, probe_s):
    async with desk(tmp_path) as session:
        old = session.connect(*faulty(fault), probe_s=probe_s)
        assert await old.call_tool("echo", {}) == "echo"
        assert (await old.list_definitions()).era == OLD
        assert session.logged == []
        assert count_lines(session.root / "starts") == 2


async def test_a_server_that_dies_in_a_call_starts_once_more(tmp_path):
    async with desk(tmp_path) as session:
        dying = session.connect(*faulty("dies in a call"), era=OLD)
        await dying.list_definitions()
        text = await fail(dying)
        assert "failed during the call of echo (exit code 4; it said last:\nout of luck)" in text
        assert "may have had an effect" in text
        assert session.logged == [
            "the MCP server demo failed (exit code 4: out of luck); the next call starts it again"
        ]
        await fail(dying)
        assert session.logged[1].endswith("it stays off")
        assert "failed 2 times" in await fail(dying)
        assert count_lines(session.root / "calls") == 2


async def test_a_server_may_start_again_after_each_success(tmp_path):
    async with desk(tmp_path) as session:
        demo = session.connect(*script("demo_server.py", "stdio"), era=OLD)
        for _ in range(3):
            assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"
            assert "a last word" in await fail(demo, "die", {})


@pytest.fixture
def short_wait(monkeypatch):
    """Wait a moment for a sign of life after a call without answer."""
    monkeypatch.setattr("goose_like_toolkits.mcp.connection._ALIVE_S", 1.0)


async def test_a_call_without_answer(tmp_path, short_wait):
    async with desk(tmp_path) as session:
        hanging = session.connect(*faulty("hangs in a call"), era=OLD, timeout_s=1)
        await hanging.list_definitions()
        assert "gave no answer for echo in 1 s; the call was cancelled" in await fail(hanging)
        assert (await hanging.list_definitions()).tools
        assert session.logged == ["the MCP server demo does not answer any more; it is started anew"]


async def test_a_cancelled_call_of_a_server_that_works_on(tmp_path, short_wait):
    async with desk(tmp_path) as session:
        hanging = session.connect(*faulty("hangs in a call"), era=OLD)
        await hanging.list_definitions()
        call = asyncio.create_task(hanging.call_tool("echo", {}))
        await wait_until((session.root / "calls").exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await hanging.list_definitions()).tools
        assert session.logged == ["the MCP server demo does not answer any more; it is started anew"]


@pytest.mark.parametrize(("fault", "count"), [("asks", 10), ("asks without a call", 0)])
async def test_too_many_questions(tmp_path, fault, count):
    async with desk(tmp_path) as session:
        asking = session.connect(*faulty(fault), era=OLD)
        assert await asking.call_tool("echo", {}) == "echo"
        await wait_until(lambda: session.logged)
        assert len(session.asked) == count
        assert "asked a question that is not shown" in session.logged[0]


async def test_wrong_ids(tmp_path):
    async with desk(tmp_path) as session:
        wrong = session.connect(*faulty("wrong ids"), era=OLD, timeout_s=1)
        await wrong.list_definitions()
        assert "and answers with wrong ids" in await fail(wrong)
        assert "answers a request that nobody sent (id 4711)" in session.logged[0]
        assert (await wrong.list_definitions()).tools


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("flood", "it flooded the session with "),
        ("endless line", "it wrote a message of more than 32 MB"),
        ("huge result", "it wrote a message of more than 32 MB"),
    ],
)
async def test_too_much(tmp_path, fault, reason):
    async with desk(tmp_path) as session:
        loud = session.connect(*faulty(fault), era=OLD)
        assert reason in await fail(loud)
        assert len(session.logged) == 1
        assert (await loud.list_definitions()).tools


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("error code", "refuses echo: no such thing (error -32602)"),
        ("wrong result", "breaks the protocol: content: Input should be a valid list"),
        ("no object", 'refuses echo: its answer breaks the protocol: {"jsonrpc": "2.0", "id": '),
        ("error text", '"error": "the token is too old"}'),
    ],
)
async def test_wrong_answers(tmp_path, fault, reason):
    async with desk(tmp_path) as session:
        wrong = session.connect(*faulty(fault), era=OLD)
        assert reason in await fail(wrong)
        assert (await wrong.list_definitions()).tools
        assert session.logged == []


@pytest.mark.parametrize("fault", ["second answer", "late answer"])
async def test_a_wrong_answer_that_nobody_waits_for_is_noted(tmp_path, fault):
    async with desk(tmp_path) as session:
        wrong = session.connect(*faulty(fault), era=OLD, timeout_s=1 if fault == "late answer" else 60)
        with suppress(ToolError):
            await wrong.call_tool("echo", {})
        await wait_until(lambda: any("it is skipped: {" in text for text in session.logged))


async def test_half_a_character(tmp_path):
    """A server in JavaScript writes it when it cuts a text."""
    async with desk(tmp_path) as session:
        cutting = session.connect(*faulty("half a character"), era=OLD)
        assert await cutting.call_tool("echo", {}) == "cut \N{REPLACEMENT CHARACTER}"
        assert session.logged == []


async def test_a_server_of_an_unknown_revision(tmp_path):
    async with desk(tmp_path) as session:
        ancient = session.connect(*faulty("ancient"), era=OLD)
        assert "1999-01-01" in await fail(ancient)


async def test_wrong_schemas(tmp_path):
    async with desk(tmp_path) as session:
        wrong = session.connect(*faulty("wrong schema"), era=OLD)
        assert [tool.name for tool in (await wrong.list_definitions()).tools] == ["echo"]
        assert session.logged[0].startswith(f"{LEFT_OUT} bad (its schema is wrong: ")


async def test_a_malformed_tool_costs_only_itself(tmp_path):
    async with desk(tmp_path) as session:
        malformed = session.connect(*faulty("malformed tools"), era=OLD)
        for _ in range(2):
            assert [tool.name for tool in (await malformed.list_definitions()).tools] == ["echo"]
        (line,) = session.logged  # one line, also after a second list
        assert line.startswith(f"{LEFT_OUT} bad (inputSchema: Field required), an entry without a name (name: ")
        assert "wrong (inputSchema: Input should be a valid dictionary)" in line
        assert line.endswith(" and 1 more")
        assert await malformed.call_tool("echo", {}) == "echo"


async def test_a_malformed_prompt_or_resource_costs_only_itself(tmp_path):
    async with desk(tmp_path) as session:
        malformed = session.connect(*faulty("malformed prompts"), era=OLD)
        found = await malformed.list_definitions()
        assert [prompt.name for prompt in found.prompts] == ["good"]
        assert [resource.uri for resource in found.resources] == ["good://{path}"]
        assert session.logged == [
            f"{LEFT_OUT} an entry without a name (name: Field required), bad:// (name: Field required)"
        ]


async def test_a_list_that_is_none(tmp_path):
    async with desk(tmp_path) as session:
        wrong = session.connect(*faulty("no list"), era=OLD)
        with pytest.raises(ToolError, match="breaks the protocol: tools: Input should be a valid list"):
            await wrong.list_definitions()
        assert await wrong.call_tool("echo", {}) == "echo"


async def test_text_on_the_output_is_skipped_and_noted_once(tmp_path):
    async with desk(tmp_path) as session:
        chatty = session.connect(*faulty("text"), era=OLD)
        assert await chatty.call_tool("echo", {}) == "echo"
        (line,) = session.logged
        assert line.endswith("it is skipped: Welcome to the server!")


def make_mark(folder: Path) -> str:
    """A word for the command line of a server. The folder alone is also in that of the sandbox."""
    return f"mark-of-{folder}"


def find_processes(word: str) -> list[int]:
    """The ids of processes with a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("fault", ["child", "stays"])
async def test_nothing_survives_the_session(tmp_path, fault):
    async with desk(tmp_path) as session:
        server = session.connect(*faulty(fault), make_mark(tmp_path), era=OLD)
        assert await server.call_tool("echo", {}) == "echo"
        assert find_processes(make_mark(tmp_path))
        if fault == "child":
            await wait_until(lambda: find_processes(f"child-{make_mark(tmp_path)}"))
        await server.close()
        assert not find_processes(make_mark(tmp_path))
        assert not find_processes(f"child-{make_mark(tmp_path)}")


async def test_nothing_survives_a_kill(tmp_path):
    command = [sys.executable, str(SCRIPTS / "session_to_kill.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)  # noqa: ASYNC220
    assert killed.stdout
    assert killed.stdout.readline() == b"echo\n"
    assert find_processes(make_mark(tmp_path))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    await wait_until(lambda: not find_processes(make_mark(tmp_path)))
    await wait_until(lambda: not find_processes(f"child-{make_mark(tmp_path)}"))


async def test_the_end_of_a_session_ends_a_start(tmp_path):
    async with desk(tmp_path) as session:
        hanging = session.connect(*faulty("hangs at the start"), make_mark(tmp_path), era=OLD, start_timeout_s=300)
        call = asyncio.create_task(hanging.call_tool("echo", {}))
        await wait_until((session.root / "starts").exists)
        async with asyncio.timeout(60):
            await hanging.close()
        with pytest.raises(ToolError, match="the session is at its end"):
            await call
        assert not find_processes(make_mark(tmp_path))
        assert session.logged == []


async def test_a_call_that_is_cancelled_at_the_start(tmp_path):
    async with desk(tmp_path) as session:
        hanging = session.connect(*faulty("hangs at the start"), make_mark(tmp_path), era=OLD, start_timeout_s=300)
        call = asyncio.create_task(hanging.call_tool("echo", {}))
        await wait_until((session.root / "starts").exists)
        call.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await call
        assert not find_processes(make_mark(tmp_path))
        assert hanging.state == "not started"
