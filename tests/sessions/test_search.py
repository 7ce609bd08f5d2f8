"""The search in sessions: which sessions match, and the line that is shown."""

import os

import pytest

from goose_like.cli.commands.session_actions import print_matches
from goose_like.core.errors import UsageError
from goose_like.core.events import Interjected, MessageCompleted, ToolFinished, TurnStarted
from goose_like.core.message import Message, Text, ToolResult
from goose_like.sessions.index import rename_session
from goose_like.sessions.search import search_messages
from tests.sessions.session_files import write_events


@pytest.fixture(autouse=True)
def sessions():
    """Two sessions, the newest last."""
    answer = Message(role="assistant", parts=(Text(text='First line.\nThe "baker" mends the größe.'),))
    first = write_events(
        "one",
        TurnStarted(message=Message.user("Who mends it?")),
        ToolFinished(result=ToolResult(call_id="a", output="only a tool said zebra")),
        MessageCompleted(message=answer, model="x:y"),
        Interjected(message=Message.user("and the Sums?")),
    )
    second = write_events("two", TurnStarted(message=Message.user("Tell me about it.")))
    rename_session("two", "Sums of the baker")
    for time, session in enumerate((first, second)):
        os.utime(session.file, (time, time))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["baker"], [("two", "title", "Sums of the baker"), ("one", "model", 'The "baker" mends the größe.')]),
        (["SUMS", "mends"], [("one", "you", "Who mends it?")]),
        (["baker", "größe"], [("one", "model", 'The "baker" mends the größe.')]),
        (['"baker"'], [("one", "model", 'The "baker" mends the größe.')]),
        (["one"], [("one", "name", "one")]),
        (["zebra"], []),
        (["baker", "zebra"], []),
    ],
)
def test_all_words_occur_and_the_best_line_is_shown(words, found):
    assert [(match.info.name, match.author, match.line) for match in search_messages(words)] == found


def test_the_table_names_who_wrote_the_line(capsys):
    print_matches(["the größe"], cwd=None, is_complete=False)
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "age", "folder", "who", "line"]
    assert row.endswith('model  The "baker" mends the größe.')
    print_matches(["nowhere"], cwd="/w", is_complete=False)
    assert capsys.readouterr().out == "no session has 'nowhere'\n"
    with pytest.raises(UsageError, match="give a word"):
        print_matches([" "], cwd=None, is_complete=False)


def test_a_long_line_is_cut_around_the_word(capsys):
    write_events("long", TurnStarted(message=Message.user(f"{'x ' * 200}needle{' y' * 200}")))
    print_matches(["needle"], cwd=None, is_complete=False)
    line = capsys.readouterr().out.splitlines()[1]
    assert "needle y" in line
    assert len(line) < 150
