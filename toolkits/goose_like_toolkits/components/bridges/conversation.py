"""A conversation that a component tells, as a history of the core."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from goose_like.core.events import MessageCompleted, TurnFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.message import Message, Part, Text, ToolCall, ToolResult
from goose_like.providers.wire import sanitize_tool_name

BEGINNING = "[here the conversation begins]"
GO_ON = "[nothing was said since; go on from there]"

_NAME_CHARACTERS = 64
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_STOPPED = TurnFinished(reason="stop")
_HANDED_OFF = TurnFinished(reason="handed_off")


def wire_names(names: Iterable[str]) -> list[str]:
    """Return a different name for each that every vendor accepts."""
    made: dict[str, None] = {}
    for name in map(sanitize_tool_name, names):
        fresh = name
        count = 1
        while fresh in made:
            count += 1
            ending = f"_{count}"
            fresh = name[: _NAME_CHARACTERS - len(ending)] + ending
        made[fresh] = None
    return [*made]


@dataclass(frozen=True, slots=True)
class _WaitingCall:
    """A call without a result yet; `given_id` is how the component names it."""

    name: str
    given_id: str


@dataclass(slots=True)
class Conversation:
    """Builds a valid history from messages in any order. Messages of one speaker in a row become one.

    A call without result counts as interrupted, and a result without call as text. Without tools (`has_tools`) calls
    and results are text too, as vendors refuse them then.
    """

    has_tools: bool = True
    history: History = field(default_factory=History)
    _spoken: list[str] = field(default_factory=list)
    _calls: list[ToolCall] = field(default_factory=list)
    _heard: list[str] = field(default_factory=list)
    _results: list[ToolResult] = field(default_factory=list)
    _waiting: dict[str, _WaitingCall] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True before the first message."""
        is_said = self._spoken or self._calls
        is_heard = self._heard or self._results
        return not (self.history.messages or is_said or is_heard)

    def hear(self, text: str) -> None:
        """Add text for the model."""
        if text.strip():
            self._end_saying()
            self._heard.append(text)

    def say(self, text: str) -> None:
        """Add text of the model."""
        if text.strip():
            self._end_hearing()
            self._spoken.append(text)

    def call(self, name: str, arguments: str, call_id: str = "") -> None:
        """Add a tool call of the model; `arguments` is JSON text, and `call_id` is how the result may name it."""
        if not self.has_tools:
            self.say(f"[called {name} with {arguments}]")
            return
        self._end_hearing()
        fresh = self._choose_id(call_id)
        self._waiting[fresh] = _WaitingCall(name, call_id)
        self._calls.append(ToolCall(id=fresh, name=name, arguments=arguments))

    def result(self, output: str, *, names: Collection[str] = (), call_id: str = "", is_error: bool = False) -> None:
        """Add the result of the call with this id, else of the oldest open call of these tools, or of any tool."""
        self._end_saying()
        found = self._find(names, call_id)
        if found is None:
            title = "result"
            if names:
                title += f" of {' or '.join(names)}"
            self.hear(f"[{title}]\n{output or '(nothing)'}")
            return
        del self._waiting[found]
        self._results.append(ToolResult(call_id=found, output=output, is_error=is_error))

    def is_waiting(self, names: Collection[str] = ()) -> bool:
        """Check whether a call waits for its result: one of these tools, or any."""
        return self._find(names, "") is not None

    def end(self, words: Sequence[str] = ()) -> Message:
        """Return the message to reply to: results, text, or both; `words` come last."""
        self._end_saying()
        texts = [*self._heard, *(text for text in words if text.strip())]
        if not texts and not self._results:
            texts = [GO_ON if self.history.messages else BEGINNING]
        return self._build_message(texts)

    def _choose_id(self, wanted: str) -> str:
        """Choose the id of a call: the wanted one, if every vendor accepts it and no other call has it."""
        taken = self.history.call_ids | self._waiting.keys()
        if _ID.fullmatch(wanted) and wanted not in taken:
            return wanted
        number = len(taken) + 1
        while f"call_{number}" in taken:
            number += 1
        return f"call_{number}"

    def _find(self, names: Collection[str], call_id: str) -> str | None:
        for fresh, call in self._waiting.items():
            if call_id and call.given_id == call_id:
                return fresh
        for fresh, call in self._waiting.items():
            if not names or call.name in names:
                return fresh
        return None

    def _build_message(self, texts: Sequence[str]) -> Message:
        """Build a message to the model: the results, then the texts."""
        parts: list[Part] = [*self._results]
        if texts:
            parts.append(Text(text="\n\n".join(texts)))
        return Message(role="user", parts=tuple(parts))

    def _end_hearing(self) -> None:
        """Begin a turn with the collected text; calls that still wait are over then."""
        if not (self._heard or self._results):
            if self.history.messages or self._spoken or self._calls:
                return
            self._heard.append(BEGINNING)
        self.history.apply(TurnStarted(message=self._build_message(self._heard)))
        self._heard = []
        self._results = []
        self._waiting.clear()

    def _end_saying(self) -> None:
        if self._spoken or self._calls:
            message = Message.assistant("\n\n".join(self._spoken), self._calls)
            self.history.apply(MessageCompleted(message=message))
            self.history.apply(_HANDED_OFF if self._calls else _STOPPED)
            self._spoken = []
            self._calls = []
