"""Each screen shows each durable event, or ignores it for a reason."""

import io

import pytest
from goose_like_toolkits.boss.spec import BossSpec
from goose_like_toolkits.boss.view import BossScreen
from prompt_toolkit.data_structures import Size
from rich.console import Console

from goose_like.core import events
from goose_like.core.notifier import Notifier
from goose_like.terminal.lines import LineWriter
from goose_like.terminal.run_screen import RunScreen
from goose_like.terminal.session_screen import SessionScreen
from tests.core.test_events import CALL, PINNED

ANSWERED_END = events.TurnFinished(reason="stop", answer="x")  # the answer was shown with its message
SAMPLES = [event for event, _ in PINNED if isinstance(event, events.DurableEvent) and event != ANSWERED_END]
TYPED_BY_THE_PERSON = {"turn_started", "interjected"}
FOR_THE_SESSION_FILE = {
    "usage_recorded",
    "state_saved",
    "mode_restricted",
    "prompt_recorded",
    "prompt_changed",
    "command_finished",  # for receipts
    "refused",  # for `/permissions log`; the result of the call or the question beside it is shown
}
KNOWN_TO_THE_FRONT_END = {"session_started"}
DRAWN_BELOW_ON_A_TERMINAL = {"message_completed", "plan_updated"}


class PromptStub:
    """A prompt that collects printed text."""

    size = Size(rows=40, columns=100)

    def __init__(self) -> None:
        self.text = ""

    def print(self, text: str) -> None:
        self.text += text

    def redraw(self) -> None:
        pass

    def alert(self, how: str) -> None:
        pass


def print_run(shown: list[events.Event]) -> str:
    file = io.StringIO()
    screen = RunScreen(LineWriter(file), shows_answer=True)
    for event in shown:
        screen.notify(event)
    return file.getvalue()


class TextFrontEnd(Notifier):
    """A front-end with `log` alone."""

    text = ""

    def log(self, content: object) -> None:
        self.text += f"{content}\n"


def print_texts(shown: list[events.Event]) -> str:
    front = TextFrontEnd()
    for event in shown:
        front.notify(event)
    return front.text


def print_boss(shown: list[events.Event]) -> str:
    file = io.StringIO()
    screen = BossScreen(Console(file=file), BossSpec())
    for event in shown:
        screen.notify(event)
    return file.getvalue()


def print_session(shown: list[events.Event]) -> str:
    prompt = PromptStub()
    screen = SessionScreen(prompt)
    for event in shown:
        screen.notify(event)
    screen.draw()
    return prompt.text + prompt.live(100)


@pytest.mark.parametrize("event", SAMPLES, ids=[event.type for event in SAMPLES])
@pytest.mark.parametrize(
    ("print_events", "ignored"),
    [
        (print_run, TYPED_BY_THE_PERSON | FOR_THE_SESSION_FILE),
        (print_boss, TYPED_BY_THE_PERSON | FOR_THE_SESSION_FILE | DRAWN_BELOW_ON_A_TERMINAL),
        (print_session, FOR_THE_SESSION_FILE),
        (print_texts, TYPED_BY_THE_PERSON | FOR_THE_SESSION_FILE | KNOWN_TO_THE_FRONT_END),
    ],
)
async def test_a_screen_shows_each_durable_event(print_events, ignored, event):
    before = [events.ToolStarted(call=CALL)] if isinstance(event, events.ToolFinished) else []
    after = [] if isinstance(event, events.TurnFinished) else [events.TurnFinished(reason="cancelled")]
    is_shown = print_events([*before, event, *after]) != print_events([*before, *after])
    assert is_shown == (event.type not in ignored)
