"""OpenAI's chat completions, and all presets of servers that speak them."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from goose_like.config.profile import ModelChoice

from .base import Embeddings, ProviderInfo, Request, SearchAnswer, StreamParser
from .event_stream import StreamEvent
from .http_provider import HttpProvider, parse_custom_headers
from .openai_wire import (
    OpenAIEncoder,
    OpenAIStreamParser,
    apply_strict_roles,
    build_search,
    parse_embeddings,
    parse_search,
)
from .presets import Preset, expand_variables

OPENAI_HOST = "api.openai.com"

# Newer models accept tools in chat completions only without reasoning. gpt-6-astra and models from 6.1 on always
# reason (their model pages: "rejects requests that set reasoning effort to none"), so they cannot be the default.
OPENAI_PRESET = Preset(
    name="openai",
    summary="OpenAI's models, and any server that speaks chat completions (OPENAI_BASE_URL)",
    base_url=f"${{OPENAI_BASE_URL:-${{OPENAI_HOST:-https://{OPENAI_HOST}}}/v1}}",
    key_variable="OPENAI_API_KEY",
    processor="gpt-6-sol",
    accelerator="gpt-6-luna",
    takes_images=True,
    embedding_model="text-embedding-3-small",
)


class OpenAIProvider(HttpProvider):
    """A provider for the server of a preset: OpenAI's, or that of a class from `for_preset`."""

    info: ClassVar[ProviderInfo] = OPENAI_PRESET.info
    preset: ClassVar[Preset] = OPENAI_PRESET
    host = OPENAI_HOST
    path = "/chat/completions"
    url_settings = "base_url or OPENAI_BASE_URL"
    key_setting = "key_variable in providers.yaml"

    @staticmethod
    def for_preset(other: Preset) -> type["OpenAIProvider"]:
        """Create the provider class of another preset."""

        class PresetProvider(OpenAIProvider):
            info = other.info
            preset = other
            host = ""
            url_settings = " or ".join(["base_url", *re.findall(r"\$\{(\w+)", other.base_url)])
            key_is_optional = other.key_is_optional
            # On a redirect to another host, HTTP clients drop only the Authorization header.
            follows_redirects = other.key_header is None

        return PresetProvider

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._encoder = OpenAIEncoder(self.preset.call, self.preset.thinking_key)

    def _find_base_url(self) -> str:
        return self._choice.base_url or expand_variables(self.preset.base_url)

    def _can_verify_key(self) -> bool:
        return self.preset.key_path is not None and super()._can_verify_key()

    async def _list_models(self) -> tuple[str, ...] | None:
        preset = self.preset
        models = await self._fetch_model_names(expand_variables(preset.models_path))
        if preset.key_path and preset.key_path != preset.models_path and self._can_verify_key():
            await self._fetch_model_names(expand_variables(preset.key_path))
        return models

    @property
    def embedding_model(self) -> str | None:
        """The embedding model of this server. An unknown server has none."""
        return self.preset.embedding_model if self._is_own_server() else None

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Compute the embeddings of texts in one request."""
        model = self.embedding_model or ""
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        with self._add_location_to_errors():
            return parse_embeddings(await self._fetch_json("/embeddings", body, model), len(texts))

    @property
    def can_search_web(self) -> bool:
        """True for OpenAI's own server."""
        return bool(self.host) and self._is_own_server()

    async def search_web(self, query: str, model: str) -> SearchAnswer:
        """Search with the Responses API, because chat completions search with few models only."""
        with self._add_location_to_errors():
            return parse_search(await self._fetch_json("/responses", build_search(query, model), model))

    def _check_event(self, event: StreamEvent, model: str, headers: Mapping[str, str]) -> Any:
        value = event.value
        if event.name == "error" and not (isinstance(value, dict) and "error" in value):
            return {"error": value}
        is_empty = isinstance(value, dict) and not value.keys() & {"choices", "usage", "error"}
        return None if is_empty else value

    def _create_parser(self) -> StreamParser:
        if self._choice.tools == "constrained":
            from .json_tool_calls import TextCallParser  # few models need it

            return TextCallParser()
        return OpenAIStreamParser()

    def _build_headers(self) -> dict[str, str]:
        preset, headers = self.preset, {}
        if self._key:
            headers = {preset.key_header: self._key} if preset.key_header else {"Authorization": f"Bearer {self._key}"}
        if preset is not OPENAI_PRESET:  # other servers must not see the user's OpenAI identity
            return headers
        identity = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        headers |= {name: os.environ[variable] for name, variable in identity.items() if os.environ.get(variable)}
        return headers | parse_custom_headers(os.environ.get("OPENAI_CUSTOM_HEADERS", ""))

    def _build_query(self) -> Mapping[str, str]:
        return self.preset.query

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
        if preset.strict_roles:
            request = replace(request, messages=apply_strict_roles(request.messages))
        return self._encoder.encode_request(request, extras | preset.body)
