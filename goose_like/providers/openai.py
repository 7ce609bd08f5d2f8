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

from .base import Embeddings, ProbeResult, ProviderInfo, Request
from .openai_wire import OpenAIEncoder, OpenAIStreamParser, apply_strict_roles, parse_embeddings
from .presets import Preset
from .probe import list_models
from .sdk_client import find_key_error, find_url_error, format_host, parse_base_url, redact
from .sdk_request import SdkProvider, StreamParser
from .wire import build_status_error, clip

OPENAI_HOST = "api.openai.com"

_EMBEDDED_AT_ONCE = 256  # a request takes 2,048 texts, and 300,000 tokens

# Chat completions take tools from the newer models only without reasoning, which gpt-6-astra and those from
# 6.1 on can't do without (their model pages: "rejects requests that set reasoning effort to none").
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
    """A connection to the server of a row."""

    info: ClassVar[ProviderInfo] = OPENAI_PRESET.info
    sdk_name = "openai"

    def __init__(self, choice: ModelChoice, preset: Preset = OPENAI_PRESET) -> None:
        # Where a redirect leads to another host, only a bearer's key is kept back.
        is_bearer = preset.key_header is None
        super().__init__(
            choice, _resolve_base_url(choice, preset), keys.find_key(preset.key_variable), follows_redirects=is_bearer
        )
        self._row = preset
        self._extras: dict[str, Any] = {}
        self._encoder = OpenAIEncoder({}, preset.call, preset.thinking_key)

    @staticmethod
    def find_setup_error(choice: ModelChoice, preset: Preset = OPENAI_PRESET) -> GooseLikeError | None:
        """What to set before this choice works; None when it is ready."""
        try:
            url = _resolve_base_url(choice, preset)
            fault = _find_url_error(url, preset) or _find_key_error(url, keys.find_key(preset.key_variable), preset)
        except GooseLikeError as error:
            return error
        if fault is None and not (choice.name or preset.processor):
            return ProfileError(
                f"name one of its models, `{preset.name}:MODEL`; `goose-like provider check {preset.name}` lists them"
            )
        return fault

    @staticmethod
    async def probe(choice: ModelChoice, key: str = "", preset: Preset = OPENAI_PRESET) -> ProbeResult:
        """What the server says when it is asked for the list of its models.

        Raises:
            ProviderError: it can't be reached, it refused the key, or it has no such list.
            ProfileError: its address is not known.
        """
        url, key = _resolve_base_url(choice, preset), key or keys.find_key(preset.key_variable)
        if fault := _find_url_error(url, preset) or _find_key_error(url, key, preset):
            raise fault
        headers = _build_key_headers(preset, key)
        # At another address than OpenAI's own, `openai` is any server, which may ask for no key.
        is_proven = (
            bool(key) and preset.key_path is not None and (preset is not OPENAI_PRESET or url.hostname == OPENAI_HOST)
        )
        try:
            models = await list_models(
                preset.build_url(url.geturl(), preset.models_path), headers, _get_key_name(preset), preset.query
            )
            if is_proven and preset.key_path and preset.key_path != preset.models_path:
                await list_models(
                    preset.build_url(url.geturl(), preset.key_path), headers, _get_key_name(preset), preset.query
                )
        except ProviderError as error:
            error.args = (redact(f"{preset.name} at {format_host(url)}: {error}", key, url.password),)
            raise
        return ProbeResult(format_host(url), models, is_proven)

    @property
    def embedding_model(self) -> str | None:
        """What makes vectors at this server; at another address than OpenAI's own `openai` is any server."""
        return None if self._row is OPENAI_PRESET and self._url.hostname != OPENAI_HOST else self._row.embedding_model

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """The texts' vectors, asked for some hundred at a time."""
        found: list[Embeddings] = []
        with self._add_location_to_errors():
            await self._connect()
            for at in range(0, len(texts), _EMBEDDED_AT_ONCE):
                found.append(await self._embed_batch(texts[at : at + _EMBEDDED_AT_ONCE]))
        return Embeddings([v for each in found for v in each.vectors], sum((each.usage for each in found), Usage()))

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
            raise BrokenStreamError(f"what came is no list of vectors ({clip(str(error), 80)})") from error

    def _find_setup_error(self) -> GooseLikeError | None:
        return _find_url_error(self._url, self._row) or _find_key_error(self._url, self._key, self._row)

    def _describe_address_settings(self) -> str:
        return _list_address_settings(self._row)

    def _create_client(self, **options: Any) -> Any:
        # A server that asks for no key gets one all the same: the SDK does not go without.
        return self._sdk.AsyncOpenAI(
            api_key=self._key or "none", base_url=self._url.geturl(), default_query=self._row.query, **options
        )

    async def _post(self, body: bytes) -> Any:
        # As "events", an error within the stream comes as a chunk, and not as an exception of the SDK's.
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
        return (
            self._import_json_tool_calls().ConstrainedFold()
            if self._choice.tools == "constrained"
            else OpenAIStreamParser()
        )

    def _build_refusal(self, request: Request, status: int, body: object, wait_s: float | None) -> ProviderError:
        return build_status_error(status, body, request.model, _get_key_name(self._row), wait_s)

    def _build_headers(self) -> dict[str, Any]:
        """What differs from the SDK's own headers: it takes who one is at OpenAI from the environment."""
        if self._row is OPENAI_PRESET:
            return {}
        custom = (line.partition(":")[0].strip() for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines())
        names = ("OpenAI-Organization", "OpenAI-Project", "Authorization", *filter(None, custom))
        return {**dict.fromkeys(names, self._sdk.Omit()), **_build_key_headers(self._row, self._key)}

    @staticmethod
    def _import_json_tool_calls() -> Any:
        from . import json_tool_calls as constrained  # most models don't need it

        return constrained

    def _encode_body(self, request: Request) -> bytes:
        choice, row, is_openai = self._choice, self._row, self._url.hostname == OPENAI_HOST
        extras: dict[str, Any] = {}
        limit = request.resolve_output_limit(choice.max_output_tokens)
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
            constrained = self._import_json_tool_calls()
            schema = {"name": "answer", "schema": constrained.answer_schema(request.tools)}
            extras["response_format"] = {"type": "json_schema", "json_schema": schema}
            request = constrained.constrain(request)
        elif is_openai and request.tools and re.match(r"gpt-(5\.[6-9]|[6-9])", request.model):
            extras["reasoning_effort"] = "none"
        extras |= row.body
        if row.strict_roles:
            request = replace(request, messages=apply_strict_roles(request.messages))
        if extras != self._extras:
            self._extras, self._encoder = extras, OpenAIEncoder(extras, row.call, row.thinking_key)
        return self._encoder.encode_request(request)


@dataclass(frozen=True, slots=True)
class PresetProviderFactory:
    """A row in the place of a provider class."""

    preset: Preset

    @property
    def info(self) -> ProviderInfo:
        return self.preset.info

    def find_setup_error(self, choice: ModelChoice) -> GooseLikeError | None:
        return OpenAIProvider.find_setup_error(choice, self.preset)

    async def probe(self, choice: ModelChoice, key: str = "") -> ProbeResult:
        return await OpenAIProvider.probe(choice, key, self.preset)

    def __call__(self, choice: ModelChoice) -> OpenAIProvider:
        return OpenAIProvider(choice, self.preset)


def _resolve_base_url(choice: ModelChoice, row: Preset) -> SplitResult:
    return parse_base_url(choice.base_url or row.resolve_base_url())


def _list_address_settings(row: Preset) -> str:
    """What a person may set a server's address with."""
    return " or ".join(["base_url", *re.findall(r"\$\{(\w+)", row.base_url)])


def _find_url_error(url: SplitResult, row: Preset) -> GooseLikeError | None:
    return find_url_error(url, _list_address_settings(row), "http://localhost:8080/v1")


def _get_key_name(row: Preset) -> str:
    return row.key_variable or "key_variable in providers.yaml"


def _find_key_error(url: SplitResult, key: str, row: Preset) -> GooseLikeError | None:
    if not key and row is OPENAI_PRESET and url.hostname == OPENAI_HOST:
        return CredentialError(f"{_format_key_hint(row)}, or base_url to a server that needs no key")
    if not key and row is not OPENAI_PRESET and row.key_variable and not row.key_is_optional:
        return CredentialError(_format_key_hint(row))
    return find_key_error(key, row.key_variable)


def _build_key_headers(row: Preset, key: str) -> dict[str, str]:
    if not key:
        return {}
    return {row.key_header: key} if row.key_header else {"Authorization": f"Bearer {key}"}


def _format_key_hint(row: Preset) -> str:
    return f"set {row.key_variable} (or `goose-like provider login {row.name}`)"
