"""The effort of a model: from the command line, in a session, and levels that a model does not know."""

import pytest

from tests.e2e.test_responses_run import run
from tests.loopback import threaded
from tests.responses_server import ResponsesServer


def test_the_option_wins_over_the_profile(place):
    with threaded(ResponsesServer([{"say": "hi"}])) as server:
        assert run(place, server, "--effort", "low", "hello").stdout == "hi\n"
        assert server.requests[0].json["reasoning"]["effort"] == "low"


@pytest.mark.parametrize("words", [("--effort", "none"), ("--effort", "minimal")])
def test_a_level_that_the_model_does_not_know_is_refused_with_those_it_knows(place, words):
    with threaded(ResponsesServer([])) as server:
        done = run(place, server, *words, "hello")
        assert server.requests == []
    assert done.returncode == 2
    assert f"gpt-6.2-sol does not know the effort {words[1]!r}; it knows low, medium, high, xhigh, max" in done.stderr


def test_a_session_changes_its_effort(session):
    terminal = session({"text": "fine"})
    terminal.type("/effort hihg\r")
    terminal.see("no effort 'hihg'; did you mean 'high'?")
    terminal.type("/effort high\r")
    terminal.type("/effort\r")
    terminal.see("Choose how long the model reasons (now high)")
    terminal.type("\r")
    terminal.see("session talk", times=3)
    assert terminal.leave() == 0
