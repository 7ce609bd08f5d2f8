"""Anthropic's models, from Anthropic, Amazon Bedrock and Google Vertex AI."""

import json
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import urlsplit

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, ProfileError
from goose_like.core.gc_pause import pause_gc

from .anthropic_wire import AnthropicEncoder, AnthropicStreamParser, build_search, get_error_status, parse_search
from .base import ProviderInfo, Request, SearchAnswer
from .event_stream import StreamEvent
from .http_provider import HttpProvider, parse_custom_headers
from .wire import clip

_FIFTH = r"claude-[a-z]+-[5-9]\b"
"""Models from version 5 on think by default, and show it only on request (their model pages)."""

_WINDOWS = ((_FIFTH, 1_000_000), (r"claude-", 200_000))


class AnthropicProvider(HttpProvider):
    """A provider for Anthropic's server or a compatible one."""

    host = "api.anthropic.com"
    path = "/v1/messages"
    url_settings = "base_url or ANTHROPIC_BASE_URL"
    key_setting = "the credentials"
    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="Anthropic's models, and any server that speaks their messages (ANTHROPIC_BASE_URL)",
        key_variable="ANTHROPIC_API_KEY",
        processor="claude-opus-5-5",
        accelerator="claude-haiku-5-5",
        takes_images=True,
        windows=_WINDOWS,
    )

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._encoder = AnthropicEncoder()

    def _find_base_url(self) -> str:
        variables = map(os.environ.get, ("ANTHROPIC_BASE_URL", "ANTHROPIC_HOST"))
        base_url = next(filter(None, (self._choice.base_url, *variables)), f"https://{self.host}")
        return re.sub(r"(/v1(/messages)?)?/*(?=\?|$)", "", base_url.strip(), count=1)  # `path` begins with /v1

    async def _list_models(self) -> tuple[str, ...] | None:
        return await self._fetch_model_names("/v1/models", {"limit": "1000"})

    @property
    def can_search_web(self) -> bool:
        """True for Anthropic's own server."""
        return self._is_own_server()

    async def search_web(self, query: str, model: str) -> SearchAnswer:
        """Search with the tool of Anthropic's server."""
        with self._add_location_to_errors():
            return parse_search(await self._fetch_json(self.path, build_search(query, model), model))

    def _find_choice_error(self) -> GooseLikeError | None:
        if self._choice.temperature is not None:
            return ProfileError("these models no longer accept `temperature`; remove it")
        if self._choice.tools == "constrained":
            return ProfileError("these models call tools natively; remove `tools: constrained`")
        return super()._find_choice_error()

    def _build_headers(self) -> dict[str, str]:
        # As the SDK sends them since 2.0; a test compares both.
        key = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        custom = parse_custom_headers(os.environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
        return {"anthropic-version": "2026-10-21", **key, **custom}

    def _check_event(self, event: StreamEvent, model: str, headers: Mapping[str, str]) -> Any:
        data = event.value
        if event.name and isinstance(data, dict) and not data.get("type"):
            data = data | {"type": event.name}
        kind = data.get("type") if isinstance(data, dict) else "no object"
        if "error" in (event.name, kind):
            raise self._build_refusal(model, get_error_status(data), data, headers)
        return None if kind in (None, "ping") else data

    def _create_parser(self) -> AnthropicStreamParser:
        return AnthropicStreamParser()

    def _encode_body(self, request: Request) -> bytes:
        window = self._choice.window or self.info.find_window(request.model) or 128_000
        limit = request.resolve_output_limit(self._choice.max_output_tokens or min(64_000, window // 8))
        extras: dict[str, Any] = {"max_tokens": limit}
        if re.search(_FIFTH, request.model):
            extras["thinking"] = {"type": "adaptive", "display": "summarized"}
        elif request.temperature is not None:  # refused together with thinking
            extras["temperature"] = min(request.temperature, 1)  # the limit of the API; other vendors allow 2
        return self._encoder.encode_request(request, extras)


class _CloudProvider(AnthropicProvider):
    """Anthropic's models at a cloud vendor. The vendor's client finds the credentials of the vendor's tools."""

    extra: ClassVar[str]
    library: ClassVar[str]
    region_variable: ClassVar[str]
    client_class: ClassVar[str]

    probe = None  # type: ignore[assignment]  # a cloud has no free request

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._cloud: Any = None

    def _find_base_url(self) -> str:
        return self._choice.base_url or ""

    def _find_server_error(self) -> GooseLikeError | None:
        if find_spec(self.library.partition(".")[0]) is None or find_spec(self.library) is None:
            return ModelUnavailableError(f"its library is not installed: pip install 'goose-like[{self.extra}]'")
        if not os.environ.get(self.region_variable):
            return CredentialError(f"set {self.region_variable} to the region where the model is served")
        return None

    def _build_post_options(self, body: bytes) -> dict[str, Any]:
        return {"content": body}

    async def _send(self, client: Any, path: str, body: bytes, extensions: Mapping[str, Any]) -> Any:
        """Send a body through the vendor's client, which adds credentials and signs."""
        with pause_gc():
            import anthropic

        try:
            if self._cloud is None:
                client_class = getattr(anthropic, self.client_class)
                self._cloud = client_class(base_url=self._choice.base_url, max_retries=0, http_client=client)
                self._url = urlsplit(str(self._cloud.base_url))
            options = {"stream_cls": anthropic.AsyncStream[object], **self._build_post_options(body)}
            return (await self._cloud.post(path, cast_to=object, stream=True, **options)).response
        except anthropic.APIStatusError as error:
            return error.response
        except anthropic.APIConnectionError as error:
            raise error.__cause__ or error from None
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

    def _build_post_options(self, body: bytes) -> dict[str, Any]:
        return {"body": json.loads(body)}  # the client moves the model from the body into the URL
