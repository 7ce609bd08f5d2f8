"""Archives: a session as JSON and back."""

import json
import re
import shutil
from base64 import b64decode

import pytest
from hypothesis import given

from goose_like.core.errors import SessionError
from goose_like.core.events import (
    TurnStarted,
)
from goose_like.core.message import Message
from goose_like.sessions.archive import export_archive, import_file
from goose_like.sessions.export_html import export_html
from goose_like.sessions.export_markdown import export_markdown
from goose_like.sessions.index import find_session
from goose_like.sessions.session import Session
from goose_like.sessions.transcript import Transcript
from tests.core.test_history import conversation
from tests.sessions.session_files import write_events, write_full_session, write_session


@given(conversation())
def test_out_and_in_again_the_history_is_equal(tmp_path_factory, events):
    session = write_events(None, TurnStarted(message=Message.user("x")), *events)
    file = tmp_path_factory.mktemp("out") / "x.json"
    file.write_text(export_archive(find_session(session.name)))
    copy = import_file(file)
    copy.close()
    assert copy.file.read_bytes() == session.file.read_bytes()
    one, two = Session.resume(session.name), Session.resume(copy.name)
    assert one.history == two.history
    assert one.name != two.name
    for each in (one, two):
        each.close()
        shutil.rmtree(each.folder)  # the next example need not read it


def test_json_holds_the_outputs_that_are_named(tmp_path):
    session = write_full_session()
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
    session = write_session("one", "hello")
    file = tmp_path / "x.json"
    file.write_text(json.dumps(json.loads(export_archive(find_session("one"))), indent=2))
    copy = import_file(file)
    assert copy.file.read_bytes() == session.file.read_bytes()
    copy.close()


def test_a_bad_event_is_told_with_its_number(tmp_path, home):
    write_session("one", "hello", "there")
    file = tmp_path / "x.json"
    file.write_text(export_archive(find_session("one")).replace('"text":"there"', '"tixt":"there"'))
    before = sorted((home / "state/sessions").iterdir())
    with pytest.raises(SessionError, match=r"x\.json can't be read: event 4: "):
        import_file(file)
    assert sorted((home / "state/sessions").iterdir()) == before


@pytest.mark.parametrize(
    ("text", "report"),
    [
        ("", "(Invalid JSON: EOF "),
        ('{"format": "goose-like session",\n"version": 1,\n]', "at line 3 column 1)"),
        ("[]", "is no session of goose-like or goose 0.9 (Input should be an object)"),
        ('{"type": "logged"}', "(format: Field required)"),
        ('{"format": "goose-like session", "version": 2, "events": []}', "(version: Input should be 1)"),
        ('{"format": "goose-like session", "version": 1, "events": [1]}', "(events.0: Input should be an object)"),
        ('{"format": "goose-like session", "version": 1, "events": [{}]}', "event 1: "),
        (
            '{"format": "goose-like session", "version": 1, "outputs": {"../x": ""}, "events": []}',
            "(outputs.../x.[key]: ",
        ),
        ('{"format": "goose-like session", "version": 1, "outputs": {"x": "%"}, "events": []}', "(outputs.x: "),
        (
            '{"format": "goose-like session", "version": 1, "assets": {"a/../x": ""}, "events": []}',
            "(assets.a/../x.[key]: ",
        ),
        ('{"format": "goose-like session", "version": 1, "assets": {"x.json": 5}, "events": []}', "(assets.x.json: "),
        ('{"format": "goose-like session", "version": 1, "assets": [1], "events": []}', "(assets: "),
        ('{"role": "user", "content": []}', "it has no messages"),
        ('{"role": "user", "content": []}\n\nnull', "is no session of goose-like or goose 0.9 (1: "),
        ('{"role": "system", "content": []}', "(0.role: "),
        ('{"role": "user", "content": [{"type": "Video"}]}', "(0.content.0.type: "),
        ('{"role": "user", "content": [], "created": 1e99}', "(0.created: "),
    ],
)
def test_files_that_are_bad(tmp_path, home, text, report):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(SessionError, match=re.escape(report)) as failed:
        import_file(file)
    assert "\n" not in str(failed.value)
    assert list((home / "state/sessions").glob("*")) == []


def test_a_file_that_can_not_be_read(tmp_path):
    with pytest.raises(SessionError, match=r"none.json can't be read: "):
        import_file(tmp_path / "none.json")
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(SessionError, match=r"binary can't be read: "):
        import_file(tmp_path / "binary")


def test_secrets_in_older_files_are_masked(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    session = write_events("old", TurnStarted(message=Message.user("log in with hunter2-hunter2")))
    session.outputs.mkdir()
    (session.outputs / "a.txt").write_text("hunter2-hunter2 is right")
    info = find_session("old")
    session.file.write_bytes(session.file.read_bytes().replace(b"log in", b"a.txt: log in"))
    transcript = Transcript.read(info)
    for text in (export_archive(info), export_markdown(transcript), export_html(transcript)):
        assert "hunter2-hunter2" not in text
        assert "[masked:DB" in text.replace("\\", "")
    archive = json.loads(export_archive(info))
    assert b64decode(archive["outputs"]["a.txt"]) == b"[masked:DB_PASSWORD] is right"
    assert all("at" in event for event in archive["events"])
