"""Questions that the model asks with the tool `ask_user`, with a person and without one."""

import json

import pytest

from tests.e2e.command import Place

ASK = {"tool": "ask_user", "arguments": {"question": "Which database?", "choices": ["SQLite", "Postgres", "none"]}}


def result(place: Place) -> str:
    (found,) = (event["result"]["output"] for event in place.events() if event["type"] == "tool_finished")
    return found


@pytest.mark.parametrize(
    ("typed", "said"),
    [("2\r", "the person answers: Postgres"), ("MySQL, please\r", "the person answers: MySQL, please")],
)
def test_a_person_picks_a_choice_or_writes_an_answer(place, open_screen, typed, said):
    model = place.script({"calls": [ASK]}, "so be it")
    for words in (("run", "go", "--model", model), ("session", "start", "talk", "--model", model)):
        terminal = open_screen(*words)
        if words[0] == "session":
            terminal.see("goose>")
            terminal.type("go\r")
        terminal.see("? Which database?\n  ┃ 1. SQLite\n  ┃ 2. Postgres\n  ┃ 3. none\n")
        terminal.see("answer:")
        terminal.type(typed)
        terminal.see("so be it")
        assert (terminal.leave() if words[0] == "session" else terminal.wait_exit()) == 0
        assert result(place) == said


def test_an_empty_answer_leaves_it_to_the_model(place, open_screen):
    terminal = open_screen("run", "go", "--model", place.script({"calls": [ASK]}, "so be it"))
    terminal.see("answer:")
    terminal.type("\r")
    terminal.see("so be it")
    assert terminal.wait_exit() == 0
    assert result(place) == "the person gave no answer; decide, and say in your answer what you assumed"


@pytest.mark.parametrize("options", [(), ("--approval", "plan"), ("--output-format", "json")])
def test_where_nobody_is_the_model_decides(place, options):
    done = place.run("run", "go", "--model", place.script({"calls": [ASK]}, "I took SQLite."), *options)
    assert done.returncode == 0, done.stderr
    assert result(place) == "nobody is here; decide, and say in your answer what you assumed"
    answer = json.loads(done.stdout)["result"] if "json" in options else done.stdout
    assert answer.strip() == "I took SQLite."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"question": " "}, "the question is empty"),
        ({"question": "x", "choices": list("abcde")}, "5 choices are too many; give at most 4"),
    ],
)
def test_a_question_that_cannot_be_asked_goes_back(place, arguments, words):
    done = place.run("run", "go", "--model", place.script({"calls": [ASK | {"arguments": arguments}]}, "fine"))
    assert done.returncode == 0
    assert words in result(place)
