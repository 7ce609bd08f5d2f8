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
def opened(place) -> Iterator[object]:
    """Opens commands on terminals and closes them at the end."""
    terminals: list[ScreenTerminal] = []

    def start(*words: str, **how) -> ScreenTerminal:
        terminals.append(ScreenTerminal(place, *words, **how))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.fixture
def session(place, opened):
    """A session that plays these steps, at its prompt."""

    def start(*steps: object, words: tuple[str, ...] = (), **how) -> ScreenTerminal:
        terminal = opened("session", "start", "talk", "--model", place.script(*steps), *words, **how)
        terminal.see("goose>")
        return terminal

    return start
