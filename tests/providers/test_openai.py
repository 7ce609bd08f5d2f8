"""Tests of the openai provider over a loopback server: its differences from the anthropic provider."""

import json
from dataclasses import replace
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import ProviderError
from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.providers.base import Delta, Request
from goose_like.providers.http_headers import parse_retry_after_s
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.responses_wire import ResponsesStreamParser
from tests.loopback import CHUNK, Loopback, Response, called, chunk, events, raw, refusal, said, sse, usage
from tests.providers.vendors import KEY, OPENAI, REQUEST, get_text, set_keys_only
from tests.sdk_types import check_body


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


async def ask(server: Loopback, **choice: Any) -> list[Delta]:
    return await OPENAI.ask(server.base_url, **choice)


# --- the good case


async def test_an_answer_and_the_request_on_the_wire() -> None:
    async with Loopback([sse([chunk({"content": "hé"}), *said("llo"), usage(10, 5, 8)])]) as server:
        deltas = await ask(server, max_output_tokens=50, temperature=0.5)
        asked = server.requests[0]
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["hé", "llo"]
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    assert done.usage == Usage(input_tokens=10, output_tokens=5, cache_read_tokens=8)
    assert asked.head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert f"Authorization: Bearer {KEY}".lower().encode() in asked.head.lower()
    assert b"content-type: application/json" in asked.head.lower()
    body = asked.json
    assert body.pop("messages") == [{"role": "system", "content": "be good"}, {"role": "user", "content": "hi"}]
    assert body.pop("tools")[0]["function"]["name"] == "shell"
    assert body == {
        "model": "m1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
        "temperature": 0.5,
    }


async def test_parallel_calls_and_one_connection_for_two_requests() -> None:
    async with Loopback([sse(called(("1", "a", "{}"), ("2", "b", '{"x":1}'))), sse(said("done"))]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        done = [delta async for delta in provider.stream(REQUEST)][-1]
        assert isinstance(done, MessageCompleted)
        assert done.message.tool_calls == (
            ToolCall(id="1", name="a", arguments="{}"),
            ToolCall(id="2", name="b", arguments='{"x":1}'),
        )
        longer = Request(REQUEST.model, REQUEST.system, [*REQUEST.messages, done.message], REQUEST.tools)
        [_ async for _ in provider.stream(longer)]
        await provider.close()
        first, second = (asked.body for asked in server.requests)
    assert second.startswith(first.removesuffix(b"]}"))


async def test_the_base_url_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback([sse(said("x"))]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.delenv("OPENAI_API_KEY")
        choice = ModelChoice(model="openai:m1")
        assert OpenAIProvider.find_setup_error(choice) is None
        provider = OpenAIProvider(choice)
        assert get_text([delta async for delta in provider.stream(REQUEST)]) == "x"
        await provider.close()


async def test_constrained_tools_send_a_schema_and_no_tools() -> None:
    async with Loopback([refusal(400)]) as server:
        with pytest.raises(ProviderError):
            await ask(server, tools="constrained")
        body = server.requests[0].json
    assert "tools" not in body
    assert body["response_format"]["json_schema"]["name"] == "answer"
    assert isinstance(body["response_format"]["json_schema"]["schema"], dict)


@pytest.mark.parametrize(("cache", "options"), [(None, None), ("short", {"ttl": "30m"}), ("long", {"ttl": "12h"})])
def test_the_life_of_the_cache(cache: Any, options: Any) -> None:
    choice = ModelChoice(model="openai:gpt-6-sol", base_url="https://api.openai.com/v1", cache=cache)
    body = json.loads(OpenAIProvider(choice)._encode_body(Request("gpt-6-sol", "s", [Message.user("x")])))
    assert body.get("prompt_cache_options") == options


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_tier_is_sent(wire: Any) -> None:
    choice = ModelChoice(model="openai:gpt-6-sol", wire=wire, service_tier="fast")
    body = json.loads(OpenAIProvider(choice)._encode_body(Request("gpt-6-sol", "s", [Message.user("x")])))
    check_body(f"/v1/{'responses' if wire == 'responses' else 'chat/completions'}", body)
    assert body["service_tier"] == "fast"
    wrong = OpenAIProvider.find_setup_error(ModelChoice(model="openai:gpt-6-sol", speed="fast"))
    assert "write `service_tier: fast`" in str(wrong)


def test_the_tokens_written_for_a_long_time() -> None:
    details = {"cached_tokens": 1, "cache_write_tokens": 7, "cache_write_tokens_details": {"ttl_12h_tokens": 5}}
    usage = {"input_tokens": 9, "output_tokens": 3, "input_tokens_details": details}
    parser = ResponsesStreamParser()
    parser.feed({"object": "response", "status": "completed", "output": [], "usage": usage})
    assert parser.usage == Usage(
        input_tokens=9, output_tokens=3, cache_read_tokens=1, cache_write_tokens=7, cache_write_long_tokens=5
    )


def test_the_cache_key_of_a_session() -> None:
    """Only OpenAI knows the field that sends requests to the machine with the cached prefix."""
    request = replace(REQUEST, session="s1")
    openai = OpenAIProvider(ModelChoice(model="openai:m"))
    assert json.loads(openai._encode_body(request))["prompt_cache_key"] == "s1"
    assert "prompt_cache_key" not in json.loads(openai._encode_body(REQUEST))
    other = OpenAIProvider(ModelChoice(model="openai:m", base_url="http://box:8080/v1"))
    assert "prompt_cache_key" not in json.loads(other._encode_body(request))


@pytest.mark.parametrize(
    ("model", "extras"),
    [
        ("gpt-6-sol", {"reasoning": {"summary": "auto"}}),
        ("gpt-6.2-sol", {"reasoning": {"summary": "auto"}}),
        ("gpt-5.5", {"reasoning": {"summary": "auto"}}),
        ("gpt-4.1", {}),
        ("unheard-of", {}),
    ],
)
def test_openai_itself_gets_the_responses_api(model: str, extras: dict[str, Any]) -> None:
    provider = OpenAIProvider(ModelChoice(model=f"openai:{model}", max_output_tokens=9))
    assert provider.path == "/responses"
    body = json.loads(provider._encode_body(Request(model, "s", [], REQUEST.tools)))
    assert body.pop("input") == [{"role": "developer", "content": "s"}]
    (tool,) = body.pop("tools")
    assert (tool["name"], tool["strict"]) == ("shell", False)
    expected = {"model": model, "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}
    assert body == expected | {"max_output_tokens": 9} | extras


@pytest.mark.parametrize(
    ("choice", "path"),
    [
        ({"base_url": "https://api.openai.com/v1"}, "/responses"),
        ({"base_url": "https://eu.api.openai.com/v1"}, "/responses"),
        ({"base_url": "http://box:8080/v1"}, "/chat/completions"),
        ({"base_url": "http://box:8080/v1", "wire": "responses"}, "/responses"),
        ({"wire": "chat"}, "/chat/completions"),
    ],
)
def test_the_server_or_the_profile_decides_about_the_wire(choice: dict[str, Any], path: str) -> None:
    assert OpenAIProvider(ModelChoice(model="openai:m", **choice)).path == path


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(raw(events([{**CHUNK, "choices": []}, *said("hi")])), "hi", id="empty choices"),
        pytest.param(raw(events(said("hi"), is_done=False)), "hi", id="no [DONE]"),
        pytest.param(
            raw(events(said("hi")).replace(b', "choices"', b',\ndata: "choices"')), "hi", id="JSON over two data lines"
        ),
    ],
)
async def test_complete_streams(response: Response, expected: str) -> None:
    async with Loopback([response]) as server:
        assert get_text(await ask(server)) == expected
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "7"}, 7.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 366 * 86_400.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected_s: float | None) -> None:
    assert parse_retry_after_s(headers) == expected_s


# --- web search


class OwnOpenAI(OpenAIProvider):
    """OpenAI's own server, as far as the provider knows."""

    host = "127.0.0.1"


def searched(*output: Any, **keys: Any) -> Response:
    counts = {"input_tokens": 900, "output_tokens": 40, "input_tokens_details": {"cached_tokens": 100}}
    body = {"object": "response", "status": "completed", "output": list(output), "usage": counts, **keys}
    return raw(json.dumps(body).encode(), kind="application/json")


def look_up(*urls: str, status: str = "completed") -> dict[str, Any]:
    action = {"type": "search", "query": "primes", "sources": [{"type": "url", "url": url} for url in urls]}
    return {"type": "web_search_call", "id": "ws1", "status": status, "action": action}


def cite(text: str, *pages: tuple[str, str]) -> dict[str, Any]:
    notes = [{"type": "url_citation", "title": title, "url": url, "start_index": 0} for title, url in pages]
    return {"type": "message", "content": [{"type": "output_text", "text": text, "annotations": notes}]}


async def search(*responses: Response) -> tuple[Any, Loopback]:
    async with Loopback(responses) as server:
        provider = OwnOpenAI(ModelChoice(model="openai:m1", base_url=server.base_url))
        assert provider.can_search_web
        try:
            return await provider.search_web("prime numbers", "m1"), server
        finally:
            await provider.close()


async def test_a_search_on_the_server() -> None:
    sources = look_up("https://b.example/", "https://a.example/")
    cited = cite("2 is prime.", ("A", "https://a.example/"))
    answer, server = await search(searched({"type": "reasoning"}, cite("I search."), sources, cited))
    assert answer.text == "2 is prime."
    assert answer.pages == [("A", "https://a.example/"), ("", "https://b.example/")]
    assert answer.usage == Usage(input_tokens=900, output_tokens=40, cache_read_tokens=100)
    assert server.requests[0].head.startswith(b"POST /v1/responses HTTP/1.1\r\n")
    body = server.requests[0].json
    assert "prime numbers" in body.pop("input")
    sources = ["web_search_call.action.sources"]
    assert body == {"model": "m1", "tools": [{"type": "web_search"}], "store": False, "include": sources}


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (refusal(401, "bad key"), r"the server wants a valid API key .*set OPENAI_API_KEY"),
        (refusal(429, "slow down"), "too many requests"),
        (searched(look_up(status="failed"), cite("sorry")), r"could not search the web \(no reason\)"),
        (searched(error={"code": "x", "message": "out of order"}, status="failed"), r"\(out of order\)"),
        (searched(look_up("https://a.example/")), "the answer is empty"),
        (raw(b"[]", kind="application/json"), "as the answer where an object belongs"),
        (raw(b"{", kind="application/json"), "the answer is no JSON: '{'"),
    ],
)
async def test_a_search_that_fails_says_why(response: Response, problem: str) -> None:
    with pytest.raises(ProviderError, match=problem):
        await search(response)


def test_other_servers_do_not_search() -> None:
    preset = OpenAIProvider.preset.model_copy(update={"name": "mine", "base_url": "https://api.openai.com/v1"})
    for kind, url in (
        (OpenAIProvider, "http://127.0.0.1:1/v1"),
        (OpenAIProvider, "https://api.openai.com.example/v1"),
        (OpenAIProvider.for_preset(preset), None),
    ):
        assert not kind(ModelChoice(model="openai:m1", base_url=url)).can_search_web
    assert OpenAIProvider(ModelChoice(model="openai:m1")).can_search_web
