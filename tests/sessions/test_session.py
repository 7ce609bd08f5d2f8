"""Sessions: whole lines, one writer, and a note for each damaged line."""

import json
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given

from goose_like.core.errors import SessionError, UsageError
from goose_like.core.events import Logged, MessageCompleted, TextShown, ToolFinished, TurnFinished, TurnStarted
from goose_like.core.history import INTERRUPTED
from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.sessions.index import find_session, list_sessions, rename_session
from goose_like.sessions.session import Session, delete_session
from tests.core.test_history import conversation, fold
from tests.sessions.session_files import make_header, write_events, write_session


@pytest.fixture
def tmpfs(tmp_path):
    """Mount a small file system; needs root."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def mount(options):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True)

    if os.geteuid() != 0 or mount("size=64k").returncode:
        pytest.skip("mounting a tmpfs needs root and the right to mount")
    yield folder, mount
    subprocess.run(["umount", str(folder)], check=True)


def test_append_and_resume():
    first = write_session("one", "hello\r\n\u2028there", "again")
    resumed = Session.resume("one")
    assert [message.text for message in resumed.history.messages] == ["hello\r\n\u2028there", "again"]
    assert (resumed.damage, resumed.folder) == ([], first.folder)
    resumed.append(TurnStarted(message=Message.user("more")))
    resumed.close()
    assert [message.text for message in Session.resume("one").history.messages][-1] == "more"


def test_each_line_is_an_object_with_type_first_and_time_last():
    session = write_session("one", "hello")
    for line in session.file.read_text().splitlines():
        record = json.loads(line)
        keys = list(record)
        assert (keys[0], keys[-1]) == ("type", "at")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["at"])


def test_only_the_owner_can_read_it():
    session = write_session("one", "hello")
    assert session.file.stat().st_mode & 0o777 == 0o600
    assert session.folder.stat().st_mode & 0o777 == 0o700


def test_the_last_events_are_there_to_be_drawn_again():
    write_session("one", *map(str, range(200)))
    resumed = Session.resume("one")
    assert len(resumed.recent) == 300
    assert resumed.recent[-2].message.text == "199"
    assert resumed.recent[-1] == TurnFinished(reason="stop")


CALLS = MessageCompleted(
    message=Message.assistant("", [ToolCall(id=id, name="shell", arguments="{}") for id in ("a", "b")])
)


def kill_after(*events, lines=None):
    """Write a session whose process is killed after these events, and resume it. `lines` replaces its lines."""
    session = Session.create("one")
    for event in (make_header("one"), TurnStarted(message=Message.user("go")), *events):
        session.append(event)
    os.close(session._descriptor)
    if lines:
        session.file.write_bytes(lines(session.file.read_bytes()))
    return Session.resume("one")


@given(conversation())
def test_the_file_replays_to_the_live_history_although_it_lacks_replaced_text(events):
    events = [TurnStarted(message=Message.user("x")), *events]
    session = write_events(None, *events)
    live = fold([make_header(session.name), *events])
    live.close()
    resumed = Session.resume(session.folder.name)
    assert (resumed.history, resumed.damage) == (live, [])
    resumed.close()
    delete_session(find_session(session.folder.name))


def test_a_finished_text_replaces_only_its_own_shown_text():
    shown = [TextShown(text=f"{id} shows\n", call_id=id) for id in "aba"]
    resumed = kill_after(CALLS, *shown, ToolFinished(result=ToolResult(call_id="a", output="done")))
    assert [result.output for result in resumed.history.messages[-1].tool_results] == [
        "done",
        f"{INTERRUPTED}. It had shown:\nb shows\n",
    ]
    assert resumed.file.read_text().count("text_shown") == 1
    assert [event.type for event in resumed.recent][-2:] == ["tool_finished", "tool_finished"]


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_kill_while_shown_text_is_replaced_loses_nothing(size):
    """The answer is in the file, but the rest of the shown text is not yet cut off."""
    shown = [TextShown(text=letter * 200) for letter in "abcd"]
    answer = MessageCompleted(message=Message.assistant("x" * size))
    with_text: list[bytes] = []
    kill_after(*shown, lines=lambda data: with_text.append(data) or data).close()
    delete_session(find_session("one"))

    def keep_rest(data):
        return data + with_text[0][len(data) :]

    resumed = kill_after(*shown, answer, lines=keep_rest)
    assert [message.text for message in resumed.history.messages] == ["go", "x" * size]


def test_torn_last_line_is_cut_off():
    session = write_session("one", "hello")
    whole = session.file.read_bytes()
    session.file.write_bytes(whole + b'{"type":"logged","te')
    resumed = Session.resume("one")
    assert resumed.damage == [f"{session.file}: the last line was torn and is left out"]
    resumed.append(Logged(text="x"))
    assert session.file.read_bytes().startswith(whole + b'{"type":"logged","text":"x"')
    resumed.close()
    assert Session.resume("one").damage == []


@pytest.mark.parametrize(
    "line", [b"\xff\xfe", b"null", b"[]", b"{", b'{"type":"from_the_future"}', b'{"type":"logged"}', b""]
)
def test_a_line_that_can_not_be_read_is_told_with_its_number(line):
    session = write_session("one", "hello", "there")
    lines = session.file.read_bytes().splitlines(keepends=True)
    session.file.write_bytes(b"".join([*lines[:2], line + b"\n", *lines[2:]]))
    resumed = Session.resume("one")
    assert [message.text for message in resumed.history.messages] == ["hello", "there"]
    (damage,) = resumed.damage
    assert damage.startswith(f"{session.file}, line 3: left out, it can't be read (")
    assert session.file.read_bytes() == b"".join([*lines[:2], line + b"\n", *lines[2:]])
    assert "\n" not in damage


def test_a_damaged_header_does_not_hide_the_session():
    session = write_session("one", "hello")
    lines = session.file.read_bytes().splitlines(keepends=True)
    session.file.write_bytes(b"{\n" + b"".join(lines[1:]))
    (listed,) = list_sessions()
    assert (listed.name, listed.first_words) == (session.folder.name, "hello")
    assert Session.resume(session.folder.name).history.messages[0].text == "hello"


def test_two_processes_on_one_session():
    write_session("one", "hello")
    program = """
import sys
from goose_like.sessions.session import Session
session = Session.resume("one")
print("held", flush=True)
sys.stdin.read()
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        report = rf"'one' is open in another process \(process {other.pid}\); .*goose-like session fork one"
        with pytest.raises(SessionError, match=report):
            Session.resume("one")
    finally:
        other.communicate()
    assert Session.resume("one").history.messages  # its lock went with it


def test_name_taken():
    write_session("one", "hello")
    with pytest.raises(
        SessionError, match="there is a session 'one' already; resume it: goose-like session resume one"
    ):
        Session.create("one")


def test_names_are_made_up_and_differ():
    sessions = [Session.create() for _ in range(5)]
    for session in sessions:
        session.append(make_header(session.name))
    assert len({session.name for session in sessions}) == 5


@pytest.mark.parametrize("name", ["", "a b", "../a", "-a", ".a", "x" * 65, "a\n"])
def test_what_is_no_name(name):
    with pytest.raises(UsageError, match="is no name for a session"):
        Session.create(name)


def test_unknown_name():
    write_session("parser", "hello")
    with pytest.raises(SessionError, match=r"no session 'parsr'; did you mean 'parser'\?"):
        Session.resume("parsr")


def test_newest_is_resumed_by_default_or_that_of_the_folder():
    with pytest.raises(SessionError, match="there is no session; start one: goose-like session start"):
        Session.resume()
    for number, (name, cwd) in enumerate([("one", "/a"), ("two", "/b"), ("three", "/a")]):
        os.utime(write_session(name, "hello", cwd=cwd).file, (number, number))
    assert [listed.name for listed in list_sessions()] == ["three", "two", "one"]
    assert Session.resume().name == "three"
    assert Session.resume(cwd="/b").name == "two"
    with pytest.raises(SessionError, match="there is no session in /c"):
        Session.resume(cwd="/c")


def test_list():
    session = write_session("one", "hello\n  there", "again", cwd="/a")
    empty = Session.create("nothing-was-said")
    empty.append(make_header("nothing-was-said"))
    assert len(list_sessions()) == 1
    empty.close()
    assert not empty.folder.exists()
    (listed,) = list_sessions()
    assert (listed.folder, listed.name, listed.cwd, listed.first_words) == (session.folder, "one", "/a", "hello there")


def test_temporary_leaves_nothing(home):
    session = Session.temporary()
    session.append(make_header("temporary"))
    assert session.file.exists()
    session.close()
    assert not session.folder.exists()
    assert not home.exists()


def test_home_that_is_no_folder(home):
    home.write_text("")
    with pytest.raises(SessionError, match=r"can't be written: .*; make that folder writable or point GOOSE_LIKE_HOME"):
        Session.create("one")


def test_read_only_home(tmpfs, monkeypatch):
    folder, mount = tmpfs
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(folder))
    write_session("one", "hello")
    assert mount("remount,ro,size=64k").returncode == 0
    for open_it in (lambda: Session.create("two"), lambda: Session.resume("one")):
        with pytest.raises(SessionError, match=r"can't be written: .*Read-only file system.*make that folder writable"):
            open_it()
    assert [listed.name for listed in list_sessions()] == ["one"]
    with pytest.raises(SessionError, match=r"the name can't be written: .*Read-only"):
        rename_session("one", "two")
    with pytest.raises(SessionError, match=r"'one' can't be deleted: .*Read-only"):
        delete_session(find_session("one"))


def test_full_disk(tmpfs, monkeypatch):
    folder, _ = tmpfs
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(folder))
    session = Session.create("one")
    session.append(TurnStarted(message=Message.user("hello")))
    with pytest.raises(SessionError, match=r"can't be written: .*free some space"):  # noqa: PT012
        for _ in range(100):
            session.append(Logged(text="x" * 5000))
    session.append(TextShown(text="shown"))
    before = session.file.read_bytes()
    with pytest.raises(SessionError, match="can't be written"):
        session.append(MessageCompleted(message=Message.assistant("x" * 5000)))
    assert session.file.read_bytes() == before
    session.append(Logged(text="small"))  # what still fits is written; no line is half there
    session.close()
    lines = session.file.read_bytes().splitlines(keepends=True)
    assert len(lines) > 5
    assert all(line.endswith(b"}\n") and json.loads(line) for line in lines)


def test_files_of_outputs_are_named_by_the_call(tmp_path):
    session = Session.create("one")
    assert session.output_path("call_1") == session.outputs / "call_1.txt"
    for odd in ("../../x", "a/b", "..", "x" * 500, "ü", ""):
        path = session.output_path(odd)
        assert path.parent == session.outputs
        assert re.fullmatch(r"[0-9a-f]{64}\.txt", path.name)
