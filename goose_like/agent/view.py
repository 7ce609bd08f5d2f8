"""ExchangeView: a toolkit's read-only look at the conversation, and its way to ask a model something aside."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from goose_like.core.errors import ProviderError
from goose_like.core.events import MessageCompleted, UsageRecorded
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.notifier import Notifier
from goose_like.providers.base import Embedder, Model, Models, Request, ToolSpec, stream_with_retries


@dataclass(frozen=True, slots=True)
class ModelView:
    """One of the profile's two models, with the conversation in sight."""

    model: Model
    _history: History
    _notifier: Notifier

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far; a copy of the list, not of the messages, which are frozen."""
        return tuple(self._history.messages)

    async def ask(self, text: str, *, system: str = "", purpose: str = "side question") -> str:
        """The model's answer to a question that does not enter the conversation; its tokens are counted.

        Raises:
            ProviderError: when no whole answer came.
        """
        answer = await self.answer([Message.user(text)], system=system, purpose=purpose)
        if answer.is_cut:
            raise ProviderError(f"the answer of {self.model.label} was cut at its output limit ({purpose})")
        return answer.message.text

    async def answer(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ToolSpec] = (),
        purpose: str = "side question",
    ) -> MessageCompleted:
        """The model's message after these, which do not enter the conversation; its tokens are counted.

        What it calls of `tools` is the caller's to run. It may be cut at the profile's output limit.

        Raises:
            ProviderError: when none came.
        """
        request = Request(self.model.name, system, tuple(messages), tuple(tools))
        async with aclosing(stream_with_retries(self.model.provider, request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, MessageCompleted):
                    self._notifier.notify(UsageRecorded(model=self.model.label, usage=delta.usage, purpose=purpose))
                    return delta
        raise AssertionError("stream_with_retries ends with a message or raises")

    @property
    def embedding_model(self) -> str | None:
        """`provider:name` of the model that `embed` asks; None: this provider makes no vectors."""
        provider = self.model.provider
        name = provider.embedding_model if isinstance(provider, Embedder) else None
        return f"{self.model.label.partition(':')[0]}:{name}" if name else None

    async def embed(self, texts: Sequence[str], *, purpose: str) -> Sequence[Sequence[float]]:
        """A vector for each text; its tokens are counted. Only where there is an `embedding_model`.

        Raises:
            ProviderError: when they did not come; it is not tried again.
        """
        provider, name = self.model.provider, self.embedding_model
        if name is None or not isinstance(provider, Embedder):
            raise ProviderError(f"{self.model.label} makes no vectors; ask whether there is an `embedding_model` first")
        vectors = await provider.embed(texts)
        self._notifier.notify(UsageRecorded(model=name, usage=vectors.usage, purpose=purpose))
        return vectors.values


class ExchangeView:
    """`view.processor.messages[-1]`, `await view.accelerator.ask(...)`."""

    def __init__(self, history: History, models: Models, notifier: Notifier) -> None:
        self.processor = ModelView(models.processor, history, notifier)
        self.accelerator = ModelView(models.accelerator, history, notifier)
        self._history = history

    @property
    def said(self) -> str:
        """What the person said last."""
        said = self._history.said
        return self._history.messages[said[-1]].text if said else ""

    @property
    def has_own_accelerator(self) -> bool:
        """Whether a question to the fast model is cheap: it is another one than the strong one."""
        return self.accelerator.model.label != self.processor.model.label
