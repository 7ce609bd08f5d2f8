"""A session as Markdown, as a web page, as JSON and back; sessions of goose 0.9."""

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given

from goose_like.core.errors import SessionError
from goose_like.core.events import (
    Answer,
    Answered,
    Artifact,
    ArtifactShown,
    Asked,
    Interjected,
    Logged,
    MessageCompleted,
    PlanUpdated,
    PromptsSuggested,
    Question,
    Reminded,
    Task,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED
from goose_like.core.message import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.sessions.archive import export_archive, import_file
from goose_like.sessions.export_html import export_html
from goose_like.sessions.export_markdown import export_markdown
from goose_like.sessions.index import find_session
from goose_like.sessions.session import Session
from goose_like.sessions.transcript import Transcript
from tests.core.test_history import conversation
from tests.fakes import is_well_formed
from tests.sessions.test_session import filled, header

HOSTILE = '<script>alert(1)</script> & \x1b[31mred "q" \' ``` **b** </details>'
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-<old>\n+new"


def recorded(name, *events):
    session = Session.create(name)
    for event in (header(session.name), *events):
        session.append(event)
    session.close()
    return session


def rich(name="one"):
    """A session with all that a transcript shows."""
    calls = [
        ToolCall(id="a", name="shell", arguments=json.dumps({"command": f"echo {HOSTILE}"})),
        ToolCall(id="b", name="write_file", arguments=json.dumps({"path": "x.py", "content": "a\nb"})),
        ToolCall(id="c", name=HOSTILE, arguments="{broken"),
        ToolCall(id="d", name="patch_file", arguments=json.dumps({"path": "failed.py"})),
    ]
    said = Message(role="assistant", parts=(Thinking(text=HOSTILE), Text(text=f"**bold** {HOSTILE}"), *calls))
    question = Question(kind="command", subject="rm", text=HOSTILE, detail=DIFF)
    image = Image(name="a.png", media_type="image/png", source=HOSTILE)
    session = recorded(
        name,
        TurnStarted(message=Message(role="user", parts=(Text(text=HOSTILE), image))),
        MessageCompleted(message=said, usage=Usage(input_tokens=1200, output_tokens=7)),
        Asked(question=question),
        Answered(question=question, answer=Answer(choice="allow", by="person")),
        ToolFinished(result=ToolResult(call_id="a", output=f"{DIFF}\n{HOSTILE}")),
        Logged(text=DIFF),
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


class Tags(HTMLParser):
    """The tags with their attributes, the text, and what is open."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def test_the_page_escapes_everything_and_loads_nothing():
    rich()
    text = export_html(Transcript.read(find_session("one")))
    read = Tags(text)
    assert read.open == []
    kinds = {tag for tag, _ in read.tags}
    assert {"details", "ins", "del", "img", "strong", "h2"} <= kinds
    assert not kinds & {"script", "link", "iframe", "object", "base"}
    assert not [name for _, attributes in read.tags for name in attributes if name.startswith("on")]
    assert [attributes["src"] for tag, attributes in read.tags if tag == "img"] == ["data:image/png;base64,iVBORw=="]
    assert "\x1b" not in text
    # Everywhere that the text was put: the person, thinking, the answer, two of a call, the output, a name, a question,
    # the plan, a table's name and a cell, what may be asked next, the reminder, the end.
    assert read.words.count("<script>alert(1)</script>") == 14
    assert "\\x1b[31mred" in read.words
    assert INTERRUPTED in read.words  # the call that has no result


def test_links_of_the_model_are_no_scripts_and_its_images_are_not_loaded():
    said = '[x](javascript:alert(1)) ![y](http://there/y.png) <img src="http://there/z.png"> [z](http://there)'
    recorded("one", TurnStarted(message=Message.user("x")), MessageCompleted(message=Message.assistant(said)))
    tags = Tags(export_html(Transcript.read(find_session("one")))).tags
    assert [attributes["href"] for tag, attributes in tags if tag == "a"] == ["http://there/y.png", "http://there"]
    assert "img" not in {tag for tag, _ in tags}


def test_markdown():
    rich()
    text = export_markdown(Transcript.read(find_session("one")))
    assert text.startswith("# one\n\n- folder: `/w`\n")
    assert "## Turn 1\n\n> <script>" in text
    assert "\x1b" not in text
    assert f"```diff\n{DIFF}\n```" in text
    assert "````\n--- a/x.py" in text  # the fence is longer than any in the output
    assert "```\ncut\n```\n\n*cut off*" in text  # what was left open is closed
    assert "- ☑ \\<script\\>" in text
    assert "| day | n |\n| --- | --- |\n" in text
    assert "*to ask next: Why? · " in text
    assert "## Meanwhile\n\n> wait" in text
    assert "## Turn 2" not in text


def test_files_that_tools_wrote():
    rich()
    assert Transcript.read(find_session("one")).changed_files == ["x.py"]


def test_what_is_damaged_is_told_and_the_rest_shown():
    session = filled("one", "hello")
    with session.file.open("ab") as file:
        file.write(b"{\n")
    transcript = Transcript.read(find_session("one"))
    assert "line 4: left out" in transcript.damage[0]
    assert "> hello" in export_markdown(transcript)


@given(conversation())
def test_out_and_in_again_the_history_is_equal(tmp_path_factory, events):
    session = recorded(None, TurnStarted(message=Message.user("x")), *events)
    file = tmp_path_factory.mktemp("out") / "x.json"
    file.write_text(export_archive(find_session(session.name)))
    copy = import_file(file)
    copy.close()
    assert copy.file.read_bytes() == session.file.read_bytes()
    one, two = Session.resume(session.name), Session.resume(copy.name)
    assert one.history == two.history
    assert one.name != two.name
    one.close()
    two.close()


def test_json_holds_the_outputs_that_are_named(tmp_path):
    session = rich()
    file = tmp_path / "x.json"
    file.write_text(export_archive(find_session("one")))
    whole = json.loads(file.read_text())
    assert (whole["format"], whole["version"], whole["name"]) == ("goose-like session", 1, "one")
    assert [event["type"] for event in whole["events"]][:2] == ["session_started", "turn_started"]
    copy = import_file(file, "two")
    assert (copy.outputs / "a.png").read_bytes() == b"\x89PNG"
    copy.close()
    find_session("one").file.unlink()
    again = import_file(file)
    assert again.name == "one"  # it is free now
    again.close()
    assert session.folder != again.folder


def test_json_that_another_program_wrote_anew_is_read(tmp_path):
    session = filled("one", "hello")
    file = tmp_path / "x.json"
    file.write_text(json.dumps(json.loads(export_archive(find_session("one"))), indent=2))
    copy = import_file(file)
    assert copy.file.read_bytes() == session.file.read_bytes()
    copy.close()


@pytest.mark.parametrize("indent", [None, 2])
def test_a_bad_event_is_told_with_its_line(tmp_path, home, indent):
    filled("one", "hello", "there")
    text = export_archive(find_session("one"))
    if indent:
        text = json.dumps(json.loads(text), indent=indent)
    text = text.replace('"text":"there"', '"tixt":"there"').replace('"text": "there"', '"tixt": "there"')
    file = tmp_path / "x.json"
    file.write_text(text)
    lines = text[: text.index("tixt")].split("\n")
    expected = len(lines) if not indent else max(n for n, line in enumerate(lines, 1) if line == "    {")
    before = sorted((home / "state/sessions").iterdir())
    with pytest.raises(SessionError, match=rf"x\.json, line {expected}: event 4 can't be read .*nothing was imported"):
        import_file(file)
    assert sorted((home / "state/sessions").iterdir()) == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1 is no JSON"),
        ('{"format": "goose-like session",\n"version": 1,\n]', "line 3 is no JSON"),
        ("[]", "line 1: neither a session of goose-like nor of goose 0.9"),
        ('{"type": "logged"}', "line 1: neither"),
        ('{"format": "goose-like session", "version": 2, "events": []}', "line 1: version 2 of the format, and this"),
        ('{"format": "goose-like session", "version": 1, "events": [1]}', "line 1: event 1 can't be read"),
        (
            '{"format": "goose-like session", "version": 1, "outputs": {"../x": ""}, "events": []}',
            "'../x' is no name of an output",
        ),
        (
            '{"format": "goose-like session", "version": 1, "outputs": {"x": "%"}, "events": []}',
            "the output 'x' is no base64",
        ),
        (
            '{"format": "goose-like session", "version": 1, "assets": {"a/../../x": ""}, "events": []}',
            "'a/../../x' is no name of an asset",
        ),
        (
            '{"format": "goose-like session", "version": 1, "assets": {"x.json": 5}, "events": []}',
            "the asset 'x.json' is no base64",
        ),
        ('{"format": "goose-like session", "version": 1, "assets": [1], "events": []}', "`assets` is no object"),
        ('{"format": "goose-like session", "version": 1, "outputs": null, "events": []}', "`outputs` is no object"),
        ('{"role": "user", "content": []}', "nobody says anything in it"),
        ('{"role": "user", "content": []}\n\nnull', "line 3 is no message of goose 0.9"),
        ('{"role": "system", "content": []}', "line 1 is no message of goose 0.9 (role: "),
        ('{"role": "user", "content": [{"type": "Video"}]}', "line 1 is no message of goose 0.9 (content.0: "),
        ('{"role": "user", "content": [], "created": 1e99}', "line 1: `created` is no time"),
    ],
)
def test_files_that_are_bad(tmp_path, home, text, told):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(SessionError, match=re.escape(told)) as failed:
        import_file(file)
    assert "\n" not in str(failed.value)
    assert list((home / "state/sessions").glob("*")) == []


def test_a_file_that_can_not_be_read(tmp_path):
    with pytest.raises(SessionError, match=r"none.json' can't be read: "):
        import_file(tmp_path / "none.json")
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(SessionError, match=r"binary' can't be read: "):
        import_file(tmp_path / "binary")


def old(role, *content, created=1_700_000_000):
    return json.dumps({"role": role, "id": "msg_1", "created": created, "content": list(content)})


def words(text):
    return {"text": text, "type": "Text"}


def use(call_id, **parameters):
    return {"id": call_id, "name": "shell", "parameters": parameters, "is_error": False, "type": "ToolUse"}


def gave(call_id, output, **more):
    return {"tool_use_id": call_id, "output": output, "type": "ToolResult", **more}


def test_a_session_of_goose_09(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        old("user", words("look")),
        old("assistant", words("I look"), use("1", command="ls"), use("2", command="pwd")),
        old("user", gave("2", "/w"), gave("1", "boom", is_error=True)),
        old("assistant", words("done")),
        old("user", words("again")),
        old("assistant", use("1", command="ls")),
        old("user", words("no result came")),
        old("assistant", use("9", command="sleep")),
    ]
    file = tmp_path / "my-talk.jsonl"
    file.write_text("\n".join(lines) + "\n")
    copy = import_file(file)
    copy.close()
    assert copy.name == "my-talk"
    assert json.loads(copy.file.read_text().split("\n")[1])["at"] == "2023-11-14T22:13:20.000Z"
    resumed = Session.resume("my-talk")
    messages = resumed.history.messages
    assert is_well_formed(messages)
    assert resumed.damage == []
    told = [(message.role, message.text or [result.output for result in message.tool_results]) for message in messages]
    assert told == [
        ("user", "look"),
        ("assistant", "I look"),
        ("tool", ["boom", "/w"]),
        ("assistant", "done"),
        ("user", "again"),
        ("assistant", []),
        ("tool", [INTERRUPTED]),
        ("user", "no result came"),
        ("assistant", []),
        ("tool", [INTERRUPTED]),
    ]
    ids = [call.id for message in messages for call in message.tool_calls]
    assert len(set(ids)) == 4
    assert json.loads(messages[1].tool_calls[0].arguments) == {"command": "ls"}
    assert find_session("my-talk").cwd == str(tmp_path)
