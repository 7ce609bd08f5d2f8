"""The messages of a request as the history that an exchange would hold, and what it is now to reply to."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pydantic import JsonValue, ValidationError

from goose_like.core.events import (
    MessageCompleted,
    PlanUpdated,
    Reminded,
    StateSaved,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import History
from goose_like.core.message import Message, Part, Text, ToolCall, ToolResult

from .carried import Carried, digest
from .client_tools import WIDGET_DATA, arguments_of, from_client
from .prompt import surroundings
from .query import Ai, Asked, Given, Human, Query, Said, Source, Widget
from .results import Picture, result
from .state import Seal

_STOPPED, _HANDED_OFF, _CANCELLED = (
    TurnFinished(reason="stop"),
    TurnFinished(reason="handed_off"),
    TurnFinished(reason="cancelled"),
)

BEGINNING = "[what began this conversation was not sent along]"
GO_ON = "[nothing was said since; go on from there]"
EMPTY = "[a message without words]"


@dataclass(frozen=True, slots=True)
class Folded:
    """A request as an exchange takes it.

    `message` is what to reply to: the person's words, or the results of calls that the client ran. Where calls are
    `waiting`, no model is asked: the client has not been asked for these, which the last model message made too.
    `sources` is where the data came from that came since the person spoke. The bytes of `pictures` are to be put
    where the exchange has its images (`images.keep_image`) before it replies.
    """

    history: History
    message: Message
    waiting: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def steps(self) -> int:
        """How often a model was asked since the person spoke: a turn, and its limit, go on over hand-offs."""
        start = self.history.said[-1] if self.message.tool_results and self.history.said else len(self.history.messages)
        return sum(message.role == "assistant" for message in self.history.messages[start:])


def fold(query: Query, seal: Seal) -> Folded:
    """The history up to the newest words or results, and these. Never fails, however damaged the conversation is.

    The same query gives the same history: calls that came without an id are numbered through.
    """
    folding = _Folding(query, seal)
    for place, said in enumerate(query.messages):
        folding.take(said, query.messages[place + 1 : place + 2])
    return folding.end()


@dataclass(slots=True)
class _Folding:
    """The fold so far. A turn is begun with `words` or `answers` when it is known that something came of them."""

    query: Query
    seal: Seal
    history: History = field(default_factory=History)
    about: str = ""
    words: Message | None = None
    answers: list[ToolResult] = field(default_factory=list)
    spoken: list[Ai] = field(default_factory=list)
    asked: list[ToolCall] = field(default_factory=list)
    unasked: list[ToolCall] = field(default_factory=list)
    given: list[tuple[ToolCall, Given.One]] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def take(self, said: Said, following: Sequence[Said]) -> None:
        match said:
            case Human():
                self._say()
                if self.words or self.answers:
                    self._begin_turn()
                    self.history.apply(_CANCELLED)
                self._forget_calls()
                self.words, self.about, self.given = self._words(said), said.text, []
            case Ai():
                self.spoken += [said] if said.text.strip() else []
            case Asked():
                given = next((one for one in following if isinstance(one, Given)), None)
                self._ask(said, self._opened(said.state) or self._opened(given.state if given else ""))
            case Given():
                if not self.asked:
                    function = said.function or WIDGET_DATA[0]
                    self._ask(Asked(function=function, arguments=said.arguments), self._opened(said.state))
                self._answer(said.outcomes)

    def end(self) -> Folded:
        self._say()
        waiting = self.unasked if self.answers else []
        parts: tuple[Part, ...] = tuple(self.answers)
        message = self.words or (Message(role="user", parts=parts) if parts else Message.user(GO_ON))
        widgets = {widget.uuid: widget for widget in reversed(self.query.widgets)}
        sources = (_source(call, outcome, widgets) for call, outcome in self.given)
        return Folded(self.history, message, tuple(waiting), tuple(filter(None, sources)), tuple(self.pictures))

    def _words(self, said: Human) -> Message:
        text = said.text if said.text.strip() else EMPTY
        last = next(one for one in reversed(self.query.messages) if isinstance(one, Human))
        return self._with_surroundings(text) if said is last else Message.user(text)

    def _with_surroundings(self, text: str) -> Message:
        around = surroundings(self.query)
        parts = (Text(text=text), Text(text=f"\n{around}")) if around else (Text(text=text),)
        return Message(role="user", parts=parts)

    def _begin_turn(self) -> None:
        """Starts a turn with what is there for one; calls that got no result are answered as interrupted."""
        message = self.words or Message(role="user", parts=tuple(self.answers))
        if not message.parts and not self.history.messages:
            has_words = any(isinstance(said, Human) for said in self.query.messages)
            message = Message.user(BEGINNING) if has_words else self._with_surroundings(BEGINNING)
        self.history.apply(TurnStarted(message=message))
        self.words = None
        self._forget_calls()

    def _forget_calls(self) -> None:
        self.answers, self.asked, self.unasked = [], [], []

    def _say(self) -> None:
        """Takes in what was said before something else than a call."""
        for said in self.spoken:
            self._begin_turn()
            self.history.apply(MessageCompleted(message=Message.assistant(said.text)))
            self.history.apply(_STOPPED)
        self.spoken = []

    def _ask(self, asked: Asked, kept: Carried | None) -> None:
        made = from_client(asked, self.query)
        if self.unasked and (kept or made[0][0] == self.unasked[0].name):
            self.spoken = []
            self._hand_off(self.unasked, kept.taken - len(self.answers) if kept else len(made))
            return
        text, self.spoken = self._unsaid(kept), []
        if kept:
            if text:
                self._begin_turn()
                self.history.apply(MessageCompleted(message=Message.assistant(text)))
            self._begin_turn()
            self._put_back(kept)
        else:
            self._begin_turn()
            ids = _free_ids(self.history.call_ids)
            calls = [
                ToolCall(id=next(ids), name=name, arguments=json.dumps(arguments, ensure_ascii=False))
                for name, arguments in made
            ]
            self.history.apply(MessageCompleted(message=Message.assistant(text, calls)))
        self.history.apply(_HANDED_OFF)
        opened = [call for call in self.history.open_calls.values() if self.history.is_open(call.id)]
        self._hand_off(opened, kept.taken if kept else len(made))

    def _hand_off(self, calls: Sequence[ToolCall], taken: int) -> None:
        taken = max(taken, 1)
        self.asked, self.unasked = [*calls[:taken]], [*calls[taken:]]

    def _unsaid(self, kept: Carried | None) -> str:
        """What was recorded as said before a call and is not in what we kept, where all stands that we sent."""
        said = "".join(message.text for message in kept.messages) if kept else ""
        others = (one.text for one in self.spoken if not kept or (one.agent_id and one.text not in said))
        return "\n\n".join(others)

    def _opened(self, state: str) -> Carried | None:
        value = self.seal.open(state, self.about) if state else None
        try:
            return Carried.model_validate(value) if value else None
        except ValidationError:
            return None  # an older version's

    def _put_back(self, kept: Carried) -> None:
        """Takes in what was done before the call, as it was taken in then."""
        is_after_same = kept.after == digest(self.history.messages) if kept.after else True
        for toolkit, value in kept.state.items():
            if self.history.state.get(toolkit) != value:
                self.history.apply(StateSaved(toolkit=toolkit, value=value))
        ids: dict[str, str] = {}
        for message in kept.messages:
            match message.role:
                case "assistant":
                    kept_of_it = message if is_after_same else message.to_be_kept({})
                    renamed, ids = _renamed(kept_of_it, self.history.call_ids)
                    if renamed.parts:
                        self.history.apply(MessageCompleted(message=renamed))
                case "tool":
                    self._finish(message.tool_results, ids)
                case "user":
                    self.history.apply(Reminded(text=message.text))
        self._finish(kept.results, ids)
        if kept.plan != self.history.plan:
            self.history.apply(PlanUpdated(tasks=kept.plan))

    def _finish(self, results: Iterable[ToolResult], ids: dict[str, str]) -> None:
        for one in results:
            renamed = one.model_copy(update={"call_id": ids.get(one.call_id, one.call_id)})
            self.history.apply(ToolFinished(result=renamed))

    def _answer(self, outcomes: Sequence[Given.One]) -> None:
        """Gives each call its outcome; the last one all that are left."""
        for place, call in enumerate(self.asked):
            own = outcomes[place:] if call is self.asked[-1] else outcomes[place : place + 1]
            answer, pictures = result(call.id, own)
            self.answers.append(answer)
            self.pictures += pictures
            self.given += ((call, one) for one in own if not one.is_error)
        self.asked = []


def _source(call: ToolCall, outcome: Given.One, widgets: Mapping[str, Widget]) -> Source | None:
    arguments = arguments_of(call)
    widget = widgets.get(str(arguments.get("widget_uuid"))) if call.name in WIDGET_DATA else None
    if widget is None:
        return Source(citations=outcome.citations) if outcome.citations else None
    return Source(
        uuid=widget.uuid,
        origin=widget.origin,
        widget_id=widget.widget_id,
        name=widget.name,
        description=widget.description,
        arguments=widget.current | _dict(arguments.get("arguments")),
        citations=outcome.citations,
        is_citable=any(item.is_citable for item in outcome.items),
    )


def _dict(value: Any) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _renamed(message: Message, taken: set[str]) -> tuple[Message, dict[str, str]]:
    """The message with ids that no other call has, and which id each call has now."""
    own = [call.id for call in message.tool_calls]
    free = _free_ids(taken.union(own))
    ids = {call_id: next(free) if call_id in taken else call_id for call_id in own}
    if taken.isdisjoint(own):
        return message, ids
    parts = (p.model_copy(update={"id": ids[p.id]}) if isinstance(p, ToolCall) else p for p in message.parts)
    return message.model_copy(update={"parts": tuple(parts)}), ids


def _free_ids(taken: Collection[str]) -> Iterator[str]:
    names = (f"call_{number}" for number in count(len(taken) + 1))
    return (name for name in names if name not in taken)
