"""Conversation: what components say was said, as the history that an exchange would hold."""

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
_STOPPED, _HANDED_OFF = TurnFinished(reason="stop"), TurnFinished(reason="handed_off")


def wire_names(names: Iterable[str]) -> list[str]:
    """A name for each that every vendor takes; no two are the same."""
    made: dict[str, None] = {}
    for name in map(sanitize_tool_name, names):
        fresh, count = name, 1
        while fresh in made:
            count += 1
            fresh = f"{name[: _NAME_CHARACTERS - len(str(count)) - 1]}_{count}"
        made[fresh] = None
    return [*made]


@dataclass(slots=True)
class Conversation:
    """A fold that never fails, in whatever order things come; whoever speaks twice in a row speaks once.

    A call without its result counts as interrupted, a result without its call as words. Where the model is offered no
    tools (`has_tools`), calls and results are words too: vendors refuse them then.
    """

    has_tools: bool = True
    history: History = field(default_factory=History)
    _said: list[str] = field(default_factory=list)
    _calls: list[ToolCall] = field(default_factory=list)
    _heard: list[str] = field(default_factory=list)
    _results: list[ToolResult] = field(default_factory=list)
    _waiting: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nobody said anything yet."""
        return not (self.history.messages or self._said or self._calls or self._heard or self._results)

    def hear(self, text: str) -> None:
        """Somebody said something to the model."""
        if text.strip():
            self._end_saying()
            self._heard.append(text)

    def say(self, text: str) -> None:
        """The model said something."""
        if text.strip():
            self._end_hearing()
            self._said.append(text)

    def call(self, name: str, arguments: str, call_id: str = "") -> None:
        """The model called a tool; `arguments` is JSON text, `call_id` what the result may name."""
        if not self.has_tools:
            self.say(f"[called {name} with {arguments}]")
            return
        self._end_hearing()
        taken = self.history.call_ids | self._waiting.keys()
        number = len(taken) + 1
        while f"call_{number}" in taken:
            number += 1
        fresh = call_id if _ID.fullmatch(call_id) and call_id not in taken else f"call_{number}"
        self._waiting[fresh] = call_id, name
        self._calls.append(ToolCall(id=fresh, name=name, arguments=arguments))

    def result(self, output: str, *, names: Collection[str] = (), call_id: str = "", is_error: bool = False) -> None:
        """The result of the call of that id, else of the oldest open one of a tool of these names, or of any."""
        self._end_saying()
        if (found := self._of(names, call_id)) is None:
            of = f" of {' or '.join(names)}" if names else ""
            self.hear(f"[result{of}]\n{output or '(nothing)'}")
            return
        del self._waiting[found]
        self._results.append(ToolResult(call_id=found, output=output, is_error=is_error))

    def is_waiting(self, names: Collection[str] = ()) -> bool:
        """Whether a call waits for its result, of a tool of these names or of any."""
        return self._of(names, "") is not None

    def end(self, words: Sequence[str] = ()) -> Message:
        """What it is now to reply to: results, words, or both; `words` come last."""
        self._end_saying()
        texts = [*self._heard, *(text for text in words if text.strip())]
        if not texts and not self._results:
            texts = [GO_ON if self.history.messages else BEGINNING]
        said = [Text(text="\n\n".join(texts))] if texts else []
        return Message(role="user", parts=(*self._results, *said))

    def messages(self) -> list[Message]:
        """All of it, well-formed, as a request has it."""
        self.history.apply(TurnStarted(message=self.end()))
        return [*self.history.messages]

    def _of(self, names: Collection[str], call_id: str) -> str | None:
        waiting = self._waiting.items()
        by_id = (fresh for fresh, (given, _) in waiting if call_id and given == call_id)
        by_name = (fresh for fresh, (_, called) in waiting if not names or called in names)
        return next(by_id, None) or next(by_name, None)

    def _end_hearing(self) -> None:
        """Begins a turn with what was heard; calls that still wait are over then."""
        if not (self._heard or self._results):
            if self.history.messages or self._said or self._calls:
                return
            self._heard.append(BEGINNING)
        said: tuple[Part, ...] = (Text(text="\n\n".join(self._heard)),) if self._heard else ()
        self.history.apply(TurnStarted(message=Message(role="user", parts=(*self._results, *said))))
        self._heard, self._results = [], []
        self._waiting.clear()

    def _end_saying(self) -> None:
        if self._said or self._calls:
            message = Message.assistant("\n\n".join(self._said), self._calls)
            self.history.apply(MessageCompleted(message=message))
            self.history.apply(_HANDED_OFF if self._calls else _STOPPED)
            self._said, self._calls = [], []
