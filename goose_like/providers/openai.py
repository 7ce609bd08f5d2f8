"""OpenAI's chat completions, and every server that speaks them, through the openai SDK.

The SDK carries the connection, the headers and the event stream. The body goes in ready-made: its typed path would
rebuild the whole history on each call.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from ..errors import (
    BrokenStreamError,
    CredentialError,
    GooseLikeError,
    ModelUnavailableError,
    ProfileError,
    ProviderError,
)
from ..profile import ModelChoice
from ..provider import Delta, Facts, Request
from .door import cause, host, port, retry_after_s, uncollected, without_secrets
from .openai_wire import Encoder, Fold
from .wire import clip, error_of_status, error_within

KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI_HOST = "api.openai.com"


def warm() -> None:
    """Imports the SDK, all of it. Run in a thread while the rest is built, it takes most of that off the first request.

    A client is made and dropped because the SDK imports half of itself only then.
    """
    import openai

    openai.AsyncOpenAI(api_key="none")


class OpenAIProvider:
    """A connection to one server; the key is read from the environment and goes nowhere but into its header."""

    # Chat completions take tools from the newer models only without reasoning, which gpt-6-astra and those from
    # 6.1 on can't do without (their model pages: "rejects requests that set reasoning effort to none").
    facts: ClassVar[Facts] = Facts(
        summary="OpenAI's models, and any server that speaks chat completions (OPENAI_BASE_URL)",
        key_variable=KEY_VARIABLE,
        processor="gpt-6-sol",
        accelerator="gpt-6-luna",
        takes_images=True,
    )

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._url = _base_url(choice)
        self._key = _key()
        self._client: Any = None
        self._extras: dict[str, Any] = {}
        self._encoder = Encoder()

    @staticmethod
    def missing(choice: ModelChoice) -> GooseLikeError | None:
        """What to set before this choice works; None when it is ready."""
        url = _base_url(choice)
        return _url_fault(url) or _key_fault(url, _key())

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        try:
            if fault := _url_fault(self._url):
                raise fault
            if fault := _key_fault(self._url, self._key):
                raise fault
            fold = self._constrained().ConstrainedFold() if self._choice.tools == "constrained" else Fold()
            async with aclosing(self._chunks(request)) as chunks:
                async for chunk in chunks:
                    for delta in fold.feed(chunk):
                        yield delta
            yield fold.result()
        except ProviderError as error:
            error.args = (without_secrets(f"openai at {host(self._url)}: {error}", self._key, self._url.password),)
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
                "/chat/completions", content=body, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object]
            )
        except openai.APIStatusError as error:
            wait_s = retry_after_s(error.response.headers, time.time())
            raise error_of_status(error.status_code, error.body, request.model, KEY_VARIABLE, wait_s) from error
        except openai.APIConnectionError as error:
            raise ModelUnavailableError(
                f"no answer from {self._url.hostname}:{port(self._url)} ({cause(error)}); "
                "check the network, and base_url or OPENAI_BASE_URL",
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
                http_client=openai.DefaultAsyncHttpxClient(verify=await certificates, timeout=timeout),
            )
        return self._client

    @staticmethod
    def _constrained() -> Any:
        from . import constrained  # most models don't need it

        return constrained

    def _body(self, request: Request) -> bytes:
        choice, is_openai = self._choice, self._url.hostname == OPENAI_HOST
        extras: dict[str, Any] = {}
        if choice.max_output_tokens is not None:
            # The newer name is OpenAI's; servers elsewhere know the older one.
            extras["max_completion_tokens" if is_openai else "max_tokens"] = choice.max_output_tokens
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
        if extras != self._extras:
            self._extras, self._encoder = extras, Encoder(extras)
        return self._encoder.body(request)


def _key() -> str:
    return os.environ.get(KEY_VARIABLE, "").strip()


def _base_url(choice: ModelChoice) -> SplitResult:
    text = choice.base_url or os.environ.get("OPENAI_BASE_URL") or f"https://{OPENAI_HOST}/v1"
    try:
        return urlsplit(text.strip())
    except ValueError:  # "http://[::1"
        return SplitResult("", "", text, "", "")


def _url_fault(url: SplitResult) -> GooseLikeError | None:
    if url.scheme in ("http", "https") and url.hostname and port(url) is not None:
        return None
    return ProfileError(
        f"{host(url) or url.path!r} is no base URL; write base_url or OPENAI_BASE_URL like http://localhost:8080/v1"
    )


def _key_fault(url: SplitResult, key: str) -> GooseLikeError | None:
    if not key and url.hostname == OPENAI_HOST:
        return CredentialError(f"set {KEY_VARIABLE}, or base_url to a server that needs no key")
    if not (key.isascii() and key.isprintable()):
        return CredentialError(f"{KEY_VARIABLE} holds characters that no key has; set it anew")
    return None
