"""Anthropic's models, from Anthropic, Amazon Bedrock and Google Vertex AI."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from typing_extensions import override

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, ProfileError
from goose_like.core.gc_pause import pause_gc

from .anthropic_compaction import parse_compaction
from .anthropic_facts import parse_model_facts
from .anthropic_hosted import HostedBlocks
from .anthropic_search import SearchParser, build_search
from .anthropic_wire import (
    MAX_OUTPUT_TOKENS,
    MAX_PAUSES,
    AnthropicEncoder,
    AnthropicStreamParser,
    get_error_status,
    has_compaction,
)
from .base import (
    FileLimits,
    ProviderInfo,
    Request,
    SchemaDialect,
    SearchAnswer,
    ServerCompaction,
    StreamParser,
)
from .event_stream import StreamEvent
from .http_headers import read_custom_headers
from .http_provider import HttpProvider, extract_names, parse_json
from .known_models import COMPACTION, HOSTED_TOOLS, TOOL_SEARCH, find_known_model, record_facts
from .native_tools import find_native
from .wire import clip

if TYPE_CHECKING:
    from anthropic.types import OutputConfigParam, ThinkingConfigAdaptiveParam
    from anthropic.types.beta import BetaCompactionConfigParam, BetaFallbacksParam

    from .remedies import Remedy

_BETA_HEADER = "anthropic-beta"
_FALLBACK_BETA = "server-side-fallback-2026-07-01"
_SPEED_BETA = "fast-mode-2026-02-01"
_COMPACTION_BETA = "compact-2026-09-04"
_ASSUMED_WINDOW_TOKENS = 128_000
_SMALL_WINDOW_TOKENS = 200_000


class AnthropicProvider(HttpProvider):
    """A provider for Anthropic's server or a compatible one."""

    host = "api.anthropic.com"
    path = "/v1/messages"
    wire = "messages"
    max_request_bytes = 32_000_000
    url_settings = "base_url or ANTHROPIC_BASE_URL"
    key_setting = "the credentials"
    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="Anthropic's models, and any server that speaks their messages (ANTHROPIC_BASE_URL)",
        key_variable="ANTHROPIC_API_KEY",
        processor="claude-opus-5-5",
        accelerator="claude-haiku-5-5",
        takes_images=True,
    )

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._encoder = self._create_encoder()
        self._takes_system_messages = True
        self._betas: set[str] = set()
        if choice.server_fallback:
            self._betas.add(_FALLBACK_BETA)
        if choice.speed:
            self._betas.add(_SPEED_BETA)

    def _find_base_url(self) -> str:
        variables = map(os.environ.get, ("ANTHROPIC_BASE_URL", "ANTHROPIC_HOST"))
        base_url = next(filter(None, (self._choice.base_url, *variables)), f"https://{self.host}")
        return re.sub(r"(/v1(/messages)?)?/*(?=\?|$)", "", base_url.strip(), count=1)  # `path` begins with /v1

    def _create_encoder(self, *, keeps_blanks: bool = True) -> AnthropicEncoder:
        origin = self._get_origin()
        return AnthropicEncoder(
            origin,
            keeps_blanks=keeps_blanks,
            has_long_cache=self._choice.cache == "long",
            streams_arguments=origin == self.host,
        )

    def _get_origin(self) -> str:
        """Return the place whose answers this server takes back unchanged: its host."""
        return self._url.hostname or ""

    async def _list_models(self) -> tuple[str, ...] | None:
        listed = await self._fetch_models("/v1/models", {"limit": "1000"})
        for name, facts in parse_model_facts(listed):
            record_facts(self._choice.provider, name, facts)
        return extract_names(listed)

    def find_file_limits(self, window: int | None) -> FileLimits | None:
        """Return the limits of Anthropic's own server. Other servers may know no PDF files."""
        if not self._is_own_server():
            return None
        return self._build_file_limits(window)

    def _build_file_limits(self, window: int | None) -> FileLimits:
        # Source: Anthropic's guide on vision, "General limits".
        max_images = 600
        if window is not None and window <= _SMALL_WINDOW_TOKENS:
            max_images = 100
        return FileLimits(self.max_request_bytes, max_images, large_images=20, max_side_px=2_000)

    @property
    def can_search_web(self) -> bool:
        """True for Anthropic's own server."""
        return self._is_own_server()

    async def search_web(self, query: str, model: str) -> SearchAnswer:
        """Search with the tool of Anthropic's server."""
        with self._add_location_to_errors():
            parser = SearchParser()
            for _ in range(MAX_PAUSES):
                body = build_search(query, model, parser.blocks)
                if not parser.feed(await self._fetch_json(self.path, body, model)):
                    break
            return parser.build_answer()

    def can_compact(self, model: str) -> bool:
        """See `SupportsCompaction.can_compact`. True for models on Anthropic's own server."""
        return COMPACTION in self._find_native(model)

    def can_search_tools(self, model: str) -> bool:
        """See `SupportsToolSearch.can_search_tools`. True for models on Anthropic's own server."""
        return TOOL_SEARCH in self._find_native(model)

    def _find_native(self, model: str) -> frozenset[str]:
        """Find what Anthropic's own server has for a model, and did not refuse."""
        if not self._is_own_server():
            return frozenset()
        return find_native(self._choice.provider, model, self._remedies)

    def find_hosted(self, model: str) -> frozenset[str]:
        """See `HostsTools.find_hosted`. A gateway is taken to have what the vendor has for the named model."""
        return find_native(self._choice.provider, model, self._remedies) & HOSTED_TOOLS

    async def compact(self, request: Request) -> ServerCompaction:
        """See `SupportsCompaction.compact`."""
        compaction: BetaCompactionConfigParam = {"type": "summarize"}
        self._betas.add(_COMPACTION_BETA)
        body = self._encode(request, {"compaction": compaction, "stream": None})
        with self._add_location_to_errors():
            content = await self._fetch(self.path, body, request.model)
            return parse_compaction(parse_json(content), self._get_origin())

    def _find_choice_error(self) -> GooseLikeError | None:
        if self._choice.temperature is not None:
            return ProfileError("these models no longer accept `temperature`; remove it")
        if self._choice.service_tier:
            return ProfileError("`service_tier` is for OpenAI's API; for faster answers write `speed: fast`")
        if self._choice.tools in ("constrained", "tags"):
            return ProfileError(f"these models call tools natively; remove `tools: {self._choice.tools}`")
        return super()._find_choice_error()

    def _build_headers(self) -> dict[str, str]:
        # As the SDK sends them since 2.0; a test compares both.
        headers = {"anthropic-version": "2026-10-21"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        headers |= read_custom_headers("ANTHROPIC_CUSTOM_HEADERS")
        if self._betas:
            # The user's own header may have other letter case.
            name = next((name for name in headers if name.lower() == _BETA_HEADER), _BETA_HEADER)
            betas = filter(None, [headers.get(name), *sorted(self._betas)])
            headers[name] = ",".join(betas)
        return headers

    def _apply_remedy(self, remedy: "Remedy") -> None:
        if remedy.kind == "leave_out_blanks":
            self._encoder = self._create_encoder(keeps_blanks=False)
        elif remedy.kind == "no_system_messages":
            self._takes_system_messages = False

    def _check_event(self, event: StreamEvent, model: str, headers: Mapping[str, str]) -> Any:
        data = event.value
        if event.name and isinstance(data, dict) and not data.get("type"):
            data = data | {"type": event.name}
        kind = data.get("type") if isinstance(data, dict) else "no object"
        if "error" in (event.name, kind):
            raise self._build_refusal(model, get_error_status(data), data, headers)
        return None if kind in (None, "ping") else data

    def _get_schema_dialect(self, model: str) -> SchemaDialect | None:
        return "anthropic" if "claude" in model else None  # other vendors' servers ignore the key

    def _create_parser(self, request: Request) -> AnthropicStreamParser:
        hosted = HostedBlocks(request.hosted.shows_sources)
        return AnthropicStreamParser(self._get_origin(), self._choice.provider, hosted)

    def _continue_answer(self, request: Request, parser: StreamParser) -> Request | None:
        if not isinstance(parser, AnthropicStreamParser):
            return None
        paused = parser.pause()
        if paused is None:
            return None
        return replace(request, messages=(*request.messages, paused))

    def _encode_body(self, request: Request) -> bytes:
        if has_compaction(request.messages, self._get_origin()):
            self._betas.add(_COMPACTION_BETA)
        return self._encode(request, {})

    def _encode(self, request: Request, more: Mapping[str, Any]) -> bytes:
        """Encode a request, with more keys than its own."""
        known = find_known_model(self._choice.provider, request.model)
        window = self._choice.window or known.window or _ASSUMED_WINDOW_TOKENS
        longest = min(MAX_OUTPUT_TOKENS, window // 8, known.max_output or MAX_OUTPUT_TOKENS)
        profile_limit = self._choice.max_output_tokens or longest
        limit = request.resolve_output_limit(profile_limit) or profile_limit
        extras: dict[str, Any] = {}
        output_config: OutputConfigParam = {}
        if self._choice.effort:
            output_config["effort"] = self._choice.effort  # type: ignore[typeddict-item]  # see known_models.yaml
        if request.answer_schema is not None:
            output_config["format"] = {"type": "json_schema", "schema": request.answer_schema}
        if output_config:
            extras["output_config"] = output_config
        if self._choice.speed:
            extras["speed"] = self._choice.speed
        if self._choice.server_fallback:
            fallbacks: BetaFallbacksParam = "default"
            extras["fallbacks"] = fallbacks
        if known.reasons:
            # Models before version 5 think only if they are asked to; newer ones show their thinking only if asked.
            thinking: ThinkingConfigAdaptiveParam = {"type": "adaptive", "display": "summarized"}
            extras["thinking"] = thinking
        elif request.temperature is not None:  # refused together with thinking
            extras["temperature"] = min(request.temperature, 1)  # the limit of the API; other vendors allow 2
        has_system_messages = known.system_messages and self._takes_system_messages
        if request.hosted.domains:
            hosted = request.hosted.keep(self.find_hosted(request.model))
            # Without them, reminders are messages of the user, and repeat the model's plan and output of commands.
            hosted = hosted.narrow(quotes_model=not has_system_messages)
            request = replace(request, hosted=hosted)
        return self._encoder.encode_request(
            request,
            {**self._leave_out(extras), **more},
            limit,
            has_system_messages=has_system_messages,
            searches_tools=self.can_search_tools(request.model),
        )


class _CloudProvider(AnthropicProvider):
    """Anthropic's models at a cloud vendor. The vendor's client finds the credentials of the vendor's tools."""

    extra: ClassVar[str]
    library: ClassVar[str]
    region_variable: ClassVar[str]
    client_class: ClassVar[str]

    probe = None  # type: ignore[assignment]  # a cloud has no free request

    @override
    def find_file_limits(self, window: int | None) -> FileLimits | None:
        """Return the limits of the cloud, whose models are Anthropic's."""
        return self._build_file_limits(window)

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._cloud: Any = None

    def _find_base_url(self) -> str:
        return self._choice.base_url or ""

    def _find_choice_error(self) -> GooseLikeError | None:
        if self._choice.server_fallback:
            return ProfileError("`server_fallback` is for Anthropic's own server; set `fallback` in the profile")
        return super()._find_choice_error()

    @override
    def find_hosted(self, model: str) -> frozenset[str]:
        """See `HostsTools.find_hosted`. Clouds have other versions of these tools, or none."""
        return frozenset()

    def _get_origin(self) -> str:
        # Signatures of thinking are valid at Anthropic and at both clouds (guide on extended thinking).
        return AnthropicProvider.host

    def _find_server_error(self) -> GooseLikeError | None:
        if find_spec(self.library.partition(".")[0]) is None or find_spec(self.library) is None:
            return ModelUnavailableError(f"its library is not installed: pip install 'goose-like[{self.extra}]'")
        if not os.environ.get(self.region_variable):
            return CredentialError(f"set {self.region_variable} to the region where the model is served")
        return None

    def _build_client_options(self) -> dict[str, Any]:
        return {}

    def _build_post_options(self, body: bytes) -> dict[str, Any]:
        return {"content": body}

    async def _send(self, client: Any, path: str, body: bytes, extensions: Mapping[str, Any]) -> Any:
        """Send a body through the vendor's client, which adds credentials and signs."""
        with pause_gc():
            import anthropic

        try:
            if self._cloud is None:
                client_class = getattr(anthropic, self.client_class)
                self._cloud = client_class(
                    base_url=self._choice.base_url, max_retries=0, http_client=client, **self._build_client_options()
                )
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

    extra = "bedrock"
    library = "boto3"
    region_variable = "AWS_REGION"
    max_request_bytes = 20_000_000
    client_class = "AsyncAnthropicBedrockMantle"
    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="Anthropic's models on Amazon Bedrock (untested): bedrock:anthropic.MODEL, AWS_REGION, AWS credentials",
        takes_images=True,
    )


class VertexProvider(_CloudProvider):
    """Google Vertex AI, with the region, project and credentials of Google's tools."""

    extra = "vertex"
    library = "google.auth"
    region_variable = "CLOUD_ML_REGION"
    max_request_bytes = 30_000_000
    client_class = "AsyncAnthropicVertex"
    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="Anthropic's models on Google Vertex AI (untested): vertex:MODEL, CLOUD_ML_REGION, Google credentials",
        takes_images=True,
    )

    def _build_client_options(self) -> dict[str, Any]:
        """Load the person's login here, as the library starts the `gcloud` of the PATH, where the model may write."""
        file = import_module(f"{self.library}._cloud_sdk").get_application_default_credentials_path()
        chosen_file = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or file
        if chosen_file != file or not os.path.isfile(file):
            return {}  # then it starts no program
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        credentials, _ = import_module(self.library).load_credentials_from_file(file, scopes=scopes)
        return {"credentials": credentials}

    def _build_post_options(self, body: bytes) -> dict[str, Any]:
        return {"body": json.loads(body)}  # the client moves the model from the body into the URL
