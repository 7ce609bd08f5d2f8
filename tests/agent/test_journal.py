"""Tests of the journal: failing front-ends, questions, threads and full disks."""

import asyncio
import json
import logging
import re
import threading
from itertools import pairwise
from typing import get_args

import pytest

from goose_like.agent.journal import SAVE_BYTES, SAVE_INTERVAL_S, Journal
from goose_like.core.errors import SessionError
from goose_like.core.events import (
    Answer,
    Answered,
    Asked,
    DurableEvent,
    Logged,
    MessageCompleted,
    Question,
    Retrying,
    Status,
    TextDelta,
    TextShown,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import Message
from goose_like.core.notifier import Notifier, Recorder
from goose_like.core.tool import current_call, make_tool, tool
from goose_like.sessions.jsonl import parse_line
from goose_like.sessions.session import Session
from tests.agent.loop import cancel_after, create_asking_tool, echo, list_types
from tests.fakes import HEADER, PAUSE, call, calls


def read_file(b):
    return [parse_line(line) for line in b.session.file.read_bytes().splitlines()]


async def wait_for_file(b, text):
    """Wait until the session file has a text."""
    async with asyncio.timeout(30):
        while text not in b.session.file.read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class FileReader(Recorder):
    """A front-end that notes which events it received before the session file had them."""

    def __init__(self):
        super().__init__(Answer(choice="allow", by="person"))
        self.too_early = []
        self.unsaved_bytes = 0

    def notify(self, event):
        super().notify(event)
        saved = [] if len(self.events) == 1 else read_file(self.harness)
        if isinstance(event, get_args(DurableEvent)) and saved and event not in saved:
            self.too_early.append(event)
        if isinstance(event, TextDelta):
            shown = "".join(each.text for each in self.events if isinstance(each, TextDelta))
            kept = "".join(each.text for each in saved if isinstance(each, TextShown))
            assert shown.startswith(kept)
            self.unsaved_bytes = max(self.unsaved_bytes, len(shown) - len(kept))


async def test_an_event_is_in_the_file_before_it_is_shown(create_harness):
    front = FileReader()
    script = [[TextDelta(text="Hm. "), calls(call("reach"), call("echo", '{"text": "x"}', id="b"))], "Done."]
    b = front.harness = create_harness(script, echo, front=front)
    b.exchange.tools["reach"] = create_asking_tool(b)
    await b.exchange.reply("Hi.")
    b.journal.log("said")
    assert front.too_early == []
    assert {"turn_started", "asked", "answered", "tool_finished", "logged"} <= {*list_types(front.events)}


async def test_all_but_a_kilobyte_of_the_shown_text_is_in_the_file(create_harness):
    front = FileReader()
    pieces = [f"word {number} " for number in range(1000)]
    b = front.harness = create_harness([[*(TextDelta(text=text) for text in pieces), "".join(pieces)]], front=front)
    await b.exchange.reply("Hi.")
    assert 0 < front.unsaved_bytes < SAVE_BYTES
    assert not any(isinstance(event, TextShown) for event in read_file(b))


async def test_shown_text_is_in_the_file_soon(create_harness):
    async def slow():
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="line 1\n"))
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="line 2\n"))
        await wait_for_file(b, "line 2")
        raise asyncio.CancelledError

    b = create_harness([[TextDelta(text="One "), TextDelta(text="moment"), PAUSE], calls(call("slow")), "Done."], slow)
    task = asyncio.create_task(b.exchange.reply("Hi."))
    await wait_for_file(b, '{"type":"text_shown","text":"One moment"')
    task.cancel()
    await asyncio.wait([task])
    assert not any(isinstance(event, TextShown) for event in read_file(b))
    await b.exchange.reply("Go on.")


async def test_a_finished_text_leaves_no_trace_in_the_file(create_harness):
    text = "All is well. " * 1_000

    def speak():
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="x\n" * 9_000))

    sizes = []
    for words in (
        [],
        [TextDelta(text=text[start:end]) for start, end in ((0, 7_000), (7_000, 12_900), (12_900, None))],
    ):
        b = create_harness([[*words, calls(call("speak"), text=text)], [*words, text]], speak)
        await b.exchange.reply("Hi.")
        sizes.append(b.session.file.stat().st_size)
    assert sizes[0] == sizes[1]


async def test_a_finished_text_is_not_saved_later(create_harness):
    found = []

    def speak():
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="short"))

    async def wait():
        await asyncio.sleep(1.5 * SAVE_INTERVAL_S)
        found.extend(event for event in read_file(b) if isinstance(event, TextShown))

    answer = calls(call("speak", id="a"), call("wait", id="b"), text="so")
    b = create_harness([[TextDelta(text="so"), answer], "Done."], speak, wait)
    await b.exchange.reply("Hi.")
    assert found == []


async def test_a_retry_voids_the_shown_text(create_harness):
    b = create_harness([])
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    b.journal.emit(TextDelta(text="void " * 1_000 + "AKIA"))  # the start of a key waits for the rest
    b.journal.emit(Retrying(text="broken", wait_s=0))
    b.journal.emit(TextDelta(text="kept " * 1_000))
    assert "void" not in b.session.file.read_text()
    answer = b.replay().messages[-1].text
    assert answer == ("kept " * 1_000)[: len(answer)] != ""
    assert not any("AKIA" in event.text for event in b.events_of(TextDelta))
    b.journal.emit(MessageCompleted(message=Message.assistant("kept")))
    b.journal.emit(TurnFinished(reason="stop"))


async def test_shown_text_stays_when_another_event_follows(create_harness):
    def parallel(name: str):
        b.journal.notify(ToolProgress(call_id=current_call.get(), text=f"{name} shows\n" * 200))
        b.journal.log(f"{name} logs")
        return f"{name} returns"

    wanted = [call("parallel", json.dumps({"name": name}), id=name) for name in ("a", "b")]
    b = create_harness([calls(*wanted), "Done."], parallel)
    await b.exchange.reply("Hi.")
    assert b.outputs == ["a returns", "b returns"]
    assert b.replay() == b.exchange.history
    assert [event.text for event in read_file(b) if isinstance(event, Logged)] == ["a logs", "b logs"]


async def test_an_interrupted_call_has_its_shown_lines(create_harness):
    async def slow():
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="line 1\nline 2\n"))
        await asyncio.Event().wait()

    b = create_harness([calls(call("slow")), "Done."], slow)
    await cancel_after(b, ToolProgress)
    assert b.outputs == [f"{INTERRUPTED}. It had shown:\nline 1\nline 2\n"]


async def test_a_flood_of_shown_output_does_not_fill_the_file(create_harness):
    b = create_harness([])
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    b.journal.emit(MessageCompleted(message=calls(call("flood"))))
    for _ in range(1_000):
        b.journal.emit(ToolProgress(call_id="c1", text="y" * 4_000))
    assert b.session.file.stat().st_size < 20 * SAVE_BYTES
    b.journal.emit(ToolProgress(call_id="unknown", text="y" * 4_000))
    b.journal.emit(ToolProgress(call_id="c1", text="the end\n"))
    b.journal.emit(TurnFinished(reason="cancelled"))
    assert b.outputs[0].endswith("the end\n")
    assert b.session.file.stat().st_size < 20 * SAVE_BYTES
    assert "unknown" not in b.session.file.read_text()


@pytest.mark.parametrize("lines_at_once", [1, 500])
async def test_the_file_has_the_start_and_the_newest_lines_of_a_flood(create_harness, lines_at_once):
    b = create_harness([])
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    b.journal.emit(MessageCompleted(message=calls(call("flood"))))
    shown = ""
    lines = [f"line {number}\n" for number in range(2_000)]
    for at in range(0, 2_000, lines_at_once):
        piece = "".join(lines[at : at + lines_at_once])
        b.journal.emit(ToolProgress(call_id="c1", text=piece))
        shown += piece
        if at % 100 == 0:
            kept = "".join(event.text for event in read_file(b) if isinstance(event, TextShown))
            assert shown.startswith(kept)
            assert len(kept) > min(len(shown) - SAVE_BYTES, 7 * SAVE_BYTES)
    await wait_for_file(b, "line 1999")
    kept = "".join(event.text for event in read_file(b) if isinstance(event, TextShown))
    start, end = kept.split("\n[...]\n")
    assert shown.startswith(start)
    assert 8 * SAVE_BYTES <= len(start) <= 10 * SAVE_BYTES + len(piece)
    assert shown.endswith("\n" + end)
    assert SAVE_BYTES - 20 <= len(end) <= 2 * SAVE_BYTES
    b.journal.emit(ToolProgress(call_id="c1", text="one more\n"))
    await wait_for_file(b, "one more")
    b.journal.emit(TurnFinished(reason="cancelled"))


async def test_a_full_disk_for_shown_text_does_not_stop_the_answer(create_harness):
    b = create_harness([[TextDelta(text="x" * 5_000), "x" * 5_000]])
    append = b.session.append

    def refuse_shown_text(event):
        if isinstance(event, TextShown):
            raise SessionError("no space; free some")
        append(event)

    b.session.append = refuse_shown_text
    assert (await b.exchange.reply("Hi.")).reason == "stop"


async def test_one_question_at_a_time(create_harness):
    class Front(Notifier):
        asked = ()
        most = 0

        async def ask(self, question):
            self.asked += (question.subject,)
            self.open = getattr(self, "open", 0) + 1
            self.most = max(self.most, self.open)
            for _ in range(10):
                await asyncio.sleep(0)
            self.open -= 1
            return Answer(choice="allow", by="person")

    front = Front()
    b = create_harness([], front=front)
    questions = [Question(kind="command", subject=name, text="run?") for name in "abc"]
    await asyncio.gather(*map(b.journal.ask, questions))
    assert (front.asked, front.most) == (("a", "b", "c"), 1)
    saved = [event for event in read_file(b) if isinstance(event, Asked | Answered)]
    for asked, answered in list(pairwise(saved))[::2]:
        assert (type(asked), type(answered)) == (Asked, Answered)
        assert asked.question == answered.question


HOST = Question(kind="domain", subject="example.org", text="Allow it?")


class Waiting(Recorder):
    """A front-end that answers a question after the event `answered`."""

    def __init__(self):
        super().__init__()
        self.answered = asyncio.Event()

    async def ask(self, question):
        await super().ask(question)
        await self.answered.wait()
        return Answer(choice="allow", by="person")


async def test_a_host_is_asked_about_in_a_turn_only(create_harness):
    front = Waiting()
    b = create_harness([], front=front)
    assert await b.journal.ask(HOST) == Answer()
    assert front.questions == []
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    task = asyncio.create_task(b.journal.ask(HOST))
    while not front.questions:  # noqa: ASYNC110
        await asyncio.sleep(0)
    front.answered.set()
    assert (await task).choice == "allow"
    b.journal.emit(TurnFinished(reason="stop"))
    front.answered.clear()
    other = asyncio.create_task(b.journal.ask(Question(kind="command", subject="ls", text="run?")))
    while len(front.questions) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    front.answered.set()
    assert (await other).choice == "allow"


async def test_the_end_of_a_turn_cancels_only_open_questions_about_hosts(create_harness):
    front = Waiting()
    b = create_harness([], front=front)
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    front.answered.set()

    async def ask_and_go_on():
        answer = await b.journal.ask(HOST)
        await asyncio.sleep(0.05)
        return answer

    done = asyncio.create_task(ask_and_go_on())
    while not b.journal._front_end.questions or b.journal._host_questions:  # noqa: ASYNC110
        await asyncio.sleep(0)
    front.answered.clear()
    tasks = [
        asyncio.create_task(b.journal.ask(each))
        for each in (HOST, HOST, Question(kind="network", subject="curl", text="run?"))
    ]
    await asyncio.sleep(0.01)
    b.journal.emit(TurnFinished(reason="stop"))
    front.answered.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in found] == [True, True, False]
    assert (await done).choice == "allow"


async def test_a_closed_journal_ignores_tools(create_harness):
    b = create_harness([])
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    b.journal.emit(TextDelta(text="so far"))
    b.journal.log("in time")
    b.journal.close()
    b.journal.log("late")
    await asyncio.to_thread(b.journal.log, "late")
    await asyncio.sleep(1.5)
    assert [event.text for event in b.events_of(Logged)] == ["in time"]
    assert "so far" not in b.session.file.read_text()
    b.journal.emit(TurnFinished(reason="stop"))


async def test_an_answered_question_is_saved_without_its_detail(create_harness):
    b = create_harness([])
    question = Question(kind="change", subject="a.py", text="write?", detail="+ a long diff\n" * 100)
    await b.journal.ask(question)
    asked, answered = [event for event in read_file(b) if isinstance(event, Asked | Answered)]
    assert asked.question == question
    assert answered.question == question.model_copy(update={"detail": ""})
    assert [event for event in b.recorder.events if isinstance(event, Answered)] == [answered]


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


class FailingOnce(Recorder):
    """A front-end that fails to ask the first question, and allows the others."""

    def __init__(self, fail):
        super().__init__()
        self._fail = fail

    async def ask(self, question):
        await super().ask(question)
        if len(self.questions) == 1:
            return self._fail()
        return Answer(choice="allow", by="person")


def raise_error():
    raise ValueError("no screen,\nno keys")


def raise_time_out():
    raise TimeoutError


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (raise_error, r"ValueError: no screen, no keys; at tests\.agent\.test_journal:\d+ in raise_error: .*"),
        (raise_time_out, "TimeoutError: .*"),
        (lambda: None, "it answered with a value of type NoneType"),
        (lambda: "allow", "it answered with a value of type str"),
    ],
    ids=["error", "time-out", "nothing", "text"],
)
async def test_a_front_end_that_fails_to_ask_denies_this_question_only(create_harness, caplog, fail, reason):
    front = FailingOnce(fail)
    b = create_harness([calls(call("reach", id="c1"), call("reach", id="c2")), "Could not."], front=front)
    b.exchange.tools["reach"] = create_asking_tool(b)
    end = await b.exchange.reply("Hi.")
    assert (b.outputs, end.exit_code) == (["deny", "allow"], 6)
    assert [event.answer.by for event in front.events if isinstance(event, Answered)] == ["nobody", "person"]
    (note,) = [event.text for event in front.events if isinstance(event, Logged)]
    assert re.fullmatch(f"denied, as the front-end failed to ask: {reason}", note)
    assert front.events[-1] == end
    assert caplog.records == []


async def test_a_question_names_the_open_call_that_asks(create_harness):
    question = Question(kind="network", subject="example.org", text="Allow it?")

    async def ask_late() -> str:
        late.append(asyncio.create_task(ask_after_the_call()))
        await b.journal.ask(question)
        return "done"

    async def ask_after_the_call():
        while b.journal.history.is_open("c1"):  # noqa: ASYNC110
            await asyncio.sleep(0)
        await b.journal.ask(question)

    late = []
    b = create_harness([calls(call("ask_late", id="c1")), "Done."])
    b.exchange.tools["ask_late"] = make_tool(ask_late)
    await b.exchange.reply("Hi.")
    await late[0]
    await b.journal.ask(question)
    asked = [event.question.call_id for event in read_file(b) if isinstance(event, Asked)]
    assert asked == ["c1", "", ""]


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
    assert list_types(b.recorder.events)[5:8] == ["tool_started", "logged", "tool_finished"]


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


@pytest.mark.parametrize("text", ["end\n", "", f"{KEY}\n", KEY[:4]])
async def test_skipped_lines_are_reported_once_and_in_their_place(create_harness, text):
    """Also when the text before or after them waits, as it may be the start of a secret."""

    def speak():
        b.journal.notify(ToolProgress(call_id=current_call.get(), text=f"start {KEY[:4]}"))
        b.journal.notify(ToolProgress(call_id=current_call.get(), text=text, skipped_line_count=1_234))
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="more\n"))

    b = create_harness([calls(call("speak")), "Done."], speak)
    await b.exchange.reply("Hi.")
    shown = [(event.text, event.skipped_line_count) for event in b.events_of(ToolProgress)]
    gap = shown.index(("", 1_234))
    assert sum(count for _, count in shown) == 1_234
    assert "".join(text for text, _ in shown[:gap]) == f"start {KEY[:4]}"
    assert "".join(text for text, _ in shown[gap:]) == text.replace(KEY, "[masked:api-key]") + "more\n"


async def test_skipped_lines_are_marked_in_the_text_of_a_call_that_is_cut_off(create_harness):
    async def speak():
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="line 1\n"))
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="line 9\n", skipped_line_count=7))
        await asyncio.Event().wait()

    b = create_harness([calls(call("speak")), "Done."], speak)
    await cancel_after(b, ToolProgress)
    assert b.outputs == [f"{INTERRUPTED}. It had shown:\nline 1\n[... 7 lines ...]\nline 9\n"]


async def test_the_masked_rest_of_a_stream_comes_before_its_end(create_harness):
    b = create_harness([[TextDelta(text="It is AKIA"), Message.assistant("It is AKIA")]])
    await b.exchange.reply("Hi.")
    assert list_types(b.recorder.events)[4:7] == ["text_delta", "text_delta", "message_completed"]
    assert "".join(event.text for event in b.events_of(TextDelta)) == "It is AKIA"


async def test_the_masked_rest_of_the_output_comes_before_the_result(create_harness):
    def speak():
        b.journal.notify(ToolProgress(call_id=current_call.get(), text="It is AKIA"))

    b = create_harness([calls(call("speak")), "Done."], speak)
    await b.exchange.reply("Hi.")
    assert list_types(b.recorder.events)[5:9] == ["tool_started", "tool_progress", "tool_progress", "tool_finished"]


async def test_events_wait_for_the_start_of_the_session_except_status(tmp_path):
    front = Recorder()
    session = Session(tmp_path / "s", "n", History())
    session._open(is_new=True)
    journal = Journal(session, front)
    journal.log("one")
    journal.notify(Status(text="loading"))
    journal.log("two")
    assert list_types(front.events) == ["status"]
    journal.emit(HEADER)
    assert [getattr(event, "text", "") for event in front.events] == ["loading", "", "one", "two"]
    session.close()


async def test_a_question_is_masked(create_harness):
    front = Recorder()
    b = create_harness(["Done."], front=front)
    await b.journal.ask(Question(kind="command", subject=f"curl {KEY}", text="run?", detail=KEY))
    assert front.questions == [
        Question(kind="command", subject="curl [masked:api-key]", text="run?", detail="[masked:api-key]")
    ]
    assert KEY not in read_all(b.session)


async def test_a_question_keeps_the_lines_of_a_command(create_harness, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "first-of-it\nsecond-of-it")
    front = Recorder()
    b = create_harness([], front=front)
    question = Question(kind="command", subject="echo first-of-it\nsecond-of-it", text="run?")
    await b.journal.ask(question)
    assert front.questions == [question]


async def test_the_rest_of_a_thought_comes_before_the_text(create_harness):
    b = create_harness([])
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    for event in (ThinkingDelta(text="Is it AKIA"), TextDelta(text="No sk-"), ThinkingDelta(text="So.")):
        b.journal.emit(event)
    b.journal.emit(MessageCompleted(message=Message.assistant("No sk-")))
    deltas = [event for event in b.recorder.events if isinstance(event, TextDelta | ThinkingDelta)]
    assert "".join(f"{event.type[:5]}:{event.text};" for event in deltas) == (
        "think:Is it ;think:AKIA;text_:No ;text_:sk-;think:So.;"
    )
    b.journal.emit(TurnFinished(reason="stop"))


async def test_the_output_of_calls_is_masked_one_by_one(create_harness):
    b = create_harness([])
    b.journal.emit(TurnStarted(message=Message.user("Hi.")))
    b.journal.emit(MessageCompleted(message=calls(call("a", id="a"), call("b", id="b"))))
    for call_id, text in (("a", KEY[:12]), ("b", "one "), ("a", KEY[12:]), ("b", "two"), ("a", " end")):
        b.journal.emit(ToolProgress(call_id=call_id, text=text))
    b.journal.emit(TurnFinished(reason="cancelled"))
    shown = {"a": "", "b": ""}
    for event in b.events_of(ToolProgress):
        shown[event.call_id] += event.text
    assert shown == {"a": "[masked:api-key] end", "b": "one two"}


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
