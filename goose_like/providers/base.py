"""The port to models: requests, the interface of a provider, and the facts that people read about one."""

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ProviderError, RateLimitError
from goose_like.core.events import MessageCompleted, Retrying, Status, TextDelta, ThinkingDelta
from goose_like.core.message import Message, Usage
from goose_like.core.tool import ToolSpec

Delta = TextDelta | ThinkingDelta | Status | Retrying | MessageCompleted
"""A piece of a streamed answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """One model request.

    From step to step `messages` only grows at its end, so that the server's prompt cache works. `images` is the folder
    with the files of the messages' images. `session` is the same in all requests of a session, so that a vendor can
    send them to the machine with the cached prefix. `max_tokens` and `temperature` override the profile; a larger
    `max_tokens` than the profile's has no effect.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    images: Path | None = None
    session: str = ""
    max_tokens: int | None = None
    temperature: float | None = None

    def resolve_output_limit(self, profile_limit: int | None) -> int | None:
        """Return the limit of the answer in tokens: the smaller of the request's and the profile's."""
        return min((limit for limit in (self.max_tokens, profile_limit) if limit is not None), default=None)


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """Facts about a provider, known without a request.

    `processor` and `accelerator` are its default models. `windows` maps patterns of model names to context windows in
    tokens; the first match counts.
    """

    summary: str
    key_variable: str | None = None
    processor: str | None = None
    accelerator: str | None = None
    takes_images: bool = False
    windows: tuple[tuple[str, int], ...] = ()

    def find_window(self, name: str) -> int | None:
        """Return the context window of a model in tokens, or None for an unknown model."""
        return next((tokens for pattern, tokens in self.windows if re.search(pattern, name)), None)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one cheap request to a server.

    `models` is None if the server gives no list. `is_key_verified` is True if the server accepted the key.
    """

    address: str
    models: tuple[str, ...] | None
    is_key_verified: bool


class StreamParser(Protocol):
    """A parser that turns the events of an answer into deltas and, at the end, into the message."""

    @property
    def has_ended(self) -> bool:
        """True if the server has announced the end. All text and calls have arrived, even if the connection breaks."""
        ...

    def feed(self, event: Any, /) -> list[Delta]:
        """Take an event and return the deltas to show."""
        ...

    def build_message(self) -> MessageCompleted:
        """Build the message after the last event."""
        ...


class Provider(Protocol):
    """A client of one vendor. Importing its module must be cheap."""

    info: ClassVar[ProviderInfo]

    def __init__(self, choice: ModelChoice) -> None:
        """Create a provider for a model."""

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """Return the error about a missing key, library or setting, or None if the choice is usable. Be quick."""

    def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Yield deltas as they arrive, then exactly one `MessageCompleted`, then end.

        Never complete an answer whose end the server did not announce. Do not retry. Keep no state between requests
        except caches. Stop the request when the caller closes the generator.

        Raises:
            ProviderError: No complete answer arrived. The subclass gives the reason.
        """
        ...

    async def close(self) -> None:
        """Release connections and memory. Called once."""


@runtime_checkable
class SupportsProbe(Protocol):
    """A provider class with a cheap test request."""

    async def probe(self, choice: ModelChoice, key: str = "") -> ProbeResult:
        """Send one free request to the server, with `key` instead of the configured key if given.

        Raises:
            ProviderError: The server does not answer within a few seconds, or refuses the key.
        """
        ...


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector per text, in the order of the texts, and the tokens used."""

    vectors: Sequence[Sequence[float]]
    usage: Usage


@runtime_checkable
class Embedder(Protocol):
    """A provider that may compute embeddings."""

    @property
    def embedding_model(self) -> str | None:
        """The name of the embedding model, or None without one."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Compute the embeddings of texts that are not empty. Call it only if there is an `embedding_model`.

        Raises:
            ProviderError: Some embeddings did not arrive.
        """
        ...


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer of a model that searched the web: its text, and title and URL of each page that was found."""

    text: str
    pages: Sequence[tuple[str, str]]
    usage: Usage


@runtime_checkable
class WebSearcher(Protocol):
    """A provider whose server may search the web."""

    @property
    def can_search_web(self) -> bool:
        """True if the server is one that offers a search."""
        ...

    async def search_web(self, query: str, model: str) -> SearchAnswer:
        """Let a model search the web in one request, outside the conversation. Check `can_search_web` first.

        Raises:
            ProviderError: No answer came, or the search failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a provider. `label` is `provider:name`; `window` is the context window in tokens.

    `max_tokens` and `temperature` are those of each request in a conversation; see `Request`. `fallback` finishes
    a turn in which this model cannot be reached.
    """

    provider: Provider
    name: str
    label: str
    window: int | None = None
    takes_images: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    fallback: "Model | None" = None

    def find_fallback(self, error: ProviderError) -> "Model | None":
        """Return the fallback if an error, after all retries, says that this model is overloaded or out of reach."""
        if self.fallback is None or not (error.is_retryable or isinstance(error, RateLimitError)):
            return None
        return replace(self.fallback, max_tokens=self.max_tokens, temperature=self.temperature)


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The two models of a profile: the main model and the fast model."""

    processor: Model
    accelerator: Model

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers of all models, each one once. The code that opened the models closes them."""
        models = (self.processor, self.accelerator, self.processor.fallback)
        return tuple({id(model.provider): model.provider for model in models if model}.values())
