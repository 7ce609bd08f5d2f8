"""Tests of the anthropic provider over a loopback server: its differences from the openai provider."""

import json
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types import ModelInfo

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError, GooseLikeError, ProfileError
from goose_like.core.events import MessageCompleted, TextDelta, UsageRecorded
from goose_like.core.message import Message, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.core.tool import ToolSpec
from goose_like.providers.anthropic import AnthropicProvider, BedrockProvider, VertexProvider
from goose_like.providers.base import Delta, Request, SupportsProbe
from goose_like.providers.known_models import find_known_model
from tests.anthropic_server import AnthropicServer
from tests.loopback import Loopback, Response, answer, block, ended, named, raw, refusal, started, thought, wish, words
from tests.providers.vendors import ANTHROPIC, KEY, REQUEST, get_text, set_keys_only
from tests.sdk_types import check_body

MARK = b',"cache_control":{"type":"ephemeral"}'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


async def ask(server: Loopback, **choice: Any) -> list[Delta]:
    return await ANTHROPIC.ask(server.base_url, **choice)


# --- the good case


async def test_an_answer_and_the_request_on_the_wire() -> None:
    async with Loopback([answer(words(0, "hé", "llo"), cache_read_input_tokens=8)]) as server:
        deltas = await ask(server, max_output_tokens=50)
        asked = server.requests[0]
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["hé", "llo"]
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    assert done.usage == Usage(input_tokens=18, output_tokens=5, cache_read_tokens=8)
    head = asked.head.lower()
    assert head.startswith(b"post /v1/messages http/1.1\r\n")
    assert f"authorization: bearer {KEY}".encode() in head
    assert b"content-type: application/json" in head
    assert b"anthropic-version: 2026-10-21" in head
    body = asked.json
    assert [entry["content"][0]["text"] for entry in body.pop("messages")] == ["hi"]
    assert body.pop("tools")[0]["name"] == "shell"
    assert body.pop("system")[0]["text"] == "be good"
    assert body == {"model": "m1", "stream": True, "max_tokens": 50}


async def test_three_requests_repeat_the_answers_exactly() -> None:
    first = answer(
        thought(0, "hm", "SIG"),
        words(1, "both"),
        wish(2, "t1", "a", '{"x":', " 1}"),
        wish(3, "t2", "b"),
        stop="tool_use",
    )
    script = [first, answer(wish(0, "t3", "a", "{}"), stop="tool_use"), answer(words(0, "done"))]
    async with Loopback(script) as server:
        provider = AnthropicProvider(ModelChoice(model="anthropic:m1", base_url=server.base_url))
        history = [*REQUEST.messages]
        while True:
            request = Request(REQUEST.model, REQUEST.system, tuple(history), REQUEST.tools)
            done = [delta async for delta in provider.stream(request)][-1]
            assert isinstance(done, MessageCompleted)
            history.append(done.message)
            if not done.message.tool_calls:
                break
            results = tuple(ToolResult(call_id=call.id, output="ok") for call in done.message.tool_calls)
            history.append(Message(role="tool", parts=results))
        await provider.close()
        bodies = [asked.body for asked in server.requests]
    assert history[1].parts == (
        Thinking(text="hm"),
        Text(text="both"),
        ToolCall(id="t1", name="a", arguments='{"x": 1}'),
        ToolCall(id="t2", name="b", arguments="{}"),
    )
    sent = json.loads(bodies[1])["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "hm", "signature": "SIG"}
    assert [part["type"] for part in sent] == ["thinking", "text", "tool_use", "tool_use"]
    bare = [body.replace(MARK, b"").removesuffix(b"]}") for body in bodies]
    assert bare[1].startswith(bare[0])
    assert bare[2].startswith(bare[1])
    assert [body.count(MARK) for body in bodies] == [2, 3, 3]


async def test_empty_text_that_the_server_refuses_is_left_out() -> None:
    first = answer(thought(0, "hm", "S"), words(1), words(2, "hi"))
    no = refusal(400, "messages: text content blocks must be non-empty", type="invalid_request_error")
    async with Loopback([first, no, answer(words(0, "ho"))]) as server:
        provider = AnthropicProvider(ANTHROPIC.choice(server.base_url))
        done = [delta async for delta in provider.stream(REQUEST)][-1]
        assert isinstance(done, MessageCompleted)
        request = replace(REQUEST, messages=(*REQUEST.messages, done.message, Message.user("more")))
        assert get_text([delta async for delta in provider.stream(request)]) == "ho"
        await provider.close()
        sent = [asked.json["messages"][1]["content"] for asked in server.requests[1:]]
    assert [len(content) for content in sent] == [3, 2]
    assert sent[1] == [sent[0][0], sent[0][2]]


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
RESULT = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


RUN = SEARCH | {"name": "code_execution"}


async def test_a_paused_answer_goes_on() -> None:
    first = answer(thought(0, "hm", "S"), words(1, "a"), block(2, RUN), stop="pause_turn")
    second = answer(block(0, RESULT), words(1, "b"), stop="pause_turn")
    async with Loopback([first, second, answer(words(0, "c"))]) as server:
        deltas = await ask(server)
        bodies = [asked.json for asked in server.requests]
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    assert (done.message.text, done.is_cut) == ("a\n\nbc", False)
    assert done.usage == Usage(input_tokens=10, output_tokens=5)
    paused = UsageRecorded(model="m1", usage=done.usage, purpose="paused answer", steps=1)
    assert [delta for delta in deltas if isinstance(delta, UsageRecorded)] == [paused, paused]
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "a\n\nbc"
    assert [len(body["messages"]) for body in bodies] == [1, 2, 2]
    begun = [{"type": "thinking", "thinking": "hm", "signature": "S"}, {"type": "text", "text": "a"}, RUN]
    assert bodies[1]["messages"][1] == {"role": "assistant", "content": begun}
    assert bodies[2]["messages"][1]["content"] == [*begun, RESULT, {"type": "text", "text": "b"}]
    assert done.message.verbatim is not None
    assert done.message.verbatim.items[3:] == (RESULT, {"type": "text", "text": "b"}, {"type": "text", "text": "c"})


async def test_an_answer_is_not_paused_for_ever() -> None:
    async with Loopback([answer(words(0, "a"), stop="pause_turn")]) as server:
        done = (await ask(server))[-1]
        assert len(server.requests) == 11
    assert isinstance(done, MessageCompleted)
    assert (done.message.text, done.is_cut) == ("a" * 11, True)


async def test_a_fast_answer_is_asked_for() -> None:
    async with Loopback([answer(words(0, "x"))]) as server:
        await ask(server, speed="fast")
        asked = server.requests[0]
    check_body("/v1/messages", asked.json)
    assert asked.json["speed"] == "fast"
    assert b"anthropic-beta: fast-mode-2026-02-01\r\n" in asked.head.lower()
    wrong = AnthropicProvider.find_setup_error(ModelChoice(model="anthropic:m", service_tier="flex"))
    assert "write `speed: fast`" in str(wrong)


async def test_the_server_may_answer_with_another_model() -> None:
    """A call and thinking of the model that declined are void; the text stays."""
    handover = {
        "type": "fallback",
        "from": {"model": "m1"},
        "to": {"model": "claude-opus-4-8"},
        "trigger": {"type": "refusal", "category": "cyber"},
    }
    first = [thought(0, "hm", "S"), words(1, "a"), wish(2, "t1", "shell", "{}"), block(3, SEARCH), block(4, handover)]
    async with Loopback([answer(*first, thought(5, "ha", "T"), words(6, "b"))]) as server:
        done = (await ask(server, server_fallback=True))[-1]
        asked = server.requests[0]
    assert b"anthropic-beta: server-side-fallback-2026-07-01\r\n" in asked.head.lower()
    assert asked.json["fallbacks"] == "default"
    assert isinstance(done, MessageCompleted)
    assert (done.message.text, done.model) == ("ab", "anthropic:claude-opus-4-8")
    assert not done.message.tool_calls
    assert done.message.verbatim is not None
    assert done.message.verbatim.items == (
        {"type": "text", "text": "a"},
        handover,
        {"type": "thinking", "thinking": "ha", "signature": "T"},
        {"type": "text", "text": "b"},
    )


async def test_other_features_stay_beside_that_of_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Anthropic-Beta: other-2026-01-01")
    counts = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    models = {"message": "m1", "fallback_message": "m2"}
    iterations = [{"type": kind, "model": model, **counts} for kind, model in models.items()]
    end, stop = ended()
    end["usage"]["iterations"] = iterations
    async with Loopback([raw(named([started(), *words(0, "x"), end, stop]))]) as server:
        done = (await ask(server, server_fallback=True))[-1]
        head = server.requests[0].head.lower()
    assert b"anthropic-beta: other-2026-01-01,server-side-fallback-2026-07-01\r\n" in head
    assert isinstance(done, MessageCompleted)
    assert done.model == "anthropic:m2"


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
async def test_the_base_url_of_the_environment(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback([answer(words(0, "x"))]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.port}{end}")
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-secret")
        choice = ModelChoice(model="anthropic:m1")
        assert AnthropicProvider.find_setup_error(choice) is None
        provider = AnthropicProvider(choice)
        assert get_text([delta async for delta in provider.stream(REQUEST)]) == "x"
        await provider.close()
        assert server.requests[0].head.startswith(b"POST /v1/messages ")
        assert b"another-secret" not in server.requests[0].head


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"model": "claude-opus-5-5"}, {"max_tokens": 64_000, "thinking": "adaptive"}),
        ({"model": "claude-haiku-5-5", "max_output_tokens": 9}, {"max_tokens": 9, "thinking": "adaptive"}),
        ({"model": "claude-opus-5-5", "window": 8_000}, {"max_tokens": 1_000, "thinking": "adaptive"}),
        ({"model": "claude-sonnet-4-5"}, {"max_tokens": 25_000}),
        ({"model": "claude-sonnet-4-5-20250929"}, {"max_tokens": 25_000}),
        ({"model": "other"}, {"max_tokens": 16_000}),
    ],
)
def test_limits_and_thinking_by_the_model(choice: dict[str, Any], expected: dict[str, Any]) -> None:
    name = choice["model"]
    provider = AnthropicProvider(ModelChoice(**{**choice, "model": f"anthropic:{name}"}))
    body = json.loads(provider._encode_body(Request(name, "s", [Message.user("x")])))
    found = {key: body[key] for key in ("max_tokens", "thinking") if key in body}
    if "thinking" in found:
        found["thinking"] = found["thinking"]["type"]
    assert found == expected


def test_only_anthropics_servers_get_keys_for_long_arguments() -> None:
    tool = ToolSpec("write", "Writes.", {"type": "object"}, has_long_arguments=True)
    request = Request("claude-opus-5-5", "s", [Message.user("x")], (tool,))

    def sends_key(kind: type[AnthropicProvider], **choice: Any) -> bool:
        body = json.loads(kind(ModelChoice(model="anthropic:claude-opus-5-5", **choice))._encode_body(request))
        return "eager_input_streaming" in body["tools"][0]

    assert sends_key(AnthropicProvider)
    assert sends_key(BedrockProvider)
    assert sends_key(VertexProvider)
    assert not sends_key(AnthropicProvider, base_url="http://127.0.0.1:1")


@pytest.mark.parametrize(("cache", "ttl"), [(None, None), ("short", None), ("long", "1h")])
def test_the_life_of_the_cache(cache: Any, ttl: str | None) -> None:
    provider = AnthropicProvider(ModelChoice(model="anthropic:claude-opus-5-5", cache=cache))
    body = json.loads(provider._encode_body(Request("claude-opus-5-5", "s", [Message.user("x")])))
    assert body["system"][0]["cache_control"].get("ttl") == ttl


def describe_model(name: str, *efforts: str, is_adaptive: bool = True, **keys: Any) -> dict[str, Any]:
    """Return a model as Anthropic lists it."""

    def support(is_supported: bool) -> dict[str, bool]:
        return {"supported": is_supported}

    levels = {level: support(level in efforts) for level in ("low", "medium", "high", "xhigh", "max")}
    types = {
        "adaptive": support(is_adaptive),
        **dict.fromkeys(("between_tools", "disabled", "enabled"), support(False)),
    }
    others = ("batch", "citations", "code_execution", "image_input", "pdf_input", "structured_outputs")
    capabilities = {
        **dict.fromkeys(others, support(True)),
        "context_management": support(True),
        "effort": {**support(bool(efforts)), **levels},
        "server_tools": {**support(True), "code_execution": support(True), "web_search": support(True)},
        "thinking": {**support(is_adaptive), "types": types},
    }
    described = {
        "id": name,
        "type": "model",
        "display_name": name,
        "lifecycle": "active",
        "capabilities": capabilities,
        "created_at": "2026-11-01T00:00:00Z",
        "max_input_tokens": 300_000,
        "max_tokens": 20_000,
        **keys,
    }
    ModelInfo.model_validate(described)
    return described


async def test_what_the_server_tells_of_its_models_wins() -> None:
    models = [
        describe_model("claude-opus-5-5-probed", "low", "max"),
        describe_model("claude-opus-6-probed", is_adaptive=False, max_tokens=None),
    ]
    listed = raw(json.dumps({"data": models}).encode(), kind="application/json")
    async with Loopback([listed]) as server:
        choice = ANTHROPIC.choice(server.base_url)
        assert (await AnthropicProvider.probe(choice)).models == ("claude-opus-5-5-probed", "claude-opus-6-probed")
    known = find_known_model("anthropic", "claude-opus-5-5-probed")
    assert (known.efforts, known.window, known.max_output) == (("low", "max"), 300_000, 20_000)
    request = Request("claude-opus-5-5-probed", "s", [Message.user("x")])
    assert json.loads(AnthropicProvider(choice)._encode_body(request))["max_tokens"] == 20_000
    other = find_known_model("anthropic", "claude-opus-6-probed")
    assert (other.efforts, other.reasons, other.max_output) == ((), False, None)
    assert find_known_model("anthropic", "claude-opus-5-5").window == 1_000_000


@pytest.mark.parametrize("listed", [None, [], {"data": 5}, {"data": [None, {"id": 5}, {"id": "x-probed"}]}])
async def test_a_list_without_facts_changes_nothing(listed: Any) -> None:
    async with Loopback([raw(json.dumps(listed).encode(), kind="application/json")]) as server:
        await AnthropicProvider.probe(ANTHROPIC.choice(server.base_url))
    assert find_known_model("anthropic", "x-probed") == find_known_model("anthropic", "y")


@pytest.mark.parametrize(
    ("name", "effort", "thinking"),
    [
        ("claude-opus-5-5", "max", "adaptive"),
        ("claude-fable-5-2", "xhigh", "adaptive"),
        ("claude-sonnet-5-5", "low", "adaptive"),
        ("claude-haiku-5-5", None, "adaptive"),
        ("claude-opus-4-8", "xhigh", "adaptive"),
        ("claude-opus-4-6", "max", "adaptive"),
        ("claude-sonnet-4-6", "high", "adaptive"),
        ("claude-opus-4-5", "high", None),
        ("claude-haiku-4-5", None, None),
    ],
)
def test_the_body_of_each_model_fits_the_type_of_the_sdk(name: str, effort: Any, thinking: str | None) -> None:
    choice = ModelChoice(model=f"anthropic:{name}", effort=effort, cache="long")
    assert AnthropicProvider.find_setup_error(choice) is None
    tools = (replace(REQUEST.tools[0], has_long_arguments=True),)
    body = json.loads(AnthropicProvider(choice)._encode_body(replace(REQUEST, model=name, tools=tools)))
    AnthropicServer([]).check(body)
    assert body.get("output_config", {}).get("effort") == effort
    assert body.get("thinking", {}).get("type") == thinking


def test_windows_are_known() -> None:
    known = {"claude-opus-5-5": 1_000_000, "claude-haiku-4-5": 200_000, "claude-sonnet-4-6": 1_000_000}
    assert {name: find_known_model("anthropic", name).window for name in known} == known
    assert find_known_model("bedrock", "anthropic.claude-sonnet-5-5").window == 1_000_000
    assert find_known_model("anthropic", "other").window is None


WHOLE = named([started(), *words(0, "hi"), *ended()])


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(raw(named([{"type": "ping"}]), WHOLE), "hi", id="pings"),
        pytest.param(raw(b"event: ping\n\n", WHOLE), "hi", id="an event without data"),
        pytest.param(
            raw(named([{"type": "fanfare"}]), WHOLE, broken="an event of a later version"), "hi", id="an unknown event"
        ),
        pytest.param(raw(WHOLE.replace(b"event: message_start\n", b"")), "hi", id="an event without a name"),
        pytest.param(
            raw(b'event: ping\ndata: {"type":\ndata: "ping"}\n\n', WHOLE), "hi", id="JSON over two data lines"
        ),
    ],
)
async def test_complete_streams(response: Response, expected: str) -> None:
    async with Loopback([response]) as server:
        assert get_text(await ask(server)) == expected
        assert len(server.requests) == 1


async def test_pings_count_as_activity() -> None:
    """A long argument arrives at once, after minutes of pings."""
    pings = [named([{"type": "ping"}])] * 8
    async with Loopback([raw(named([started()]), *pings, WHOLE.partition(b"\n\n")[2], pause_s=0.1)]) as server:
        assert get_text(await ask(server, stall_s=0.5)) == "hi"


@pytest.mark.parametrize(("key", "value"), [("temperature", 0.5), ("tools", "constrained")])
def test_invalid_settings_are_reported_before_the_first_request(key: str, value: Any) -> None:
    error = AnthropicProvider.find_setup_error(ModelChoice(model="anthropic:m1", **{key: value}))
    assert isinstance(error, ProfileError)
    assert key in str(error)


# --- cloud vendors


@pytest.mark.parametrize(
    ("kind", "model", "fault"),
    [
        (BedrockProvider, "bedrock:anthropic.claude-opus-5-5", "goose-like[bedrock]"),
        (VertexProvider, "vertex:claude-opus-5-5", "goose-like[vertex]"),
    ],
)
def test_a_missing_library_of_a_cloud_vendor(
    kind: type[AnthropicProvider], model: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goose_like.providers.anthropic.find_spec", lambda name: None)
    found = kind.find_setup_error(ModelChoice(model=model))
    assert isinstance(found, GooseLikeError)
    assert fault in str(found)


async def test_bedrock_sends_the_same_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Amazon, only check that the SDK's client sends our body to its own path."""
    monkeypatch.setattr("goose_like.providers.anthropic.find_spec", lambda name: True)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    async with Loopback([answer(words(0, "hi")), refusal(401, "no")]) as server:
        choice = ModelChoice(model="bedrock:anthropic.claude-opus-5-5", base_url=f"http://127.0.0.1:{server.port}/x")
        assert BedrockProvider.find_setup_error(choice) is None
        provider = BedrockProvider(choice)
        request = Request("anthropic.claude-opus-5-5", "s", [Message.user("x")])
        assert get_text([delta async for delta in provider.stream(request)]) == "hi"
        with pytest.raises(CredentialError, match=r"^bedrock at 127"):
            [_ async for _ in provider.stream(request)]
        await provider.close()
        assert server.requests[0].head.startswith(b"POST /x/v1/messages ")
        assert server.requests[0].json["model"] == "anthropic.claude-opus-5-5"


def test_vertex_gets_the_body_as_data() -> None:
    provider = VertexProvider(ModelChoice(model="vertex:claude-opus-5-5"))
    assert provider._build_post_options(b'{"model": "m"}') == {"body": {"model": "m"}}


@pytest.mark.parametrize("kind", [BedrockProvider, VertexProvider])
def test_a_cloud_vendor_has_no_test_request(kind: type[AnthropicProvider]) -> None:
    assert not isinstance(kind, SupportsProbe)


# --- web search


class OwnAnthropic(AnthropicProvider):
    """Anthropic's own server, as far as the provider knows."""

    host = "127.0.0.1"


def searched(*blocks: Any, **keys: Any) -> Response:
    usage = {"input_tokens": 900, "output_tokens": 40, "cache_read_input_tokens": 100}
    body = {"type": "message", "content": list(blocks), "stop_reason": "end_turn", "usage": usage, **keys}
    return raw(json.dumps(body).encode(), kind="application/json")


def found(*pages: tuple[str, str]) -> dict[str, Any]:
    results = [
        {"type": "web_search_result", "title": title, "url": url, "encrypted_content": "x", "page_age": None}
        for title, url in pages
    ]
    return {"type": "web_search_tool_result", "tool_use_id": "s1", "content": results}


def say(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": None}


FAILED = {"type": "web_search_tool_result", "content": {"type": "web_search_tool_result_error", "error_code": "boom"}}


async def search(*responses: Response) -> tuple[Any, Loopback]:
    async with Loopback(responses) as server:
        provider = OwnAnthropic(ModelChoice(model="anthropic:m1", base_url=server.base_url))
        assert provider.can_search_web
        try:
            return await provider.search_web("prime {numbers}", "m1"), server
        finally:
            await provider.close()


async def test_a_search_on_the_server() -> None:
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "primes"}}
    blocks = (say("I search."), call, found(("A", "https://a.example/"), ("", "https://b.example/")))
    answer, server = await search(searched(*blocks, say("2 is "), say("prime."), {"type": "new"}))
    assert answer.text == "2 is prime."
    assert answer.pages == [("A", "https://a.example/"), ("", "https://b.example/")]
    assert answer.usage == Usage(input_tokens=1000, output_tokens=40, cache_read_tokens=100)
    assert server.requests[0].head.startswith(b"POST /v1/messages HTTP/1.1\r\n")
    body = server.requests[0].json
    assert "prime {numbers}" in body["messages"][0]["content"]
    assert body["tools"] == [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]
    assert "stream" not in body


async def test_a_paused_search_goes_on() -> None:
    first = searched(say("I search."), SEARCH, stop_reason="pause_turn")
    answer, server = await search(first, searched(found(("A", "https://a.example/")), say("2")))
    assert (answer.text, answer.pages) == ("2", [("A", "https://a.example/")])
    assert answer.usage == Usage(input_tokens=2000, output_tokens=80, cache_read_tokens=200)
    assert server.requests[1].json["messages"][1] == {"role": "assistant", "content": [say("I search."), SEARCH]}


async def test_a_failed_search_counts_only_without_pages() -> None:
    answer, _ = await search(searched(FAILED, found(("A", "https://a.example/")), say("2")))
    assert answer.text == "2"
    with pytest.raises(GooseLikeError, match=r"could not search the web \(boom\); try again later"):
        await search(searched(FAILED, say("sorry")))


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (refusal(401, "bad key"), r"the server wants a valid API key .*set ANTHROPIC_API_KEY"),
        (refusal(429, "slow down"), "too many requests"),
        (searched(found(("A", "https://a.example/"))), "the answer is empty"),
        (searched("text"), "as a block where an object belongs"),
        (raw(b"<html>", kind="text/html"), "the answer is no JSON: '<html>'"),
        (raw(b"x" * 70 * 2**20, kind="application/json"), "too large"),
    ],
)
async def test_a_search_that_fails_says_why(response: Response, problem: str) -> None:
    with pytest.raises(GooseLikeError, match=problem):
        await search(response)


def test_other_servers_do_not_search() -> None:
    for kind, url in (
        (AnthropicProvider, "https://api.anthropic.com.example/v1"),
        (AnthropicProvider, "http://127.0.0.1:1"),
        (VertexProvider, None),
        (BedrockProvider, None),
    ):
        assert not kind(ModelChoice(model="x:m1", base_url=url)).can_search_web
    assert AnthropicProvider(ModelChoice(model="anthropic:m1")).can_search_web
