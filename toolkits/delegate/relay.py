"""What the exchange that does a delegate's task tells, asks and spends, told to the one that gave the task."""

from collections.abc import Iterator

from goose_like.events import (
    Answer,
    Event,
    MessageCompleted,
    Nested,
    Question,
    SessionStarted,
    ToolFinished,
    UsageRecorded,
)
from goose_like.message import Usage
from goose_like.notifier import Notifier
from goose_like.tool import current_call

PURPOSE = "delegate"


class Relay(Notifier):
    """The notifier of a nested exchange. Tokens count at once: whatever ends the work, they were spent."""

    def __init__(self, parent: Notifier, call_id: str) -> None:
        self.steps = self.calls = 0
        self.spent = Usage()
        self._parent = parent
        self._call_id = call_id
        self._model = ""

    def notify(self, event: Event) -> None:
        token = current_call.set(self._call_id)  # to the parent it is this call that speaks, and none within
        try:
            for told in self._told(event):
                self._parent.notify(told)
        finally:
            current_call.reset(token)

    async def ask(self, question: Question) -> Answer:
        return await self._parent.ask(question.model_copy(update={"text": f"a delegate asks: {question.text}"}))

    def took(self) -> str:
        """What the work took so far, in a few words."""
        counts = [(self.steps, "step"), (self.calls, "call"), (self.spent.total_tokens, "token")]
        return ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts if count) or "nothing"

    def _told(self, event: Event) -> Iterator[Event]:
        yield Nested(call_id=self._call_id, event=event.model_dump(mode="json"))
        match event:
            case SessionStarted(models=models):
                self._model = models["processor"]
            case ToolFinished():
                self.calls += 1
            case MessageCompleted(usage=usage):
                self.steps += 1
                yield from self._counted(self._model, usage)
            case UsageRecorded(model=model, usage=usage):
                yield from self._counted(model, usage)
            case _:
                pass

    def _counted(self, model: str, usage: Usage) -> Iterator[UsageRecorded]:
        if usage.total_tokens:
            self.spent += usage
            yield UsageRecorded(model=model, usage=usage, purpose=PURPOSE)
