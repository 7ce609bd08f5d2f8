"""Tests of the history: a replay equals the live state, wherever the file is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.events import (
    Answer,
    Answered,
    Compacted,
    Interjected,
    Logged,
    MessageCompleted,
    PlanUpdated,
    Question,
    Reminded,
    Rewound,
    StateSaved,
    Task,
    TextShown,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
    saved_event_adapter,
)
from goose_like.core.history import INTERRUPTED, PROMPT_STATE_KEY, History
from goose_like.core.message import Image, Message, RedactedThinking, Text, Thinking, ToolCall, ToolResult, Usage
from tests.fakes import HEADER, is_well_formed


@st.composite
def turn(draw, number):
    """The events of one turn as an exchange emits them."""
    events = [TurnStarted(message=Message.user(f"turn {number}"))]
    beside = st.lists(
        st.sampled_from(
            [
                Logged(text="x"),
                PlanUpdated(tasks=(Task(description="d"),)),
                UsageRecorded(model="m", usage=Usage(output_tokens=1), purpose="p"),
                StateSaved(toolkit="t", value=number),
                Answered(question=Question(kind="network", subject="s", text="t"), answer=Answer()),
                Answered(question=Question(kind="text", subject="s", text="t"), answer=Answer()),
                Reminded(text="from a toolkit"),
                Interjected(message=Message.user("wait")),
                TextShown(text="shown", call_id=f"{number}.0.0"),
            ]
        ),
        max_size=2,
    )
    for step in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            events.append(Reminded(text=f"reminder {step}"))
        if draw(st.integers(0, 4)) == 0:
            events.append(Compacted(summary=f"summary {step}", kept_count=draw(st.integers(0, 3))))
        ids = [f"{number}.{step}.{index}" for index in range(draw(st.integers(0, 3)))]
        message = Message.assistant("m", [ToolCall(id=id, name="t", arguments="{}") for id in ids])
        events += draw(st.lists(st.sampled_from([TextShown(text="m"), TextShown(text="")]), max_size=3))
        usage = Usage(input_tokens=draw(st.integers(0, 2)))
        events.append(MessageCompleted(message=message, usage=usage, is_cut=draw(st.booleans())))
        for id in draw(st.permutations(ids)):
            events += draw(beside)
            if draw(st.integers(0, 9)):  # else the turn is cancelled in this call
                events.append(ToolFinished(result=ToolResult(call_id=id, output=f"result of {id}")))
            else:
                events.append(TurnFinished(reason="cancelled"))
                return events
    events.append(TurnFinished(reason=draw(st.sampled_from(["stop", "step_limit", "budget", "error"]))))
    return events


@st.composite
def conversation(draw):
    """Well-formed sequences of events, over one or more processes."""
    events = [HEADER]
    for number in range(draw(st.integers(0, 4))):
        events += draw(turn(number))
        if draw(st.integers(0, 3)) == 0:
            events.append(Rewound(message_count=draw(st.integers(0, 6))))
        if draw(st.integers(0, 3)) == 0:
            events.append(HEADER)
    return events


def fold(events):
    history = History()
    for event in events:
        history.apply(event)
    return history


@given(conversation())
def test_replay_equals_live(events):
    recorded = [saved_event_adapter.validate_json(event.model_dump_json()) for event in events]
    assert History.replay(recorded) == fold(events)
    assert is_well_formed(fold(events).messages)


@given(conversation(), st.data())
def test_cut_anywhere(events, data):
    cut = events[: data.draw(st.integers(0, len(events)))]
    history = History.replay(cut)
    assert is_well_formed(history.messages)
    assert is_well_formed(history.context.messages)
    assert not history.open_calls
    # The next process opens the session; what both recorded amounts to what the second one lived.
    resumed = History.replay(cut)
    for event in (HEADER, TurnStarted(message=Message.user("on")), TurnFinished(reason="stop")):
        resumed.apply(event)
    assert (
        History.replay([*cut, HEADER, TurnStarted(message=Message.user("on")), TurnFinished(reason="stop")]) == resumed
    )


@given(conversation(), st.data())
def test_lost_lines(events, data):
    kept = [event for event in events if data.draw(st.integers(0, 4))]
    history = History.replay(kept)
    assert is_well_formed(history.messages)
    assert is_well_formed(history.context.messages)


@given(conversation())
def test_count_of_the_steps_in_the_newest_turn(events):
    history = fold(events)
    start = history.turns[-1].start if history.turns else 0
    roles = [message.role for message in history.messages[start:]]
    assert history.turn_step_count == roles.count("assistant")


def call_tools(*ids):
    return MessageCompleted(
        message=Message.assistant("", [ToolCall(id=id, name="t", arguments="{}") for id in ids]),
        usage=Usage(input_tokens=7, output_tokens=3),
    )


def finish_call(id, output="ok"):
    return ToolFinished(result=ToolResult(call_id=id, output=output))


START = [HEADER, TurnStarted(message=Message.user("go"))]


def test_results_come_in_the_order_of_the_calls():
    history = fold([*START, call_tools("a", "b"), finish_call("b", "B")])
    assert (history.is_open("a"), history.is_open("b")) == (True, False)
    history.apply(finish_call("b", "late"))
    history.apply(finish_call("unknown"))
    history.apply(finish_call("a", "A"))
    assert [result.output for result in history.messages[-1].tool_results] == ["A", "B"]


def test_cut_off_calls_are_answered():
    history = History.replay([*START, call_tools("a", "b"), finish_call("b")])
    first, second = history.messages[-1].tool_results
    assert (first.output, first.is_error, second.output) == (INTERRUPTED, True, "ok")


CUT_NOTE = "\n\n[Your previous answer was cut off before its end.]"


@pytest.mark.parametrize("end", [[], [HEADER], [TurnFinished(reason="error")]], ids=["end", "restart", "error"])
def test_the_shown_text_of_an_answer_becomes_a_cut_answer(end):
    shown = [TextShown(text="void"), TextShown(text=""), TextShown(text="Once "), TextShown(text="upon")]
    history = History()
    restored = [*history.restore([*START, *shown, *end])]
    cut = MessageCompleted(message=Message.assistant("Once upon"), is_cut=True)
    assert restored == [*START, cut, *end]
    assert [message.text for message in history.messages] == ["go", "Once upon"]
    assert history == History.replay([*START, cut, *end])
    for text in ("on", "and on"):
        history.apply(TurnStarted(message=Message.user(text)))
    assert [message.text for message in history.messages[2:]] == [f"on{CUT_NOTE}", "and on"]
    assert history.messages[2].first_text == "on"


def test_a_resumed_turn_knows_that_its_answer_was_cut_off():
    resumed = HEADER.model_copy(update={"is_resumed": True})
    history = fold([*START, TextShown(text="Once"), resumed, resumed])
    assert [(message.role, message.text) for message in history.messages] == [
        ("user", "go"),
        ("assistant", "Once"),
        ("user", CUT_NOTE.strip()),
    ]
    assert history.user_message_indexes == [0]


def test_an_answer_never_follows_an_answer():
    """A process that is killed while it replaces shown text can leave a part of it behind the answer."""
    done = MessageCompleted(message=Message.assistant("Once upon"))
    assert [message.text for message in History.replay([*START, done, TextShown(text="upon")]).messages] == [
        "go",
        "Once upon",
    ]
    events = [*START, call_tools("a"), finish_call("a"), TextShown(text="x", call_id="a")]
    assert History.replay(events) == History.replay(events[:-1])


def test_an_interrupted_call_has_the_text_that_it_had_shown():
    shown = [TextShown(text="one\n", call_id="a"), TextShown(text="x" * 9_000 + "two\n", call_id="a")]
    events = [*START, call_tools("a", "b"), *shown]
    history = History()
    *_, first, second = history.restore(events)
    assert first.result.output.startswith(f"{INTERRUPTED}. It had shown:\nxxx")
    assert first.result.output.endswith("xtwo\n")
    assert len(first.result.output) < 5_000
    assert second.result.output == INTERRUPTED
    assert list(history.messages[-1].tool_results) == [first.result, second.result]
    cancelled = TurnFinished(reason="cancelled")
    assert History.replay([*events, cancelled]).messages == fold([*events, cancelled]).messages == history.messages


def test_handed_off_calls_stay_open_over_a_restart():
    events = [*START, call_tools("a", "b"), finish_call("b"), TurnFinished(reason="handed_off")]
    history = History.replay(events)
    history.apply(HEADER)
    assert list(history.open_calls) == ["a", "b"]
    parts = (ToolResult(call_id="a", output="from afar"), ToolResult(call_id="b", output="has one already"))
    answer = Message(role="tool", parts=parts)
    history.apply(TurnStarted(message=answer))
    assert [message.role for message in history.messages] == ["user", "assistant", "tool"]
    assert [result.output for result in history.messages[-1].tool_results] == ["from afar", "ok"]
    assert History.replay([*events, HEADER, TurnStarted(message=answer)]) == history


def test_unknown_results_change_nothing():
    events = [*START, call_tools("a"), TurnFinished(reason="handed_off")]
    parts = tuple(ToolResult(call_id=id, output=id) for id in ("x", "a"))
    history = fold(
        [*events, TurnStarted(message=Message(role="tool", parts=parts)), call_tools("b", "c"), finish_call("b")]
    )
    assert (history.is_open("b"), history.is_open("c")) == (False, True)
    assert [result.output for message in history.messages for result in message.tool_results] == ["a"]


def test_a_lost_result_before_a_summary():
    history = History.replay(
        [*START, call_tools("a"), Compacted(summary="S", kept_count=0), call_tools("b"), finish_call("b")]
    )
    assert [message.role for message in history.context.messages] == ["user", "assistant", "tool"]


def test_the_next_turn_closes_handed_off_calls():
    history = History.replay([*START, call_tools("a"), TurnFinished(reason="handed_off")])
    history.apply(TurnStarted(message=Message.user("never mind")))
    assert is_well_formed(history.messages)
    assert history.messages[-2].tool_results[0].output == INTERRUPTED


def thought(text):
    parts = (Thinking(text="hm", signature="S"), RedactedThinking(data="E"), Text(text=text))
    return MessageCompleted(message=Message(role="assistant", parts=parts))


@pytest.mark.parametrize(
    "event",
    [
        StateSaved(toolkit=PROMPT_STATE_KEY, value="another"),
        Compacted(summary="S", kept_count=2),
    ],
)
def test_thinking_is_kept_only_after_the_same_text(event):
    history = fold([*START, thought("a"), TurnStarted(message=Message.user("more"))])
    assert history.context.messages == history.messages
    history.apply(event)
    history.apply(thought("b"))
    answers = [message for message in history.context.messages if message.role == "assistant"]
    assert [part.type for message in answers for part in message.parts] == [
        *["text"],
        *["thinking", "redacted_thinking", "text"],
    ]
    assert sum(isinstance(part, Thinking) for message in history.messages for part in message.parts) == 2
    history.apply(Rewound(message_count=2))
    history.apply(thought("c"))
    assert [len(message.parts) for message in history.context.messages if message.role == "assistant"] == [1, 3]


def test_the_context_reuses_message_objects():
    history = fold([*START, thought("a"), HEADER])
    assert all(one is other for one, other in zip(history.context.messages, history.context.messages, strict=True))


def test_the_size_of_a_context_is_estimated_anew_after_a_summary():
    measured = MessageCompleted(message=Message.assistant("m" * 400), usage=Usage(input_tokens=90_000))
    events = [*START, measured, TurnFinished(reason="stop")]
    assert fold(events).context.tokens == 90_000
    assert fold([*events, Compacted(summary="short", kept_count=1)]).context.tokens < 400


def test_compacted():
    history = fold([*START, call_tools("a"), finish_call("a"), Compacted(summary="S", kept_count=2)])
    assert [message.text for message in history.context.messages] == ["S", "", ""]
    assert len(history.messages) == 3
    history.apply(Compacted(summary="T", kept_count=1))  # a result without its call is not kept
    assert [message.text for message in history.context.messages] == ["T"]


@pytest.mark.parametrize(("to", "roles"), [(0, ""), (1, "u"), (2, "u"), (3, "uat"), (9, "uat")])
def test_rewinding_keeps_calls_and_results_together(to, roles):
    history = fold([*START, call_tools("a"), finish_call("a"), Rewound(message_count=to)])
    assert "".join(message.role[0] for message in history.messages) == roles


def test_rewinding_behind_a_summary_removes_it():
    history = fold(
        [*START, call_tools("a"), finish_call("a"), Compacted(summary="S", kept_count=0), Rewound(message_count=1)]
    )
    assert [message.text for message in history.context.messages] == ["go"]


TWO_TURNS = [
    TurnStarted(message=Message.user("one")),
    MessageCompleted(message=Message.assistant("first"), usage=Usage(input_tokens=90_000)),
    TurnFinished(reason="stop"),
    TurnStarted(message=Message.user("two")),
    *[call_tools("a"), finish_call("a")],
]
"""The messages are: one, first, two, a call, its result."""


def test_rewinding_removes_a_call_without_its_result_and_nothing_else():
    history = fold([HEADER, *TWO_TURNS, Rewound(message_count=4)])
    assert [message.text for message in history.messages] == ["one", "first", "two"]


@pytest.mark.parametrize(("to", "starts"), [(1, [0]), (2, [0]), (3, [0, 2]), (5, [0, 2])])
def test_rewinding_removes_later_turns(to, starts):
    history = fold([HEADER, *TWO_TURNS, Rewound(message_count=to)])
    assert [turn.start for turn in history.turns] == history.user_message_indexes == starts
    assert (history.is_in_turn, history.last_turn, history.context.facts) == (False, None, {})
    assert (history.context.measured_count, history.context.measured_tokens) == (0, 0)


@pytest.mark.parametrize(("to", "plan"), [(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "b"), (5, "c")])
def test_rewinding_restores_the_plan_of_that_time(to, plan):
    first, second, third = (PlanUpdated(tasks=(Task(description=name),)) for name in "abc")
    history = fold([HEADER, first, *TWO_TURNS[:3], second, *TWO_TURNS[3:5], third, TWO_TURNS[5]])
    history.apply(Rewound(message_count=to))
    assert [task.description for task in history.plan] == [plan]


def test_rewinding_removes_a_plan_of_the_first_turn():
    history = fold([*START, call_tools("a"), PlanUpdated(tasks=(Task(description="d"),)), finish_call("a")])
    history.apply(Rewound(message_count=0))
    assert history.plan == ()


def test_rewinding_removes_the_mark_of_a_cut_answer():
    cut = MessageCompleted(message=Message.assistant("half"), is_cut=True)
    history = fold([HEADER, *TWO_TURNS[:3], TWO_TURNS[3], cut])
    assert history.is_answer_cut
    history.apply(Rewound(message_count=2))
    assert history.is_answer_cut is False


@pytest.mark.parametrize(("to", "texts"), [(2, ["one", "first"]), (3, ["S", "memory"]), (5, ["S", "memory", "", ""])])
def test_rewinding_to_a_summary_keeps_it(to, texts):
    compacted = Compacted(summary="S", kept_count=0, suffix="memory")
    history = fold([HEADER, *TWO_TURNS[:4], compacted, *TWO_TURNS[4:], Rewound(message_count=to)])
    assert [message.text for message in history.context.messages] == texts


def test_a_compaction_without_a_summary_only_replaces_results():
    event = Compacted(summary="", kept_count=9, replacements={"a": "short"})
    history = fold([HEADER, *TWO_TURNS])
    preview = history.context.preview(event)
    history.apply(event)
    assert preview == history.context.messages
    assert [message.role for message in preview] == ["user", "assistant", "user", "assistant", "tool"]
    assert preview[-1].tool_results[0].output == "short"
    again = Compacted(summary="", kept_count=9)
    assert history.context.preview(again) == preview  # earlier replacements stay


def test_a_reminder_during_a_call_follows_its_result():
    history = fold([*START, call_tools("a"), Reminded(text="R"), finish_call("a")])
    assert [message.role for message in history.messages] == ["user", "assistant", "tool", "system"]


def test_plan_usage_and_state():
    tasks = (Task(description="d"),)
    history = fold(
        [*START, PlanUpdated(tasks=tasks), call_tools("a"), finish_call("a"), StateSaved(toolkit="t", value=[1])]
    )
    assert (history.plan, history.steps_since_plan, history.state) == (tasks, 1, {"t": [1]})
    used = {"scripted:x": Usage(input_tokens=7, output_tokens=3)}
    assert history.usage.by_model == history.usage.turn_by_model == used
    assert (history.context.measured_count, history.context.measured_tokens) == (2, 10)
    for usage in (Usage(output_tokens=1), Usage(input_tokens=2, cache_read_tokens=4, cache_write_tokens=8)):
        history.apply(UsageRecorded(model="m", usage=usage, purpose="p"))
    assert vars(history.usage.turn_by_model["m"]) == vars(history.usage.by_model["m"])
    assert list(vars(history.usage.by_model["m"]).values()) == [2, 1, 4, 8, 0, 0]
    history.apply(TurnStarted(message=Message.user("on")))
    assert history.usage.turn_total.total_tokens == 13, "a killed process left the turn"
    history.apply(TurnFinished(reason="stop"))
    history.apply(TurnStarted(message=Message.user("on")))
    assert (history.usage.total.total_tokens, history.usage.turn_by_model) == (13, {})


def test_the_suffix_stays_after_the_kept_messages():
    history = History.replay([HEADER, TurnStarted(message=Message.user("go"))])
    history.apply(MessageCompleted(message=Message.assistant("a")))
    event = Compacted(summary="goal", kept_count=1, suffix="memory", is_routine=True)
    planned = history.context.preview(event)
    history.apply(event)
    assert [message.text for message in history.context.messages] == ["goal", "a", "memory"]
    assert history.context.messages == planned
    history.apply(MessageCompleted(message=Message.assistant("b")))
    history.apply(StateSaved(toolkit=PROMPT_STATE_KEY, value="another"))
    assert [message.text for message in history.context.messages] == ["goal", "a", "memory", "b"]
    history.apply(Rewound(message_count=1))
    assert "memory" not in [message.text for message in history.context.messages]


def step(number, *, output="the same", **more):
    """A model's call, and its result."""
    call = ToolCall(id=f"s{number}", name="look", arguments="{}")
    yield MessageCompleted(message=Message.assistant("", [call]))
    yield ToolFinished(result=ToolResult(call_id=call.id, output=output, **more))


@pytest.mark.parametrize(
    "more",
    [
        {"output": "other"},
        {"images": (Image(name="b.png", media_type="image/png", source="a page"),)},
        {"is_error": True},
    ],
)
def test_a_different_result_is_no_repetition(more):
    events = [TurnStarted(message=Message.user("Hi.")), *step(1), *step(2)]
    assert History.replay([HEADER, *events]).repeated_step_count == 2
    assert History.replay([HEADER, *events, *step(3, **more)]).repeated_step_count == 1


def test_calls_closed_by_a_new_turn_are_no_step_of_it():
    opened = [*step(1)][:1]
    results = Message(role="user", parts=(ToolResult(call_id="s1", output="the same"),))
    history = History.replay([HEADER, TurnStarted(message=Message.user("Hi.")), *opened, TurnStarted(message=results)])
    assert (history.messages[-1].role, history.repeated_step_count) == ("tool", 0)
    for event in step(2):
        history.apply(event)
    assert history.repeated_step_count == 1


@pytest.mark.parametrize(
    "event",
    [
        MessageCompleted(message=Message.assistant("m")),
        Compacted(summary="s", kept_count=2, suffix="t"),
        Interjected(message=Message.user("wait")),
    ],
)
def test_a_handed_off_call_is_closed_before_something_else_follows(event):
    """The line of the next turn's start may be damaged."""
    call = ToolCall(id="c", name="t", arguments="{}")
    history = fold(
        [HEADER, MessageCompleted(message=Message.assistant("m", [call])), TurnFinished(reason="handed_off")]
    )
    assert history.open_calls
    history.apply(event)
    assert not history.open_calls
    assert is_well_formed(history.messages)
    assert is_well_formed(history.context.messages)
