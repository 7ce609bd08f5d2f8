"""OpenAI's chat completions, and every row of the table of servers that speak them, through the openai SDK.

The SDK carries the connection, the headers and the event stream. The body goes in ready-made: its typed path would
rebuild the whole history on each call.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from .. import keys
from ..errors import (
    BrokenStreamError,
    CredentialError,
    GooseLikeError,
    ModelUnavailableError,
    ProfileError,
    ProviderError,
)
from ..memory import uncollected
from ..profile import ModelChoice
from ..provider import Delta, Facts, Probe, Request
from .door import cause, host, port, retry_after_s, without_secrets
from .openai_wire import Encoder, Fold
from .probe import list_models
from .rows import Row
from .wire import clip, error_of_status, error_within

OPENAI_HOST = "api.openai.com"

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
)


class OpenAIProvider:
    """A connection to the server of a row; the key goes nowhere but into its header."""

    facts: ClassVar[Facts] = OPENAI.facts

    def __init__(self, choice: ModelChoice, row: Row = OPENAI) -> None:
        self._choice = choice
        self._row = row
        self._url = _base_url(choice, row)
        self._key = keys.find(row.key_variable)
        self._client: Any = None
        self._extras: dict[str, Any] = {}
        self._encoder = Encoder(call_extras=row.call)

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

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        try:
            if fault := _url_fault(self._url, self._row) or _key_fault(self._url, self._key, self._row):
                raise fault
            fold = self._constrained().ConstrainedFold() if self._choice.tools == "constrained" else Fold()
            async with aclosing(self._chunks(request)) as chunks:
                async for chunk in chunks:
                    for delta in fold.feed(chunk):
                        yield delta
            yield fold.result()
        except ProviderError as error:
            told = f"{self._row.name} at {host(self._url)}: {error}"
            error.args = (without_secrets(told, self._key, self._url.password),)
            raise

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _chunks(self, request: Request) -> AsyncGenerator[Any, None]:
        """The answer's decoded chunks; whatever the SDK raises becomes one of our errors here, and only here."""
        connection = await self._connection()
        import openai

        body = self._body(request)
        try:
            stream = await connection.post(
                "/chat/completions",
                content=body,
                options={"headers": self._headers()},
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except openai.APIStatusError as error:
            wait_s = retry_after_s(error.response.headers, time.time())
            raise error_of_status(error.status_code, error.body, request.model, _key_name(self._row), wait_s) from error
        except openai.APIConnectionError as error:
            raise ModelUnavailableError(
                f"no answer from {self._url.hostname}:{port(self._url)} ({cause(error)}); "
                f"check the network, and {_url_names(self._row)}",
                is_retryable=True,
            ) from error
        has_begun = False
        try:
            while True:
                try:
                    # Not `async for`: its generator would outlive this one when this one is closed half-way.
                    # The SDK's own time limit is for single bytes: a server that only says `: ping` never meets it.
                    async with asyncio.timeout(self._choice.stall_s):
                        chunk = await anext(stream)
                except StopAsyncIteration:
                    break
                # The SDK lets what its JSON and UTF-8 decoders raise escape as it is.
                except (ValueError, RecursionError) as error:
                    raise BrokenStreamError(f"the stream is no valid JSON ({clip(str(error), 80)})") from error
                has_begun = True
                yield chunk
        except (openai.APITimeoutError, TimeoutError) as error:
            raise BrokenStreamError(
                f"the stream stalled: nothing came for {self._choice.stall_s:g} s (`stall_s`)"
            ) from error
        except openai.APIConnectionError as error:
            raise BrokenStreamError(f"the connection broke within the answer ({cause(error)})") from error
        except openai.APIError as error:
            raise error_within(error.body) from error
        finally:
            await stream.close()
        if not has_begun:
            kind = clip(stream.response.headers.get("content-type", "nothing"), 60)
            raise BrokenStreamError(f"no event stream came but {kind}; does base_url point to the API?")

    async def _connection(self) -> Any:
        if self._client is None:
            import httpcore2

            # Reading the machine's certificates takes long and holds no lock: a thread does it during the import.
            certificates = asyncio.get_running_loop().run_in_executor(None, httpcore2.default_ssl_context)
            import httpx2

            with uncollected():
                import openai

            timeout = httpx2.Timeout(self._choice.stall_s, connect=10)
            self._client = openai.AsyncOpenAI(
                # A server that asks for no key gets one all the same: the SDK does not go without.
                api_key=self._key or "none",
                base_url=self._url.geturl(),
                max_retries=0,
                default_query=self._row.query,
                # Where a redirect leads to another host, only a bearer's key is kept back.
                http_client=openai.DefaultAsyncHttpxClient(
                    verify=await certificates, timeout=timeout, follow_redirects=self._row.key_header is None
                ),
            )
        return self._client

    def _headers(self) -> dict[str, Any]:
        """What differs from the SDK's own headers: it takes who one is at OpenAI from the environment."""
        if self._row is OPENAI:
            return {}
        import openai

        custom = (line.partition(":")[0].strip() for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines())
        names = ("OpenAI-Organization", "OpenAI-Project", "Authorization", *filter(None, custom))
        return {**dict.fromkeys(names, openai.Omit()), **_key_headers(self._row, self._key)}

    @staticmethod
    def _constrained() -> Any:
        from . import constrained  # most models don't need it

        return constrained

    def _body(self, request: Request) -> bytes:
        choice, row, is_openai = self._choice, self._row, self._url.hostname == OPENAI_HOST
        extras: dict[str, Any] = {}
        if choice.max_output_tokens is not None:
            # The newer name is OpenAI's; servers elsewhere know the older one.
            extras["max_completion_tokens" if is_openai else row.output_limit] = choice.max_output_tokens
        if choice.temperature is not None:
            extras["temperature"] = choice.temperature
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
        if extras != self._extras:
            self._extras, self._encoder = extras, Encoder(extras, row.call)
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
    text = choice.base_url or row.address()
    try:
        return urlsplit(text.strip())
    except ValueError:  # "http://[::1"
        return SplitResult("", "", text, "", "")


def _url_names(row: Row) -> str:
    """What a person may set a server's address with."""
    return " or ".join(["base_url", *re.findall(r"\$\{(\w+)", row.base_url)])


def _url_fault(url: SplitResult, row: Row) -> GooseLikeError | None:
    if url.scheme in ("http", "https") and url.hostname and port(url) is not None:
        return None
    return ProfileError(
        f"{host(url) or url.path!r} is no base URL; write {_url_names(row)} like http://localhost:8080/v1"
    )


def _key_name(row: Row) -> str:
    return row.key_variable or "key_variable in providers.yaml"


def _key_fault(url: SplitResult, key: str, row: Row) -> GooseLikeError | None:
    if not key and row is OPENAI and url.hostname == OPENAI_HOST:
        return CredentialError(f"{_how_to_set(row)}, or base_url to a server that needs no key")
    if not key and row is not OPENAI and row.key_variable and not row.key_is_optional:
        return CredentialError(_how_to_set(row))
    if not (key.isascii() and key.isprintable()):
        return CredentialError(f"{row.key_variable} holds characters that no key has; set it anew")
    return None


def _key_headers(row: Row, key: str) -> dict[str, str]:
    if not key:
        return {}
    return {row.key_header: key} if row.key_header else {"Authorization": f"Bearer {key}"}


def _how_to_set(row: Row) -> str:
    return f"set {row.key_variable} (or `goose-like provider login {row.name}`)"
