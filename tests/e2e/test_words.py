"""A question that asks for words, at each place where a person may sit, and where nobody does."""

import json

import pytest

from tests.e2e.command import Place
from tests.e2e.screen import ScreenTerminal

TOOLKIT = '''
from goose_like.core.events import Question
from goose_like.toolkit import Toolkit, tool


class CuriousToolkit(Toolkit):
    """Asks."""

    @tool
    async def wonder(self) -> str:
        """Ask the person which colour."""
        question = Question(kind="text", subject="wonder", text="Which colour?\\nOne word.", detail="- red\\n- green")
        answer = await self.notifier.ask(question)
        return f"{answer.by} said {answer.text!r}"
'''
STEPS = ({"calls": [{"tool": "wonder"}]}, "so be it")


@pytest.fixture
def site(tmp_path, place) -> str:
    """Where the toolkit is installed, which the profile has."""
    info = tmp_path / "site/curious-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: curious\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[goose_like.toolkit]\ncurious = curious_toolkit:CuriousToolkit\n")
    (tmp_path / "site/curious_toolkit.py").write_text(TOOLKIT)
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text("default: {extends: default, toolkits: [curious]}\n")
    return str(tmp_path / "site")


def result(place: Place) -> str:
    (found,) = (event["result"]["output"] for event in place.events() if event["type"] == "tool_finished")
    return found


def asks(terminal: ScreenTerminal) -> None:
    terminal.see("? Which colour?\n  ┃ One word.\n  ┃ - red\n  ┃ - green\n")
    terminal.see("answer:")


@pytest.mark.parametrize(
    ("typed", "shown", "said"),
    [
        ("  dark blue \r", "  answered: dark blue", "person said 'dark blue'"),
        ("\r", "  answered: nothing", "person said ''"),
        ("no\r", "  answered: no", "person said 'no'"),
        ("\x04", "  answered by nobody", "nobody said ''"),
    ],
)
def test_a_run_and_a_session_ask_for_words(place, open_screen, site, typed, shown, said):
    model = place.script(*STEPS)
    for words in (("run", "go", "--model", model), ("session", "start", "talk", "--model", model)):
        terminal = open_screen(*words, PYTHONPATH=site)
        if words[0] == "session":
            terminal.see("goose>")
            terminal.type("go\r")
        asks(terminal)
        terminal.type(typed)
        terminal.see(shown)
        terminal.see("so be it")
        assert (terminal.leave() if words[0] == "session" else terminal.wait_exit()) == 0
        assert result(place) == said


def test_a_terminal_that_can_do_no_more_than_lines_asks_too(place, open_screen, site):
    words = ("session", "start", "talk", "--model", place.script(*STEPS))
    terminal = open_screen(*words, PYTHONPATH=site, TERM="dumb")
    terminal.see("goose>")
    terminal.type("go\n")
    asks(terminal)
    terminal.type("blue\n")
    terminal.see("so be it")
    terminal.see("goose>", times=2)
    terminal.type("exit\n")
    terminal.see("resume with: ")
    assert result(place) == "person said 'blue'"


def test_an_empty_answer_is_no_refusal(place, site):
    env = {"PYTHONPATH": site}
    done = place.run("run", "go", "--model", place.script(*STEPS), "--output-format", "stream-json", env=env)
    report = [json.loads(line) for line in done.stdout.splitlines()]
    answered = next(event for event in report if event["type"] == "answered")
    assert answered["answer"] == {"choice": "deny", "by": "nobody"}
    assert (done.returncode, result(place)) == (0, "nobody said ''")
    assert "answered by nobody" in done.stderr
    done = place.run("run", "go", "--model", place.script(*STEPS), "--output-format", "json", env=env)
    assert json.loads(done.stdout)["denied"] == []


def test_a_resumed_session_shows_what_was_answered(place, open_screen, site):
    terminal = open_screen("session", "start", "talk", "--model", place.script(*STEPS), PYTHONPATH=site)
    terminal.see("goose>")
    terminal.type("go\r")
    asks(terminal)
    terminal.type("blue\r")
    terminal.see("so be it")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk", PYTHONPATH=site)
    terminal.see("goose>")
    terminal.see("answered: blue")
    assert terminal.leave() == 0
    assert "answered by person: blue" in place.run("session", "export", "talk").stdout
