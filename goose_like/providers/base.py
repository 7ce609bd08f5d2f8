"""The port to models: requests, the interface of a provider, and the facts that people read about one."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from goose_like.config.profile import ModelChoice
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import AnswerRefusedError, GooseLikeError, ProviderError, RateLimitError
from goose_like.core.events import (
    Logged,
    MessageCompleted,
    Retrying,
    Status,
    TextDelta,
    ThinkingDelta,
    UsageRecorded,
)
from goose_like.core.example import Example
from goose_like.core.message import Message, Usage, Verbatim
from goose_like.core.tool import ToolSpec

STALL_S = 120.0
"""The longest silence within a stream, in seconds, if neither the profile nor the provider knows better."""

Delta = TextDelta | ThinkingDelta | Status | Retrying | Logged | UsageRecorded | MessageCompleted
"""A piece of a streamed answer.

A `Logged` line tells what the server did with a tool of its own. `UsageRecorded` has the tokens of a request whose
answer the server paused or the provider threw away; the tokens of the message are those of the last request.
"""

SchemaDialect = Literal["openai", "anthropic", "portable", "llguidance"]
"""The part of JSON Schema that a server takes for the format of an answer; `json_schema_reduction.py` has the rules."""


@dataclass(frozen=True, slots=True)
class HostedTools:
    """The tools that the vendor's server may run within an answer, in place of ours with the same `native` name.

    `domains` maps each name to the domains that the tool may reach, with all hosts below them; none means all. With
    `shows_sources` the text of an answer ends with the pages that it cites. With `trusts_messages` a tool without
    domains may fetch the URLs in the user's messages, which then no model wrote.
    """

    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shows_sources: bool = True
    trusts_messages: bool = True

    def narrow(self, *, quotes_model: bool) -> "HostedTools":
        """Return the tools for messages of the user of which some may quote a model."""
        return replace(self, trusts_messages=self.trusts_messages and not quotes_model)

    def keep(self, names: Collection[str]) -> "HostedTools":
        """Return the tools with these names."""
        kept = {name: domains for name, domains in self.domains.items() if name in names}
        return replace(self, domains=kept)


@dataclass(frozen=True)  # without slots, which exclude cached properties
class Request:
    """One model request.

    From step to step `messages` only grows at its end, so that the server's prompt cache works. `images` is the folder
    with the files of the messages' images. `session` is the same in all requests of a session, so that a vendor can
    send them to the machine with the cached prefix. Messages may bring further tools, see `all_tools`;
    `added_tools` are these, or None for a caller that has not collected them. `deferred_tools` are for a server that
    searches tools (`SupportsToolSearch`); every other provider ignores them. The model may use those in
    `allowed_tools` now, or all if it is None. `first_effort` is the effort at the start of the conversation, if
    messages tell its changes; else the profile's effort holds. `hosted` are tools that the server may run itself.

    `max_tokens` and `temperature` override the profile; a larger `max_tokens` than the profile's has no effect.
    `answer_schema` is the JSON schema of an answer in JSON; only providers that take one get it
    (`SupportsAnswerSchema`). `examples` are worked examples for small models: a provider takes the first entry
    whose tools are all offered. When an answer ends or is cut, a provider puts the counts that came so far into
    `told_usage`.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    images: Path | None = None
    session: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    answer_schema: dict[str, Any] | None = None
    added_tools: Sequence[ToolSpec] | None = None
    allowed_tools: Sequence[str] | None = None
    first_effort: str | None = None
    examples: Sequence[Sequence[Example]] = ()
    told_usage: list[Usage] = field(default_factory=list, compare=False)
    deferred_tools: Sequence[ToolSpec] = ()
    hosted: HostedTools = HostedTools()

    @cached_property
    def all_tools(self) -> Sequence[ToolSpec]:
        """All tools that the model knows. The first of those with the same name counts."""
        return [*self.tools, *self._list_new(self.tools, is_deferred=False)]

    @cached_property
    def all_deferred_tools(self) -> Sequence[ToolSpec]:
        """All tools that a server that searches tools gets for its search, also those of messages."""
        return [*self.deferred_tools, *self._list_new(self.deferred_tools, is_deferred=True)]

    def _list_new(self, tools: Sequence[ToolSpec], *, is_deferred: bool) -> list[ToolSpec]:
        """List the tools of messages that are not among these."""
        added = self.added_tools
        if added is None:
            added = self._list_added_tools()
        known = {tool.name for tool in tools}
        new: list[ToolSpec] = []
        for tool in added:
            if tool.name not in known and bool(tool.deferred_group) == is_deferred:
                known.add(tool.name)
                new.append(tool)
        return new

    def _list_added_tools(self) -> list[ToolSpec]:
        added: list[ToolSpec] = []
        for message in self.messages:
            if message.role == "system":
                added += message.new_tools
        return added

    def resolve_output_limit(self, profile_limit: int | None) -> int | None:
        """Return the limit of the answer in tokens: the smaller of the request's and the profile's."""
        if self.max_tokens is None or profile_limit is None:
            return self.max_tokens if profile_limit is None else profile_limit
        return min(self.max_tokens, profile_limit)

    def resolve_temperature(self, profile_temperature: float | None) -> float | None:
        """Return the temperature: the request's, or else the profile's."""
        if self.temperature is None:
            return profile_temperature
        return self.temperature


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """Facts about a provider, known without a request.

    `processor` and `accelerator` are its default models. `windows` maps patterns of model names to context windows in
    tokens; the first match counts. A pattern is a regular expression that may match anywhere in the name (`re.search`).
    With `takes_file`, the name of a model is the path of a file.

    Raises:
        ValueError: A pattern is no regular expression.
    """

    summary: str
    key_variable: str | None = None
    processor: str | None = None
    accelerator: str | None = None
    takes_images: bool = False
    windows: tuple[tuple[str, int], ...] = ()
    takes_file: bool = False

    def __post_init__(self) -> None:
        for pattern, _ in self.windows:
            try:
                re.compile(pattern)
            except re.error as error:
                problem = f"the pattern {pattern!r} in `windows` is no regular expression: {error}"
                raise ValueError(f"{problem}; put a backslash before a character that stands for itself") from error

    def find_window(self, name: str) -> int | None:
        """Return the context window of a model in tokens, or None for an unknown model."""
        for pattern, tokens in self.windows:
            if re.search(pattern, name):
                return tokens
        return None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts that a server tells of itself; None is unknown. They win over what is known of the model."""

    window: int | None = None
    takes_images: bool | None = None


_NO_FACTS = ServerFacts()


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one cheap request to a server.

    `models` is None if the server gives no list. `is_key_verified` is True if the server accepted the key. `wire` is
    the API that is used.
    """

    address: str
    models: tuple[str, ...] | None
    is_key_verified: bool
    wire: str = ""
    facts: ServerFacts = ServerFacts()


class StreamParser(Protocol):
    """A parser that turns the events of an answer into deltas and, at the end, into the message."""

    @property
    def has_ended(self) -> bool:
        """True if the server has announced the end. All text and calls have arrived, even if the connection breaks."""
        ...

    @property
    def usage(self) -> Usage:
        """The tokens that the server has told so far."""
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


@runtime_checkable
class SupportsAnswerSchema(Protocol):
    """A provider whose server may constrain an answer to a JSON schema; see `json_answer.py`."""

    def find_schema_dialect(self, model: str) -> SchemaDialect | None:
        """Return the dialect in which the server takes an `answer_schema`, or None if it takes none."""
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
class FileLimits:
    """The limits of a server that takes PDF files for the images and PDF files of one request.

    With more than `large_images` images, no side of one may have more than `max_side_px` pixels.
    """

    max_bytes: int
    max_images: int
    large_images: int = 1_000_000
    max_side_px: int = 1_000_000


@runtime_checkable
class TakesFiles(Protocol):
    """A provider whose server may take PDF files."""

    def find_file_limits(self, window: int | None) -> FileLimits | None:
        """Return the limits for a model with this context window, or None if the server takes no PDF files."""
        ...


@dataclass(frozen=True, slots=True)
class ServerCompaction:
    """The replacement of messages that a server has shortened.

    `verbatim` is for this server, and `summary` for others, or "".
    """

    verbatim: Verbatim
    summary: str
    usage: Usage


@runtime_checkable
class SupportsCompaction(Protocol):
    """A provider whose server may shorten a conversation, and keeps what the model thought."""

    def can_compact(self, model: str) -> bool:
        """Return whether the server offers this for a model."""
        ...

    async def compact(self, request: Request) -> ServerCompaction:
        """Let the server shorten the messages of a request. Check `can_compact` first.

        Raises:
            ProviderError: No answer came, or the server made no summary.
        """
        ...


@runtime_checkable
class SupportsToolSearch(Protocol):
    """A provider whose server may search `Request.deferred_tools`, and gives the model those that it finds."""

    def can_search_tools(self, model: str) -> bool:
        """Return whether the server offers this for a model."""
        ...


@runtime_checkable
class HostsTools(Protocol):
    """A provider whose server may run tools of its own within an answer."""

    def find_hosted(self, model: str) -> frozenset[str]:
        """Return the names of the tools that the server has for a model, such as `web_search`."""
        ...


class TellsFacts(ABC):
    """A provider whose server tells facts of itself.

    This is no protocol, since each step checks for it, and an `isinstance` with a protocol is slow.
    """

    facts: ServerFacts

    @abstractmethod
    async def fetch_facts(self, model: str) -> None:
        """Ask the server for the facts that are still unknown. A server that does not answer is no error."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a provider. `label` is `provider:name`; `window` is the context window in tokens.

    `known_window` and `sees_images` hold until the server tells its own facts.
    `max_tokens` and `temperature` are those of each request in a conversation; see `Request`. `effort` is empty for
    the default of the server. `fallback` finishes a turn in which this model cannot be reached or declines to answer.
    `output_limit` is the longest answer in tokens, if it is known. Without `file_limits` it takes no PDF files.
    `price_tier` names the tier of the server that the profile chose.
    """

    provider: Provider
    name: str
    label: str
    known_window: int | None = None
    sees_images: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    effort: str = ""
    fallback: "Model | None" = None
    output_limit: int | None = None
    file_limits: FileLimits | None = None
    price_tier: str = ""

    @property
    def price_label(self) -> str:
        """The label under which tokens are counted: a tier has a price of its own."""
        if not self.price_tier:
            return self.label
        return f"{self.label} ({self.price_tier})"

    @property
    def window(self) -> int | None:
        """The context window in tokens, or None if it is unknown."""
        return self._facts.window or self.known_window

    @property
    def takes_images(self) -> bool:
        """True if the model accepts images."""
        told = self._facts.takes_images
        return self.sees_images if told is None else told

    @property
    def takes_documents(self) -> bool:
        """True if the model accepts PDF files."""
        return self.takes_images and self.file_limits is not None

    def has_hosted(self, tool: str) -> bool:
        """Return whether the server of the model may run this tool of its own, such as `web_search`."""
        return isinstance(self.provider, HostsTools) and tool in self.provider.find_hosted(self.name)

    @property
    def can_search_tools(self) -> bool:
        """True if the model finds deferred tools with a search of its server."""
        return isinstance(self.provider, SupportsToolSearch) and self.provider.can_search_tools(self.name)

    @property
    def _facts(self) -> ServerFacts:
        """The facts that the server told."""
        if isinstance(self.provider, TellsFacts):
            return self.provider.facts
        return _NO_FACTS

    def find_fallback(self, error: ProviderError) -> "Model | None":
        """Return the fallback if this model, after all retries, is overloaded or out of reach, or declined."""
        may_help = error.is_retryable or isinstance(error, RateLimitError | AnswerRefusedError)
        if self.fallback is None or not may_help:
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
        return tuple({id(model.provider): model.provider for model in self.models}.values())

    @property
    def models(self) -> tuple[Model, ...]:
        """All models, with the fallback of the main model."""
        models = (self.processor, self.accelerator, self.processor.fallback)
        return tuple(model for model in models if model)
