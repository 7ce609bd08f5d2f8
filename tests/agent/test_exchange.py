"""The loop: however a turn ends, the history is whole, and a model is sent only what the history holds."""

import asyncio
import json
import tempfile
import threading
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.agent.compaction.threshold import Truncate
from goose_like.agent.exchange import CUT_ANSWER_ERROR
from goose_like.agent.toolkit import FollowUp
from goose_like.config.profile import Limits
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, SessionError
from goose_like.core.events import (
    Compacted,
    Interjected,
    Logged,
    MessageCompleted,
    PlanUpdated,
    Question,
    Reminded,
    Retrying,
    Task,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import Message, ToolResult, Usage
from goose_like.core.notifier import Notifier, Recorder
from goose_like.core.tool import FinalResult, ToolError, ToolSpec, current_call, make_tool, tool
from tests.fakes import HEADER, PAUSE, ExchangeHarness, FakeToolkit, call, calls, is_well_formed


@pytest.fixture
def bench(tmp_path):
    """Create harnesses. At the end, the replayed file must equal the live history, with every call answered."""
    made: list[ExchangeHarness] = []

    def make(script, *functions, **options):
        made.append(ExchangeHarness(script, *functions, folder=tmp_path / f"session{len(made)}", **options))
        return made[-1]

    yield make
    for each in made:
        each.exchange.history.close()
        assert is_well_formed(each.messages)
        if each.session._descriptor >= 0:
            assert each.replayed() == each.exchange.history
            each.session.close()


def echo(text: str) -> str:
    """Gives back the text."""
    return text


def fail():
    raise ValueError("no")


def various(number):
    """Calls, each another one."""
    return [calls(call("echo", json.dumps({"text": str(at)}))) for at in range(number)]


def kinds(events):
    return [event.type for event in events]


async def test_stop(bench):
    b = bench(["Hello."], echo)
    end = await b.exchange.reply("Hi.")
    assert end == TurnFinished(reason="stop")
    assert kinds(b.recorder.events) == [
        "session_started",
        "turn_started",
        "text_delta",
        "message_completed",
        "turn_finished",
    ]
    (request,) = b.provider.requests
    assert (request.model, request.system, [m.text for m in request.messages]) == ("x", "system", ["Hi."])
    assert [type(spec) for spec in request.tools] == [ToolSpec]
    assert b.provider.streams_closed == 1


async def test_a_tool_call(bench):
    b = bench([calls(call("echo", '{"text": "one"}'), text="Let me see."), "Done."], echo)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert [message.role for message in b.messages] == ["user", "assistant", "tool", "assistant"]
    assert b.outputs == ["one"]
    assert kinds(b.recorder.events)[3:5] == ["tool_started", "tool_finished"]
    assert b.provider.requests[1].messages == tuple(b.messages[:3])


async def test_side_by_side_with_results_in_the_order_of_the_calls(bench):
    first_may_end = asyncio.Event()

    async def first():
        await first_may_end.wait()  # only ends when the second ran beside it
        return "first"

    async def second():
        first_may_end.set()
        return "second"

    b = bench([calls(call("first", id="a"), call("second", id="b")), "Done."], first, second)
    await b.exchange.reply("Hi.")
    assert b.outputs == ["first", "second"]
    assert [event.result.call_id for event in b.events_of(ToolFinished)] == ["b", "a"]


async def test_alone_does_not_overlap(bench):
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
    await bench([message, "Done."], together, alone).exchange.reply("Hi.")
    assert trace == ["+a", "+b", "-a", "-b", "+c", "-c", "+d", "-d", "+e", "-e"]


async def test_remote_calls_are_handed_off_and_continued(bench):
    @tool(remote=True)
    def afar():
        return "not what the client gives"

    b = bench([calls(call("afar", id="r"), call("echo", '{"text": "here"}', id="l")), "Done."], echo, afar)
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
async def test_a_remote_call_is_checked_before_it_is_handed_off(bench, bad, told):
    @tool(remote=True)
    def afar(place: str):
        if place not in ("Kiel", "Bonn"):
            raise ToolError(f"no place {place!r}; there are Kiel and Bonn")

    local, good = call("echo", '{"text": "here"}', id="l"), call("afar", '{"place": "Kiel"}', id="g")
    b = bench([calls(bad, local), calls(bad.model_copy(update={"id": "again"}), good, local)], echo, afar)
    assert (await b.exchange.reply("Hi.")).reason == "handed_off"
    assert (len(b.provider.requests), b.outputs[0][: len(told)], b.outputs[1]) == (2, told, "here")
    assert [call_id for call_id in b.exchange.history.open_calls if b.exchange.history.is_open(call_id)] == ["g"]
    finished = [event.result.call_id for event in b.events_of(ToolFinished)]
    assert sorted(finished) == sorted(event.call.id for event in b.events_of(ToolStarted))
    assert b.replayed() == b.exchange.history
    b.provider.script.append("Done.")
    end = await b.exchange.reply(Message(role="tool", parts=(ToolResult(call_id="g", output="there"),)))
    assert (end.reason, b.outputs[3]) == ("stop", "there")


async def test_step_limit(bench):
    b = bench([calls(call("echo", '{"text": "x"}')) for _ in range(5)], echo, limits=Limits(steps=2))
    assert await b.exchange.reply("Hi.") == TurnFinished(
        reason="step_limit", detail="the limit of 2 steps", exit_code=3
    )
    assert len(b.provider.requests) == 2
    await b.exchange.reply("Go on.")  # a limit counts within one turn
    assert len(b.provider.requests) == 4


async def test_token_limit(bench):
    b = bench([calls(call("echo", '{"text": "x"}')) for _ in range(5)], echo, limits=Limits(tokens=20))
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.exit_code, end.detail) == ("budget", 5, "30 of 20 tokens are used")
    assert len(b.provider.requests) == 2


async def test_cost_limit(bench):
    limits = Limits(cost_usd=0.00002)
    script = [calls(call("echo", '{"text": "x"}')) for _ in range(5)]
    b = bench(script, echo, limits=limits, label="openai:gpt-4o")  # $2.50 and $10 a million: $0.000075 a step
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.exit_code, len(b.provider.requests)) == ("budget", 4, 1)
    assert end.detail == "$0.0001 of $2e-05 are spent"
    b = bench(script, echo, limits=limits, label="openai:unheard-of")
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert end.detail.startswith("the price of openai:unheard-of is not known")


async def test_time_limit(bench):
    async def stand():
        await asyncio.Event().wait()

    b = bench([calls(call("stand")), "never"], stand, limits=Limits(time_s=0.02))
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.exit_code, end.detail) == ("budget", 124, "the time limit of 0.02 s")
    assert b.outputs == [INTERRUPTED]


async def cancel_when(b, kind, count=1):
    """Runs a turn and cancels it once so many events of this kind were shown."""
    task = asyncio.create_task(b.exchange.reply("Hi."))
    while len(b.events_of(kind)) < count:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert b.recorder.events[-1] == TurnFinished(reason="cancelled", exit_code=130)


async def test_cancel_while_streaming_keeps_what_was_heard(bench):
    b = bench([[TextDelta(text="Once "), TextDelta(text="upon"), PAUSE], "Hello again."])
    await cancel_when(b, TextDelta, 2)
    assert b.events_of(MessageCompleted) == [MessageCompleted(message=Message.assistant("Once upon"), is_cut=True)]
    assert b.provider.streams_closed == 1
    await b.exchange.reply("Go on.")
    assert [message.text for message in b.provider.requests[1].messages] == ["Hi.", "Once upon", "Go on."]


async def test_cancel_in_a_parallel_pair_keeps_the_finished_one(bench):
    undone = []

    async def stand():
        try:
            await asyncio.Event().wait()
        finally:
            undone.append("stand")

    b = bench([calls(call("stand", id="a"), call("echo", '{"text": "x"}', id="b"))], stand, echo)
    await cancel_when(b, ToolFinished)
    assert undone == ["stand"]
    assert b.outputs == [INTERRUPTED, "x"]


async def test_error_after_partial_text(bench):
    b = bench([[TextDelta(text="ab"), CredentialError("set X")], "ok"])
    end = await b.exchange.reply("Hi.")
    assert end == TurnFinished(reason="error", detail="set X", exit_code=76)
    assert [(m.role, m.text) for m in b.messages] == [("user", "Hi."), ("assistant", "ab")]
    assert (await b.exchange.reply("Again.")).reason == "stop"


async def test_retry_voids_what_was_heard(bench):
    broken = ModelUnavailableError("gone", is_retryable=True)
    b = bench([[TextDelta(text="void"), broken], [TextDelta(text="kept"), CredentialError("refused")]])
    await b.exchange.reply("Hi.")
    assert kinds(b.recorder.events)[2:5] == ["text_delta", "retrying", "text_delta"]
    assert [message.text for message in b.messages] == ["Hi.", "kept"]


async def test_patience_ends(bench):
    b = bench([ModelUnavailableError("gone", is_retryable=True)] * 5)
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.detail, end.exit_code) == ("error", "gone", 77)
    assert (len(b.provider.requests), len(b.events_of(Retrying))) == (3, 2)


async def test_a_stream_without_a_message_is_no_answer(bench):
    b = bench([[TextDelta(text="so")]] * 3)
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 77)
    assert "ended its stream without a message" in end.detail


async def test_what_comes_after_the_message_is_not_heard(bench):
    b = bench([["Hello.", ModelUnavailableError("gone", is_retryable=True)]])
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert len(b.provider.requests) == 1


async def test_unforeseen_failure_of_a_provider_ends_the_turn_as_an_error(bench):
    b = bench([[TextDelta(text="so"), KeyError("choices")]])
    with pytest.raises(KeyError):
        await b.exchange.reply("Hi.")
    assert (b.recorder.events[-1].reason, b.recorder.events[-1].exit_code) == ("error", 1)
    assert b.messages[-1].text == "so"


async def test_ids_are_made_unique(bench):
    twice = calls(
        *(call("echo", json.dumps({"text": text}), id=id) for text, id in [("1", "a"), ("2", "a"), ("3", "")])
    )
    b = bench([twice, calls(call("echo", '{"text": "4"}', id="a")), "Done."], echo)
    await b.exchange.reply("Hi.")
    ids = [call.id for message in b.messages for call in message.tool_calls]
    assert (ids[0], len(set(ids)), "" in ids) == ("a", 4, False)
    assert b.outputs == ["1", "2", "3", "4"]


async def test_broken_arguments_and_unknown_tools_go_back_to_the_model(bench):
    b = bench([calls(call("echo", '{"text": ', id="a"), call("ech", id="b")), "Done."], echo)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    results = b.messages[2].tool_results
    assert all(result.is_error for result in results)
    assert "no valid JSON" in results[0].output
    assert "did you mean 'echo'?" in results[1].output


async def test_cut_by_length(bench):
    cut = [TextDelta(text="Once"), MessageCompleted(message=Message.assistant("Once"), is_cut=True)]
    b = bench([cut])
    assert await b.exchange.reply("Hi.") == TurnFinished(reason="error", detail=CUT_ANSWER_ERROR, exit_code=1)
    assert [message.text for message in b.messages] == ["Hi.", "Once"]
    with_call = [MessageCompleted(message=calls(call("echo", '{"text": "a')), is_cut=True)]
    b = bench([with_call, "Done."], echo)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert "no valid JSON" in b.outputs[0]


async def test_a_front_that_raises_is_told_once_and_left_out(bench, caplog):
    class Front(Notifier):
        seen = 0

        def notify(self, event):
            if isinstance(event, TurnStarted):
                self.seen += 1
                raise ValueError("no screen")

    front = Front()
    b = bench(["Hello.", "Again."], front=front)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert front.seen == 1
    assert [record.message for record in caplog.records] == ["the front-end failed and receives no more events"]


async def test_a_front_that_raises_when_asked_denies(bench, caplog):
    class Front(Notifier):
        async def ask(self, question):
            raise ValueError("no screen")

    b = bench([calls(call("reach")), "Could not."], front=Front())
    b.exchange.tools["reach"] = asking(b)
    end = await b.exchange.reply("Hi.")
    assert (b.outputs, end.exit_code) == (["deny"], 6)
    assert len(caplog.records) == 1


def asking(b):
    async def reach() -> str:
        answer = await b.journal.ask(Question(kind="network", subject="example.org", text="Allow it?"))
        return answer.choice

    return make_tool(reach)


async def test_unanswered_question(bench):
    b = bench([calls(call("reach")), "Could not.", "Hello."])
    b.exchange.tools["reach"] = asking(b)
    end = await b.exchange.reply("Hi.")
    assert end == TurnFinished(
        reason="stop", detail="denied, as nobody could be asked: network: example.org", exit_code=6
    )
    assert kinds(b.recorder.events).count("asked") == kinds(b.recorder.events).count("answered") == 1
    assert (await b.exchange.reply("Hi.")).exit_code == 0


async def test_late_events_of_an_answered_call_are_dropped(bench):
    go_on, ended, told = threading.Event(), threading.Event(), asyncio.Event()
    holder = []

    @tool(time_limit_s=0.01)
    def slow():
        holder[0].journal.notify(ToolProgress(call_id=current_call.get(), text="in time"))
        go_on.wait(20)
        holder[0].journal.log("late")
        ended.set()

    async def beside():
        """Still runs, so that the message's calls are not all answered."""
        await told.wait()
        go_on.set()
        await asyncio.to_thread(ended.wait)
        holder[0].journal.log("in time, too")

    class Front(Recorder):
        def notify(self, event):
            super().notify(event)
            if isinstance(event, ToolFinished):
                told.set()

    front = Front()
    b = bench([calls(call("slow", id="a"), call("beside", id="b")), "Done."], slow, beside, front=front)
    holder.append(b)
    await b.exchange.reply("Hi.")
    assert [event.text for event in front.events if isinstance(event, ToolProgress)] == ["in time"]
    assert [event.text for event in front.events if isinstance(event, Logged)] == ["in time, too"]


async def test_events_of_threads_come_before_the_result(bench):
    holder = []

    def speak():
        holder[0].journal.log("said")

    b = bench([calls(call("speak")), "Done."], speak)
    holder.append(b)
    await b.exchange.reply("Hi.")
    assert kinds(b.recorder.events)[3:6] == ["tool_started", "logged", "tool_finished"]


async def test_stale_plan_is_put_before_the_model_again(bench):
    b = bench([*various(18), "Done.", "Done."], echo)
    b.journal.emit(PlanUpdated(tasks=(Task(description="dig", status="in-progress"), Task(description="plant"))))
    await b.exchange.reply("Hi.")
    tasks = "- [in-progress] dig\n- [planned] plant"
    reminder = f"Your plan, 0 of 2 tasks complete (update it if it has changed):\n{tasks}"
    *plans, done = b.events_of(Reminded)
    assert plans == [Reminded(text=reminder, reason="plan")] * 2
    assert done.reason == "open_tasks"
    last_words = [request.messages[-1].text for request in b.provider.requests]
    assert [index for index, text in enumerate(last_words) if text == reminder] == [8, 16]
    assert_append_only(b.provider.requests)


async def test_a_finished_plan_is_not_reminded(bench):
    b = bench([*various(12), "Done."], echo)
    b.journal.emit(PlanUpdated(tasks=(Task(description="dig", status="complete"),)))
    await b.exchange.reply("Hi.")
    assert b.events_of(Reminded) == []


async def test_open_tasks_are_asked_back_once_until_the_plan_changes(bench):
    b = bench(["Done.", "Really.", "Noon.", "Done again.", "Yes."])
    plan = PlanUpdated(tasks=(Task(description="dig", status="complete"), Task(description="plant")))
    b.journal.emit(plan)
    for _ in range(2):
        assert (await b.exchange.reply("Hi.")).reason == "stop"
    (asked,) = b.events_of(Reminded)
    assert asked.reason == "open_tasks"
    assert "- plant" in asked.text
    assert "dig" not in asked.text
    b.journal.emit(plan)
    await b.exchange.reply("Hi.")
    assert len(b.events_of(Reminded)) == 2
    assert_append_only(b.provider.requests)


async def test_a_toolkits_doubt_and_open_tasks_are_both_asked_back(bench):
    b = bench(["Done.", "Really.", "Truly."], toolkits=[FakeToolkit(before_finish=lambda: "run it")])
    b.journal.emit(PlanUpdated(tasks=(Task(description="plant"),)))
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert [event.reason for event in b.events_of(Reminded)] == ["", "open_tasks"]


async def test_context_updates_are_added_once(bench):
    true = {"a": {"notes: of two": "one\ntwo: three", "same": "1"}, "b": {"same": "2", "none": ""}}
    b = bench([*various(3), "Done.", "Done."], echo)

    def source(name):
        async def news():
            return true[name]

        return news

    b.add_toolkits(*(FakeToolkit(context_updates=source(name)) for name in true))
    await b.exchange.reply("Hi.")
    (told,) = b.events_of(Reminded)
    assert told.text == "notes: of two: one\ntwo: three\nsame: 1\nsame: 2"
    assert [message.text for message in b.messages[:2]] == [told.text, "Hi."]
    true["b"]["same"] = "3"
    await b.exchange.reply("Hi.")
    assert [event.text for event in b.events_of(Reminded)][1:] == ["same: 3"]
    assert_append_only(b.provider.requests)


async def test_the_same_failing_call_is_told_and_then_ends_the_turn(bench):
    b = bench([calls(call("fail")) for _ in range(9)], fail)
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert end.detail == "the model made the same failing call 5 times: fail {}; tell it what to do instead"
    assert len(b.provider.requests) == 5
    assert ["has failed" in output for output in b.outputs] == [False, False, True, True, True]
    assert "this very call has failed 3 times" in b.outputs[2]


async def test_a_model_that_runs_in_a_circle_is_told(bench):
    same = calls(call("echo", '{"text": "one"}'))
    b = bench([*[same] * 7, "Done."], echo)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    said = [event.text for event in b.events_of(Reminded)]
    assert [text.partition(" made")[0] for text in said] == ["Your last 3 steps", "Your last 6 steps"]
    assert "Do something else, or end." in said[0]
    assert b.outputs == ["one"] * 7
    assert_append_only(b.provider.requests)
    b.provider.script += [same, "Done."]
    await b.exchange.reply("Again.")
    assert len(b.events_of(Reminded)) == 2


async def test_no_circle_is_where_something_changes(bench):
    counter = count()

    def look() -> str:
        """Looks."""
        return str(next(counter) // 2)

    other = [calls(call("echo", '{"text": "one"}')), calls(call("echo", '{"text": "two"}'))]
    b = bench([*[calls(call("look"))] * 8, *other * 4, "Done."], echo, look)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert b.events_of(Reminded) == []


async def test_a_failing_call_may_be_made_again_when_another_succeeded(bench):
    script = [step for _ in range(6) for step in (calls(call("fail")), calls(call("echo", '{"text": "mended"}')))]
    b = bench([*script, "Done."], fail, echo)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert not any("has failed" in output for output in b.outputs)


async def test_failures_of_one_turn_are_none_of_the_next(bench):
    b = bench([*[calls(call("fail")) for _ in range(3)], "No.", *[calls(call("fail")) for _ in range(3)], "No."], fail)
    for _ in range(2):
        assert (await b.exchange.reply("Hi.")).reason == "stop"


async def test_a_doubt_is_asked_back_once_a_turn(bench):
    b = bench(
        ["Done.", "Really.", "Done again.", "Yes."],
        toolkits=[FakeToolkit(), FakeToolkit(before_finish=lambda: "run it")],
    )
    for _ in range(2):
        assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert b.events_of(Reminded) == [Reminded(text="run it")] * 2
    said = [message.text for message in b.messages]
    assert said == ["Hi.", "Done.", "run it", "Really.", "Hi.", "Done again.", "run it", "Yes."]
    assert_append_only(b.provider.requests)


async def test_long_output_goes_to_a_file(bench):
    text = "".join(f"{number}\n" for number in range(1000))
    b = bench(
        [calls(call("echo", json.dumps({"text": text}), id="../up/c")), "Done."], echo, limits=Limits(output_bytes=400)
    )
    await b.exchange.reply("Hi.")
    (file,) = b.session.outputs.iterdir()
    assert file.read_text() == text
    assert str(file) in b.outputs[0]
    assert len(b.outputs[0]) < 700


async def test_session_that_can_not_be_written(bench):
    b = bench([calls(call("vanish"), call("vanish", id="c2")), "never"])

    async def vanish():
        b.session.close()

    b.exchange.tools["vanish"] = make_tool(vanish)
    with pytest.raises(SessionError):
        await b.exchange.reply("Hi.")


async def test_a_result_that_can_not_be_written_ends_the_turn_in_words(bench):
    b = bench([calls(call("echo", '{"text": "x"}', id="a"), call("echo", '{"text": "y"}', id="b"))], echo)
    append = b.session.append

    def full_once(event):
        if isinstance(event, ToolFinished):
            b.session.append = append
            raise SessionError("no space; free some")
        append(event)

    b.session.append = full_once
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.detail) == ("error", "no space; free some")
    b.session.close()


async def test_an_answer_that_can_not_be_written_stands_once(bench):
    b = bench([[TextDelta(text="so"), calls(call("echo"), text="so")]], echo)
    append = b.session.append

    def full_once(event):
        if isinstance(event, MessageCompleted):
            b.session.append = append
            raise SessionError("no space; free some")
        append(event)

    b.session.append = full_once
    assert (await b.exchange.reply("Hi.")).reason == "error"
    assert [message.role for message in b.messages] == ["user", "assistant", "tool"]
    b.session.close()


async def test_compaction_is_recorded_and_sent(bench):
    b = bench(["word " * 200, "word " * 200, "short", "end"], moderator=Truncate({"limit_tokens": 400}))
    for number in range(4):
        assert (await b.exchange.reply(f"turn {number}")).reason == "stop"
    assert b.events_of(Compacted)
    sent = b.provider.requests[2].messages
    assert sent[0].text.startswith("[The oldest ")
    assert "It began with this request:\nturn 0" in sent[0].text
    assert sent[-1].text == "turn 2"
    assert list(b.provider.requests[3].messages)[: len(sent)] == list(sent)
    assert len(b.messages) == 8  # the history itself is never cut


def assert_append_only(requests):
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert (after.system, after.tools) == (before.system, before.tools)


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
        b = ExchangeHarness([*script, *["End."] * 4], echo, fail, afar, folder=folder, limits=Limits(steps=4))
        b.journal.emit(PlanUpdated(tasks=(Task(description="dig"),)))
        while len(b.provider.script) > 3:
            end = await b.exchange.reply("Hi.")
            assert end.exit_code in (0, 1, 3, 76, 77)
        assert_append_only(b.provider.requests)
        for request in b.provider.requests:
            assert is_well_formed(request.messages)
        assert b.provider.opened == b.provider.streams_closed
        lines = list(b.session.read_events())
        for end in range(len(lines) + 1):
            history = History.replay(lines[:end])
            assert is_well_formed(history.messages[:-1] if history.open_calls else history.messages)
        assert History.replay(lines) == b.exchange.history
        b.session.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "s"))


async def test_usage_is_counted_by_model(bench):
    b = bench([calls(call("echo", '{"text": "x"}')), "Done."], echo)
    await b.exchange.reply("Hi.")
    assert b.exchange.history.usage == {"scripted:x": Usage(input_tokens=10, output_tokens=5)}


# --- words while it works


async def test_words_that_wait_are_said_before_the_next_step(bench):
    def look() -> str:
        """Looks."""
        b.exchange.inbox.put("and mind the cat")
        return "seen"

    b = bench([calls(call("look")), "done"], look)
    await b.exchange.reply("go")
    assert [message.text or message.role for message in b.messages] == [
        "go",
        "assistant",
        "tool",
        "and mind the cat",
        "done",
    ]
    assert len(b.provider.requests) == 2
    assert [event.message.text for event in b.events_of(Interjected)] == ["and mind the cat"]


async def test_words_that_wait_at_the_end_go_on_with_the_turn(bench):
    class Late(Recorder):
        def notify(self, event):
            super().notify(event)
            if isinstance(event, TextDelta) and event.text == "first":
                b.exchange.inbox.put("one thing more")

    b = bench(["first", "second"], front=Late())
    assert await b.exchange.reply("go") == TurnFinished(reason="stop")
    assert [message.text for message in b.messages] == ["go", "first", "one thing more", "second"]
    assert b.exchange.history.turn_count == 1


async def heard(b: ExchangeHarness) -> None:
    """Lets the turn run until something of the answer came."""
    for _ in range(1000):
        if b.events_of(TextDelta):
            return
        await asyncio.sleep(0)
    raise AssertionError("nothing came")


async def test_steering_cuts_a_stream_and_says_the_words_now(bench):
    b = bench([[TextDelta(text="so I will"), PAUSE], "as you wish"])
    assert not b.exchange.inbox.steer()
    turn = asyncio.create_task(b.exchange.reply("go"))
    await heard(b)
    assert not b.exchange.inbox.steer()  # there is nothing to say
    b.exchange.inbox.put("stop that")
    assert b.exchange.inbox.steer()
    assert not b.exchange.inbox.steer()
    assert await turn == TurnFinished(reason="stop")
    assert [message.text for message in b.messages] == ["go", "so I will", "stop that", "as you wish"]
    assert [event.is_cut for event in b.events_of(MessageCompleted)] == [True, False]
    assert b.provider.streams_closed == 2


async def test_steering_ends_running_tools_and_answers_their_calls(bench):
    is_running, is_cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Waits."""
        is_running.set()
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    b = bench([calls(call("wait"), call("echo", '{"text": "x"}', id="c2")), "as you wish"], wait, echo)
    turn = asyncio.create_task(b.exchange.reply("go"))
    await is_running.wait()
    b.exchange.inbox.put("no")
    assert b.exchange.inbox.steer()
    assert await turn == TurnFinished(reason="stop")
    assert is_cancelled.is_set()
    assert INTERRUPTED in b.outputs
    assert [message.text or message.role for message in b.messages] == ["go", "assistant", "tool", "no", "as you wish"]


async def test_cancelling_a_turn_that_is_steered_cancels_it(bench):
    b = bench([[TextDelta(text="so"), PAUSE]])
    turn = asyncio.create_task(b.exchange.reply("go"))
    await heard(b)
    b.exchange.inbox.put("no")
    b.exchange.inbox.steer()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert b.events_of(TurnFinished)[-1].reason == "cancelled"
    assert b.exchange.inbox.take() == ["no"]


async def test_a_final_result_ends_the_turn_and_no_model_reads_it(bench):
    def finish(words: str) -> FinalResult:
        """Finish."""
        return FinalResult(words, replacement="in short")

    b = bench([calls(call("finish", '{"words": "all done"}'), call("finish", "{}", id="c2")), "never"], finish)
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


async def test_what_a_toolkit_demands_is_said_each_time(bench):
    demands = iter(["call one", "call two", None])
    b = bench(["a", "b", "c"])
    b.add_toolkits(FakeToolkit(before_finish=lambda: (text := next(demands)) and FollowUp(text, is_repeated=True)))
    end = await b.exchange.reply("go")
    assert end.reason == "stop"
    assert [message.text for message in b.messages] == ["go", "a", "call one", "b", "call two", "c"]


async def test_a_turn_begins_with_what_toolkits_do_first_and_ends_with_what_they_raise(bench):
    async def begin() -> None:
        b.journal.log("planned")
        if len(b.messages) > 2:
            raise GooseLikeError("no plan")

    b = bench(["a"])
    b.add_toolkits(FakeToolkit(on_turn_start=begin))
    assert (await b.exchange.reply("go")).reason == "stop"
    kinds = [event.type for event in b.recorder.events]
    assert kinds.index("turn_started") < kinds.index("logged") < kinds.index("message_completed")
    end = await b.exchange.reply("again")
    assert (end.reason, end.detail) == ("error", "no plan")


async def test_a_turn_that_was_cut_off_is_resumed_in_the_same_step(bench, tmp_path):
    ran: list[str] = []

    @tool(resumable=True)
    def nested(goal: str) -> str:
        """Work on it."""
        ran.append(f"{goal} as {current_call.get()}")
        return "nested done"

    def once(word: str) -> str:
        """Do it."""
        ran.append(word)
        return word

    wanted = calls(
        call("once", '{"word": "a"}', id="c1"),
        call("nested", '{"goal": "g"}', id="c2"),
        call("once", '{"word": "b"}', id="c3"),
    )
    b = bench(["done"], nested, once, limits=Limits(steps=2))
    for event in (
        TurnStarted(message=Message.user("go")),
        MessageCompleted(message=wanted),
        ToolFinished(result=ToolResult(call_id="c1", output="a")),
    ):
        b.session.append(event)
    cut = History.replay(b.session.read_events(), is_resumed=True)
    assert cut.is_in_turn
    assert list(cut.open_calls) == ["c1", "c2", "c3"]
    b.session.history = cut
    b.journal.emit(HEADER.model_copy(update={"is_resumed": True}))
    end = await b.exchange.resume_turn()
    assert (end.reason, ran) == ("stop", ["g as c2"])
    outputs = {result.call_id: result.output for result in b.messages[2].tool_results}
    assert outputs == {"c1": "a", "c2": "nested done", "c3": INTERRUPTED}
    assert History.replay(b.session.read_events()) == b.exchange.history
    assert b.exchange.history.turn_count == 1
    with pytest.raises(GooseLikeError, match="no turn was cut off"):
        await b.exchange.resume_turn()


async def test_steps_before_the_cut_count(bench):
    b = bench(["done"], limits=Limits(steps=1))
    b.journal.emit(TurnStarted(message=Message.user("go")))
    b.journal.emit(MessageCompleted(message=calls(call("none"))))
    end = await b.exchange.resume_turn()
    assert (end.reason, end.exit_code) == ("step_limit", 3)
    assert not b.provider.requests
