"""The view of toolkits and moderators: the conversation, read-only, and side questions to both models."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from goose_like.config.profile import Limits
from goose_like.core.context import estimate_tokens
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ProviderError
from goose_like.core.events import MessageCompleted, UsageRecorded
from goose_like.core.message import Message, Usage
from goose_like.core.notifier import Notifier
from goose_like.core.tool import ToolSpec
from goose_like.providers.base import (
    Embedder,
    HostedTools,
    Model,
    ModelPair,
    Request,
    SearchAnswer,
    ServerCompaction,
    SupportsCompaction,
    WebSearcher,
)
from goose_like.providers.foreign_code import name_faults
from goose_like.providers.retry import RetryPolicy, complete_answer
from goose_like.sessions.session import Session

from .attached_files import select_messages
from .budget import Budget


@dataclass(frozen=True, slots=True)
class ModelView:
    """One of the two models of the profile, together with the conversation."""

    model: Model
    _session: Session
    _notifier: Notifier
    _budget: Budget
    _hosted: HostedTools = HostedTools()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return tuple(self._session.history.messages)

    async def ask(self, text: str, *, system: str = "", purpose: str = "side question") -> str:
        """Ask the model a question outside the conversation. The tokens are counted.

        Raises:
            ProviderError: no complete answer came.
            BudgetError: the budget of the turn does not allow the question.
        """
        answer = await self.answer([Message.user(text)], system=system, purpose=purpose)
        if answer.is_cut:
            raise ProviderError(f"the answer of {self.model.label} was cut at its output limit ({purpose})")
        return answer.message.text

    async def ask_json(
        self, text: str, schema: Mapping[str, Any], *, system: str = "", purpose: str = "side question"
    ) -> Any:
        """Ask the model a question outside the conversation; its answer fits a JSON schema. The tokens are counted.

        Raises:
            UsageError: the schema is invalid.
            ProviderError: no complete answer came, or it did not fit after one correction.
            BudgetError: the budget of the turn does not allow the question.
        """
        from goose_like.providers.json_answer import answer_json  # few sessions need it

        def record(usage: Usage) -> None:
            self._notifier.notify(UsageRecorded(model=self.model.price_label, usage=usage, purpose=purpose))

        request = Request(self.model.name, system, (Message.user(text),))
        async with self._reserve(request):
            return await answer_json(self.model.provider, request, schema, record=record)

    async def answer(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ToolSpec] = (),
        purpose: str = "side question",
    ) -> MessageCompleted:
        """Let the model answer messages outside the conversation. The tokens are counted.

        The caller runs the calls of `tools` in the answer. The answer may be cut at the output limit of the profile.

        Raises:
            ProviderError: no answer came.
            BudgetError: the budget of the turn does not allow the question.
        """
        request = Request(self.model.name, system, tuple(messages), tuple(tools))

        def record(usage: Usage) -> None:
            self._notifier.notify(UsageRecorded(model=self.model.price_label, usage=usage, purpose=purpose))

        async with self._reserve(request):
            return await complete_answer(self.model.provider, request, RetryPolicy(), record)

    def _reserve(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Reserve a side question in the budget of the turn."""
        messages = [Message.system(request.system), *request.messages]
        tokens = sum(map(estimate_tokens, messages))
        return self._budget.reserve(self.model, tokens, is_step=False)

    async def compact(self, kept_count: int) -> ServerCompaction | None:
        """Let the server of this model shorten the conversation without its newest messages. The tokens are counted.

        Return None if the server does not offer that, or failed.

        Raises:
            BudgetError: the budget of the turn does not allow the request.
        """
        provider = self.model.provider
        context = self._session.history.context
        if not isinstance(provider, SupportsCompaction) or not provider.can_compact(self.model.name):
            return None
        prompt = context.prompt
        messages = select_messages(self._session.history, self.model)
        older_count = context.count_older(kept_count)
        if prompt is None or not older_count:
            return None
        request = Request(
            model=self.model.name,
            system=prompt.system,
            messages=tuple(messages[:older_count]),
            tools=prompt.listed_tools,
            deferred_tools=prompt.deferred_tools,
            images=self._session.outputs,
            session=self._session.folder.name,
            added_tools=context.added_tools,
            hosted=self._hosted.narrow(quotes_model=context.quotes_model),
        )
        async with self._reserve(request):
            try:
                with name_faults(type(provider), "compact"):
                    found = await provider.compact(request)
            except ProviderError as error:
                self._notifier.log(f"the server did not shorten the conversation: {error}")
                return None
            usage = UsageRecorded(model=self.model.price_label, usage=found.usage, purpose="compaction")
            self._notifier.notify(usage)
            return found

    @property
    def embedding_model(self) -> str | None:
        """The label `provider:name` of the model behind `embed`, or None when the provider makes no vectors."""
        provider = self.model.provider
        if not isinstance(provider, Embedder) or not provider.embedding_model:
            return None
        provider_name, _, _ = self.model.label.partition(":")
        return f"{provider_name}:{provider.embedding_model}"

    async def embed(self, texts: Sequence[str], *, purpose: str) -> Sequence[Sequence[float]]:
        """Compute one vector for each text. The tokens are counted. Check `embedding_model` first.

        Raises:
            ProviderError: the request failed; it is not retried.
        """
        provider = self.model.provider
        name = self.embedding_model
        if name is None or not isinstance(provider, Embedder):
            raise ProviderError(f"{self.model.label} makes no vectors; check `embedding_model` first")
        with name_faults(type(provider), "embed"):
            vectors = await provider.embed(texts)
        self._notifier.notify(UsageRecorded(model=name, usage=vectors.usage, purpose=purpose))
        return vectors.vectors

    @property
    def can_search_web(self) -> bool:
        """True if `search_web` works: the server of this model offers a search."""
        provider = self.model.provider
        return isinstance(provider, WebSearcher) and provider.can_search_web

    async def search_web(self, query: str) -> SearchAnswer:
        """Let the server of this model search the web. The tokens are counted. Check `can_search_web` first.

        Raises:
            ProviderError: the request or the search failed; it is not retried.
        """
        provider = self.model.provider
        if not isinstance(provider, WebSearcher) or not provider.can_search_web:
            raise ProviderError(f"{self.model.label} cannot search the web; check `can_search_web` first")
        async with self._reserve(Request(self.model.name, "", (Message.user(query),))):
            with name_faults(type(provider), "search_web"):
                answer = await provider.search_web(query, self.model.name)
            self._notifier.notify(UsageRecorded(model=self.model.price_label, usage=answer.usage, purpose="web search"))
            return answer


class ExchangeView:
    """Both models, together with the conversation, for example `await view.accelerator.ask(...)`."""

    def __init__(
        self,
        session: Session,
        models: ModelPair,
        notifier: Notifier,
        budget: Budget | None = None,
        hosted: HostedTools = HostedTools(),  # noqa: B008  # it is frozen
    ) -> None:
        self._session = session
        self._hosted = hosted
        self.budget = budget or Budget(Limits(), session)
        self._notifier = notifier
        self.use_models(models)

    @property
    def defers_tools(self) -> bool:
        """True if tools may be deferred (`ToolSpec.deferred_group`).

        The prompt that the session has recorded decides, as it must not change, and else the main model.
        """
        prompt = self._session.history.context.prompt
        if prompt is None:
            return self.processor.model.can_search_tools
        return bool(prompt.deferred_tools)

    def use_models(self, models: ModelPair) -> None:
        """Ask these models from now on: the person has chosen others."""
        self.processor = ModelView(models.processor, self._session, self._notifier, self.budget, self._hosted)
        self.accelerator = ModelView(models.accelerator, self._session, self._notifier, self.budget)

    @property
    def last_user_text(self) -> str:
        """The text of the user's last message."""
        history = self._session.history
        if not history.user_message_indexes:
            return ""
        newest = history.user_message_indexes[-1]
        return history.messages[newest].text

    @property
    def has_own_accelerator(self) -> bool:
        """True when the fast model is another model, so that questions to it are cheap."""
        return self.accelerator.model.label != self.processor.model.label
