"""Anthropic's models through the anthropic SDK, and the same models where Amazon and Google serve them.

The SDK carries the connection and the headers and splits the stream into events. The body goes in ready-made: its typed
path would rebuild the whole history on each call.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.util import find_spec
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
from .anthropic_wire import Encoder, Fold, error_of
from .door import cause, host, port, retry_after_s, without_secrets
from .probe import list_models
from .wire import clip

KEY_VARIABLE = "ANTHROPIC_API_KEY"
ANTHROPIC_HOST = "api.anthropic.com"
_VERSION = "2023-06-01"

_FIFTH = r"claude-[a-z]+-[5-9]\b"
"""Models from 5 on think unless they are told not to, and hide it unless they are asked (their model pages)."""

_WINDOWS = ((_FIFTH, 1_000_000), (r"claude-", 200_000))


class AnthropicProvider:
    """A connection to one server; the key goes nowhere but into its header."""

    facts: ClassVar[Facts] = Facts(
        summary="Anthropic's models, and any server that speaks their messages (ANTHROPIC_BASE_URL)",
        key_variable=KEY_VARIABLE,
        processor="claude-opus-5-5",
        accelerator="claude-haiku-5-5",
        takes_images=True,
        windows=_WINDOWS,
    )

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._url = _base_url(choice)
        self._key = keys.find(KEY_VARIABLE)
        self._client: Any = None
        self._model = ""
        self._encoder = Encoder()

    @staticmethod
    def missing(choice: ModelChoice) -> GooseLikeError | None:
        """What to set before this choice works; None when it is ready."""
        url = _base_url(choice)
        try:
            return _choice_fault(choice) or _url_fault(url) or _key_fault(url, keys.find(KEY_VARIABLE))
        except CredentialError as error:
            return error

    @staticmethod
    async def probe(choice: ModelChoice, key: str = "") -> Probe:
        """What the server says when it is asked for the list of its models.

        Raises:
            ProviderError: it can't be reached, it refused the key, or it has no such list.
            ProfileError: its address is none.
        """
        url, key = _base_url(choice), key or keys.find(KEY_VARIABLE)
        if fault := _url_fault(url) or _key_fault(url, key):
            raise fault
        headers = {"x-api-key": key, "anthropic-version": _VERSION} if key else {"anthropic-version": _VERSION}
        try:
            models = await list_models(f"{url.geturl()}/v1/models", headers, KEY_VARIABLE, {"limit": "1000"})
        except ProviderError as error:
            error.args = (without_secrets(f"anthropic at {host(url)}: {error}", key, url.password),)
            raise
        return Probe(host(url), models, bool(key) and url.hostname == ANTHROPIC_HOST)

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        try:
            if fault := self.missing(self._choice):
                raise fault
            fold = Fold()
            async with aclosing(self._events(request)) as events:
                async for event in events:
                    for delta in fold.feed(event):
                        yield delta
            yield fold.result()
        except ProviderError as error:
            where = " at ".join(filter(None, (self._choice.provider, host(self._url))))
            error.args = (without_secrets(f"{where}: {error}", self._key, self._url.password),)
            raise

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _events(self, request: Request) -> AsyncGenerator[Any, None]:
        """The answer's decoded events; whatever the SDK raises becomes one of our errors here, and only here."""
        client = await self._connection()
        import anthropic
        import httpx2

        def refused(body: object, status: int, headers: Any) -> ProviderError:
            wait_s = retry_after_s(headers, time.time())
            return error_of(body, status, request.model, self.facts.key_variable or "the credentials", wait_s)

        try:
            stream = await self._post(client, self._body(request), anthropic.AsyncStream[object])
        except anthropic.APIStatusError as error:
            raise refused(error.body, error.status_code, error.response.headers) from error
        except anthropic.APIConnectionError as error:
            raise ModelUnavailableError(
                f"no answer from {self._url.hostname}:{port(self._url)} ({cause(error)}); "
                "check the network, and base_url or ANTHROPIC_BASE_URL",
                is_retryable=True,
            ) from error
        has_begun = False
        # The SDK's own iteration hides pings. They count as life: nothing else comes while a long argument is written.
        events = stream.raw_events(stream.response)
        try:
            while True:
                try:
                    # Not `async for`: its generator would outlive this one when this one is closed half-way.
                    # The SDK's own time limit is for single bytes: a server that only sends comments never meets it.
                    async with asyncio.timeout(self._choice.stall_s):
                        event = await anext(events)
                    data = json.loads(event.data) if event.data else None
                except StopAsyncIteration:
                    break
                except (ValueError, RecursionError) as error:  # bytes that are no UTF-8, too
                    raise BrokenStreamError(f"the stream is no valid JSON ({clip(str(error), 80)})") from error
                has_begun = True
                if event.event == "error" or (isinstance(data, dict) and data.get("type") == "error"):
                    raise refused(data, 200, stream.response.headers)
                if data is not None:
                    yield data
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise BrokenStreamError(
                f"the stream stalled: nothing came for {self._choice.stall_s:g} s (`stall_s`)"
            ) from error
        except httpx2.HTTPError as error:
            raise BrokenStreamError(f"the connection broke within the answer ({cause(error)})") from error
        finally:
            await events.aclose()
            await stream.close()
        if not has_begun:
            kind = clip(stream.response.headers.get("content-type", "nothing"), 60)
            raise BrokenStreamError(f"no event stream came but {kind}; does base_url point to the API?")

    async def _post(self, client: Any, body: bytes, stream_cls: Any) -> Any:
        sent = self._sent(body)
        return await client.post("/v1/messages", cast_to=object, stream=True, stream_cls=stream_cls, **sent)

    def _sent(self, body: bytes) -> dict[str, Any]:
        return {"content": body}

    async def _connection(self) -> Any:
        if self._client is None:
            import httpcore2

            # Reading the machine's certificates takes long and holds no lock: a thread does it during the import.
            certificates = asyncio.get_running_loop().run_in_executor(None, httpcore2.default_ssl_context)
            with uncollected():
                import anthropic
            import httpx2

            timeout = httpx2.Timeout(self._choice.stall_s, connect=10)
            self._client = self._made(
                anthropic,
                max_retries=0,
                http_client=anthropic.DefaultAsyncHttpxClient(verify=await certificates, timeout=timeout),
            )
        return self._client

    def _made(self, sdk: Any, **options: Any) -> Any:
        # A server that asks for no key gets one all the same: without, the SDK would look for another of its own.
        return sdk.AsyncAnthropic(api_key=self._key or "none", base_url=self._url.geturl(), **options)

    def _body(self, request: Request) -> bytes:
        if request.model != self._model:
            self._model = request.model
            window = self._choice.window or self.facts.window_of(request.model) or 128_000
            extras: dict[str, Any] = {"max_tokens": self._choice.max_output_tokens or min(64_000, window // 8)}
            if re.search(_FIFTH, request.model):
                extras["thinking"] = {"type": "adaptive", "display": "summarized"}
            self._encoder = Encoder(extras)
        return self._encoder.body(request)


class _Elsewhere(AnthropicProvider):
    """The same models at another company, whose own client finds the credentials as its other tools do."""

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._url, self._key = urlsplit(choice.base_url or ""), ""

    async def _post(self, client: Any, body: bytes, stream_cls: Any) -> Any:
        import anthropic

        try:
            return await super()._post(client, body, stream_cls)
        except anthropic.APIError:
            raise
        except Exception as error:  # the company's own library, looking for credentials
            raise CredentialError(f"no credentials that work ({clip(str(error), 200)}); log in there first") from error


class BedrockProvider(_Elsewhere):
    """Amazon Bedrock, by the region and credentials that the AWS tools use."""

    facts: ClassVar[Facts] = Facts(
        summary="Anthropic's models on Amazon Bedrock (untested): bedrock:anthropic.MODEL, AWS_REGION, AWS credentials",
        takes_images=True,
        windows=_WINDOWS,
    )

    @staticmethod
    def missing(choice: ModelChoice) -> GooseLikeError | None:
        """What to install or set before this choice works; None when it is ready."""
        return _choice_fault(choice) or _elsewhere_fault("bedrock", "boto3", "AWS_REGION", choice)

    def _made(self, sdk: Any, **options: Any) -> Any:
        client = sdk.AsyncAnthropicBedrockMantle(base_url=self._choice.base_url, **options)
        self._url = urlsplit(str(client.base_url))
        return client


class VertexProvider(_Elsewhere):
    """Google's Vertex AI, by the region, project and credentials that Google's tools use."""

    facts: ClassVar[Facts] = Facts(
        summary="Anthropic's models on Google Vertex AI (untested): vertex:MODEL, CLOUD_ML_REGION, Google credentials",
        takes_images=True,
        windows=_WINDOWS,
    )

    @staticmethod
    def missing(choice: ModelChoice) -> GooseLikeError | None:
        """What to install or set before this choice works; None when it is ready."""
        return _choice_fault(choice) or _elsewhere_fault("vertex", "google.auth", "CLOUD_ML_REGION", choice)

    def _made(self, sdk: Any, **options: Any) -> Any:
        client = sdk.AsyncAnthropicVertex(base_url=self._choice.base_url, **options)
        self._url = urlsplit(str(client.base_url))
        return client

    def _sent(self, body: bytes) -> dict[str, Any]:
        return {"body": json.loads(body)}  # its client takes the model from the body into the URL


def _base_url(choice: ModelChoice) -> SplitResult:
    text = choice.base_url or os.environ.get("ANTHROPIC_BASE_URL") or f"https://{ANTHROPIC_HOST}"
    try:
        return urlsplit(text.strip().rstrip("/").removesuffix("/v1"))  # the SDK adds it
    except ValueError:  # "http://[::1"
        return SplitResult("", "", text, "", "")


def _choice_fault(choice: ModelChoice) -> GooseLikeError | None:
    if choice.temperature is not None:
        return ProfileError("these models take no `temperature` any more; leave it out")
    if choice.tools == "constrained":
        return ProfileError("these models call tools natively; leave `tools: constrained` out")
    return None


def _url_fault(url: SplitResult) -> GooseLikeError | None:
    if url.scheme in ("http", "https") and url.hostname and port(url) is not None:
        return None
    return ProfileError(
        f"{host(url) or url.path!r} is no base URL; write base_url or ANTHROPIC_BASE_URL like http://localhost:8080"
    )


def _key_fault(url: SplitResult, key: str) -> GooseLikeError | None:
    if not key and url.hostname == ANTHROPIC_HOST:
        return CredentialError(
            f"set {KEY_VARIABLE} (or `goose-like provider login anthropic`), or base_url to a server that needs no key"
        )
    if not (key.isascii() and key.isprintable()):
        return CredentialError(f"{KEY_VARIABLE} holds characters that no key has; set it anew")
    return None


def _elsewhere_fault(extra: str, package: str, region: str, choice: ModelChoice) -> GooseLikeError | None:
    if find_spec(package.partition(".")[0]) is None or find_spec(package) is None:
        return ModelUnavailableError(f"its library is not installed: pip install 'goose-like[{extra}]'")
    if not choice.name:
        return ProfileError(f"name a model: {extra}:MODEL, as that company lists it")
    if not os.environ.get(region):
        return CredentialError(f"set {region} to the region where the model is served")
    return None
