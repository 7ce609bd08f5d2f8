"""Tests of running the calls of one message."""

import asyncio
import json

import pytest

from goose_like.config.profile import Limits
from goose_like.core.events import (
    Reminded,
    ToolFinished,
    ToolStarted,
)
from goose_like.core.history import History
from goose_like.core.message import Message, ToolResult
from goose_like.core.tool import FinalResult, ToolError, tool
from tests.agent.loop import (
    echo,
)
from tests.fakes import call, calls


async def test_parallel_calls_with_results_in_order(create_harness):
    first_may_end = asyncio.Event()

    async def first():
        await first_may_end.wait()  # only ends when the second ran beside it
        return "first"

    async def second():
        first_may_end.set()
        return "second"

    b = create_harness([calls(call("first", id="a"), call("second", id="b")), "Done."], first, second)
    await b.exchange.reply("Hi.")
    assert b.outputs == ["first", "second"]
    assert [event.result.call_id for event in b.events_of(ToolFinished)] == ["b", "a"]


async def test_an_exclusive_call_does_not_overlap(create_harness):
    trace = []

    async def both(name: str):
        trace.append(f"+{name}")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        trace.append(f"-{name}")

    @tool
    async def together(name: str):
        await both(name)

    @tool(exclusive=True)
    async def alone(name: str):
        await both(name)

    wanted = [("together", "a"), ("together", "b"), ("alone", "c"), ("alone", "d"), ("together", "e")]
    message = calls(*(call(kind, json.dumps({"name": name}), id=name) for kind, name in wanted))
    await create_harness([message, "Done."], together, alone).exchange.reply("Hi.")
    assert trace == ["+a", "+b", "-a", "-b", "+c", "-c", "+d", "-d", "+e", "-e"]


async def test_remote_calls_are_handed_off_and_continued(create_harness):
    @tool(remote=True)
    def afar():
        return "not what the client gives"

    b = create_harness([calls(call("afar", id="r"), call("echo", '{"text": "here"}', id="l")), "Done."], echo, afar)
    assert (await b.exchange.reply("Hi.")).reason == "handed_off"
    assert list(b.exchange.history.open_calls) == ["r", "l"]
    assert [event.call.id for event in b.events_of(ToolStarted)] == ["l"]
    end = await b.exchange.reply(Message(role="tool", parts=(ToolResult(call_id="r", output="there"),)))
    assert end.reason == "stop"
    assert b.outputs == ["there", "here"]
    assert [message.role for message in b.messages] == ["user", "assistant", "tool", "assistant"]
    assert b.events_of(Reminded) == []


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (call("afr", '{"place": "Kiel"}', id="bad"), "no tool 'afr'; did you mean 'afar'?"),
        (call("afar", '{"place": ', id="bad"), "the arguments are no valid JSON"),
        (call("afar", '{"town": "Kiel"}', id="bad"), "wrong arguments for afar: field 'place' is missing"),
        (call("afar", '{"place": "Ys"}', id="bad"), "no place 'Ys'; there are Kiel and Bonn"),
    ],
)
async def test_a_remote_call_is_checked_before_it_is_handed_off(create_harness, bad, told):
    @tool(remote=True)
    def afar(place: str):
        if place not in ("Kiel", "Bonn"):
            raise ToolError(f"no place {place!r}; there are Kiel and Bonn")

    local, good = call("echo", '{"text": "here"}', id="l"), call("afar", '{"place": "Kiel"}', id="g")
    b = create_harness([calls(bad, local), calls(bad.model_copy(update={"id": "again"}), good, local)], echo, afar)
    assert (await b.exchange.reply("Hi.")).reason == "handed_off"
    assert (len(b.provider.requests), b.outputs[0][: len(told)], b.outputs[1]) == (2, told, "here")
    assert [call_id for call_id in b.exchange.history.open_calls if b.exchange.history.is_open(call_id)] == ["g"]
    finished = [event.result.call_id for event in b.events_of(ToolFinished)]
    assert sorted(finished) == sorted(event.call.id for event in b.events_of(ToolStarted))
    assert b.replay() == b.exchange.history
    b.provider.script.append("Done.")
    end = await b.exchange.reply(Message(role="tool", parts=(ToolResult(call_id="g", output="there"),)))
    assert (end.reason, b.outputs[3]) == ("stop", "there")


async def test_broken_arguments_and_unknown_tools_go_back_to_the_model(create_harness):
    b = create_harness([calls(call("echo", '{"text": ', id="a"), call("ech", id="b")), "Done."], echo)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    results = b.messages[2].tool_results
    assert all(result.is_error for result in results)
    assert "no valid JSON" in results[0].output
    assert "did you mean 'echo'?" in results[1].output


async def test_long_output_goes_to_a_file(create_harness):
    text = "".join(f"{number}\n" for number in range(1000))
    b = create_harness(
        [calls(call("echo", json.dumps({"text": text}), id="../up/c")), "Done."], echo, limits=Limits(output_bytes=400)
    )
    await b.exchange.reply("Hi.")
    (file,) = b.session.outputs.iterdir()
    assert file.read_text() == text
    assert str(file) in b.outputs[0]
    assert len(b.outputs[0]) < 700


async def test_a_final_result_ends_the_turn_and_no_model_reads_it(create_harness):
    def finish(words: str) -> FinalResult:
        """Finish."""
        return FinalResult(words, replacement="in short")

    b = create_harness([calls(call("finish", '{"words": "all done"}'), call("finish", "{}", id="c2")), "never"], finish)
    end = await b.exchange.reply("go")
    assert (end.reason, end.exit_code, b.provider.requests) == ("stop", 0, b.provider.requests[:1])
    first, second = b.exchange.history.messages[-1].tool_results
    assert (first.output, first.replacement, first.is_final) == ("all done", "in short", True)
    assert second.is_error
    assert not second.is_final
    again = History.replay(b.session.read_events())
    assert again.has_final_result
    assert again == b.exchange.history
    await b.exchange.reply("more")  # a new turn asks the model again
    assert b.exchange.history.messages[-1].text == "never"
