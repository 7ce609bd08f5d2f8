"""Tests of events: the JSON of each event is pinned byte for byte."""

import json
from typing import get_args

import pytest

from goose_like.core import events as e
from goose_like.core.message import Message, Text, Thinking, ToolCall, ToolResult, ToolSpec, Usage

CALL = ToolCall(id="c1", name="shell", arguments='{"a": 1')
RESULT = ToolResult(call_id="c1", output="ü", is_error=True)
QUESTION = e.Question(kind="network", subject="pip", text="Allow it?")
USAGE = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)
USAGE_JSON = '{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4}'
CALL_JSON = '{"type":"tool_call","id":"c1","name":"shell","arguments":"{\\"a\\": 1"}'
QUESTION_JSON = '{"kind":"network","subject":"pip","text":"Allow it?","detail":""}'

PINNED = [
    (
        e.SessionStarted(version="1", name="n", cwd="/w", profile="p", models={"processor": "local"}, tools=("a", "b")),
        '{"type":"session_started","version":"1","name":"n","cwd":"/w","profile":"p","models":{"processor":"local"},'
        '"tools":["a","b"],"format":6}',
    ),
    (
        e.ModeRestricted(sandbox="read-only", approval="ask"),
        '{"type":"mode_restricted","sandbox":"read-only","approval":"ask"}',
    ),
    (
        e.TurnStarted(message=Message.user("hi")),
        '{"type":"turn_started","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}',
    ),
    (
        e.MessageCompleted(
            message=Message(role="assistant", parts=(Thinking(text="t", signature="s"), Text(text="x"), CALL)),
            usage=USAGE,
            is_cut=True,
        ),
        '{"type":"message_completed","message":{"role":"assistant","parts":[{"type":"thinking","text":"t",'
        f'"signature":"s"}},{{"type":"text","text":"x"}},{CALL_JSON}]}},"usage":{USAGE_JSON},"is_cut":true}}',
    ),
    (
        e.ToolFinished(result=RESULT),
        '{"type":"tool_finished","result":{"type":"tool_result","call_id":"c1","output":"ü","is_error":true}}',
    ),
    (
        e.CommandFinished(command="make | tail", folder="/w", exit_code=0, pipe_codes=(2, 0), before="a", after="b:c"),
        '{"type":"command_finished","command":"make | tail","folder":"/w","exit_code":0,"pipe_codes":[2,0],'
        '"before":"a","after":"b:c"}',
    ),
    (
        e.CommandFinished(command="python test_a.py", folder="/w", exit_code=0, ran_no_test=True),
        '{"type":"command_finished","command":"python test_a.py","folder":"/w","exit_code":0,"ran_no_test":true}',
    ),
    (
        e.PlanUpdated(tasks=(e.Task(description="d"), e.Task(description="f", status="in-progress"))),
        '{"type":"plan_updated","tasks":[{"description":"d","status":"planned"},'
        '{"description":"f","status":"in-progress"}]}',
    ),
    (e.Logged(text="x"), '{"type":"logged","text":"x"}'),
    (
        e.FileChanged(call_id="c1", path="/w/a.py", diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y"),
        '{"type":"file_changed","call_id":"c1","path":"/w/a.py",'
        '"diff":"--- a/a.py\\n+++ b/a.py\\n@@ -1 +1 @@\\n-x\\n+y"}',
    ),
    (
        e.Refused(kind="command", subject="git push", by="rule", reason="r", allowed_by="a"),
        '{"type":"refused","kind":"command","subject":"git push","by":"rule","reason":"r","allowed_by":"a"}',
    ),
    (e.Asked(question=QUESTION), f'{{"type":"asked","question":{QUESTION_JSON}}}'),
    (
        e.Answered(question=QUESTION, answer=e.Answer(choice="allow_prefix", by="person")),
        f'{{"type":"answered","question":{QUESTION_JSON},"answer":{{"choice":"allow_prefix","by":"person"}}}}',
    ),
    (e.Reminded(text="x"), '{"type":"reminded","text":"x"}'),
    (
        e.Interjected(message=Message.user("hi")),
        '{"type":"interjected","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}',
    ),
    (
        e.UsageRecorded(model="local", usage=USAGE, purpose="summary"),
        f'{{"type":"usage_recorded","model":"local","usage":{USAGE_JSON},"purpose":"summary"}}',
    ),
    (
        e.PromptRecorded(system="s", tools=(ToolSpec("a", "A.", {"type": "object"}),), model="m:n", effort="low"),
        '{"type":"prompt_recorded","system":"s","tools":[{"name":"a","description":"A.","schema":{"type":"object"},'
        '"has_long_arguments":false}],'
        '"model":"m:n","effort":"low"}',
    ),
    (
        e.PromptChanged(text="x", system="s", unavailable=("a",), effort="high"),
        '{"type":"prompt_changed","text":"x","system":"s","unavailable":["a"],"effort":"high"}',
    ),
    (e.Compacted(summary="s", kept_count=2), '{"type":"compacted","summary":"s","kept_count":2}'),
    (e.Rewound(message_count=3), '{"type":"rewound","message_count":3}'),
    (
        e.StateSaved(toolkit="t", value={"a": [1, None, 2.5, "x", True]}),
        '{"type":"state_saved","toolkit":"t","value":{"a":[1,null,2.5,"x",true]}}',
    ),
    (
        e.ArtifactShown(
            call_id="c1",
            artifact=e.Artifact(
                kind="chart", name="n", rows=({"a": 1},), text="t", chart=e.Chart(kind="bar", x="a", y=("a",))
            ),
        ),
        '{"type":"artifact_shown","call_id":"c1","artifact":{"kind":"chart","name":"n","description":"",'
        '"rows":[{"a":1}],"text":"t","chart":{"kind":"bar","x":"a","y":["a"]}}}',
    ),
    (e.PromptsSuggested(prompts=("a", "b")), '{"type":"prompts_suggested","prompts":["a","b"]}'),
    (
        e.TurnFinished(reason="budget", detail="d", exit_code=5),
        '{"type":"turn_finished","reason":"budget","detail":"d","exit_code":5}',
    ),
    (
        e.TurnFinished(reason="stop", answer="x"),
        '{"type":"turn_finished","reason":"stop","detail":"","exit_code":0,"answer":"x"}',
    ),
    (e.TextShown(text="x"), '{"type":"text_shown","text":"x"}'),
    (e.TextShown(text="x", call_id="c1"), '{"type":"text_shown","text":"x","call_id":"c1"}'),
    (e.Status(text="x"), '{"type":"status","text":"x"}'),
    (e.TextDelta(text="x"), '{"type":"text_delta","text":"x"}'),
    (e.ThinkingDelta(text="x"), '{"type":"thinking_delta","text":"x"}'),
    (e.Retrying(text="x", wait_s=0.5), '{"type":"retrying","text":"x","wait_s":0.5}'),
    (
        e.ToolStarted(call=CALL, kind="edit", title="Edit a.py", paths=("/w/a.py",)),
        f'{{"type":"tool_started","call":{CALL_JSON},"kind":"edit","title":"Edit a.py","paths":["/w/a.py"]}}',
    ),
    (e.ToolStarted(call=CALL), f'{{"type":"tool_started","call":{CALL_JSON}}}'),
    (e.ToolProgress(call_id="c1", text="x"), '{"type":"tool_progress","call_id":"c1","text":"x"}'),
    (
        e.ToolProgress(call_id="c1", text="x", skipped_line_count=9),
        '{"type":"tool_progress","call_id":"c1","text":"x","skipped_line_count":9}',
    ),
    (
        e.SubagentEvent(call_id="c1", event=e.Status(text="x")),
        '{"type":"subagent","call_id":"c1","event":{"type":"status","text":"x"}}',
    ),
    (
        e.RunFinished(usage=USAGE, cost_usd=None, reason="stop", exit_code=0),
        f'{{"type":"run_finished","usage":{USAGE_JSON},"cost_usd":null,"reason":"stop","exit_code":0,"detail":""}}',
    ),
]


@pytest.mark.parametrize(("event", "text"), PINNED, ids=[event.type for event, _ in PINNED])
def test_json(event, text):
    assert event.model_dump_json() == text
    assert type(event).model_validate_json(text) == event
    assert next(iter(json.loads(text))) == "type"
    if isinstance(event, e.SavedEvent):
        assert e.saved_event_adapter.validate_json(text) == event
    else:
        with pytest.raises(ValueError, match="union_tag_invalid"):
            e.saved_event_adapter.validate_json(text)


def test_an_answer_without_text_has_no_text_field():
    answer = e.Answer(choice="allow", by="person", text="this")
    assert answer.model_dump_json() == '{"choice":"allow","by":"person","text":"this"}'
    assert e.Answer.model_validate_json(answer.model_dump_json()) == answer


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({"kind": "command"}, {"allow": "once", "allow_always": "always", "deny": "no"}),
        (
            {"kind": "command", "prefix": "git push"},
            {"allow": "once", "allow_prefix": "session: git push", "allow_always": "always", "deny": "no"},
        ),
        ({"kind": "sandbox"}, {"allow": "once", "deny": "no"}),
        ({"kind": "trust"}, {"allow": "this time", "allow_always": "always", "deny": "no"}),
        ({"kind": "text"}, {}),
    ],
)
def test_the_options_of_a_question(asked, options):
    question = e.Question(subject="s", text="t", **asked)
    assert {option.choice: option.label for option in question.options} == options
    assert "options" not in question.model_dump_json()


def test_only_tools_that_are_not_shown_as_a_whole_have_a_display():
    header, text = PINNED[0]
    shown = header.model_copy(update={"displays": {"plan": "nothing"}})
    assert shown.model_dump_json() == text.replace(',"format"', ',"displays":{"plan":"nothing"},"format"')
    assert e.SessionStarted.model_validate_json(shown.model_dump_json()) == shown


def test_a_change_without_a_diff_has_no_diff_field():
    text = '{"type":"file_changed","call_id":"","path":"/w/a.png"}'
    assert e.FileChanged(call_id="", path="/w/a.png").model_dump_json() == text
    assert e.saved_event_adapter.validate_json(text).diff == ""


def test_a_question_names_its_call_only_if_there_is_one():
    question = QUESTION.model_copy(update={"call_id": "c1"})
    assert question.model_dump_json() == QUESTION_JSON.replace("}", ',"call_id":"c1"}')
    assert e.Question.model_validate_json(question.model_dump_json()) == question
    assert e.Question.model_validate_json(QUESTION_JSON).call_id == ""


def test_every_event_is_pinned():
    assert {type(event) for event, _ in PINNED} == {*get_args(e.SavedEvent), *get_args(e.EphemeralEvent)}


def test_unknown_fields_are_refused_and_values_are_frozen():
    with pytest.raises(ValueError, match="extra_forbidden"):
        e.saved_event_adapter.validate_json('{"type":"logged","text":"x","colour":"red"}')
    with pytest.raises(ValueError, match="frozen"):
        e.Logged(text="x").text = "y"


def test_half_surrogates_are_replaced():
    assert Message.user("a\udcff").text == "a\ufffd"
    assert Message.user("\ud83d\ude00").text == "😀"
    assert e.Logged(text="\ud83d").model_dump_json() == '{"type":"logged","text":"\ufffd"}'
    assert ToolResult(call_id="\ud83d", output="\udc00 ").model_dump_json()


def test_json_values_are_as_the_session_file_holds_them():
    for value in (float("inf"), {"a": [float("nan"), "\ud83d", 10**400]}, {"\ud83d": -0.0}):
        event = e.StateSaved(toolkit="t", value=value)
        assert e.saved_event_adapter.validate_json(event.model_dump_json()) == event
    assert e.saved_event_adapter.validate_json('{"type":"state_saved","toolkit":"t","value":[NaN]}').value == [None]
    shown = e.Artifact(kind="table", name="n", rows=({"\ud83d": float("nan")},))
    assert shown.model_dump_json().endswith('"rows":[{"\ufffd":null}]}')
