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


def read_file(harness):
    return [parse_line(line) for line in harness.session.file.read_bytes().splitlines()]


async def wait_for_file(harness, text):
    """Wait until the session file has a text."""
    async with asyncio.timeout(60):
        while text not in harness.session.file.read_text():  # noqa: ASYNC110
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
    harness = front.harness = create_harness(script, echo, front=front)
    harness.exchange.tools["reach"] = create_asking_tool(harness)
    await harness.exchange.reply("Hi.")
    harness.journal.log("said")
    assert front.too_early == []
    assert {"turn_started", "asked", "answered", "tool_finished", "logged"} <= {*list_types(front.events)}


async def test_all_but_a_kilobyte_of_the_shown_text_is_in_the_file(create_harness):
    front = FileReader()
    pieces = [f"word {number} " for number in range(1000)]
    harness = front.harness = create_harness(
        [[*(TextDelta(text=text) for text in pieces), "".join(pieces)]], front=front
    )
    await harness.exchange.reply("Hi.")
    assert 0 < front.unsaved_bytes < SAVE_BYTES
    assert not any(isinstance(event, TextShown) for event in read_file(harness))


async def test_shown_text_is_in_the_file_soon(create_harness):
    async def slow():
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="line 1\n"))
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="line 2\n"))
        await wait_for_file(harness, "line 2")
        raise asyncio.CancelledError

    harness = create_harness(
        [[TextDelta(text="One "), TextDelta(text="moment"), PAUSE], calls(call("slow")), "Done."], slow
    )
    task = asyncio.create_task(harness.exchange.reply("Hi."))
    await wait_for_file(harness, '{"type":"text_shown","text":"One moment"')
    task.cancel()
    await asyncio.wait([task])
    assert not any(isinstance(event, TextShown) for event in read_file(harness))
    await harness.exchange.reply("Go on.")


async def test_a_finished_text_leaves_no_trace_in_the_file(create_harness):
    text = "All is well. " * 1_000

    def speak():
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="x\n" * 9_000))

    sizes = []
    for words in (
        [],
        [TextDelta(text=text[start:end]) for start, end in ((0, 7_000), (7_000, 12_900), (12_900, None))],
    ):
        harness = create_harness([[*words, calls(call("speak"), text=text)], [*words, text]], speak)
        await harness.exchange.reply("Hi.")
        sizes.append(harness.session.file.stat().st_size)
    assert sizes[0] == sizes[1]


async def test_a_finished_text_is_not_saved_later(create_harness):
    found = []

    def speak():
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="short"))

    async def wait():
        await asyncio.sleep(1.5 * SAVE_INTERVAL_S)
        found.extend(event for event in read_file(harness) if isinstance(event, TextShown))

    answer = calls(call("speak", id="a"), call("wait", id="b"), text="so")
    harness = create_harness([[TextDelta(text="so"), answer], "Done."], speak, wait)
    await harness.exchange.reply("Hi.")
    assert found == []


async def test_a_retry_voids_the_shown_text(create_harness):
    harness = create_harness([])
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    harness.journal.emit(TextDelta(text="void " * 1_000 + "AKIA"))  # the start of a key waits for the rest
    harness.journal.emit(Retrying(text="broken", wait_s=0))
    harness.journal.emit(TextDelta(text="kept " * 1_000))
    assert "void" not in harness.session.file.read_text()
    answer = harness.replay().messages[-1].text
    assert answer == ("kept " * 1_000)[: len(answer)] != ""
    assert not any("AKIA" in event.text for event in harness.events_of(TextDelta))
    harness.journal.emit(MessageCompleted(message=Message.assistant("kept")))
    harness.journal.emit(TurnFinished(reason="stop"))


async def test_shown_text_stays_when_another_event_follows(create_harness):
    def parallel(name: str):
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text=f"{name} shows\n" * 200))
        harness.journal.log(f"{name} logs")
        return f"{name} returns"

    wanted = [call("parallel", json.dumps({"name": name}), id=name) for name in ("a", "b")]
    harness = create_harness([calls(*wanted), "Done."], parallel)
    await harness.exchange.reply("Hi.")
    assert harness.outputs == ["a returns", "b returns"]
    assert harness.replay() == harness.exchange.history
    assert [event.text for event in read_file(harness) if isinstance(event, Logged)] == ["a logs", "b logs"]


async def test_an_interrupted_call_has_its_shown_lines(create_harness):
    async def slow():
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="line 1\nline 2\n"))
        await asyncio.Event().wait()

    harness = create_harness([calls(call("slow")), "Done."], slow)
    await cancel_after(harness, ToolProgress)
    assert harness.outputs == [f"{INTERRUPTED}. It had shown:\nline 1\nline 2\n"]


async def test_a_flood_of_shown_output_does_not_fill_the_file(create_harness):
    harness = create_harness([])
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    harness.journal.emit(MessageCompleted(message=calls(call("flood"))))
    for _ in range(1_000):
        harness.journal.emit(ToolProgress(call_id="c1", text="y" * 4_000))
    assert harness.session.file.stat().st_size < 20 * SAVE_BYTES
    harness.journal.emit(ToolProgress(call_id="unknown", text="y" * 4_000))
    harness.journal.emit(ToolProgress(call_id="c1", text="the end\n"))
    harness.journal.emit(TurnFinished(reason="cancelled"))
    assert harness.outputs[0].endswith("the end\n")
    assert harness.session.file.stat().st_size < 20 * SAVE_BYTES
    assert "unknown" not in harness.session.file.read_text()


@pytest.mark.parametrize("lines_at_once", [1, 500])
async def test_the_file_has_the_start_and_the_newest_lines_of_a_flood(create_harness, lines_at_once):
    harness = create_harness([])
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    harness.journal.emit(MessageCompleted(message=calls(call("flood"))))
    shown = ""
    lines = [f"line {number}\n" for number in range(2_000)]
    for at in range(0, 2_000, lines_at_once):
        piece = "".join(lines[at : at + lines_at_once])
        harness.journal.emit(ToolProgress(call_id="c1", text=piece))
        shown += piece
        if at % 100 == 0:
            kept = "".join(event.text for event in read_file(harness) if isinstance(event, TextShown))
            assert shown.startswith(kept)
            assert len(kept) > min(len(shown) - SAVE_BYTES, 7 * SAVE_BYTES)
    await wait_for_file(harness, "line 1999")
    kept = "".join(event.text for event in read_file(harness) if isinstance(event, TextShown))
    start, end = kept.split("\n[...]\n")
    assert shown.startswith(start)
    assert 8 * SAVE_BYTES <= len(start) <= 10 * SAVE_BYTES + len(piece)
    assert shown.endswith("\n" + end)
    assert SAVE_BYTES - 20 <= len(end) <= 2 * SAVE_BYTES
    harness.journal.emit(ToolProgress(call_id="c1", text="one more\n"))
    await wait_for_file(harness, "one more")
    harness.journal.emit(TurnFinished(reason="cancelled"))


async def test_a_full_disk_for_shown_text_does_not_stop_the_answer(create_harness):
    harness = create_harness([[TextDelta(text="x" * 5_000), "x" * 5_000]])
    append = harness.session.append

    def refuse_shown_text(event):
        if isinstance(event, TextShown):
            raise SessionError("no space; free some")
        append(event)

    harness.session.append = refuse_shown_text
    assert (await harness.exchange.reply("Hi.")).reason == "stop"


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
    harness = create_harness([], front=front)
    questions = [Question(kind="command", subject=name, text="run?") for name in "abc"]
    await asyncio.gather(*map(harness.journal.ask, questions))
    assert (front.asked, front.most) == (("a", "b", "c"), 1)
    saved = [event for event in read_file(harness) if isinstance(event, Asked | Answered)]
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
    harness = create_harness([], front=front)
    assert await harness.journal.ask(HOST) == Answer()
    assert front.questions == []
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    task = asyncio.create_task(harness.journal.ask(HOST))
    while not front.questions:  # noqa: ASYNC110
        await asyncio.sleep(0)
    front.answered.set()
    assert (await task).choice == "allow"
    harness.journal.emit(TurnFinished(reason="stop"))
    front.answered.clear()
    other = asyncio.create_task(harness.journal.ask(Question(kind="command", subject="ls", text="run?")))
    while len(front.questions) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    front.answered.set()
    assert (await other).choice == "allow"


async def test_a_slash_command_asks_about_hosts_until_it_ends(create_harness):
    front = Waiting()
    harness = create_harness([], front=front)
    with harness.journal.expect_questions():
        front.answered.set()
        assert (await harness.journal.ask(HOST)).choice == "allow"
        front.answered.clear()
        late = asyncio.create_task(harness.journal.ask(HOST))
        while len(front.questions) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    (found,) = await asyncio.gather(late, return_exceptions=True)
    assert isinstance(found, asyncio.CancelledError)


async def test_the_end_of_a_turn_cancels_only_open_questions_about_hosts(create_harness):
    front = Waiting()
    harness = create_harness([], front=front)
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    front.answered.set()

    async def ask_and_go_on():
        answer = await harness.journal.ask(HOST)
        await asyncio.sleep(0.05)
        return answer

    done = asyncio.create_task(ask_and_go_on())
    while not harness.journal._front_end.questions or harness.journal._host_questions:  # noqa: ASYNC110
        await asyncio.sleep(0)
    front.answered.clear()
    tasks = [
        asyncio.create_task(harness.journal.ask(each))
        for each in (HOST, HOST, Question(kind="network", subject="curl", text="run?"))
    ]
    await asyncio.sleep(0.01)
    harness.journal.emit(TurnFinished(reason="stop"))
    front.answered.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in found] == [True, True, False]
    assert (await done).choice == "allow"


async def test_a_closed_journal_ignores_tools(create_harness):
    harness = create_harness([])
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    harness.journal.emit(TextDelta(text="so far"))
    harness.journal.log("in time")
    harness.journal.close()
    harness.journal.log("late")
    await asyncio.to_thread(harness.journal.log, "late")
    await asyncio.sleep(1.5)
    assert [event.text for event in harness.events_of(Logged)] == ["in time"]
    assert "so far" not in harness.session.file.read_text()
    harness.journal.emit(TurnFinished(reason="stop"))


async def test_an_answered_question_is_saved_without_its_detail(create_harness):
    harness = create_harness([])
    question = Question(kind="change", subject="a.py", text="write?", detail="+ a long diff\n" * 100)
    await harness.journal.ask(question)
    asked, answered = [event for event in read_file(harness) if isinstance(event, Asked | Answered)]
    assert asked.question == question
    assert answered.question == question.model_copy(update={"detail": ""})
    assert [event for event in harness.recorder.events if isinstance(event, Answered)] == [answered]


async def test_a_failing_front_end_is_detached(create_harness, caplog):
    class Front(Notifier):
        seen = 0

        def notify(self, event):
            if isinstance(event, TurnStarted):
                self.seen += 1
                raise ValueError("no screen")

    front = Front()
    harness = create_harness(["Hello.", "Again."], front=front)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
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
    harness = create_harness([calls(call("reach", id="c1"), call("reach", id="c2")), "Could not."], front=front)
    harness.exchange.tools["reach"] = create_asking_tool(harness)
    end = await harness.exchange.reply("Hi.")
    assert (harness.outputs, end.exit_code) == (["deny", "allow"], 6)
    assert [event.answer.by for event in front.events if isinstance(event, Answered)] == ["nobody", "person"]
    (note,) = [event.text for event in front.events if isinstance(event, Logged)]
    assert re.fullmatch(f"denied, as the front-end failed to ask: {reason}", note)
    assert front.events[-1] == end
    assert caplog.records == []


async def test_a_question_names_the_open_call_that_asks(create_harness):
    question = Question(kind="network", subject="example.org", text="Allow it?")

    async def ask_late() -> str:
        late.append(asyncio.create_task(ask_after_the_call()))
        await harness.journal.ask(question)
        return "done"

    async def ask_after_the_call():
        while harness.journal.history.is_open("c1"):  # noqa: ASYNC110
            await asyncio.sleep(0)
        await harness.journal.ask(question)

    late = []
    harness = create_harness([calls(call("ask_late", id="c1")), "Done."])
    harness.exchange.tools["ask_late"] = make_tool(ask_late)
    await harness.exchange.reply("Hi.")
    await late[0]
    await harness.journal.ask(question)
    asked = [event.question.call_id for event in read_file(harness) if isinstance(event, Asked)]
    assert asked == ["c1", "", ""]


async def test_unanswered_question(create_harness):
    harness = create_harness([calls(call("reach")), "Could not.", "Hello."])
    harness.exchange.tools["reach"] = create_asking_tool(harness)
    end = await harness.exchange.reply("Hi.")
    assert end == TurnFinished(
        reason="stop", detail="denied, as nobody could be asked: network: example.org", exit_code=6
    )
    assert (
        list_types(harness.recorder.events).count("asked") == list_types(harness.recorder.events).count("answered") == 1
    )
    assert (await harness.exchange.reply("Hi.")).exit_code == 0


async def test_late_events_of_an_answered_call_are_dropped(create_harness):
    go_on, ended, report = threading.Event(), threading.Event(), asyncio.Event()
    holder = []

    @tool(time_limit_s=0.01)
    def slow():
        holder[0].journal.notify(ToolProgress(call_id=current_call.get(), text="in time"))
        go_on.wait(60)
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
    harness = create_harness([calls(call("slow", id="a"), call("beside", id="b")), "Done."], slow, beside, front=front)
    holder.append(harness)
    await harness.exchange.reply("Hi.")
    assert [event.text for event in front.events if isinstance(event, ToolProgress)] == ["in time"]
    assert [event.text for event in front.events if isinstance(event, Logged)] == ["in time, too"]


async def test_events_of_threads_come_before_the_result(create_harness):
    holder = []

    def speak():
        holder[0].journal.log("said")

    harness = create_harness([calls(call("speak")), "Done."], speak)
    holder.append(harness)
    await harness.exchange.reply("Hi.")
    assert list_types(harness.recorder.events)[5:8] == ["tool_started", "logged", "tool_finished"]


async def test_an_unwritable_session_raises(create_harness):
    harness = create_harness([calls(call("vanish"), call("vanish", id="c2")), "never"])

    async def vanish():
        harness.session.close()

    harness.exchange.tools["vanish"] = make_tool(vanish)
    with pytest.raises(SessionError):
        await harness.exchange.reply("Hi.")


async def test_an_unwritable_result_ends_the_turn(create_harness):
    harness = create_harness(
        [calls(call("echo", '{"text": "x"}', id="a"), call("echo", '{"text": "y"}', id="b"))], echo
    )
    append = harness.session.append

    def full_once(event):
        if isinstance(event, ToolFinished):
            harness.session.append = append
            raise SessionError("no space; free some")
        append(event)

    harness.session.append = full_once
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.detail) == ("error", "no space; free some")
    harness.session.close()


async def test_an_unwritable_answer_is_not_repeated(create_harness):
    harness = create_harness([[TextDelta(text="so"), calls(call("echo"), text="so")]], echo)
    append = harness.session.append

    def full_once(event):
        if isinstance(event, MessageCompleted):
            harness.session.append = append
            raise SessionError("no space; free some")
        append(event)

    harness.session.append = full_once
    assert (await harness.exchange.reply("Hi.")).reason == "error"
    assert [message.role for message in harness.messages] == ["user", "assistant", "tool"]
    harness.session.close()


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
    harness = create_harness([[*thinking, *words, answer], f"Used {KEY}."], login)
    await harness.exchange.reply(f"Log in. The key is {KEY}.")
    assert seen == ["hunter2-hunter2"]
    shown = "".join(event.model_dump_json() for event in harness.recorder.events)
    for text in (shown, read_all(harness.session), repr(harness.provider.requests)):
        assert "hunter2-hunter2" not in text
        assert KEY not in text
        assert "[masked:DB_PASSWORD]" in text
        assert "[masked:api-key]" in text
    assert "".join(event.text for event in harness.events_of(TextDelta)) == (
        "I log in with [masked:DB_PASSWORD].Used [masked:api-key]."
    )
    assert any("does not receive" in event.text for event in harness.events_of(Logged))


async def test_live_output_in_pieces_is_masked(create_harness):
    holder = []

    def speak():
        for piece in (f"key: {KEY[:4]}", KEY[4:12], KEY[12:], " end"):
            holder[0].journal.notify(ToolProgress(call_id=current_call.get(), text=piece))

    harness = create_harness([calls(call("speak")), "Done."], speak)
    holder.append(harness)
    await harness.exchange.reply("Hi.")
    assert "".join(event.text for event in harness.events_of(ToolProgress)) == "key: [masked:api-key] end"


@pytest.mark.parametrize("text", ["end\n", "", f"{KEY}\n", KEY[:4]])
async def test_skipped_lines_are_reported_once_and_in_their_place(create_harness, text):
    """Also when the text before or after them waits, as it may be the start of a secret."""

    def speak():
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text=f"start {KEY[:4]}"))
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text=text, skipped_line_count=1_234))
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="more\n"))

    harness = create_harness([calls(call("speak")), "Done."], speak)
    await harness.exchange.reply("Hi.")
    shown = [(event.text, event.skipped_line_count) for event in harness.events_of(ToolProgress)]
    gap = shown.index(("", 1_234))
    assert sum(count for _, count in shown) == 1_234
    assert "".join(text for text, _ in shown[:gap]) == f"start {KEY[:4]}"
    assert "".join(text for text, _ in shown[gap:]) == text.replace(KEY, "[masked:api-key]") + "more\n"


async def test_skipped_lines_are_marked_in_the_text_of_a_call_that_is_cut_off(create_harness):
    async def speak():
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="line 1\n"))
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="line 9\n", skipped_line_count=7))
        await asyncio.Event().wait()

    harness = create_harness([calls(call("speak")), "Done."], speak)
    await cancel_after(harness, ToolProgress)
    assert harness.outputs == [f"{INTERRUPTED}. It had shown:\nline 1\n[... 7 lines ...]\nline 9\n"]


async def test_the_masked_rest_of_a_stream_comes_before_its_end(create_harness):
    harness = create_harness([[TextDelta(text="It is AKIA"), Message.assistant("It is AKIA")]])
    await harness.exchange.reply("Hi.")
    assert list_types(harness.recorder.events)[4:7] == ["text_delta", "text_delta", "message_completed"]
    assert "".join(event.text for event in harness.events_of(TextDelta)) == "It is AKIA"


async def test_the_masked_rest_of_the_output_comes_before_the_result(create_harness):
    def speak():
        harness.journal.notify(ToolProgress(call_id=current_call.get(), text="It is AKIA"))

    harness = create_harness([calls(call("speak")), "Done."], speak)
    await harness.exchange.reply("Hi.")
    assert list_types(harness.recorder.events)[5:9] == [
        "tool_started",
        "tool_progress",
        "tool_progress",
        "tool_finished",
    ]


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
    harness = create_harness(["Done."], front=front)
    await harness.journal.ask(Question(kind="command", subject=f"curl {KEY}", text="run?", detail=KEY))
    assert front.questions == [
        Question(kind="command", subject="curl [masked:api-key]", text="run?", detail="[masked:api-key]")
    ]
    assert KEY not in read_all(harness.session)


async def test_a_question_keeps_the_lines_of_a_command(create_harness, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "first-of-it\nsecond-of-it")
    front = Recorder()
    harness = create_harness([], front=front)
    question = Question(kind="command", subject="echo first-of-it\nsecond-of-it", text="run?")
    await harness.journal.ask(question)
    assert front.questions == [question]


async def test_the_rest_of_a_thought_comes_before_the_text(create_harness):
    harness = create_harness([])
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    for event in (ThinkingDelta(text="Is it AKIA"), TextDelta(text="No sk-"), ThinkingDelta(text="So.")):
        harness.journal.emit(event)
    harness.journal.emit(MessageCompleted(message=Message.assistant("No sk-")))
    deltas = [event for event in harness.recorder.events if isinstance(event, TextDelta | ThinkingDelta)]
    assert "".join(f"{event.type[:5]}:{event.text};" for event in deltas) == (
        "think:Is it ;think:AKIA;text_:No ;text_:sk-;think:So.;"
    )
    harness.journal.emit(TurnFinished(reason="stop"))


async def test_the_output_of_calls_is_masked_one_by_one(create_harness):
    harness = create_harness([])
    harness.journal.emit(TurnStarted(message=Message.user("Hi.")))
    harness.journal.emit(MessageCompleted(message=calls(call("a", id="a"), call("b", id="b"))))
    for call_id, text in (("a", KEY[:12]), ("b", "one "), ("a", KEY[12:]), ("b", "two"), ("a", " end")):
        harness.journal.emit(ToolProgress(call_id=call_id, text=text))
    harness.journal.emit(TurnFinished(reason="cancelled"))
    shown = {"a": "", "b": ""}
    for event in harness.events_of(ToolProgress):
        shown[event.call_id] += event.text
    assert shown == {"a": "[masked:api-key] end", "b": "one two"}


async def test_a_call_with_a_mask_does_not_run(create_harness):
    harness = create_harness([calls(call("echo", '{"text": "export KEY=[masked:MY_KEY]"}')), "Could not."], echo)
    await harness.exchange.reply("Hi.")
    assert harness.outputs[0].startswith("echo did not run: [masked:MY_KEY] stands for a secret")


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
