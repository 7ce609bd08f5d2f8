"""OpenAI's chat completions, and all presets of servers that speak them."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, assert_never

from typing_extensions import override

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError, GooseLikeError, ProfileError, ProviderError
from goose_like.core.events import MessageCompleted, Retrying, Status

from . import entra
from .base import (
    Delta,
    Embeddings,
    FileLimits,
    ProbeResult,
    ProviderInfo,
    Request,
    SchemaDialect,
    SearchAnswer,
    ServerCompaction,
    ServerFacts,
    StreamParser,
    TellsFacts,
)
from .event_stream import StreamEvent
from .http_headers import read_custom_headers
from .http_provider import HttpProvider, parse_json
from .known_models import COMPACTION, HOSTED_TOOLS, TOOL_SEARCH, find_known_model
from .native_patch import PATCH_TOOL
from .native_tools import find_native
from .openai_wire import (
    HistoryRules,
    OpenAIEncoder,
    OpenAIStreamParser,
    apply_strict_roles,
    move_system_prompt,
    parse_embeddings,
)
from .presets import Preset, expand_variables
from .responses_hosted import HostedItems
from .responses_wire import ResponsesEncoder, ResponsesStreamParser, find_error, parse_compaction
from .server_facts import ADVICE, FACTS_PATHS, parse_facts
from .text_markup import TaggedCallParser
from .wire import find_error_status

if TYPE_CHECKING:
    from openai.types.responses import ResponseTextConfigParam
    from openai.types.responses.response_create_params import PromptCacheOptions
    from openai.types.shared_params import ResponseFormatJSONSchema

    from .remedies import Remedy
    from .tool_probe import ToolMode

_IDENTITY = {
    "OpenAI-Organization": "OPENAI_ORG_ID",
    "OpenAI-Project": "OPENAI_PROJECT_ID",
}
"""Headers that name the payer, and their variables."""

_FACTS_LIMIT_S = 1.0
_BYTES_PER_TOKEN = 4

OPENAI_HOST = "api.openai.com"

OPENAI_PRESET = Preset(
    name="openai",
    summary="OpenAI's models, and any server that speaks chat completions (OPENAI_BASE_URL)",
    base_url=f"${{OPENAI_BASE_URL:-${{OPENAI_HOST:-https://{OPENAI_HOST}}}/v1}}",
    key_variable="OPENAI_API_KEY",
    processor="gpt-6-sol",
    accelerator="gpt-6-luna",
    takes_images=True,
    embedding_model="text-embedding-3-small",
    # With chat completions newer models do not reason when they have tools, or refuse tools.
    wire="responses",
    session_key="prompt_cache_key",
)


class OpenAIProvider(HttpProvider, TellsFacts):
    """A provider for the server of a preset: OpenAI's, or that of a class from `for_preset`."""

    info: ClassVar[ProviderInfo] = OPENAI_PRESET.info
    preset: Preset = OPENAI_PRESET
    host = OPENAI_HOST
    path = "/chat/completions"
    wire = "chat"
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
            stall_s = other.stall_s
            # On a redirect to another host, HTTP clients drop only the Authorization header.
            follows_redirects = other.key_header is None

        return PresetProvider

    def __init__(self, choice: ModelChoice) -> None:
        super().__init__(choice)
        self._chat_encoder = self._create_chat_encoder(self._get_origin())
        self._responses_encoder = ResponsesEncoder(self._get_origin())
        self.facts = ServerFacts()
        self._asks_facts = self.preset.facts is not None
        self._has_warned = False
        self._tokens = None
        if self.preset.token_scope and not self._key:
            self._tokens = entra.TokenSource(self.preset.token_scope)
        self._is_responses = False
        self._probing = asyncio.Lock()
        if self._choose_wire() == "responses":
            self._use_responses()
        self._must_probe = self._is_unsure_of_tools()

    def _is_unsure_of_tools(self) -> bool:
        """Check for a server of one's own, which may not know how its model calls tools.

        Hosted services know it, and so does a gateway at OpenAI's settings, as far as we can tell.
        """
        is_chosen = self._choice.tools != "auto" or self._is_responses
        is_own_server = self.preset.markup == "calls" and self.preset is not OPENAI_PRESET
        return is_own_server and not is_chosen

    def _create_chat_encoder(self, origin: str | None) -> OpenAIEncoder:
        preset = self.preset
        return OpenAIEncoder(HistoryRules(origin, preset.call, preset.with_calls, preset.id_length))

    def _use_responses(self) -> None:
        self._is_responses = True
        self.path = "/responses"
        self.wire = "responses"

    def _choose_wire(self) -> Literal["chat", "responses"]:
        """Choose the API. An unknown server at OpenAI's settings gets chat completions, which all servers have."""
        if self._choice.wire:
            return self._choice.wire
        is_unknown_server = self.preset is OPENAI_PRESET and not self._is_openai()
        if self._choice.tools in ("constrained", "tags") or is_unknown_server:
            return "chat"
        return self.preset.wire

    def _get_origin(self) -> str:
        return self._url.hostname or ""

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
        return self._is_vendor()

    def find_file_limits(self, window: int | None) -> FileLimits | None:
        """Return the limits of OpenAI's own server. Other servers may know no PDF files."""
        if not self._is_vendor():
            return None
        return FileLimits(max_bytes=50_000_000, max_images=500)  # source: OpenAI's guides on images and files

    async def search_web(self, query: str, model: str) -> SearchAnswer:
        """Search with the Responses API, because chat completions search with few models only."""
        from .openai_search import build_search, parse_search  # few sessions search

        with self._add_location_to_errors():
            return parse_search(await self._fetch_json("/responses", build_search(query, model), model))

    def can_compact(self, model: str) -> bool:
        """See `SupportsCompaction.can_compact`."""
        return self._is_responses and COMPACTION in self._find_native(model)

    async def compact(self, request: Request) -> ServerCompaction:
        """See `SupportsCompaction.compact`."""
        extras = {"prompt_cache_key": request.session or None}
        native = self._find_native(request.model)
        request = replace(request, hosted=request.hosted.keep(native))
        with self._add_location_to_errors():
            body = self._responses_encoder.encode_compaction(request, extras, native)
            content = await self._fetch("/responses/compact", body, request.model)
            return parse_compaction(parse_json(content), self._get_origin())

    async def fetch_facts(self, model: str) -> None:
        """Ask the server for its window; see `TellsFacts`.

        The request goes to a machine nearby, before each step until the answer is known: Ollama knows it once the
        model is loaded. A server that does not answer within a second is not asked again.
        """
        kind = self.preset.facts
        if not self._asks_facts or kind is None:
            return
        import httpx2

        root = self._url._replace(path=self._url.path.rstrip("/").removesuffix("/v1") + FACTS_PATHS[kind])
        try:
            response = await self._get(root.geturl(), _FACTS_LIMIT_S)
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL):
            self._asks_facts = False
            return
        if response.is_success:
            told = parse_facts(kind, parse_json(response.content), model)
            # The person's `images: false` wins over what the server can.
            if not self._choice.images:
                told = replace(told, takes_images=None)
            self.facts = told
        self._asks_facts = response.is_success and self.facts.window is None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Send a request and stream its answer; see `Provider.stream`.

        Warn once if the window is too small. Before the first request with tools, an unknown server gets a probe.
        """
        if self._must_probe and request.all_tools:
            async with aclosing(self._find_out_tool_mode(request.model)) as notes:
                async for note in notes:
                    yield note
        kind = self.preset.facts
        window = self.facts.window
        if kind and window and not self._has_warned:
            tokens = len(self._encode_body(request)) // _BYTES_PER_TOKEN
            if tokens > window:
                self._has_warned = True
                needs = f"the server's window has {window:,} tokens, and the conversation needs about {tokens:,}"
                yield Retrying(text=f"{needs}; {ADVICE[kind]}", wait_s=0)
        async with aclosing(super().stream(request)) as deltas:
            async for delta in deltas:
                yield delta

    async def _find_out_tool_mode(self, model: str) -> AsyncGenerator[Delta, None]:
        """Find out how the model calls tools, and yield a line for the person if the calls need help."""
        from .tool_probe import find_kept_mode, keep_mode  # for servers of one's own

        async with self._probing:  # requests of subagents arrive side by side
            if not self._must_probe:
                return
            mode = find_kept_mode(self._url, model)
            is_new = mode is None
            if mode is None:
                yield Status(text=f"finding out how {model} calls tools")
                mode = await self._probe_tools(model)
                keep_mode(self._url, model, mode)
            self._must_probe = False
        if mode == "constrained":
            self._choice = self._choice.model_copy(update={"tools": mode})
            if is_new:
                text = f"{model} makes no sound tool calls here; it answers in JSON (`tools: constrained`)"
                yield Retrying(text=text, wait_s=0)

    async def _probe_tools(self, model: str) -> "ToolMode":
        """Send the probe. An error that is not about tools would meet each other request, too."""
        from .tool_probe import build_probe, judge_answer, judge_error

        try:
            async with aclosing(super().stream(build_probe(model))) as deltas:
                async for delta in deltas:
                    if self._choice.tools == "constrained":
                        return "constrained"  # the remedy for a server that refused the tools
                    if isinstance(delta, MessageCompleted):
                        return judge_answer(delta)
        except ProviderError as error:
            mode = judge_error(error)
            if mode is None:
                raise
            return mode
        raise AssertionError("a stream ends with a message or raises")

    @classmethod
    async def probe(cls, choice: ModelChoice, key: str = "") -> ProbeResult:
        """Check address and key of the server; see `SupportsProbe.probe`. Let the next session ask about tools anew."""
        from .tool_probe import forget_modes

        result = await super().probe(choice, key)
        forget_modes(cls(choice)._url)
        return result

    def _check_event(self, event: StreamEvent, model: str, headers: Mapping[str, str]) -> Any:
        value = event.value
        if self._is_responses:
            return self._check_responses_event(event, model, headers)
        if _is_bare_error(event):
            value = {"error": value}
        error = value.get("error") if isinstance(value, dict) else None
        status = find_error_status(error)
        if status:
            raise self._build_refusal(model, status, error, headers)
        if isinstance(value, dict) and not value.keys() & {"choices", "usage", "error"}:
            return None
        return value

    def _check_responses_event(self, event: StreamEvent, model: str, headers: Mapping[str, str]) -> Any:
        value = event.value
        if not isinstance(value, dict):
            return value
        if event.name and not value.get("type"):
            value = value | {"type": event.name}
        error = find_error(value)
        if error is not None:
            raise self._build_refusal(model, find_error_status(error) or 500, error, headers)
        kind = value.get("type")
        if kind is not None and not isinstance(kind, str):
            return value  # the parser refuses it
        is_event = str(kind).startswith("response.")
        is_whole_answer = value.get("object") == "response"
        return value if is_event or is_whole_answer else None

    def _get_schema_dialect(self, model: str) -> SchemaDialect | None:
        if self._is_openai():
            return "openai"
        is_constrained = self._choice.tools == "constrained"
        takes_schema = self._is_responses or self.preset.takes_json_schema or is_constrained
        return "portable" if takes_schema else None

    def _create_parser(self, request: Request) -> StreamParser:
        takes_text_calls = request.answer_schema is None
        if self._choice.tools == "constrained" and takes_text_calls:
            from .json_tool_calls import TextCallParser  # few models need it

            return TextCallParser()
        if self._choice.tools == "tags" and takes_text_calls and request.all_tools:
            from .tagged_requests import create_parser

            return create_parser(request)
        if self._is_responses:
            names = {tool.native: tool.name for tool in request.all_tools}
            hosted = HostedItems(request.hosted.shows_sources)
            return ResponsesStreamParser(self._get_origin(), names.get(PATCH_TOOL, PATCH_TOOL), hosted)
        markup = "none" if self._is_openai() else self.preset.markup
        parser = OpenAIStreamParser(markup != "none", self._get_origin())
        tools = request.all_tools
        if markup == "calls" and tools:
            return TaggedCallParser.create(parser, tools)
        return parser

    def _is_vendor(self) -> bool:
        """Check for the vendor's own server. A preset names none: its `host` is empty."""
        return bool(self.host) and self._is_own_server()

    def _is_openai(self) -> bool:
        """Check for OpenAI's own servers, also those of a region such as `eu.api.openai.com`."""
        return f".{self._url.hostname}".endswith(f".{OPENAI_HOST}")

    def _apply_remedy(self, remedy: "Remedy") -> None:
        match remedy.kind:
            case "strict_roles":
                self.preset = self.preset.model_copy(update={"strict_roles": True})
            case "system_as_user":
                self.preset = self.preset.model_copy(update={"system_role": "user"})
            case "rename_limit":
                self.preset = self.preset.model_copy(update={"output_limit": "max_completion_tokens"})
            case "constrained":
                self._choice = self._choice.model_copy(update={"tools": "constrained"})
            case "responses":
                self._use_responses()
            case "drop_thinking":
                self._chat_encoder = self._create_chat_encoder(None)
            case "no_changes":
                self._responses_encoder.refuse_changes()
            case "leave_out" | "leave_out_blanks" | "no_system_messages" | "no_native_tool":
                pass  # `_leave_out` and `_find_native` read these; the others are for Anthropic's wire
            case _:
                assert_never(remedy.kind)

    def _find_choice_error(self) -> GooseLikeError | None:
        if self._choice.server_fallback:
            return ProfileError("`server_fallback` is for Anthropic's models; set `fallback` in the profile")
        if self._choice.speed:
            return ProfileError("`speed` is for Anthropic's models; write `service_tier: fast`")
        tools = self._choice.tools
        if tools in ("constrained", "tags") and self._is_openai():
            return ProfileError(f"these models call tools natively; remove `tools: {tools}`")
        if tools == "tags" and self.preset.facts != "llama-server":
            needs = "`tools: tags` needs the grammars of llama-server (`llama-server:MODEL`)"
            return ProfileError(f"{needs}; with another server write `tools: constrained`")
        return super()._find_choice_error()

    @override
    def _find_server_error(self) -> GooseLikeError | None:
        error = super()._find_server_error()
        if self._tokens is None or not isinstance(error, CredentialError):
            return error
        if entra.is_installed():
            return None
        return CredentialError(f"{error}; or run `pip install 'goose-like[azure]'` for tokens of Entra ID")

    @override
    async def _send(self, client: Any, path: str, body: bytes, extensions: Mapping[str, Any]) -> Any:
        await self._renew_token()
        return await super()._send(client, path, body, extensions)

    @override
    async def _get(self, url: str, limit_s: float) -> Any:
        await self._renew_token()
        return await super()._get(url, limit_s)

    async def _renew_token(self) -> None:
        if self._tokens is not None:
            self._key = await self._tokens.fetch()

    def _build_headers(self) -> dict[str, str]:
        preset = self.preset
        headers = {}
        if self._key and preset.key_header and self._tokens is None:
            headers[preset.key_header] = self._key
        elif self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if preset is not OPENAI_PRESET:  # other servers must not see the user's OpenAI identity
            return headers
        for name, variable in _IDENTITY.items():
            value = os.environ.get(variable)
            if value:
                headers[name] = value
        return headers | read_custom_headers("OPENAI_CUSTOM_HEADERS")

    def _build_query(self) -> Mapping[str, str]:
        return self.preset.query

    def _encode_body(self, request: Request) -> bytes:
        if self._is_responses:
            return self._encode_responses_body(request)
        return self._encode_chat_body(request)

    def _encode_responses_body(self, request: Request) -> bytes:
        extras: dict[str, Any] = {}
        limit = request.resolve_output_limit(self._choice.max_output_tokens)
        if limit is not None:
            extras["max_output_tokens"] = limit
        temperature = request.resolve_temperature(self._choice.temperature)
        if temperature is not None:
            extras["temperature"] = temperature
        if request.answer_schema is not None:
            schema = request.answer_schema
            text: ResponseTextConfigParam = {
                "format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
            }
            extras["text"] = text
        effort = self._choose_effort(request.model)
        if self._responses_encoder.tells_efforts(request):
            effort = request.first_effort
        reasoning = self._build_reasoning(request.model, effort)
        if reasoning:
            extras["reasoning"] = reasoning
        if request.session:
            # Requests with one key go to the machine that cached their prefix (guide on prompt caching).
            extras["prompt_cache_key"] = request.session
        if self._choice.service_tier:
            extras["service_tier"] = self._choice.service_tier
        if self._choice.cache:
            options: PromptCacheOptions = {"ttl": "30m"}
            if self._choice.cache == "long":
                options["ttl"] = "12h"
            extras["prompt_cache_options"] = options
        extras |= self.preset.build_body(request.model)
        native = self._find_native(request.model)
        request = replace(request, hosted=request.hosted.keep(native))
        return self._responses_encoder.encode_request(request, self._leave_out(extras), native)

    def can_search_tools(self, model: str) -> bool:
        """See `SupportsToolSearch.can_search_tools`. True for models with the Responses API."""
        return self._is_responses and TOOL_SEARCH in self._find_native(model)

    def find_hosted(self, model: str) -> frozenset[str]:
        """See `HostsTools.find_hosted`."""
        if not self._is_responses:
            return frozenset()
        return self._find_native(model) & HOSTED_TOOLS

    def _find_native(self, model: str) -> frozenset[str]:
        """Find what the vendor's server has for a model, and did not refuse.

        A gateway at OpenAI's settings with `wire: responses` is taken to have what the vendor has for the named model.
        """
        if self.preset is not OPENAI_PRESET:
            return frozenset()
        return find_native(self._choice.provider, model, self._remedies)

    def _choose_effort(self, model: str) -> str | None:
        return self._choice.effort or find_known_model(self._choice.provider, model).default_effort

    def _build_reasoning(self, model: str, effort: str | None) -> dict[str, str]:
        """Build the settings of the model's reasoning. A model that does not reason refuses any."""
        if not effort and not find_known_model(self._choice.provider, model).reasons:
            return {}
        reasoning = {"summary": "auto"}
        if effort:
            reasoning["effort"] = effort
        return reasoning

    def _encode_chat_body(self, request: Request) -> bytes:
        choice = self._choice
        preset = self.preset
        is_openai = self._is_openai()
        extras: dict[str, Any] = {}
        limit = request.resolve_output_limit(choice.max_output_tokens)
        if limit is not None:
            # Only OpenAI knows the newer name.
            name = "max_completion_tokens" if is_openai else preset.output_limit
            extras[name] = limit
        temperature = request.resolve_temperature(choice.temperature)
        if temperature is not None:
            extras["temperature"] = temperature
        if choice.service_tier:
            extras["service_tier"] = choice.service_tier
        extras |= self._build_effort(request.model)
        is_unknown_server = preset is OPENAI_PRESET and not is_openai
        if preset.session_key and request.session and not is_unknown_server:
            extras[preset.session_key] = request.session
        if request.answer_schema is not None:
            answer_format: ResponseFormatJSONSchema = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": request.answer_schema, "strict": True},
            }
            extras["response_format"] = answer_format
        elif choice.tools == "constrained":
            from .json_tool_calls import build_answer_schema, convert_request

            # Not `strict`: OpenAI's strict mode forbids `anyOf` at the root. llama-server, vLLM and Ollama follow the
            # schema anyway.
            schema = {"name": "answer", "schema": build_answer_schema(request.all_tools)}
            extras["response_format"] = {"type": "json_schema", "json_schema": schema}
            request = convert_request(request)
        elif choice.tools == "tags":
            from .tagged_requests import TaggedRequest

            tagged = TaggedRequest(request, choice.temperature)
            request = tagged.plain
            extras["temperature"] = request.temperature
            extras |= tagged.settings
        if preset.system_role == "user":
            request = move_system_prompt(request)
        if preset.strict_roles:
            request = replace(request, messages=apply_strict_roles(request.messages))
        extras |= preset.build_body(request.model)
        return self._chat_encoder.encode_request(request, self._leave_out(extras))

    def _build_effort(self, model: str) -> dict[str, Any]:
        """Build the keys of chat completions for the effort, where this server has them."""
        effort = self._choose_effort(model)
        if not effort:
            return {}
        if effort in self.preset.efforts:
            return self.preset.efforts[effort]
        *outer, last = self.preset.effort_path.split(".")
        keys: dict[str, Any] = {last: effort}
        for key in reversed(outer):
            keys = {key: keys}
        return keys


def _is_bare_error(event: StreamEvent) -> bool:
    """Check for an error without the key `error`: a named event, vLLM's object, or FastAPI's `detail`."""
    value = event.value
    if not isinstance(value, dict):
        return event.name == "error"
    is_error = event.name == "error" or value.get("object") == "error" or "detail" in value
    return is_error and not value.keys() & {"error", "choices"}
