"""OpenAI's chat completions, and all presets of servers that speak them, through the openai SDK."""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast
from urllib.parse import SplitResult

from goose_like.config.profile import ModelChoice
from goose_like.config.secrets import find_key
from goose_like.core.errors import BrokenStreamError, CredentialError, GooseLikeError, ProfileError, ProviderError
from goose_like.core.message import Usage

from .base import Embeddings, ProbeResult, ProviderInfo, Request
from .openai_wire import OpenAIEncoder, OpenAIStreamParser, apply_strict_roles, parse_embeddings
from .presets import Preset
from .sdk_client import add_location, find_key_error, find_url_error, format_host, list_models, parse_base_url
from .sdk_request import SdkProvider, StreamParser
from .wire import build_status_error, clip

OPENAI_HOST = "api.openai.com"

_TEXTS_PER_REQUEST = 256  # the API allows 2,048 texts and 300,000 tokens

# Newer models accept tools in chat completions only without reasoning. gpt-6-astra and models from 6.1 on always
# reason (their model pages: "rejects requests that set reasoning effort to none"), so they cannot be the default.
OPENAI_PRESET = Preset(
    name="openai",
    summary="OpenAI's models, and any server that speaks chat completions (OPENAI_BASE_URL)",
    base_url=f"${{OPENAI_BASE_URL:-https://{OPENAI_HOST}/v1}}",
    key_variable="OPENAI_API_KEY",
    processor="gpt-6-sol",
    accelerator="gpt-6-luna",
    takes_images=True,
    embedding_model="text-embedding-3-small",
)


class OpenAIProvider(SdkProvider):
    """A provider for the server of a preset: OpenAI's, or that of a class from `for_preset`."""

    info: ClassVar[ProviderInfo] = OPENAI_PRESET.info
    preset: ClassVar[Preset] = OPENAI_PRESET
    sdk_name = "openai"

    @staticmethod
    def for_preset(other: Preset) -> type["OpenAIProvider"]:
        """Create the provider class of another preset."""

        class PresetProvider(OpenAIProvider):
            info = other.info
            preset = other

        return PresetProvider

    def __init__(self, choice: ModelChoice) -> None:
        preset = self.preset
        # On a redirect to another host, HTTP clients drop only the Authorization header.
        is_bearer = preset.key_header is None
        url, key = _resolve_base_url(choice, preset), find_key(preset.key_variable)
        super().__init__(choice, url, key, _list_address_settings(preset), follows_redirects=is_bearer)
        self._extras: dict[str, Any] = {}
        self._encoder = OpenAIEncoder({}, preset.call, preset.thinking_key)

    @classmethod
    def find_setup_error(cls, choice: ModelChoice) -> GooseLikeError | None:
        """Return the error about a missing key, address or model name, or None if the choice is usable."""
        preset = cls.preset
        try:
            url = _resolve_base_url(choice, preset)
            error = _find_address_error(url, find_key(preset.key_variable), preset)
        except GooseLikeError as failure:
            return failure
        if error is None and not (choice.name or preset.processor):
            return ProfileError(
                f"name one of its models, `{preset.name}:MODEL`; `goose-like provider check {preset.name}` lists them"
            )
        return error

    @classmethod
    async def probe(cls, choice: ModelChoice, key: str = "") -> ProbeResult:
        """Check address and key of the server by listing its models.

        Raises:
            ProviderError: The server is unreachable, refuses the key or has no list of models.
            ProfileError: The address is unknown.
        """
        preset = cls.preset
        url, key = _resolve_base_url(choice, preset), key or find_key(preset.key_variable)
        if error := _find_address_error(url, key, preset):
            raise error

        def fetch(path: str) -> Awaitable[tuple[str, ...] | None]:
            headers = _build_key_headers(preset, key)
            return list_models(preset.build_url(url.geturl(), path), headers, _get_key_name(preset), preset.query)

        # Behind another address, `openai` is an unknown server, which may need no key.
        is_verified = (
            bool(key) and preset.key_path is not None and (preset is not OPENAI_PRESET or url.hostname == OPENAI_HOST)
        )
        try:
            models = await fetch(preset.models_path)
            if is_verified and preset.key_path and preset.key_path != preset.models_path:
                await fetch(preset.key_path)
        except ProviderError as error:
            add_location(error, preset.name, url, key)
            raise
        return ProbeResult(format_host(url), models, is_verified)

    @property
    def embedding_model(self) -> str | None:
        """The embedding model of this server. Behind another address, `openai` is an unknown server and has none."""
        return (
            None if self.preset is OPENAI_PRESET and self._url.hostname != OPENAI_HOST else self.preset.embedding_model
        )

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Compute the embeddings of texts, some hundred per request."""
        batches: list[Embeddings] = []
        with self._add_location_to_errors():
            await self._connect()
            for at in range(0, len(texts), _TEXTS_PER_REQUEST):
                batches.append(await self._embed_batch(texts[at : at + _TEXTS_PER_REQUEST]))
        return Embeddings(
            [vector for batch in batches for vector in batch.vectors], sum((batch.usage for batch in batches), Usage())
        )

    async def _embed_batch(self, texts: Sequence[str]) -> Embeddings:
        request = Request(self.embedding_model or "", "", [])
        body = {"model": request.model, "input": list(texts), "encoding_format": "float"}
        try:
            with self._convert_sdk_errors(request):
                answer = await self._client.post(
                    "/embeddings", body=body, options={"headers": self._build_headers()}, cast_to=object
                )
            return parse_embeddings(answer, len(texts))
        except ValueError as error:
            raise BrokenStreamError(f"the answer is no list of vectors ({clip(str(error), 80)})") from error

    def _find_setup_error(self) -> GooseLikeError | None:
        return _find_address_error(self._url, self._key, self.preset)

    def _create_client(self, **options: Any) -> Any:
        # The SDK requires a key, even for servers without one.
        return self._sdk.AsyncOpenAI(
            api_key=self._key or "none", base_url=self._url.geturl(), default_query=self.preset.query, **options
        )

    async def _post(self, body: bytes) -> Any:
        # In the mode "events" an error inside the stream arrives as a chunk, not as an exception of the SDK.
        return await self._client.post(
            "/chat/completions",
            content=body,
            options={"headers": self._build_headers(), "stream_mode": "events"},
            cast_to=object,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
        )

    def _iterate_events(self, stream: Any, request: Request) -> AsyncIterator[Any]:
        return cast(AsyncIterator[Any], stream)

    def _create_parser(self) -> StreamParser:
        if self._choice.tools == "constrained":
            from .json_tool_calls import TextCallParser  # few models need it

            return TextCallParser()
        return OpenAIStreamParser()

    def _build_refusal(self, request: Request, status: int, body: object, wait_s: float | None) -> ProviderError:
        return build_status_error(status, body, request.model, _get_key_name(self.preset), wait_s)

    def _build_headers(self) -> dict[str, Any]:
        """Build the headers that replace the SDK's: it would send the user's OpenAI identity to other servers."""
        if self.preset is OPENAI_PRESET:
            return {}
        custom = (line.partition(":")[0].strip() for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines())
        names = ("OpenAI-Organization", "OpenAI-Project", "Authorization", *filter(None, custom))
        return {**dict.fromkeys(names, self._sdk.Omit()), **_build_key_headers(self.preset, self._key)}

    def _encode_body(self, request: Request) -> bytes:
        choice, preset, is_openai = self._choice, self.preset, self._url.hostname == OPENAI_HOST
        extras: dict[str, Any] = {}
        limit = request.resolve_output_limit(choice.max_output_tokens)
        if limit is not None:
            # Only OpenAI knows the newer name.
            extras["max_completion_tokens" if is_openai else preset.output_limit] = limit
        temperature = choice.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            extras["temperature"] = temperature
        if is_openai and request.session:
            # OpenAI sends requests with one key to the machine that cached their prefix (guide on prompt caching).
            extras["prompt_cache_key"] = request.session
        if choice.tools == "constrained":
            from .json_tool_calls import build_answer_schema, convert_request

            # Not `strict`: OpenAI's strict mode forbids `anyOf` at the root. llama-server, vLLM and Ollama follow the
            # schema anyway.
            schema = {"name": "answer", "schema": build_answer_schema(request.tools)}
            extras["response_format"] = {"type": "json_schema", "json_schema": schema}
            request = convert_request(request)
        elif is_openai and request.tools and re.match(r"gpt-(5\.[6-9]|[6-9])", request.model):
            extras["reasoning_effort"] = "none"
        extras |= preset.body
        if preset.strict_roles:
            request = replace(request, messages=apply_strict_roles(request.messages))
        if extras != self._extras:
            self._extras, self._encoder = extras, OpenAIEncoder(extras, preset.call, preset.thinking_key)
        return self._encoder.encode_request(request)


def _resolve_base_url(choice: ModelChoice, preset: Preset) -> SplitResult:
    return parse_base_url(choice.base_url or preset.resolve_base_url())


def _list_address_settings(preset: Preset) -> str:
    """Name the settings that hold a server's address."""
    return " or ".join(["base_url", *re.findall(r"\$\{(\w+)", preset.base_url)])


def _get_key_name(preset: Preset) -> str:
    return preset.key_variable or "key_variable in providers.yaml"


def _find_address_error(url: SplitResult, key: str, preset: Preset) -> GooseLikeError | None:
    if error := find_url_error(url, _list_address_settings(preset), "http://localhost:8080/v1"):
        return error
    hint = f"set {preset.key_variable} (or `goose-like provider login {preset.name}`)"
    if not key and preset is OPENAI_PRESET and url.hostname == OPENAI_HOST:
        return CredentialError(f"{hint}, or base_url to a server that needs no key")
    if not key and preset is not OPENAI_PRESET and preset.key_variable and not preset.key_is_optional:
        return CredentialError(hint)
    return find_key_error(key, preset.key_variable)


def _build_key_headers(preset: Preset, key: str) -> dict[str, str]:
    if not key:
        return {}
    return {preset.key_header: key} if preset.key_header else {"Authorization": f"Bearer {key}"}
