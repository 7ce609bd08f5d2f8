from collections.abc import Iterator

import pytest

from tests.e2e.command import Place
from tests.e2e.screen import ScreenTerminal


@pytest.fixture
def place(tmp_path):
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    return Place(tmp_path / "home", tmp_path / "work")


@pytest.fixture
def open_screen(place) -> Iterator[object]:
    """Open commands in emulated terminals and close them at the end of the test."""
    terminals: list[ScreenTerminal] = []

    def start(*words: str, **how) -> ScreenTerminal:
        terminals.append(ScreenTerminal(place, *words, **how))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.fixture
def session(place, open_screen):
    """Start a session with a scripted model and wait for its prompt."""

    def start(*steps: object, words: tuple[str, ...] = (), **how) -> ScreenTerminal:
        terminal = open_screen("session", "start", "talk", "--model", place.script(*steps), *words, **how)
        terminal.see("goose>")
        return terminal

    return start
