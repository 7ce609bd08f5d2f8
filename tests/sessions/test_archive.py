"""Archives: a session as JSON and back."""

import json
import re

import pytest
from hypothesis import given

from goose_like.core.errors import SessionError
from goose_like.core.events import (
    TurnStarted,
)
from goose_like.core.message import Message
from goose_like.sessions.archive import export_archive, import_file
from goose_like.sessions.index import find_session
from goose_like.sessions.session import Session
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
    one.close()
    two.close()


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


@pytest.mark.parametrize("indent", [None, 2])
def test_a_bad_event_is_told_with_its_line(tmp_path, home, indent):
    write_session("one", "hello", "there")
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
        ('{"role": "user", "content": []}', "the file has no messages"),
        ('{"role": "user", "content": []}\n\nnull', "line 3 is no message of goose 0.9"),
        ('{"role": "system", "content": []}', "line 1 is no message of goose 0.9 (role: "),
        ('{"role": "user", "content": [{"type": "Video"}]}', "line 1 is no message of goose 0.9 (content.0: "),
        ('{"role": "user", "content": [], "created": 1e99}', "line 1 is no message of goose 0.9 (created: "),
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
