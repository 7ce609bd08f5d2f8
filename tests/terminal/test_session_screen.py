"""The screen of a session: calls that are shown in another way, live and in a resumed session."""

import re

import pytest

from goose_like.core.events import (
    Asked,
    FileChanged,
    MessageCompleted,
    PlanUpdated,
    Question,
    SessionStarted,
    Task,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.terminal.session_screen import SessionScreen
from tests.architecture.test_screens import PromptStub

STARTED = SessionStarted(
    version="0", name="", cwd="/", profile="", models={}, tools=(), displays={"plan": "nothing", "inquire": "name"}
)
OLD_START = STARTED.model_copy(update={"displays": {}})
CALLS = [
    ToolCall(id="p", name="plan", arguments='{"tasks": ["look"]}'),
    ToolCall(id="q", name="inquire", arguments='{"question": "Which?"}'),
    ToolCall(id="e", name="edit", arguments='{"path": "a.py"}'),
]
EFFECTS = {
    "p": PlanUpdated(tasks=(Task(description="look", status="complete"),)),
    "q": Asked(question=Question(kind="text", subject="inquire", text="Which?", call_id="q")),
    "e": FileChanged(call_id="e", path="/a.py", diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y"),
}


def list_events(*, is_live):
    """List the events of a turn. Starts of calls are not saved."""
    events = [TurnStarted(message=Message.user("go")), MessageCompleted(message=Message.assistant("", CALLS))]
    for call in CALLS:
        if is_live:
            events.append(ToolStarted(call=call))
        events += [EFFECTS[call.id], ToolFinished(result=ToolResult(call_id=call.id, output="fine"))]
    return [*events, TurnFinished(reason="stop")]


@pytest.mark.parametrize("is_live", [True, False])
async def test_a_call_is_shown_as_its_tool_wants(is_live):
    prompt = PromptStub()
    screen = SessionScreen(prompt)
    screen.notify(STARTED)
    events = list_events(is_live=is_live)
    if is_live:
        for event in events:
            screen.notify(event)
    else:
        screen.show_session([OLD_START, *events], is_new=True)
    screen.draw()
    rows = re.sub(r"\x1b\[[\d;]*m", "", prompt.text).splitlines()
    assert [row.rstrip() for row in rows if "▸" in row] == ["▸1 inquire", "▸2 edit  a.py"]
    places = [next(at for at, row in enumerate(rows) if text in row) for text in ("☑ look", "? Which?", "▸2", "+y")]
    assert places == sorted(places)
    assert [call.name for call, _ in screen.finished] == ["inquire", "edit"]
