"""The updates for each event, held against the SDK's type, and what the SDK has no type for by hand."""

from importlib.util import find_spec

import pytest

from goose_like.core import events
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, ToolResult, Usage

pytestmark = pytest.mark.skipif(find_spec("acp") is None, reason="the extra `acp` is not installed")
if find_spec("acp"):
    from acp.schema import SessionNotification

    from goose_like.acp.content import make_diffs
    from goose_like.acp.updates import UpdateMaker, make_usage, merge_updates

CALL = ToolCall(id="c1", name="shell", arguments='{"command": "ls"}')
STARTED = events.ToolStarted(call=CALL, kind="execute", title="ls", paths=("/a",))
HEADER = events.SessionStarted(
    version="0", name="n", cwd="/", profile="p", models={}, tools=(), displays={"plan": "nothing", "secret": "name"}
)
DIFF = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n@@ -9 +9,0 @@\n-nine\n"
QUESTION = events.Question(kind="command", subject="ls", text="run ls")
TABLE = events.Artifact(kind="table", name="prices", rows=({"a": 1},))
USUAL = [
    (HEADER, 0),
    (events.TurnStarted(message=Message.user("hi")), 0),
    (events.ThinkingDelta(text="hm"), 1),
    (events.TextDelta(text="I "), 1),
    (events.MessageCompleted(message=Message.assistant("I look", [CALL])), 0),
    (STARTED, 1),
    (events.ToolProgress(call_id="c1", text="out\n", skipped_line_count=2), 1),
    (events.SubagentEvent(call_id="c1", event=STARTED), 1),
    (events.SubagentEvent(call_id="c1", event=events.TextDelta(text="x")), 0),
    (events.FileChanged(call_id="c1", path="/a", diff=DIFF), 1),
    (events.FileChanged(call_id="c1", path="/b", diff=""), 1),
    (events.ArtifactShown(call_id="c1", artifact=TABLE), 1),
    (events.Asked(question=QUESTION), 0),
    (events.Answered(question=QUESTION, answer=events.Answer()), 0),
    (events.ToolFinished(result=ToolResult(call_id="c1", output="out")), 1),
    (events.PlanUpdated(tasks=(events.Task(description="one", status="failed"),)), 1),
    (events.Logged(text="a note\nand more"), 1),
    (events.Retrying(text="slow down", wait_s=1), 1),
    (events.Compacted(summary="s", kept_count=0), 1),
    (events.Compacted(summary="s", kept_count=0, is_routine=True), 0),
    (events.Rewound(message_count=0), 1),
    (events.PromptsSuggested(prompts=("next?",)), 1),
    (events.Reminded(text="r"), 0),
    (events.UsageRecorded(model="m", usage=Usage(), purpose="p"), 0),
    (events.ModeRestricted(sandbox="", approval="ask"), 0),
    (events.StateSaved(toolkit="t", value=1), 0),
    (events.Refused(kind="command", subject="ls", by="rule"), 0),
    (events.Status(text="s"), 0),
    (events.Interjected(message=Message.user("more")), 0),
    (events.TurnFinished(reason="stop", detail="denied: x"), 1),
    (events.RunFinished(usage=Usage(), cost_usd=None, reason="stop", exit_code=0), 0),
]


@pytest.mark.parametrize("capabilities", [{}, {"notices": {}, "compaction": {}}])
def test_each_event_as_updates_of_the_protocol(capabilities):
    maker = UpdateMaker(capabilities)
    for event, count in USUAL:
        updates = maker.make_updates(event)
        assert len(updates) == count, event
        for update in updates:
            if update["sessionUpdate"] not in ("notice", "compaction_update"):  # unknown to the SDK
                SessionNotification.model_validate({"sessionId": "s", "update": update})


def test_a_call_shows_diffs_output_and_what_was_shown():
    maker = UpdateMaker({})
    for event, _ in USUAL[:14]:
        maker.make_updates(event)
    (update,) = maker.make_updates(events.ToolFinished(result=ToolResult(call_id="c1", output="no", is_error=True)))
    assert update["status"] == "failed"
    first, second, shown, output = update["content"]
    assert (first["oldText"], first["newText"]) == ("one\ntwo\n", "one\nthree\n")
    assert (second["oldText"], second["newText"]) == ("nine\n", "")
    assert shown["content"]["text"].startswith("prices (table)")
    assert output["content"]["text"] == "no"


def test_calls_that_are_shown_in_another_way():
    maker = UpdateMaker({})
    maker.make_updates(HEADER)
    hidden = ToolCall(id="c2", name="plan", arguments="{}")
    assert maker.make_updates(events.ToolStarted(call=hidden)) == []
    assert maker.make_updates(events.ToolFinished(result=ToolResult(call_id="c2", output="ok"))) == []
    (named,) = maker.make_updates(events.ToolStarted(call=ToolCall(id="c3", name="secret", arguments="{}")))
    assert "rawInput" not in named
    (failed, end) = maker.make_updates(events.TurnFinished(reason="step_limit", detail="the limit of 3 steps"))
    assert (failed["toolCallId"], failed["status"]) == ("c3", "failed")
    assert "the limit of 3 steps" in end["content"]["text"]


def test_a_new_file_has_no_old_text():
    assert make_diffs("/a", "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n") == [
        {"type": "diff", "path": "/a", "newText": "a\nb\n"}
    ]


def test_updates_that_wait_are_merged():
    maker = UpdateMaker({})
    (one,) = maker.make_updates(events.TextDelta(text="a"))
    (two,) = maker.make_updates(events.TextDelta(text="b"))
    assert merge_updates(one, two)["content"]["text"] == "ab"
    (thought,) = maker.make_updates(events.ThinkingDelta(text="c"))
    assert merge_updates(two, thought) is None
    (start,) = maker.make_updates(STARTED)
    (progress,) = maker.make_updates(events.ToolProgress(call_id="c1", text="x"))
    assert merge_updates(start, progress) is None
    (end,) = maker.make_updates(events.ToolFinished(result=ToolResult(call_id="c1", output="x")))
    assert merge_updates(progress, end)["status"] == "completed"


def test_usage_without_a_price():
    assert make_usage(History(), 1000, None) == {"sessionUpdate": "usage_update", "used": 0, "size": 1000}
