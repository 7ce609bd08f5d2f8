"""OpenAI's chat completions, and every row of the table of servers that speak them, through the openai SDK."""

import os
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast
from urllib.parse import SplitResult

from goose_like.config import secrets as keys
from goose_like.config.profile import ModelChoice
from goose_like.core.errors import BrokenStreamError, CredentialError, GooseLikeError, ProfileError, ProviderError
from goose_like.core.message import Usage

from .base import Facts, Probe, Request, Vectors
from .openai_wire import Encoder, Fold, vectors, with_strict_roles
from .presets import Row
from .probe import list_models
from .sdk_client import base_url, host, key_fault, url_fault, without_secrets
from .sdk_request import Connection, Folding
from .wire import clip, error_of_status

OPENAI_HOST = "api.openai.com"

_EMBEDDED_AT_ONCE = 256  # a request takes 2,048 texts, and 300,000 tokens

# Chat completions take tools from the newer models only without reasoning, which gpt-6-astra and those from
# 6.1 on can't do without (their model pages: "rejects requests that set reasoning effort to none").
OPENAI = Row(
    name="openai",
    summary="OpenAI's models, and any server that speaks chat completions (OPENAI_BASE_URL)",
    base_url=f"${{OPENAI_BASE_URL:-https://{OPENAI_HOST}/v1}}",
    key_variable="OPENAI_API_KEY",
    processor="gpt-6-sol",
    accelerator="gpt-6-luna",
    takes_images=True,
    embedding_model="text-embedding-3-small",
)


class OpenAIProvider(Connection):
    """A connection to the server of a row."""

    facts: ClassVar[Facts] = OPENAI.facts
    sdk_name = "openai"

    def __init__(self, choice: ModelChoice, row: Row = OPENAI) -> None:
        # Where a redirect leads to another host, only a bearer's key is kept back.
        is_bearer = row.key_header is None
        super().__init__(choice, _base_url(choice, row), keys.find(row.key_variable), follows_redirects=is_bearer)
        self._row = row
        self._extras: dict[str, Any] = {}
        self._encoder = Encoder({}, row.call, row.thinking_key)

    @staticmethod
    def missing(choice: ModelChoice, row: Row = OPENAI) -> GooseLikeError | None:
        """What to set before this choice works; None when it is ready."""
        try:
            url = _base_url(choice, row)
            fault = _url_fault(url, row) or _key_fault(url, keys.find(row.key_variable), row)
        except GooseLikeError as error:
            return error
        if fault is None and not (choice.name or row.processor):
            return ProfileError(
                f"name one of its models, `{row.name}:MODEL`; `goose-like provider check {row.name}` lists them"
            )
        return fault

    @staticmethod
    async def probe(choice: ModelChoice, key: str = "", row: Row = OPENAI) -> Probe:
        """What the server says when it is asked for the list of its models.

        Raises:
            ProviderError: it can't be reached, it refused the key, or it has no such list.
            ProfileError: its address is not known.
        """
        url, key = _base_url(choice, row), key or keys.find(row.key_variable)
        if fault := _url_fault(url, row) or _key_fault(url, key, row):
            raise fault
        headers = _key_headers(row, key)
        # At another address than OpenAI's own, `openai` is any server, which may ask for no key.
        is_proven = bool(key) and row.key_path is not None and (row is not OPENAI or url.hostname == OPENAI_HOST)
        try:
            models = await list_models(row.below(url.geturl(), row.models_path), headers, _key_name(row), row.query)
            if is_proven and row.key_path and row.key_path != row.models_path:
                await list_models(row.below(url.geturl(), row.key_path), headers, _key_name(row), row.query)
        except ProviderError as error:
            error.args = (without_secrets(f"{row.name} at {host(url)}: {error}", key, url.password),)
            raise
        return Probe(host(url), models, is_proven)

    @property
    def embedding_model(self) -> str | None:
        """What makes vectors at this server; at another address than OpenAI's own `openai` is any server."""
        return None if self._row is OPENAI and self._url.hostname != OPENAI_HOST else self._row.embedding_model

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """The texts' vectors, asked for some hundred at a time."""
        found: list[Vectors] = []
        with self._placed():
            await self._connect()
            for at in range(0, len(texts), _EMBEDDED_AT_ONCE):
                found.append(await self._embedded(texts[at : at + _EMBEDDED_AT_ONCE]))
        return Vectors([v for each in found for v in each.values], sum((each.usage for each in found), Usage()))

    async def _embedded(self, texts: Sequence[str]) -> Vectors:
        request = Request(self.embedding_model or "", "", [])
        body = {"model": request.model, "input": list(texts), "encoding_format": "float"}
        try:
            with self._asking(request):
                answer = await self._client.post(
                    "/embeddings", body=body, options={"headers": self._headers()}, cast_to=object
                )
            return vectors(answer, len(texts))
        except ValueError as error:
            raise BrokenStreamError(f"what came is no list of vectors ({clip(str(error), 80)})") from error

    def _fault(self) -> GooseLikeError | None:
        return _url_fault(self._url, self._row) or _key_fault(self._url, self._key, self._row)

    def _address_names(self) -> str:
        return _address_names(self._row)

    def _made(self, **options: Any) -> Any:
        # A server that asks for no key gets one all the same: the SDK does not go without.
        return self._sdk.AsyncOpenAI(
            api_key=self._key or "none", base_url=self._url.geturl(), default_query=self._row.query, **options
        )

    async def _post(self, body: bytes) -> Any:
        # As "events", an error within the stream comes as a chunk, and not as an exception of the SDK's.
        return await self._client.post(
            "/chat/completions",
            content=body,
            options={"headers": self._headers(), "stream_mode": "events"},
            cast_to=object,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
        )

    def _events(self, stream: Any, request: Request) -> AsyncIterator[Any]:
        return cast(AsyncIterator[Any], stream)

    def _fold(self) -> Folding:
        return self._constrained().ConstrainedFold() if self._choice.tools == "constrained" else Fold()

    def _refused(self, request: Request, status: int, body: object, wait_s: float | None) -> ProviderError:
        return error_of_status(status, body, request.model, _key_name(self._row), wait_s)

    def _headers(self) -> dict[str, Any]:
        """What differs from the SDK's own headers: it takes who one is at OpenAI from the environment."""
        if self._row is OPENAI:
            return {}
        custom = (line.partition(":")[0].strip() for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines())
        names = ("OpenAI-Organization", "OpenAI-Project", "Authorization", *filter(None, custom))
        return {**dict.fromkeys(names, self._sdk.Omit()), **_key_headers(self._row, self._key)}

    @staticmethod
    def _constrained() -> Any:
        from . import json_tool_calls as constrained  # most models don't need it

        return constrained

    def _body(self, request: Request) -> bytes:
        choice, row, is_openai = self._choice, self._row, self._url.hostname == OPENAI_HOST
        extras: dict[str, Any] = {}
        limit = request.output_limit(choice.max_output_tokens)
        if limit is not None:
            # The newer name is OpenAI's; servers elsewhere know the older one.
            extras["max_completion_tokens" if is_openai else row.output_limit] = limit
        temperature = choice.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            extras["temperature"] = temperature
        if is_openai and request.session:
            # Requests with one key go to one machine, which has their prefix (OpenAI's guide on prompt caching).
            extras["prompt_cache_key"] = request.session
        if choice.tools == "constrained":
            # Not `strict`: OpenAI's strict form forbids `anyOf` at the root; llama-server, vLLM and Ollama
            # constrain to the schema in any case.
            constrained = self._constrained()
            schema = {"name": "answer", "schema": constrained.answer_schema(request.tools)}
            extras["response_format"] = {"type": "json_schema", "json_schema": schema}
            request = constrained.constrain(request)
        elif is_openai and request.tools and re.match(r"gpt-(5\.[6-9]|[6-9])", request.model):
            extras["reasoning_effort"] = "none"
        extras |= row.body
        if row.strict_roles:
            request = replace(request, messages=with_strict_roles(request.messages))
        if extras != self._extras:
            self._extras, self._encoder = extras, Encoder(extras, row.call, row.thinking_key)
        return self._encoder.body(request)


@dataclass(frozen=True, slots=True)
class Server:
    """A row in the place of a provider class."""

    row: Row

    @property
    def facts(self) -> Facts:
        return self.row.facts

    def missing(self, choice: ModelChoice) -> GooseLikeError | None:
        return OpenAIProvider.missing(choice, self.row)

    async def probe(self, choice: ModelChoice, key: str = "") -> Probe:
        return await OpenAIProvider.probe(choice, key, self.row)

    def __call__(self, choice: ModelChoice) -> OpenAIProvider:
        return OpenAIProvider(choice, self.row)


def _base_url(choice: ModelChoice, row: Row) -> SplitResult:
    return base_url(choice.base_url or row.address())


def _address_names(row: Row) -> str:
    """What a person may set a server's address with."""
    return " or ".join(["base_url", *re.findall(r"\$\{(\w+)", row.base_url)])


def _url_fault(url: SplitResult, row: Row) -> GooseLikeError | None:
    return url_fault(url, _address_names(row), "http://localhost:8080/v1")


def _key_name(row: Row) -> str:
    return row.key_variable or "key_variable in providers.yaml"


def _key_fault(url: SplitResult, key: str, row: Row) -> GooseLikeError | None:
    if not key and row is OPENAI and url.hostname == OPENAI_HOST:
        return CredentialError(f"{_how_to_set(row)}, or base_url to a server that needs no key")
    if not key and row is not OPENAI and row.key_variable and not row.key_is_optional:
        return CredentialError(_how_to_set(row))
    return key_fault(key, row.key_variable)


def _key_headers(row: Row, key: str) -> dict[str, str]:
    if not key:
        return {}
    return {row.key_header: key} if row.key_header else {"Authorization": f"Bearer {key}"}


def _how_to_set(row: Row) -> str:
    return f"set {row.key_variable} (or `goose-like provider login {row.name}`)"
