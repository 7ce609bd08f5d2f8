"""Session files for tests."""

import json

from goose_like.core.events import (
    Answer,
    Answered,
    Artifact,
    ArtifactShown,
    Asked,
    FileChanged,
    Interjected,
    Logged,
    MessageCompleted,
    PlanUpdated,
    PromptsSuggested,
    Question,
    Reminded,
    SessionStarted,
    Task,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.sessions.session import Session


def make_header(name, cwd="/w"):
    return SessionStarted(version="0", name=name, cwd=cwd, profile="p", models={"processor": "local"}, tools=())


def write_session(name, *words, cwd="/w"):
    """Write a session with one turn for each user message."""
    session = Session.create(name)
    session.append(make_header(name, cwd))
    for word in words:
        session.append(TurnStarted(message=Message.user(word)))
        session.append(TurnFinished(reason="stop"))
    session.close()
    return session


HOSTILE = '<script>alert(1)</script> & \x1b[31mred "q" \' ``` **b** </details>'


DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-<old>\n+new"


def write_events(name, *events):
    session = Session.create(name)
    for event in (make_header(session.name), *events):
        session.append(event)
    session.close()
    return session


def write_full_session(name="one"):
    """Write a session with every kind of entry that a transcript shows."""
    calls = [
        ToolCall(id="a", name="shell", arguments=json.dumps({"command": f"echo {HOSTILE}"})),
        ToolCall(id="b", name="write_file", arguments=json.dumps({"path": "x.py", "content": "a\nb"})),
        ToolCall(id="c", name=HOSTILE, arguments="{broken"),
        ToolCall(id="d", name="patch_file", arguments=json.dumps({"path": "failed.py"})),
    ]
    said = Message(role="assistant", parts=(Thinking(text=HOSTILE), Text(text=f"**bold** {HOSTILE}"), *calls))
    question = Question(kind="command", subject="rm", text=HOSTILE, detail=DIFF)
    image = Image(name="a.png", media_type="image/png", source=HOSTILE)
    session = write_events(
        name,
        TurnStarted(message=Message(role="user", parts=(Text(text=HOSTILE), image))),
        MessageCompleted(message=said, usage=Usage(input_tokens=1200, output_tokens=7)),
        Asked(question=question),
        Answered(question=question, answer=Answer(choice="allow", by="person")),
        ToolFinished(result=ToolResult(call_id="a", output=f"{DIFF}\n{HOSTILE}")),
        FileChanged(call_id="b", path="/w/x.py", diff=DIFF),
        Logged(text="--- a note"),
        ToolFinished(result=ToolResult(call_id="b", output="saved")),
        ToolFinished(result=ToolResult(call_id="d", output="no such file", is_error=True)),
        PlanUpdated(tasks=(Task(description=HOSTILE, status="complete"), Task(description="two"))),
        ArtifactShown(call_id="a", artifact=Artifact(kind="table", name=HOSTILE, rows=({"day": HOSTILE, "n": 1},))),
        ArtifactShown(call_id="a", artifact=Artifact(kind="html", name="page", text="<h1>Hi</h1><script>x</script>")),
        PromptsSuggested(prompts=("Why?", HOSTILE)),
        Reminded(text=HOSTILE),
        Interjected(message=Message.user("wait")),
        MessageCompleted(message=Message.assistant("```\ncut"), is_cut=True),
        TurnFinished(reason="error", detail=HOSTILE),
    )
    session.outputs.mkdir()
    (session.outputs / "a.png").write_bytes(b"\x89PNG")
    return session
