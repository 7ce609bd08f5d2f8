"""Import of goose 0.9 session files."""

import json
import re

import pytest

from goose_like.core.errors import SessionError
from goose_like.core.history import INTERRUPTED
from goose_like.sessions.archive import import_file
from goose_like.sessions.export_markdown import export_markdown
from goose_like.sessions.index import find_session
from goose_like.sessions.session import Session
from goose_like.sessions.transcript import Transcript
from tests.fakes import is_well_formed


def build_message(role, *content, created=1_700_000_000):
    return json.dumps({"role": role, "id": "msg_1", "created": created, "content": list(content)})


def build_text(text):
    return {"text": text, "type": "Text"}


def build_tool_use(call_id, **parameters):
    return {"id": call_id, "name": "shell", "parameters": parameters, "is_error": False, "type": "ToolUse"}


def build_tool_result(call_id, output, **more):
    return {"tool_use_id": call_id, "output": output, "type": "ToolResult", **more}


def test_a_session_of_goose_09(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        build_message("user", build_text("look")),
        build_message(
            "assistant", build_text("I look"), build_tool_use("1", command="ls"), build_tool_use("2", command="pwd")
        ),
        build_message("user", build_tool_result("2", "/w"), build_tool_result("1", "boom", is_error=True)),
        build_message("assistant", build_text("done")),
        build_message("user", build_text("again")),
        build_message("assistant", build_tool_use("1", command="ls")),
        build_message("user", build_text("no result came")),
        build_message("assistant", build_tool_use("9", command="sleep")),
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
    shown = [(message.role, message.text or [result.output for result in message.tool_results]) for message in messages]
    assert shown == [
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
    assert "profile" not in export_markdown(Transcript.read(find_session("my-talk")))


def test_a_session_of_goose_09_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".config/goose/sessions/old.jsonl"
    file.parent.mkdir(parents=True)
    file.touch()
    with pytest.raises(SessionError, match=re.escape(f"goose-like session import {file}")):
        find_session("old")


@pytest.mark.parametrize("tail", ['{"role": "assistant", "content": [{"text": "I w', '{"role"\n', "\x00\x00"])
def test_a_torn_last_line_is_left_out_and_named(tmp_path, monkeypatch, tail):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "cut.jsonl"
    file.write_text(
        "\n".join([build_message("user", build_text("look")), build_message("assistant", build_text("so")), tail])
    )
    session = import_file(file)
    assert session.damage == [f"{file}: the last line was torn and is left out"]
    session.close()
    session = Session.resume("cut")
    assert [message.text for message in session.history.messages] == ["look", "so"]
    session.close()
