"""Anthropic's models through the anthropic SDK, from Anthropic, Amazon Bedrock and Google Vertex AI."""

import json
import os
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit

from goose_like.config.profile import ModelChoice
from goose_like.config.secrets import find_key
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, ProfileError, ProviderError

from .anthropic_wire import AnthropicEncoder, AnthropicStreamParser, build_error
from .base import ProbeResult, ProviderInfo, Request
from .sdk_client import (
    add_location,
    find_key_error,
    find_url_error,
    format_host,
    list_models,
    parse_base_url,
    parse_retry_after_s,
)
from .sdk_request import SdkProvider
from .wire import clip

KEY_VARIABLE = "ANTHROPIC_API_KEY"
ANTHROPIC_HOST = "api.anthropic.com"
_ADDRESS_NAMES = "base_url or ANTHROPIC_BASE_URL"
_VERSION = "2023-06-01"

_FIFTH = r"claude-[a-z]+-[5-9]\b"
"""Models from version 5 on think by default, and show it only on request (their model pages)."""

_WINDOWS = ((_FIFTH, 1_000_000), (r"claude-", 200_000))


class AnthropicProvider(SdkProvider):
    """A provider for Anthropic's server or a compatible one."""

    sdk_name = "anthropic"
    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="Anthropic's models, and any server that speaks their messages (ANTHROPIC_BASE_URL)",
        key_variable=KEY_VARIABLE,
        processor="claude-opus-5-5",
        accelerator="claude-haiku-5-5",
        takes_images=True,
        windows=_WINDOWS,
    )

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice, _resolve_base_url(choice), find_key(KEY_VARIABLE), _ADDRESS_NAMES)
        self._model = ""
        self._encoder = AnthropicEncoder()

    @classmethod
    def find_setup_error(cls, choice: ModelChoice) -> GooseLikeError | None:
        """Return the error about a missing key or invalid setting, or None if the choice is usable."""
        url = _resolve_base_url(choice)
        try:
            return _find_choice_error(choice) or _find_address_error(url, find_key(KEY_VARIABLE))
        except CredentialError as error:
            return error

    @staticmethod
    async def probe(choice: ModelChoice, key: str = "") -> ProbeResult:
        """Check address and key of the server by listing its models.

        Raises:
            ProviderError: The server is unreachable, refuses the key or has no list of models.
            ProfileError: The address is invalid.
        """
        url, key = _resolve_base_url(choice), key or find_key(KEY_VARIABLE)
        if error := _find_address_error(url, key):
            raise error
        headers = {"x-api-key": key, "anthropic-version": _VERSION} if key else {"anthropic-version": _VERSION}
        try:
            models = await list_models(f"{url.geturl()}/v1/models", headers, KEY_VARIABLE, {"limit": "1000"})
        except ProviderError as error:
            add_location(error, "anthropic", url, key)
            raise
        return ProbeResult(format_host(url), models, bool(key) and url.hostname == ANTHROPIC_HOST)

    def _find_setup_error(self) -> GooseLikeError | None:
        return self.find_setup_error(self._choice)

    def _create_client(self, **options: Any) -> Any:
        # Without a key the SDK would look for another credential, even for servers that need none.
        return self._sdk.AsyncAnthropic(api_key=self._key or "none", base_url=self._url.geturl(), **options)

    async def _post(self, body: bytes) -> Any:
        return await self._client.post(
            "/v1/messages",
            cast_to=object,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
            **self._build_body_options(body),
        )

    def _build_body_options(self, body: bytes) -> dict[str, Any]:
        return {"content": body}

    async def _iterate_events(self, stream: Any, request: Request) -> AsyncGenerator[Any, None]:
        # The SDK's own iteration hides pings. They count as activity: only pings arrive while the model writes a long
        # argument.
        async with aclosing(stream.raw_events(stream.response)) as events:
            async for event in events:
                data = json.loads(event.data) if event.data else None
                if event.event == "error" or (isinstance(data, dict) and data.get("type") == "error"):
                    raise self._build_refusal(
                        request, 200, data, parse_retry_after_s(stream.response.headers, time.time())
                    )
                yield data

    def _create_parser(self) -> AnthropicStreamParser:
        return AnthropicStreamParser()

    def _build_refusal(self, request: Request, status: int, body: object, wait_s: float | None) -> ProviderError:
        return build_error(body, status, request.model, self.info.key_variable or "the credentials", wait_s)

    def _encode_body(self, request: Request) -> bytes:
        if request.model != self._model:
            self._model = request.model
            window = self._choice.window or self.info.find_window(request.model) or 128_000
            extras: dict[str, Any] = {"max_tokens": self._choice.max_output_tokens or min(64_000, window // 8)}
            if re.search(_FIFTH, request.model):
                extras["thinking"] = {"type": "adaptive", "display": "summarized"}
            self._encoder = AnthropicEncoder(extras)
        if re.search(_FIFTH, request.model):
            request = replace(request, temperature=None)  # refused together with thinking
        return self._encoder.encode_request(request)


class _CloudProvider(AnthropicProvider):
    """Anthropic's models at a cloud vendor. The vendor's client finds the credentials of the vendor's tools."""

    extra: ClassVar[str]
    library: ClassVar[str]
    region_variable: ClassVar[str]
    client_class: ClassVar[str]

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._url, self._key = urlsplit(choice.base_url or ""), ""

    @classmethod
    def find_setup_error(cls, choice: ModelChoice) -> GooseLikeError | None:
        """Return the error about a missing library or setting, or None if the choice is usable."""
        if error := _find_choice_error(choice):
            return error
        if find_spec(cls.library.partition(".")[0]) is None or find_spec(cls.library) is None:
            return ModelUnavailableError(f"its library is not installed: pip install 'goose-like[{cls.extra}]'")
        if not choice.name:
            return ProfileError(f"name a model: {cls.extra}:MODEL, as the vendor lists it")
        if not os.environ.get(cls.region_variable):
            return CredentialError(f"set {cls.region_variable} to the region where the model is served")
        return None

    def _create_client(self, **options: Any) -> Any:
        client = getattr(self._sdk, self.client_class)(base_url=self._choice.base_url, **options)
        self._url = urlsplit(str(client.base_url))
        return client

    async def _post(self, body: bytes) -> Any:
        try:
            return await super()._post(body)
        except self._sdk.APIError:
            raise
        except Exception as error:  # from the vendor's library, when it looks for credentials
            raise CredentialError(
                f"no valid credentials ({clip(str(error), 200)}); log in with the vendor's tool first"
            ) from error


class BedrockProvider(_CloudProvider):
    """Amazon Bedrock, with the region and credentials of the AWS tools."""

    extra, library, region_variable = "bedrock", "boto3", "AWS_REGION"
    client_class = "AsyncAnthropicBedrockMantle"
    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="Anthropic's models on Amazon Bedrock (untested): bedrock:anthropic.MODEL, AWS_REGION, AWS credentials",
        takes_images=True,
        windows=_WINDOWS,
    )


class VertexProvider(_CloudProvider):
    """Google Vertex AI, with the region, project and credentials of Google's tools."""

    extra, library, region_variable = "vertex", "google.auth", "CLOUD_ML_REGION"
    client_class = "AsyncAnthropicVertex"
    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="Anthropic's models on Google Vertex AI (untested): vertex:MODEL, CLOUD_ML_REGION, Google credentials",
        takes_images=True,
        windows=_WINDOWS,
    )

    def _build_body_options(self, body: bytes) -> dict[str, Any]:
        return {"body": json.loads(body)}  # the client moves the model from the body into the URL


def _resolve_base_url(choice: ModelChoice) -> SplitResult:
    text = choice.base_url or os.environ.get("ANTHROPIC_BASE_URL") or f"https://{ANTHROPIC_HOST}"
    return parse_base_url(text.strip().rstrip("/").removesuffix("/v1"))  # the SDK adds /v1


def _find_choice_error(choice: ModelChoice) -> GooseLikeError | None:
    if choice.temperature is not None:
        return ProfileError("these models no longer accept `temperature`; remove it")
    if choice.tools == "constrained":
        return ProfileError("these models call tools natively; remove `tools: constrained`")
    return None


def _find_address_error(url: SplitResult, key: str) -> GooseLikeError | None:
    if error := find_url_error(url, _ADDRESS_NAMES, "http://localhost:8080"):
        return error
    if not key and url.hostname == ANTHROPIC_HOST:
        return CredentialError(
            f"set {KEY_VARIABLE} (or `goose-like provider login anthropic`), or base_url to a server that needs no key"
        )
    return find_key_error(key, KEY_VARIABLE)
