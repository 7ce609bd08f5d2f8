"""The session index: find, search and count sessions with little reading."""

import os
import re

import pytest
from hypothesis import given

from goose_like.core.errors import SessionError, UsageError
from goose_like.core.events import (
    Interjected,
    Logged,
    MessageCompleted,
    Rewound,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from goose_like.core.message import Image, Message, Text, Usage
from goose_like.sessions.index import (
    count_totals,
    find_session,
    iterate_sessions,
    list_sessions,
    note_place,
    read_last_words,
    read_messages,
    rename_session,
    search_sessions,
)
from goose_like.sessions.session import Session, delete_session
from tests.core.test_history import conversation
from tests.sessions.session_files import make_header, write_session


def names(found):
    return [listed.name for listed in found]


def write_events(name, *events, cwd="/w"):
    session = Session.create(name)
    for event in (make_header(session.name, cwd), *events):
        session.append(event)
    session.close()
    return session


@given(conversation())
def test_what_is_counted_is_what_a_replay_counts(events):
    session = write_events(None, TurnStarted(message=Message.user("x")), *events)
    history = Session.resume(session.name)
    listed = find_session(session.name)
    assert count_totals(listed) == (history.history.turn_count, history.history.usage.by_model)
    history.close()
    delete_session(listed)  # the next example need not read it


def test_a_message_that_quotes_an_event_is_counted_as_what_it_is():
    tricky = 'x","usage":{"input_tokens":99},"is_cut":false}\n{"type":"turn_started","message":{}}'
    usage = Usage(input_tokens=3, output_tokens=2)
    events = (
        TurnStarted(message=Message.user(tricky)),
        MessageCompleted(message=Message.assistant(tricky), usage=usage),
        UsageRecorded(model="openai:n", usage=usage, purpose=tricky),
    )
    write_events("one", *events)
    assert count_totals(find_session("one")) == (1, {"local": usage, "openai:n": usage})


def test_lines_that_are_not_needed_are_not_parsed():
    session = write_events("one", TurnStarted(message=Message.user("hello")))
    with session.file.open("ab") as file:
        file.write(b'{"type":"message_completed","message":{{{not JSON,"usage":{"input_tokens":7},"is_cut":false}\n')
        file.write(b'{"type":"tool_finished",{{{\n')
    assert count_totals(find_session("one")) == (1, {"local": Usage(input_tokens=7)})
    assert names(search_sessions(["hello"])) == ["one"]


@pytest.mark.parametrize("line", [b'{"type":"turn_started"}', b'{"type":"turn_started","message":{"parts":[1]}}', b"{"])
def test_a_first_message_that_can_not_be_read_does_not_hide_the_session(line):
    session = write_events("one", TurnStarted(message=Message.user("hello")))
    head = session.file.read_bytes().splitlines(keepends=True)[0]
    session.file.write_bytes(head + line + b"\n")
    assert [(listed.name, listed.first_words) for listed in list_sessions()] == [("one", "")]
    assert names(search_sessions(["absent"])) == []


def test_search_finds_all_words_in_name_folder_and_what_the_person_said():
    write_events("parser", TurnStarted(message=Message.user("Fix the ÜBER bug")), cwd="/home/a")
    write_events(
        "other", TurnStarted(message=Message.user("hi")), Interjected(message=Message.user("no, the Lexer")), cwd="/b"
    )
    write_events(
        "quiet", TurnStarted(message=Message.user("hi")), MessageCompleted(message=Message.assistant("lexer, über"))
    )
    assert names(search_sessions(["über"])) == ["parser"]
    assert names(search_sessions(["LEXER", "other"])) == ["other"]
    assert names(search_sessions(["lexer", "parser"])) == []
    assert names(search_sessions(["home"])) == ["parser"]
    assert names(search_sessions([], cwd="/b")) == ["other"]
    assert sorted(names(search_sessions([]))) == ["other", "parser", "quiet"]


def test_a_message_with_an_image_only():
    image = Image(name="a.png", media_type="image/png", source="a.png")
    message = Message(role="user", parts=(image, Text(text="what is it?")))
    write_events("one", TurnStarted(message=message))
    assert list_sessions()[0].first_words == "what is it?"


def test_sessions_are_read_as_they_are_asked_for():
    for number, name in enumerate(["old", "new"]):
        os.utime(write_session(name, "hello").file, (number, number))
    every = iterate_sessions()
    assert next(every).name == "new"
    find_session("old").file.unlink()
    assert list(every) == []


def test_rename():
    session = write_session("one", "hello")
    before = session.file.read_bytes()
    rename_session("one", "zwei")
    assert names(list_sessions()) == ["zwei"]
    assert session.file.read_bytes() == before
    with pytest.raises(SessionError, match=r"no session 'one'; there are: zwei"):
        find_session("one")
    resumed = Session.resume("zwei")
    assert resumed.name == "zwei"
    rename_session("zwei", "three")  # while it is open
    assert resumed.name == "three"
    resumed.close()
    assert Session.create("one").name == "one"  # its name is free


def test_what_can_not_be_renamed():
    write_session("one", "hello")
    write_session("two", "hello")
    with pytest.raises(SessionError, match="there is a session 'two' already"):
        rename_session("one", "two")
    with pytest.raises(UsageError, match="'a/b' is no name for a session"):
        rename_session("one", "a/b")
    with pytest.raises(SessionError, match=r"no session 'onn'; did you mean 'one'\?"):
        rename_session("onn", "three")


def test_a_session_is_found_by_its_title():
    for name, title in [("one", "Mend the parser"), ("two", "Mend: the lexer!"), ("three", "mend the  PARSER of X")]:
        write_session(name, "hello there")
        assert rename_session(name, title) == " ".join(title.split())
    assert find_session("lexer").name == "two"
    assert find_session("the mend lexer").name == "two"
    assert find_session("mend the parser").name == "one"  # the whole title wins
    with pytest.raises(SessionError, match=r"2 sessions have 'parser' in their title: .*one \(Mend the parser\)"):
        find_session("parser")
    rename_session("two", "parser")
    assert find_session("parser").name == "parser"  # a name wins
    assert find_session("lexer").name == "parser"
    for name in ("hello", "???", ""):
        with pytest.raises(SessionError, match=f"no session {re.escape(repr(name))}"):
            find_session(name)


@pytest.mark.parametrize("name", ["größe", "a.b-c_d", "名前", "x" * 64, "_"])
def test_names_with_odd_characters(name):
    write_session(name, "hello")
    assert Session.resume(name).name == name


def test_a_made_up_name_is_none_that_another_was_given(monkeypatch):
    write_session("one", "hello")
    rename_session("one", "b2b2")
    picked = iter("b2b2c3c3")
    monkeypatch.setattr("random.choice", lambda kind: next(picked))
    assert Session.create().name == "c3c3"


def test_delete():
    write_session("one", "hello")
    held = Session.resume("one")
    listed = find_session("one")
    assert not delete_session(listed)
    held.append(Logged(text="still here"))
    held.close()
    assert "still here" in listed.file.read_text()
    assert delete_session(listed)
    assert (list_sessions(), listed.folder.exists()) == ([], False)


def test_last_words_of_a_rewound_session():
    turns = [
        event
        for words in ("one", "two", "three")
        for event in (
            TurnStarted(message=Message.user(words)),
            MessageCompleted(message=Message.assistant(f"answer to {words}")),
            TurnFinished(reason="stop"),
        )
    ]
    session = write_events("back", *turns, Rewound(message_count=2))
    assert read_last_words(find_session(session.name)) == ("one", "answer to one")
    resumed = Session.resume("back")
    resumed.append(Rewound(message_count=0))
    resumed.close()
    assert [event.type for event in resumed.recent] == [
        *("session_started", "turn_started", "message_completed", "turn_finished", "rewound")
    ]
    assert read_last_words(find_session(session.name)) == ("", "")
    assert [event.type for event in Session.resume("back").recent] == ["session_started", "rewound"]


def test_last_words_and_messages_by_turn():
    session = write_events(
        "talk",
        TurnStarted(message=Message.user("first")),
        Interjected(message=Message.user("and this")),
        MessageCompleted(message=Message.assistant("done")),
        TurnFinished(reason="stop"),
        TurnStarted(message=Message.user("second")),
    )
    assert read_last_words(find_session(session.name)) == ("second", "")
    assert read_messages(session.folder) == [["first", "and this"], ["second"]]


@pytest.mark.parametrize("text", ["", "5", "[1]", '[["/w"]]', '[["/w", "a", 1]]', '{"/w": 1}'])
def test_a_damaged_list_of_folders_leaves_the_first_one(text):
    write_session("one", "hello")
    info = find_session("one")
    (info.folder / "places").write_text(text)
    assert info.ran_in(info.cwd)
    assert not info.ran_in("/elsewhere")
    note_place(info.folder, os.path.realpath("/usr"))
    assert info.ran_in(os.path.realpath("/usr"))
