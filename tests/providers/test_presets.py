"""Tests of presets: the shipped ones, their requests, the user's own, and the test request."""

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from goose_like.agent.build import build_exchange
from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.errors import CredentialError, ModelUnavailableError, ProfileError, ProviderError, RateLimitError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, Thinking, ToolCall, ToolResult, Verbatim
from goose_like.core.notifier import Recorder
from goose_like.core.tool import ToolSpec
from goose_like.providers import http_provider
from goose_like.providers import registry as models
from goose_like.providers.base import Request, SupportsProbe
from goose_like.providers.presets import expand_variables, load_presets
from goose_like.providers.prices import has_price
from goose_like.providers.registry import find_provider_class, list_provider_names
from tests.chat_types import check_body
from tests.loopback import Loopback, Response, called, listed, raw, refusal, said, sse

KEY = "sk-planted-1234567890"
SHIPPED = "google mistral deepseek groq openrouter xai azure databricks ollama lmstudio vllm llama-server"
REQUEST = Request("m1", "be good", [Message.user("hi")], [ToolSpec("shell", "Runs.", {"type": "object"})])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_BASE_URL", "OLLAMA_HOST", "DATABRICKS_HOST", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def own(home: Path):
    """Write the user's own presets."""

    def write(text: str) -> None:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "providers.yaml").write_text(text)

    return write


async def capture_request(name: str, request: Request = REQUEST, **choice: Any) -> tuple[bytes, Any]:
    """Return head and body of the request that a provider sends."""
    async with Loopback([sse(said("ok"))]) as server:
        provider = find_provider_class(name)(ModelChoice(model=f"{name}:m1", base_url=server.base_url, **choice))
        async with aclosing(provider.stream(request)) as deltas:
            done = [delta async for delta in deltas][-1]
        await provider.close()
        assert isinstance(done, MessageCompleted)
        assert done.message.text == "ok"
        return server.requests[0].head.lower(), server.requests[0].json


async def run_probe(responses: list[Response], name: str = "groq", key: str = KEY, **choice: Any) -> Any:
    async with Loopback(responses) as server:
        kind = find_provider_class(name)
        assert isinstance(kind, SupportsProbe)
        report = await kind.probe(ModelChoice(model=name, **{"base_url": server.base_url, **choice}), key)
        return report, [asked.head for asked in server.requests]


# --- shipped presets


@pytest.mark.parametrize(
    ("variable", "end", "name", "key", "path"),
    [
        ("OPENAI_HOST", "/", "openai", "OPENAI_API_KEY", "/v1/chat/completions"),
        ("GROQ_HOST", "/openai/", "groq", "GROQ_API_KEY", "/openai/v1/chat/completions"),
        ("GOOGLE_HOST", "/v1beta", "google", "GOOGLE_API_KEY", "/v1beta/openai/chat/completions"),
        ("ANTHROPIC_HOST", "/v1/messages", "anthropic", "ANTHROPIC_API_KEY", "/v1/messages"),
        ("OLLAMA_HOST", "/", "ollama", "", "/v1/chat/completions"),
    ],
)
async def test_words_go_to_the_host_that_goose_09_used(monkeypatch, variable, end, name, key, path):
    async with Loopback([refusal(400)]) as server:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{server.port}{end}")
        if key:
            monkeypatch.setenv(key, KEY)
        kind = find_provider_class(name)
        assert kind.find_setup_error(ModelChoice(model=f"{name}:m1")) is None
        with pytest.raises(ProviderError):
            [delta async for delta in kind(ModelChoice(model=f"{name}:m1")).stream(REQUEST)]
        head = server.requests[0].head.decode()
    assert head.startswith(f"POST {path} ")
    assert (KEY in head) == bool(key)


def test_azure_names_the_variables_that_replace_those_of_goose_09(monkeypatch):
    monkeypatch.setenv("AZURE_CHAT_COMPLETIONS_HOST_NAME", "https://mine.openai.azure.com")
    monkeypatch.setenv("AZURE_CHAT_COMPLETIONS_KEY", KEY)
    error = find_provider_class("azure").find_setup_error(ModelChoice(model="azure:gpt"))
    assert "set AZURE_OPENAI_ENDPOINT to the value of AZURE_CHAT_COMPLETIONS_HOST_NAME" in str(error)


def test_the_shipped_presets(monkeypatch):
    assert " ".join(load_presets()) == SHIPPED
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    monkeypatch.setenv("DATABRICKS_HOST", "mine.cloud.databricks.com")
    local = {"ollama", "lmstudio", "vllm", "llama-server"}
    for row in load_presets().values():
        assert expand_variables(row.base_url).startswith("http://127.0.0.1:" if row.name in local else "https://"), row
        assert row.summary, row
        assert row.name in local or row.key_variable, row
    assert expand_variables(load_presets()["azure"].base_url) == "https://mine.openai.azure.com/openai/v1"
    assert (
        expand_variables(load_presets()["databricks"].base_url) == "https://mine.cloud.databricks.com/serving-endpoints"
    )


def test_a_host_from_the_environment(monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "box:11434")
    assert expand_variables(load_presets()["ollama"].base_url) == "http://box:11434/v1"
    monkeypatch.setenv("OLLAMA_HOST", "https://box/")
    assert expand_variables(load_presets()["ollama"].base_url) == "https://box/v1"


def test_missing_settings_are_reported(monkeypatch):
    assert "set GROQ_API_KEY (or `goose-like provider login groq`)" in str(find_error("groq:m"))
    assert "set DATABRICKS_HOST" in str(find_error("databricks:m"))
    monkeypatch.setenv("DATABRICKS_HOST", "mine")
    assert "set DATABRICKS_TOKEN" in str(find_error("databricks:m"))
    monkeypatch.setenv("DATABRICKS_TOKEN", "k")
    assert find_error("databricks:m") is None
    assert find_error("ollama:m") is find_error("vllm:m") is None
    assert "name one of its models, `ollama:MODEL`" in str(find_error("ollama"))


def find_error(model: str) -> Any:
    choice = ModelChoice(model=model)
    return find_provider_class(choice.provider).find_setup_error(choice)


def test_a_misspelt_provider_gets_the_nearest_name(own):
    own("my-box: {base_url: 'http://box:8080/v1'}")
    for wrong, right in (("grok", "groq"), ("opena", "openai"), ("mybox", "my-box")):
        with pytest.raises(ProfileError, match=f"unknown provider '{wrong}'; did you mean '{right}'"):
            find_provider_class(wrong)


def test_the_order_of_the_keys_that_decide(monkeypatch):
    assert list(list_provider_names())[:2] == ["anthropic", "openai"]
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")  # the models have the names that the person gave them
    assert models._find_provider_with_key() is None
    monkeypatch.setenv("GROQ_API_KEY", "k")
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    strong, fast = models.choose_models(Profile())
    assert (strong.model, fast.model) == ("mistral:mistral-medium-3-5", "mistral:mistral-small-latest")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert models._find_provider_with_key() == "openai"


def test_presets_are_not_read_if_an_installed_provider_has_a_key(own, monkeypatch):
    own("broken: [")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert models._find_provider_with_key() == "openai"
    assert find_error("openai:m") is None


# --- requests


async def test_a_preset_works_like_openai(monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: secret-mine\nAuthorization: Bearer other-mine")
    head, body = await capture_request("groq", max_output_tokens=9)
    assert f"authorization: bearer {KEY}".encode() in head
    assert b"-mine" not in head
    assert (body["max_tokens"], body["stream_options"]) == (9, {"include_usage": True})


async def test_azure_has_its_own_header_and_name_of_the_limit(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    head, body = await capture_request("azure", max_output_tokens=9, wire="chat")
    assert f"api-key: {KEY}".encode() in head
    assert b"authorization" not in head
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body


async def test_mistral_gets_no_stream_options(monkeypatch):
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    _, body = await capture_request("mistral")
    assert "stream_options" not in body
    assert body["stream"] is True


async def test_calls_of_other_models_go_to_google_with_a_text_for_their_signature(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    call = ToolCall(id="1", name="shell", arguments="{}")
    result = Message(role="tool", parts=(ToolResult(call_id="1", output="done"),))
    history = [Message.user("hi"), Message.assistant("", (call,)), result]
    _, body = await capture_request("google", Request("m1", "", history))
    (back,) = body["messages"][1]["tool_calls"]
    assert back["extra_content"] == {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert back["function"] == {"name": "shell", "arguments": "{}"}


async def test_thinking_of_another_vendor_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    call = ToolCall(id="1", name="shell", arguments="{}")
    thought = Verbatim(wire="chat", origin="elsewhere.example", items=({"reasoning": "look"},))
    history = [
        Message.user("go"),
        Message(role="assistant", parts=(Thinking(text="look"), call), verbatim=thought),
        Message(role="tool", parts=(ToolResult(call_id="1", output="x"),)),
        Message.assistant("so"),
        Message.user("and?"),
    ]
    request = Request("m1", "", history)
    _, body = await capture_request("deepseek", request)
    thoughts = [entry.get("reasoning_content") for entry in body["messages"]]
    # DeepSeek refuses calls without any thinking before them.
    assert thoughts == [None, " ", None, None, None]
    for name in ("deepseek", "groq"):
        assert "look" not in json.dumps((await capture_request(name, request))[1])


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("openai:m", "prompt_cache_key"),
        ("azure:m", "prompt_cache_key"),
        ("xai:m", "prompt_cache_key"),
        ("mistral:m", "prompt_cache_key"),
        ("openrouter:m", "session_id"),
        ("groq:m", None),
        ("vllm:m", None),
    ],
)
def test_the_key_of_a_session(monkeypatch: pytest.MonkeyPatch, model: str, key: str | None) -> None:
    body = encode(monkeypatch, model, session="s-1")
    assert [name for name, value in body.items() if value == "s-1"] == ([key] if key else [])
    assert "s-1" not in encode(monkeypatch, model).values()


def encode(monkeypatch: pytest.MonkeyPatch, model: str, session: str = "", **choice: Any) -> dict[str, Any]:
    """Return the body of a request to a vendor's own server, which is not sent."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "mine.openai.azure.com")
    chosen = ModelChoice(model=model, **choice)
    provider: Any = find_provider_class(chosen.provider)(chosen)
    body: dict[str, Any] = json.loads(
        provider._encode_body(Request(chosen.name, "", REQUEST.messages, session=session))
    )
    if "messages" in body:
        check_body(body, {"session_id", "cache_control", "reasoning", "thinking"})
    return body


@pytest.mark.parametrize(
    ("model", "effort", "keys"),
    [
        ("xai:grok-4.7", None, {"reasoning": {"summary": "auto", "effort": "high"}}),
        ("xai:grok-4.7", "low", {"reasoning": {"summary": "auto", "effort": "low"}}),
        ("xai:grok-code-fast-1", None, {}),
        ("mistral:mistral-medium-3-5", None, {"reasoning_effort": "high"}),
        ("mistral:mistral-medium-3-5", "none", {"reasoning_effort": "none"}),
        ("mistral:codestral", None, {}),
        ("deepseek:deepseek-flash", None, {}),
        ("deepseek:deepseek-flash", "max", {"reasoning_effort": "max"}),
        ("deepseek:deepseek-flash", "none", {"thinking": {"type": "disabled"}}),
        ("openrouter:x/y", "high", {"reasoning": {"effort": "high"}}),
    ],
)
def test_the_effort_as_each_vendor_wants_it(
    monkeypatch: pytest.MonkeyPatch, model: str, effort: str | None, keys: dict[str, Any]
) -> None:
    body = encode(monkeypatch, model, effort=effort)
    assert {key: value for key, value in body.items() if key in ("reasoning", "reasoning_effort", "thinking")} == keys


@pytest.mark.parametrize(
    ("model", "is_marked"),
    [("anthropic/claude-opus-5.5", True), ("~anthropic/claude-sonnet-latest", True), ("openai/gpt-6-sol", False)],
)
def test_claude_behind_openrouter_caches(monkeypatch: pytest.MonkeyPatch, model: str, is_marked: bool) -> None:
    body = encode(monkeypatch, f"openrouter:{model}")
    assert body.get("cache_control") == ({"type": "ephemeral"} if is_marked else None)


def test_the_longest_silence() -> None:
    for model, own_s, expected_s in (("xai:m", None, 900), ("xai:m", 5, 5), ("groq:m", None, 120)):
        choice = ModelChoice(model=model, stall_s=own_s)
        provider: Any = find_provider_class(choice.provider)(choice)
        assert provider._stall_s == expected_s


def test_the_default_models_are_known() -> None:
    for preset in load_presets().values():
        for name in filter(None, (preset.processor, preset.accelerator)):
            assert has_price(f"{preset.name}:{name}"), name


async def test_a_preset_of_the_user(own, monkeypatch):
    own("""
gateway:
  base_url: http://unused/v1
  key_variable: GATEWAY_TOKEN
  query: {api-version: "2024-10-21"}
  body: {parallel_tool_calls: false, stream_options: null}
  output_limit: max_completion_tokens
""")
    monkeypatch.setenv("GATEWAY_TOKEN", KEY)
    head, body = await capture_request("gateway", max_output_tokens=9)
    assert head.startswith(b"post /v1/chat/completions?api-version=2024-10-21 ")
    assert f"authorization: bearer {KEY}".encode() in head
    assert (body["parallel_tool_calls"], body["max_completion_tokens"]) == (False, 9)
    assert "stream_options" not in body


async def test_a_key_in_a_header_of_its_own_does_not_follow_a_redirect(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    async with Loopback([sse(said("stolen"))]) as thief:
        away = Response(307, {"location": f"http://localhost:{thief.port}/v1/chat/completions", "content-length": "0"})
        async with Loopback([away]) as server:
            provider = find_provider_class("azure")(
                ModelChoice(model="azure:m1", base_url=server.base_url, wire="chat")
            )
            with pytest.raises(ProviderError):
                [delta async for delta in provider.stream(REQUEST)]
            await provider.close()
        assert thief.requests == []


async def test_processor_and_accelerator_of_different_providers(own, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    async with Loopback([sse(said("from the row"))]) as one, Loopback([sse(said("from groq"))]) as two:
        own(f"box: {{base_url: '{one.base_url}'}}")
        fast = {"model": "groq:small", "base_url": two.base_url}
        profile = Profile.model_validate(
            {"processor": "box:big", "accelerator": fast, "toolkits": [], "sandbox": "full"}
        )
        async with build_exchange(profile, Recorder()) as exchange:
            assert (exchange.models.processor.label, exchange.models.accelerator.label) == ("box:big", "groq:small")
            for model, words in (
                (exchange.models.processor, "from the row"),
                (exchange.models.accelerator, "from groq"),
            ):
                deltas = [delta async for delta in model.provider.stream(Request(model.name, "", [Message.user("?")]))]
                assert deltas[-1].message.text == words
        assert (one.requests[0].json["model"], two.requests[0].json["model"]) == ("big", "small")
        assert KEY.encode() not in one.requests[0].head


async def test_errors_name_the_preset_and_never_the_key(monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    async with Loopback([refusal(401, f"wrong key {KEY}")]) as server:
        provider = find_provider_class("groq")(ModelChoice(model="groq:m1", base_url=server.base_url))
        with pytest.raises(CredentialError, match=r"groq at 127\.0\.0\.1.*set GROQ_API_KEY") as caught:
            [delta async for delta in provider.stream(REQUEST)]
        await provider.close()
    assert KEY not in str(caught.value)


# --- the user's presets


def test_a_shipped_preset_is_changed_key_by_key(own):
    own("ollama: {base_url: 'http://box/v1'}\nmistral: {processor: mine}")
    assert load_presets()["ollama"].base_url == "http://box/v1"
    assert load_presets()["mistral"].processor == "mine"
    assert load_presets()["mistral"].body == {"stream_options": None}
    assert list(load_presets()) == SHIPPED.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n  base_url: http://x\n  key_varable: A_API_KEY", r"line 3: unknown key 'key_varable'; .*'key_variable'"),
        ("a:\n  summary: x", r"line 2: base_url: this key is missing"),
        ("a:\n  base_url: http://x\n  output_limit: tokens", "line 3: output_limit: expected 'max_tokens' or"),
        (f"a:\n  base_url: http://x\n  key_variable: {KEY}", "line 3: key_variable: this is the name of the variable"),
        ("a:\n  base_url: http://x\n  key_variable: MY_THING", "line 3: key_variable: .* ends with _API_KEY or _TOKEN"),
        ("a:\n  base_url: http://x\n  bodies: {'[': {}}", r"line 3: bodies: '\[' is no pattern"),
        ("openai:\n  base_url: http://x", "line 2: an installed provider is called 'openai'"),
        ("a b:\n  base_url: http://x", "'a b' is no name"),
        (f"a: {KEY}", "'a' is no mapping"),
        ("- a", "maps names to servers"),
        ("a: [", r"providers\.yaml, line 1: this is not valid YAML"),
    ],
)
def test_errors_in_a_preset(own, text, words):
    own(text)
    with pytest.raises(ProfileError, match=words) as caught:
        load_presets()
    assert "providers.yaml" in str(caught.value)
    assert KEY not in str(caught.value)


# --- the test request


async def test_a_server_that_takes_the_key():
    report, (head,) = await run_probe([listed("a", "b")])
    assert (report.models, report.is_key_verified) == (("a", "b"), True)
    assert head.startswith(b"GET /v1/models ")
    assert f"bearer {KEY}".encode() in head.lower()


async def test_a_public_list_verifies_no_key():
    models = listed("a")
    report, heads = await run_probe([models, Response(200, {"content-length": "2"}, [b"{}"])], "openrouter")
    assert report.is_key_verified
    assert [head.split()[1] for head in heads] == [b"/v1/models", b"/v1/key"]
    with pytest.raises(CredentialError):
        await run_probe([models, refusal(401)], "openrouter")
    report, _ = await run_probe([models], "llama-server")
    assert not report.is_key_verified


async def test_another_server_behind_openai_verifies_no_key():
    assert not (await run_probe([listed("a")], "openai"))[0].is_key_verified


async def test_lists_of_other_servers(monkeypatch):
    def answer_list(value: Any) -> Response:
        return Response(200, {"content-type": "application/json"}, [json.dumps(value).encode()])

    assert (await run_probe([answer_list({"data": [{"id": "models/gemini-x"}]})], "google"))[0].models == ("gemini-x",)
    assert (await run_probe([answer_list([{"id": "a"}])]))[0].models == ("a",)
    assert (await run_probe([answer_list({"object": "list", "data": []})]))[0].models == ()
    for other in ({"ok": True}, "words", None, [1, 2]):
        assert (await run_probe([answer_list(other)]))[0].models is None
    async with Loopback([answer_list({"endpoints": [{"name": "mine"}]})]) as server:
        monkeypatch.setenv("DATABRICKS_HOST", f"http://127.0.0.1:{server.port}")
        kind = find_provider_class("databricks")
        assert isinstance(kind, SupportsProbe)
        assert (await kind.probe(ModelChoice(model="databricks"), KEY)).models == ("mine",)
        assert server.requests[0].head.startswith(b"GET /api/2.0/serving-endpoints ")


@pytest.mark.parametrize(
    ("response", "kind", "words"),
    [
        (refusal(401, f"no such key {KEY}"), CredentialError, "the server wants a valid API key.*GROQ_API_KEY"),
        (refusal(403), CredentialError, "access was refused"),
        (refusal(404), ModelUnavailableError, "has nothing at /v1/models"),
        (
            Response(302, {"location": "http://127.0.0.1:1/", "content-length": "0"}),
            ModelUnavailableError,
            "redirects to",
        ),
        (refusal(429), RateLimitError, "too many requests"),
        (refusal(500), ModelUnavailableError, "can't answer now"),
        (Response(200, is_reset=True), ModelUnavailableError, "no answer"),
        (raw(b"\xff\xfe", kind="text/html"), None, ""),
    ],
)
async def test_answers_to_the_test_request(response, kind, words):
    if kind is None:
        assert (await run_probe([response]))[0].models is None
        return
    with pytest.raises(kind, match=words) as caught:
        await run_probe([response])
    assert "groq at 127.0.0.1" in str(caught.value)
    assert KEY not in str(caught.value)


async def test_an_unreachable_or_silent_server(monkeypatch):
    with pytest.raises(ModelUnavailableError, match="no answer"):
        await run_probe([], base_url="http://127.0.0.1:9/v1")
    monkeypatch.setattr(http_provider, "_PROBE_LIMIT_S", 0.2)
    with pytest.raises(ModelUnavailableError, match=r"no answer within 0.2 s"):
        await run_probe([raw(b"{", b" ", hang_s=30)])


async def test_without_a_key_no_request():
    with pytest.raises(CredentialError, match="set GROQ_API_KEY"):
        await run_probe([listed("a")], key="")
    report, (head,) = await run_probe([listed("a")], "vllm", key="")
    assert (report.is_key_verified, b"authorization" in head.lower()) == (False, False)


async def test_a_whole_turn_with_a_call(monkeypatch):
    """All presets share one parser, so a call of one server is enough."""
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    async with Loopback([sse(called(("1", "shell", "{}")))]) as server:
        provider = find_provider_class("groq")(ModelChoice(model="groq:m1", base_url=server.base_url))
        done = [delta async for delta in provider.stream(REQUEST)][-1]
        await provider.close()
    assert [call.name for call in done.message.tool_calls] == ["shell"]
