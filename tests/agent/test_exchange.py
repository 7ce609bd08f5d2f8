"""Tests of the loop: however a turn ends, the history is complete, and the model receives only the history."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.agent.compaction.moderators import Truncate
from goose_like.config.profile import Limits
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError
from goose_like.core.events import (
    Compacted,
    MessageCompleted,
    PlanUpdated,
    Task,
    TextDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import Message, Text, Thinking, ToolResult, Usage
from goose_like.core.tool import ToolSpec, current_call, tool
from tests.agent.loop import (
    assert_append_only,
    cancel_after,
    create_asking_tool,
    echo,
    list_types,
)
from tests.fakes import HEADER, ExchangeHarness, FakeToolkit, call, calls, is_well_formed


async def test_stop(create_harness):
    harness = create_harness(["Hello."], echo)
    end = await harness.exchange.reply("Hi.")
    assert end == TurnFinished(reason="stop")
    assert list_types(harness.recorder.events) == [
        "session_started",
        "turn_started",
        "state_saved",
        "prompt_recorded",
        "text_delta",
        "message_completed",
        "turn_finished",
    ]
    (request,) = harness.provider.requests
    assert (request.model, request.system, [m.text for m in request.messages]) == ("x", "system", ["Hi."])
    assert [type(spec) for spec in request.tools] == [ToolSpec]
    assert harness.provider.streams_closed == 1


async def test_a_call_that_was_cut_does_not_run_and_tells_how_to_go_on(create_harness):
    ran = []

    @tool(when_cut="Write it in parts.")
    def write(text: str) -> str:
        ran.append(text)
        return "written"

    def cut(arguments: str) -> list[MessageCompleted]:
        message = calls(call("echo", '{"text": "first"}', "c1"), call("write", arguments, "c2"))
        return [MessageCompleted(message=message, is_cut=True)]

    harness = create_harness([cut('{"text": "a\\nb'), cut('{"text": "whole"}'), "Done."], echo, write)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    start = "your message reached its output limit within this call, so it was cut and did not run"
    assert harness.outputs == ["first", f"{start}. Write it in parts.", "first", "written"]
    assert ran == ["whole"]


async def test_a_tool_call(create_harness):
    harness = create_harness([calls(call("echo", '{"text": "one"}'), text="Let me see."), "Done."], echo)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    assert [message.role for message in harness.messages] == ["user", "assistant", "tool", "assistant"]
    assert harness.outputs == ["one"]
    assert list_types(harness.recorder.events)[5:7] == ["tool_started", "tool_finished"]
    assert harness.provider.requests[1].messages == tuple(harness.messages[:3])


async def test_cancelling_keeps_finished_results(create_harness):
    undone = []

    @tool(parallel=True)
    async def stand():
        try:
            await asyncio.Event().wait()
        finally:
            undone.append("stand")

    look = tool(parallel=True)(echo)
    harness = create_harness([calls(call("stand", id="a"), call("echo", '{"text": "x"}', id="b"))], stand, look)
    await cancel_after(harness, ToolFinished)
    assert undone == ["stand"]
    assert harness.outputs == [INTERRUPTED, "x"]


async def test_compaction_is_recorded_and_sent(create_harness):
    harness = create_harness(["word " * 200, "word " * 200, "short", "end"], moderator=Truncate({"limit_tokens": 400}))
    for number in range(4):
        assert (await harness.exchange.reply(f"turn {number}")).reason == "stop"
    assert harness.events_of(Compacted)
    sent = harness.provider.requests[2].messages
    assert sent[0].text.startswith("[The oldest ")
    assert "It began with this request:\nturn 0" in sent[0].text
    assert sent[-1].text == "turn 2"
    assert list(harness.provider.requests[3].messages)[: len(sent)] == list(sent)
    assert len(harness.messages) == 8  # the history itself is never cut


async def test_compact_replaces_the_conversation_with_notes(create_harness):
    harness = create_harness(["word " * 400, "All is done.", "And more."])
    await harness.exchange.reply("Hi.")
    await harness.exchange.compact("the ports")
    (event,) = harness.events_of(Compacted)
    assert "All is done." in event.summary
    assert event.kept_count == 0
    (asked,) = harness.provider.requests[1].messages
    assert asked.text.endswith("\n\nWrite the notes. Above all keep this: the ports")
    await harness.exchange.reply("Go on.")
    assert [message.text for message in harness.provider.requests[2].messages] == [event.summary, "Go on."]


async def test_compact_refuses_notes_that_save_too_little(create_harness):
    harness = create_harness(["Hello.", "long notes " * 50, "Hello."])
    with pytest.raises(GooseLikeError, match=r"^nothing was said yet$"):
        await harness.exchange.compact()
    await harness.exchange.reply("Hi.")
    with pytest.raises(GooseLikeError, match=r"^a summary would save too little; continue without one$"):
        await harness.exchange.compact()
    assert harness.provider.requests[1].messages[0].text.endswith("\n\nWrite the notes.")
    assert harness.events_of(Compacted) == []


ARGUMENTS = st.sampled_from(['{"text": "x"}', "{", "null", "{}", ""])


CALLS = st.lists(
    st.builds(
        call, st.sampled_from(["echo", "fail", "afar", "none"]), ARGUMENTS, st.sampled_from(["a", "b", "", "c/d"])
    ),
    max_size=3,
)


STEP = st.one_of(
    st.just("Hello."),
    st.builds(lambda wanted, text: calls(*wanted, text=text), CALLS, st.sampled_from(["", "so"])),
    st.builds(
        lambda m: [TextDelta(text="so"), MessageCompleted(message=m, is_cut=True)],
        st.builds(Message.assistant, st.just("so"), CALLS),
    ),
    st.just([TextDelta(text="so"), CredentialError("refused")]),
    st.just([TextDelta(text="so"), ModelUnavailableError("gone", is_retryable=True)]),
    st.just([TextDelta(text="so")]),
)


@given(st.lists(STEP, max_size=12))
def test_any_script(script):
    def fail():
        raise ValueError("no")

    @tool(remote=True)
    def afar(text: str = ""): ...

    async def run(folder):
        harness = ExchangeHarness([*script, *["End."] * 4], echo, fail, afar, folder=folder, limits=Limits(steps=4))
        harness.journal.emit(PlanUpdated(tasks=(Task(description="dig"),)))
        while len(harness.provider.script) > 3:
            end = await harness.exchange.reply("Hi.")
            assert end.exit_code in (0, 1, 3, 76, 77)
        assert_append_only(harness.provider.requests)
        for request in harness.provider.requests:
            assert is_well_formed(request.messages)
        assert harness.provider.opened == harness.provider.streams_closed
        lines = list(harness.session.read_events())
        for end in range(len(lines) + 1):
            history = History.replay(lines[:end])
            assert is_well_formed(history.messages[:-1] if history.open_calls else history.messages)
        assert History.replay(lines) == harness.exchange.history
        harness.session.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "s"))


async def test_what_nobody_could_allow_is_the_detail_of_the_end(create_harness):
    harness = create_harness([calls(call("reach"), call("reach", id="c2")), "Done."])
    harness.exchange.tools["reach"] = create_asking_tool(harness)
    detail = "denied, as nobody could be asked: network: example.org"
    assert await harness.exchange.reply("Hi.") == TurnFinished(reason="stop", detail=detail, exit_code=6)


async def test_usage_is_counted_by_model(create_harness):
    harness = create_harness([calls(call("echo", '{"text": "x"}')), "Done."], echo)
    await harness.exchange.reply("Hi.")
    assert harness.exchange.history.usage.by_model == {"scripted:x": Usage(input_tokens=10, output_tokens=5)}


async def test_a_killed_turn_resumes_in_the_same_step(create_harness, tmp_path):
    ran: list[str] = []

    @tool(resumable=True)
    def run_subtask(goal: str) -> str:
        """Work on it."""
        ran.append(f"{goal} as {current_call.get()}")
        return "nested done"

    def once(word: str) -> str:
        """Do it."""
        ran.append(word)
        return word

    wanted = calls(
        call("once", '{"word": "a"}', id="c1"),
        call("run_subtask", '{"goal": "g"}', id="c2"),
        call("once", '{"word": "b"}', id="c3"),
    )
    harness = create_harness(["done"], run_subtask, once, limits=Limits(steps=2))
    for event in (
        TurnStarted(message=Message.user("go")),
        MessageCompleted(message=wanted),
        ToolFinished(result=ToolResult(call_id="c1", output="a")),
    ):
        harness.session.append(event)
    cut = History()
    assert [event.type for event in cut.restore(harness.session.read_events(), is_resumed=True)][-1] == "tool_finished"
    assert cut.is_in_turn
    assert list(cut.open_calls) == ["c1", "c2", "c3"]
    harness.session.history = cut
    harness.journal.emit(HEADER.model_copy(update={"is_resumed": True}))
    end = await harness.exchange.resume_turn()
    assert (end.reason, ran) == ("stop", ["g as c2"])
    assert [event.result.call_id for event in harness.events_of(ToolFinished)] == ["c3", "c2"]
    outputs = {result.call_id: result.output for result in harness.messages[2].tool_results}
    assert outputs == {"c1": "a", "c2": "nested done", "c3": INTERRUPTED}
    assert History.replay(harness.session.read_events()) == harness.exchange.history
    assert harness.exchange.history.turn_count == 1
    with pytest.raises(GooseLikeError, match=r"^no turn was cut off here; say what to do next$"):
        await harness.exchange.resume_turn()


async def test_a_fresh_turn_sees_nothing_from_before_and_the_next_one_all(create_harness):
    thought = Message(role="assistant", parts=(Thinking(text="hm", signature="s"), Text(text="My work is right.")))
    harness = create_harness(
        [thought, calls(call("echo", '{"text": "x"}'), text="I look."), "A finding.", "Fixed."], echo
    )
    harness.add_toolkits(FakeToolkit(context_updates=lambda: {"folder": "/x"}))
    await harness.exchange.reply("Write it.")
    await harness.exchange.reply("Review it.", is_fresh=True)
    await harness.exchange.reply("Fix that.")
    sent = [[message.text for message in request.messages] for request in harness.provider.requests]
    assert sent[1] == ["Review it.", "folder: /x"]
    assert sent[2] == ["Review it.", "folder: /x", "I look.", ""]
    before = ["folder: /x", "Write it.", "My work is right."]
    assert sent[3] == [*before, "Review it.", "folder: /x", "I look.", "", "A finding.", "Fix that."]
    replayed = History.replay(harness.session.read_events())
    assert replayed.context.messages == harness.exchange.history.context.messages


async def test_a_fresh_turn_that_was_cut_off_goes_on_alone(create_harness):
    harness = create_harness(["My work is right.", "A finding."])
    await harness.exchange.reply("Write it.")
    harness.journal.emit(TurnStarted(message=Message.user("Review it."), is_fresh=True))
    await harness.exchange.resume_turn()
    assert [message.text for message in harness.provider.requests[-1].messages] == ["Review it."]
    assert harness.exchange.history.context.messages[0].text == "Write it."
