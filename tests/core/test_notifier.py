"""The base class of front-ends, and the notifiers that handle events themselves."""

import pytest

from goose_like.core import events
from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.core.notifier import EventNotifier, Notifier, Recorder, Tee
from tests.core.test_events import PINNED

QUESTION = events.Question(kind="command", subject="ls", text="run: ls", detail="as a file")
SHOWN = [event for event, _ in PINNED if not isinstance(event, events.TextShown)]
CALL = ToolCall(id="c1", name="look", arguments='{"path": "a.txt"}')


class TextFrontEnd(Notifier):
    """A front-end with `log` and `status` alone."""

    def __init__(self) -> None:
        self.logged: list[object] = []
        self.states: list[str] = []

    def log(self, content):
        self.logged.append(content)

    def status(self, text):
        self.states.append(text)


def finish(output: str, **fields) -> events.ToolFinished:
    return events.ToolFinished(result=ToolResult(call_id="c1", output=output, **fields))


def test_a_turn_is_logged_as_one_text_for_each_thing():
    front = TextFrontEnd()
    for event in (
        events.TurnStarted(message=Message.user("Look at a.txt.")),
        events.TextDelta(text="I lo"),
        events.TextDelta(text="ok."),
        events.MessageCompleted(message=Message.assistant("I look.", (CALL,))),
        events.ToolStarted(call=CALL, title="Read a.txt"),
        events.ToolProgress(call_id="c1", text="one\n"),
        events.Logged(text="opened a.txt"),
        finish("one\ntwo\n"),
        events.Retrying(text="too many requests", wait_s=1),
        events.ThinkingDelta(text="It has two lines."),
        events.MessageCompleted(message=Message.assistant("Two lines.")),
        events.TurnFinished(reason="stop"),
    ):
        front.notify(event)
    assert front.logged == ["I look.", "▸ Read a.txt", "opened a.txt", "one\ntwo", "Two lines."]
    assert front.states == ["thinking", "running look", "thinking", "retrying: too many requests", ""]


@pytest.mark.parametrize(
    ("event", "logged"),
    [
        (finish("\n".join("abcdefg")), "a\nb\nc\nd\ne\n[2 more lines]"),
        (finish("x" * 1_000), "x" * 200 + "…"),
        (finish("no such file", is_error=True), "error: no such file"),
        (events.ToolStarted(call=CALL), "▸ look"),
        (events.MessageCompleted(message=Message.assistant("So fa"), is_cut=True), "So fa\n(cut off)"),
        (events.MessageCompleted(message=Message.assistant(""), is_cut=True), "(cut off)"),
        (events.Asked(question=QUESTION), "run: ls\nas a file"),
        (events.Answered(question=QUESTION, answer=events.Answer()), "denied, as nobody could be asked"),
        (
            events.Answered(question=QUESTION, answer=events.Answer(by="person", text="not now")),
            "denied: not now",
        ),
        (
            events.Answered(
                question=events.Question(kind="text", subject="x", text="Which?"),
                answer=events.Answer(choice="allow", by="person", text="red"),
            ),
            "answered: red",
        ),
        (events.TurnFinished(reason="step_limit", detail="20 steps"), "step limit: 20 steps"),
        (events.TurnFinished(reason="cancelled"), "cancelled"),
        (events.Logged(text="\x1b[2J\x9b\ttab\r\n"), "\\x1b[2J\\x9b\ttab\\x0d\n"),
    ],
)
def test_a_text_is_short_and_obeys_no_control_characters(event, logged):
    front = TextFrontEnd()
    front.notify(event)
    assert front.logged == [logged]


def test_states_of_subagents_are_shown_and_end_no_state():
    front = TextFrontEnd()
    for event in (events.ToolStarted(call=CALL), events.Status(text="\x1breading"), events.TurnFinished(reason="stop")):
        front.notify(events.SubagentEvent(call_id="c0", event=event))
    assert (front.logged, front.states) == ([], ["running look", "\\x1breading"])


class EventFrontEnd(TextFrontEnd):
    """A front-end that handles the events itself."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[events.Event] = []

    def notify(self, event):
        self.events.append(event)


def test_a_front_end_with_notify_gets_events_and_no_texts():
    front = EventFrontEnd()
    front.notify(events.Logged(text="a note"))
    front.notify(events.Status(text="working"))
    assert front.events == [events.Logged(text="a note"), events.Status(text="working")]
    assert front.logged == front.states == []


class Half(Notifier):
    """A front-end with `log` alone."""

    log = TextFrontEnd.log
    logged: list[object] = []


@pytest.mark.parametrize("event", SHOWN, ids=lambda event: event.type)
async def test_every_event_is_received_without_any_or_all_of_the_methods(event):
    for front in (Notifier(), Half(), TextFrontEnd(), Tee(TextFrontEnd(), Notifier())):
        front.notify(event)
    assert not (await Notifier().ask(QUESTION)).is_allowed


def test_a_front_end_without_methods_ignores_what_is_logged():
    front = Notifier()
    front.log("a note")
    front.status("working")
    assert vars(front) == {}


def test_logs_and_states_of_an_event_notifier_are_events():
    recorder = Recorder()
    recorder.log("[bold]as it is[/bold], list[int] [N] [/b]")
    recorder.log(3)
    recorder.status("working")
    text = events.Logged(text="[bold]as it is[/bold], list[int] [N] [/b]")
    assert recorder.events == [text, events.Logged(text="3"), events.Status(text="working")]
    with pytest.raises(TypeError, match="abstract"):
        EventNotifier()


async def test_tee():
    one, two = Recorder(), Recorder()
    texts = TextFrontEnd()
    Tee(one, two, texts).log("x")
    assert one.events == two.events == [events.Logged(text="x")]
    assert texts.logged == ["x"]
    assert not (await Tee(Notifier()).ask(None)).is_allowed
