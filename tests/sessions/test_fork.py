"""Forks: the same events as the original, well-formed at every turn, and independent of the original."""

import shutil

import pytest
from hypothesis import given

from goose_like.core.errors import SessionError, UsageError
from goose_like.core.events import MessageCompleted, ToolFinished, TurnFinished, TurnStarted
from goose_like.core.message import Image, Message, Text, ToolCall, ToolResult
from goose_like.sessions.fork import fork
from goose_like.sessions.index import find_session
from goose_like.sessions.session import Session
from tests.core.test_history import conversation
from tests.fakes import is_well_formed
from tests.sessions.session_files import make_header, write_session


def texts(session):
    return [message.text for message in session.history.messages]


def resume_copy(session):
    session.close()
    return Session.resume(session.name)


def delete(session):
    """Delete a session, so that the next example does not read it."""
    session.close()
    shutil.rmtree(session.folder)


@given(conversation())
def test_a_fork_at_each_turn_is_well_formed(events):
    session = Session.create()
    for event in (make_header(session.name), TurnStarted(message=Message.user("first")), *events):
        session.append(event)
    session.close()
    listed = find_session(session.name)
    count = sum(isinstance(event, TurnStarted) for event in events) + 1
    for at in (*range(2, count + 1), None):
        copy = resume_copy(fork(listed, at=at))
        assert is_well_formed(copy.history.messages)
        assert copy.history.turn_count == (at - 1 if at else count)
        assert copy.damage == []
        delete(copy)
    delete(session)


def test_a_fork_before_a_turn():
    session = write_session("one", "a", "b", "c", cwd="/here")
    before = session.file.read_bytes()
    copy = resume_copy(fork(find_session("one"), at=3, name="two"))
    assert texts(copy) == ["a", "b"]
    assert (copy.name, copy.history.header.cwd, session.file.read_bytes()) == ("two", "/here", before)
    assert texts(resume_copy(fork(find_session("one")))) == ["a", "b", "c"]


@pytest.mark.parametrize("at", [4, 1, -1])
def test_turns_that_are_not_there(at):
    write_session("one", "a", "b", "c")
    with pytest.raises(
        UsageError, match=f"nothing to copy before turn {at}: 'one' has 3 turns; choose one from 2 to 3"
    ):
        fork(find_session("one"), at=at)


def test_a_session_that_is_open_and_being_written_is_forked():
    write_session("one", "hello")
    held = Session.resume("one")
    held.append(TurnStarted(message=Message.user("more")))
    with held.file.open("ab") as file:
        file.write(b'{"type":"logged","te')
    assert texts(resume_copy(fork(find_session("one"), name="two"))) == ["hello", "more"]
    held.close()


def test_a_line_that_can_not_be_read_stays_behind():
    session = write_session("one", "hello", "there")
    lines = session.file.read_bytes().splitlines(keepends=True)
    session.file.write_bytes(b"".join([*lines[:2], b"{\n", *lines[2:]]))
    copy = fork(find_session("one"), name="two")
    assert [line.partition(":")[0] for line in copy.damage] == [f"{session.file}, line 3"]
    assert texts(resume_copy(copy)) == ["hello", "there"]


def test_outputs_that_it_names_are_its_own():
    session = Session.create("one")
    session.outputs.mkdir()
    for name in ("call_1.txt", "cafe.png", "unnamed.txt"):
        (session.outputs / name).write_text(name)
    output = f"all of it is in {session.outputs}/call_1.txt: search it"
    image = Image(name="cafe.png", media_type="image/png", source="x.png")
    call = ToolCall(id="call_1", name="shell", arguments="{}")
    events = (
        TurnStarted(message=Message(role="user", parts=(Text(text="look"), image))),
        MessageCompleted(message=Message.assistant("", [call])),
        ToolFinished(result=ToolResult(call_id="call_1", output=output)),
        TurnFinished(reason="stop"),
    )
    for event in (make_header("one"), *events):
        session.append(event)
    session.close()
    copy = resume_copy(fork(find_session("one"), name="two"))
    shutil.rmtree(session.folder)
    (result,) = copy.history.messages[-1].tool_results
    assert result.output == f"all of it is in {copy.outputs}/call_1.txt: search it"
    assert {file.name: file.read_text() for file in copy.outputs.iterdir()} == {
        "call_1.txt": "call_1.txt",
        "cafe.png": "cafe.png",
    }


def test_a_fork_that_fails_leaves_nothing(home):
    write_session("one", "a", "b")
    with pytest.raises(SessionError, match="there is a session 'one' already"):
        fork(find_session("one"), name="one")
    before = sorted((home / "state/sessions").iterdir())
    with pytest.raises(UsageError):
        fork(find_session("one"), at=9)
    assert sorted((home / "state/sessions").iterdir()) == before
