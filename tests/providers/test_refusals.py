"""Refusals and errors within streams, as servers really word them: the kind of error, and the pause it asks for."""

import json
from typing import Any

import pytest

from goose_like.core.errors import CredentialError, ModelUnavailableError, ProviderError, RateLimitError
from goose_like.core.events import Retrying
from goose_like.providers.wire import parse_wait_s, sanitize_call_id
from tests.loopback import Loopback, chunk, raw, refusal, said, sse
from tests.providers.vendors import OPENAI, get_text, set_keys_only


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


def route(code: object, raw_cause: object = "the real cause") -> dict[str, Any]:
    """Return an error as a router sends it within a stream."""
    return {
        "choices": [],
        "error": {"code": code, "message": "Provider returned error", "metadata": {"raw": raw_cause}},
    }


@pytest.mark.parametrize(
    ("code", "error", "exit_code", "requests"),
    [
        (400, ProviderError, 1, 1),
        ("400", ProviderError, 1, 1),
        (401, CredentialError, 76, 1),
        (402, RateLimitError, 75, 1),
        (404, ModelUnavailableError, 77, 1),
        (429, RateLimitError, 75, 3),
        (502, ModelUnavailableError, 77, 3),
        ("invalid_api_key", CredentialError, 76, 1),
        ("insufficient_quota", RateLimitError, 75, 1),
        ("rate_limit_exceeded", RateLimitError, 75, 3),
        ("server_error", ModelUnavailableError, 77, 3),
    ],
)
async def test_an_error_within_a_stream_counts_like_its_status(
    code: object, error: type[ProviderError], exit_code: int, requests: int
) -> None:
    for body in (OPENAI.stream(route(code)), OPENAI.stream(chunk({"content": "x"}), route(code))):
        async with Loopback([raw(body)]) as server:
            with pytest.raises(ProviderError, match="Provider returned error: the real cause") as caught:
                await OPENAI.ask(server.base_url)
            assert len(server.requests) == requests
        assert (type(caught.value), caught.value.exit_code) == (error, exit_code)


async def test_the_cause_behind_a_router_may_be_json() -> None:
    cause = json.dumps({"error": {"message": "no such region"}})
    async with Loopback([raw(OPENAI.stream(route(400, cause)))]) as server:
        with pytest.raises(ProviderError, match="Provider returned error: no such region"):
            await OPENAI.ask(server.base_url)


@pytest.mark.parametrize(
    ("text", "error", "advice"),
    [
        ("no", CredentialError, "check what the key in OPENAI_API_KEY may use"),
        ("Your API key may not use this model", CredentialError, "check what the key in OPENAI_API_KEY may use"),
        ("Unsupported region: country not supported", ModelUnavailableError, "your region"),
        ("<html>blocked by the firewall</html>", ModelUnavailableError, "a firewall or proxy may block the server"),
    ],
)
async def test_a_403_says_what_it_is_about(text: str, error: type[ProviderError], advice: str) -> None:
    async with Loopback([refusal(403, text)]) as server:
        with pytest.raises(error, match=advice) as caught:
            await OPENAI.ask(server.base_url)
        assert len(server.requests) == 1
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("body", "wait_s"),
    [
        ({"message": "Rate limit reached. Please try again in 21.5s."}, 21.5),
        ({"message": "Please try again in 1m2.5s"}, 62.5),
        ({"message": "try again in 6h3m"}, 21_780),
        ({"message": "try again in 350ms"}, 0.35),
        ({"message": "Please retry after 20 seconds"}, 20),
        ({"message": "wait 2 minutes"}, 120),
        ({"message": "slow", "details": [{"@type": "x.RetryInfo", "retryDelay": "20s"}]}, 20),
        ({"message": "slow", "details": [{"retryDelay": 20}, None]}, None),
        ({"message": "try again later"}, None),
        ({"message": "you may retry; it failed 3 times"}, None),
        ("try again in 5 s", 5),
        (None, None),
    ],
)
def test_the_pause_in_a_body(body: object, wait_s: float | None) -> None:
    assert parse_wait_s(body) == (pytest.approx(wait_s) if wait_s else None)


async def test_the_pause_in_a_body_is_kept() -> None:
    async with Loopback([refusal(429, "try again in 7ms"), sse(said("hi"))]) as server:
        deltas = await OPENAI.ask(server.base_url)
        assert get_text(deltas) == "hi"
    assert [delta.wait_s for delta in deltas if isinstance(delta, Retrying)] == [0.01]


async def test_a_long_pause_in_a_body_ends_at_once() -> None:
    async with Loopback([refusal(429, "try again in 1h2m")]) as server:
        with pytest.raises(RateLimitError, match=r"the server asks to wait until [\d:]+ \(62 min\)$"):
            await OPENAI.ask(server.base_url)
        assert len(server.requests) == 1


async def test_only_the_first_of_two_answers_counts() -> None:
    second = {"index": 1, "delta": {"content": "second"}, "finish_reason": None}
    body = OPENAI.stream(chunk({"content": "first"}), chunk() | {"choices": [second]}, *OPENAI.last("stop"))
    async with Loopback([raw(body)]) as server:
        assert get_text(await OPENAI.ask(server.base_url)) == "first"


# --- ids


def test_an_id_that_a_server_takes_stays() -> None:
    assert sanitize_call_id("call_1") == "call_1"
    assert sanitize_call_id("abcDEF123", 9) == "abcDEF123"


@pytest.mark.parametrize("call_id", ["call_1", "toolu_01A.b:c", "x" * 200, "ü", "", "a b"])
def test_another_id_is_mapped_always_to_the_same(call_id: str) -> None:
    mapped = sanitize_call_id(call_id, 9)
    assert len(mapped) == 9
    assert mapped.isalnum()
    assert mapped == sanitize_call_id(call_id, 9)
    assert mapped != sanitize_call_id(call_id + "1", 9)
    assert 0 < len(sanitize_call_id(call_id)) <= 64
