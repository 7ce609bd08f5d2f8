"""The terminal's title and OSC 7501: each state, and always cleared at the end."""

import re
from base64 import b64decode
from pathlib import Path

from goose_like.core import events
from goose_like.core.message import Message
from goose_like.terminal.program_status import ProgramStatus

QUESTION = events.Question(kind="network", subject="pip", text="network \x1b for: pip")
STATES = re.compile(rb"\x1b]7501;state=(\w+)(?::kind=(\w+))?:app=goose-like(?::msg=([\w+/=]+))?\x1b\\")


def list_states(raw: bytes) -> list[str]:
    return [state.decode() for state, _, _ in STATES.findall(raw)]


def test_each_event_has_its_state():
    written: list[str] = []
    status = ProgramStatus(written.append, Path("/srv/my\x1bproject"))
    status.close()
    assert written == []
    status.notify(events.TurnStarted(message=Message.user("go")))
    status.notify(events.Asked(question=QUESTION))
    status.notify(events.Answered(question=QUESTION, answer=events.Answer()))
    status.notify(events.Asked(question=QUESTION.model_copy(update={"kind": "text"})))
    status.notify(events.TurnFinished(reason="stop"))
    status.notify(events.TurnFinished(reason="error", detail="no"))
    status.notify(events.TurnFinished(reason="cancelled"))
    status.close()
    status.close()
    raw = "".join(written).encode()
    assert list_states(raw) == ["working", "blocked", "working", "blocked", "done", "error", "idle", "clear"]
    found = [(kind.decode(), b64decode(message).decode()) for _, kind, message in STATES.findall(raw)]
    assert found[1] == ("permission", r"network \x1b for: pip")
    assert found[3][0] == "question"
    assert found[5] == ("", "no")
    assert "\x1b]2;? goose-like · my\\x1bproject\x1b\\".encode() in raw
    assert (raw.count(b"\x1b[22;2t"), raw.count(b"\x1b[23;2t")) == (1, 1)
    assert raw.endswith(b"\x1b[23;2t")


def test_a_very_long_question_is_cut():
    written: list[str] = []
    status = ProgramStatus(written.append, Path("/x"))
    status.notify(events.Asked(question=QUESTION.model_copy(update={"text": "ü" * 100_000})))
    assert len("".join(written).encode()) < 4_096


def test_a_closed_terminal_raises_nothing():
    def fail(text: str) -> None:
        raise OSError(5, "gone")

    status = ProgramStatus(fail, Path("/x"))
    status.notify(events.TurnStarted(message=Message.user("go")))
    status.close()
