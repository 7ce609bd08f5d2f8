"""Tests of the journal: failing front-ends, questions, threads and full disks."""

import asyncio
import json
import logging
import threading

import pytest

from goose_like.core.errors import SessionError
from goose_like.core.events import (
    Logged,
    MessageCompleted,
    Question,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Message
from goose_like.core.notifier import Notifier, Recorder
from goose_like.core.tool import current_call, make_tool, tool
from tests.agent.loop import (
    create_asking_tool,
    echo,
    list_types,
)
from tests.fakes import call, calls


async def test_a_failing_front_end_is_detached(create_harness, caplog):
    class Front(Notifier):
        seen = 0

        def notify(self, event):
            if isinstance(event, TurnStarted):
                self.seen += 1
                raise ValueError("no screen")

    front = Front()
    b = create_harness(["Hello.", "Again."], front=front)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert front.seen == 1
    assert [record.message for record in caplog.records] == ["the front-end failed and receives no more events"]


async def test_a_front_end_that_fails_to_ask_denies(create_harness, caplog):
    class Front(Notifier):
        async def ask(self, question):
            raise ValueError("no screen")

    b = create_harness([calls(call("reach")), "Could not."], front=Front())
    b.exchange.tools["reach"] = create_asking_tool(b)
    end = await b.exchange.reply("Hi.")
    assert (b.outputs, end.exit_code) == (["deny"], 6)
    assert len(caplog.records) == 1


async def test_unanswered_question(create_harness):
    b = create_harness([calls(call("reach")), "Could not.", "Hello."])
    b.exchange.tools["reach"] = create_asking_tool(b)
    end = await b.exchange.reply("Hi.")
    assert end == TurnFinished(
        reason="stop", detail="denied, as nobody could be asked: network: example.org", exit_code=6
    )
    assert list_types(b.recorder.events).count("asked") == list_types(b.recorder.events).count("answered") == 1
    assert (await b.exchange.reply("Hi.")).exit_code == 0


async def test_late_events_of_an_answered_call_are_dropped(create_harness):
    go_on, ended, report = threading.Event(), threading.Event(), asyncio.Event()
    holder = []

    @tool(time_limit_s=0.01)
    def slow():
        holder[0].journal.notify(ToolProgress(call_id=current_call.get(), text="in time"))
        go_on.wait(20)
        holder[0].journal.log("late")
        ended.set()

    async def beside():
        """Still runs, so that the message's calls are not all answered."""
        await report.wait()
        go_on.set()
        await asyncio.to_thread(ended.wait)
        holder[0].journal.log("in time, too")

    class Front(Recorder):
        def notify(self, event):
            super().notify(event)
            if isinstance(event, ToolFinished):
                report.set()

    front = Front()
    b = create_harness([calls(call("slow", id="a"), call("beside", id="b")), "Done."], slow, beside, front=front)
    holder.append(b)
    await b.exchange.reply("Hi.")
    assert [event.text for event in front.events if isinstance(event, ToolProgress)] == ["in time"]
    assert [event.text for event in front.events if isinstance(event, Logged)] == ["in time, too"]


async def test_events_of_threads_come_before_the_result(create_harness):
    holder = []

    def speak():
        holder[0].journal.log("said")

    b = create_harness([calls(call("speak")), "Done."], speak)
    holder.append(b)
    await b.exchange.reply("Hi.")
    assert list_types(b.recorder.events)[4:7] == ["tool_started", "logged", "tool_finished"]


async def test_an_unwritable_session_raises(create_harness):
    b = create_harness([calls(call("vanish"), call("vanish", id="c2")), "never"])

    async def vanish():
        b.session.close()

    b.exchange.tools["vanish"] = make_tool(vanish)
    with pytest.raises(SessionError):
        await b.exchange.reply("Hi.")


async def test_an_unwritable_result_ends_the_turn(create_harness):
    b = create_harness([calls(call("echo", '{"text": "x"}', id="a"), call("echo", '{"text": "y"}', id="b"))], echo)
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


async def test_an_unwritable_answer_is_not_repeated(create_harness):
    b = create_harness([[TextDelta(text="so"), calls(call("echo"), text="so")]], echo)
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


KEY = "sk-" + "proj-a1B2" * 5


def read_all(session) -> str:
    return "".join(file.read_text() for file in session.folder.rglob("*") if file.is_file())


async def test_a_secret_is_masked_for_model_file_and_front_end(create_harness, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    seen = []

    def login(password: str) -> str:
        seen.append(password)
        return f"{password} is right, {KEY} is the key. " * 2000

    arguments = json.dumps({"password": "hunter2-hunter2"})
    words = [TextDelta(text="I log in with hunt"), TextDelta(text="er2-hunter2"), TextDelta(text=".")]
    thinking = [ThinkingDelta(text=f"It is {KEY[:9]}"), ThinkingDelta(text=KEY[9:])]
    answer = calls(call("login", arguments), text="I log in with hunter2-hunter2.")
    b = create_harness([[*thinking, *words, answer], f"Used {KEY}."], login)
    await b.exchange.reply(f"Log in. The key is {KEY}.")
    assert seen == ["hunter2-hunter2"]
    shown = "".join(event.model_dump_json() for event in b.recorder.events)
    for text in (shown, read_all(b.session), repr(b.provider.requests)):
        assert "hunter2-hunter2" not in text
        assert KEY not in text
        assert "[masked:DB_PASSWORD]" in text
        assert "[masked:api-key]" in text
    assert "".join(event.text for event in b.events_of(TextDelta)) == (
        "I log in with [masked:DB_PASSWORD].Used [masked:api-key]."
    )
    assert any("does not receive" in event.text for event in b.events_of(Logged))


async def test_live_output_in_pieces_is_masked(create_harness):
    holder = []

    def speak():
        for piece in (f"key: {KEY[:4]}", KEY[4:12], KEY[12:], " end"):
            holder[0].journal.notify(ToolProgress(call_id=current_call.get(), text=piece))

    b = create_harness([calls(call("speak")), "Done."], speak)
    holder.append(b)
    await b.exchange.reply("Hi.")
    assert "".join(event.text for event in b.events_of(ToolProgress)) == "key: [masked:api-key] end"


async def test_the_masked_rest_of_a_stream_comes_before_its_end(create_harness):
    b = create_harness([[TextDelta(text="It is AKIA"), Message.assistant("It is AKIA")]])
    await b.exchange.reply("Hi.")
    assert list_types(b.recorder.events)[3:6] == ["text_delta", "text_delta", "message_completed"]
    assert "".join(event.text for event in b.events_of(TextDelta)) == "It is AKIA"


async def test_a_question_is_masked(create_harness):
    front = Recorder()
    b = create_harness(["Done."], front=front)
    await b.journal.ask(Question(kind="command", subject=f"curl {KEY}", text="run?", detail=KEY))
    assert front.questions == [
        Question(kind="command", subject="curl [masked:api-key]", text="run?", detail="[masked:api-key]")
    ]
    assert KEY not in read_all(b.session)


async def test_a_call_with_a_mask_does_not_run(create_harness):
    b = create_harness([calls(call("echo", '{"text": "export KEY=[masked:MY_KEY]"}')), "Could not."], echo)
    await b.exchange.reply("Hi.")
    assert b.outputs[0].startswith("echo did not run: [masked:MY_KEY] stands for a secret")


async def test_a_log_is_masked(create_harness, capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    create_harness([])
    try:
        raise ValueError(f"no such key: {KEY}")
    except ValueError:
        logging.getLogger("x").exception("a request with %s failed", KEY)
    err = capsys.readouterr().err
    assert KEY not in err
    assert err.count("[masked:api-key]") >= 2
