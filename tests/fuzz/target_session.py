"""The reader of session files."""

import json
import re
from itertools import accumulate
from pathlib import Path

from goose_like.core import events as e
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, ToolResult, Usage
from goose_like.sessions.index import SessionInfo, count_totals
from goose_like.sessions.jsonl import format_line
from goose_like.sessions.session import Session
from tests.core.test_events import PINNED
from tests.fakes import is_well_formed
from tests.fuzz.source import Source
from tests.fuzz.target_event import AT, EVENTS, KEYS, PIECES

CALLS = [ToolCall(id=id_, name="shell", arguments="{}") for id_ in ("c1", "c2")]
SAVED = (
    *(event for event, _ in PINNED if isinstance(event, e.SavedEvent)),
    *(e.MessageCompleted(message=Message.assistant("m", CALLS[:count])) for count in range(3)),
    *(e.ToolFinished(result=ToolResult(call_id=call.id, output="o")) for call in CALLS),
    *(e.TurnFinished(reason=reason) for reason in ("stop", "cancelled", "handed_off")),
    *(e.Rewound(message_count=count) for count in (0, 1, 4)),
    *(e.Compacted(summary=summary, kept_count=2, suffix="s" * bool(summary)) for summary in ("", "s")),
    *(e.TextShown(text=text, call_id=id_) for text in ("shown", "") for id_ in ("", "c1")),
)
EVENT_OF = {format_line(event, AT)[:-1]: event for event in SAVED}
LINES = list(EVENT_OF)
_STAMP = LINES[0][LINES[0].rindex(b',"at":') :]


class FuzzTarget:
    """Session files of whole and damaged lines. Every whole line is read, every other one is reported."""

    def __init__(self, folder: Path) -> None:
        self._session = Session(folder / "session", "fuzz", History())
        self._session._open(is_new=True)
        self._info = SessionInfo(self._session.folder, "", "", "", "", AT)

    def create(self, source: Source) -> list[bytes]:
        """Create the lines of a file. The last one has no end."""
        lines = source.some(LINES, 7)
        for _ in range(source.below(3)):
            if source.happens(0.5):
                damaged = source.mutate(source.choice(LINES), PIECES)
            else:
                damaged = json.dumps(source.graft(source.choice(EVENTS), KEYS)).encode()
            lines.insert(source.below(len(lines) + 1), damaged)
        if source.long_size and lines:
            lines = [lines[:1], lines, lines[-1:]][source.below(3)] * (source.long_size // 1_000)
        last = source.choice(LINES)
        return [*lines, last[: source.below(len(last))] if source.happens(0.3) else b""]

    def check(self, lines: list[bytes]) -> None:
        session = self._session
        data = b"\n".join(lines)
        session.file.write_bytes(data)
        session.damage.clear()
        events = list(session.read_events())
        self._check_damage(data, lines, events)
        damage, session.damage = session.damage, []
        assert list(session.read_events()) == events
        assert len(session.damage) == len(damage) - bool(lines[-1])  # the torn line is cut off
        history = History.replay(events)
        ids = [call.id for message in history.messages for call in message.tool_calls]
        if len(ids) != len(set(ids)):
            return  # an exchange makes them unique
        assert not history.open_calls or (history.last_turn and history.last_turn.reason == "handed_off")
        history.close(keeps_handed_off=False)
        assert is_well_formed(history.messages), history.messages
        assert is_well_formed(history.context.messages), history.context.messages
        if all(line.endswith(_STAMP) for line in data.split(b"\n")[:-1]) and not damage:
            turns, usage = count_totals(self._info)
            assert (turns, _drop_empty(usage)) == (history.turn_count, _drop_empty(history.usage.by_model))

    def _check_damage(self, data: bytes, lines: list[bytes], events: list[e.SavedEvent]) -> None:
        damaged = {int(found[1]) for text in self._session.damage if (found := re.search(r", line (\d+): left", text))}
        assert len(events) + len(damaged) == data.count(b"\n")
        assert len(damaged) + bool(lines[-1]) == len(self._session.damage)
        numbers = accumulate((line.count(b"\n") + 1 for line in lines), initial=1)
        whole = {number: EVENT_OF[line] for number, line in zip(numbers, lines[:-1], strict=False) if line in EVENT_OF}
        assert not damaged & whole.keys()
        read = (number for number in range(1, data.count(b"\n") + 1) if number not in damaged)
        assert all(whole.get(number, event) == event for number, event in zip(read, events, strict=True))


def _drop_empty(usage: dict[str, Usage]) -> dict[str, Usage]:
    return {model: counts for model, counts in usage.items() if counts != Usage()}
