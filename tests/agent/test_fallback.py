"""Tests of the fallback model, over loopback servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Profile
from goose_like.core.events import Retrying
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.providers.registry import open_models
from tests.loopback import Loopback, Response, raw, refusal
from tests.providers.vendors import ANTHROPIC, KEY, OPENAI, QUICK_RETRIES, VENDORS, Vendor, set_keys_only


@asynccontextmanager
async def open_exchange(
    *responses: Response, vendor: Vendor | None = ANTHROPIC, main: Vendor = OPENAI
) -> AsyncIterator[tuple[Exchange, Recorder, Loopback, Loopback]]:
    recorder = Recorder()
    async with Loopback(responses[:1]) as first, Loopback(responses[1:]) as second:
        models = {"processor": main.choice(first.base_url)}
        if vendor:
            models["fallback"] = vendor.choice(second.base_url)
        async with build_exchange(Profile(toolkits=(), **models), recorder) as exchange:
            yield replace(exchange, retry_policy=QUICK_RETRIES), recorder, first, second


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_keys_only(monkeypatch)
    monkeypatch.setenv(OPENAI.key_variable, "sk-of-the-first")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "outage", [refusal(503), refusal(429, headers={"retry-after": "0"}), raw(OPENAI.half)], ids=["503", "429", "broken"]
)
async def test_the_fallback_finishes_the_turn_and_the_next_one_tries_the_first_model_again(outage: Response) -> None:
    async with open_exchange(outage, ANTHROPIC.answer("second")) as (exchange, recorder, first, second):
        assert (await exchange.reply("one")).reason == "stop"
        assert [message.text for message in exchange.history.messages] == ["one", "second"]
        retries = [event for event in recorder.events if isinstance(event, Retrying)]
        assert [event.retry for event in retries] == [1, 2, 0]
        assert retries[-1].text.endswith("; anthropic:m1 answers until this turn ends")
        usage = exchange.history.usage.by_model
        spent = {label for label in usage if usage[label].total_tokens}
        assert "anthropic:m1" in spent
        has_begun = outage.status == 200
        assert ("openai:m1" in spent) == has_begun  # the tokens of attempts that broke off count, too
        assert b"sk-of-the-first" not in second.requests[0].head
        assert KEY.encode() in second.requests[0].head
        first.play(OPENAI.answer("first"))
        await exchange.reply("two")
        assert exchange.history.messages[-1].text == "first"
        assert exchange.history.usage.by_model["openai:m1"].total_tokens > 0
        assert len(second.requests) == 1


def decline(vendor: Vendor) -> Response:
    match vendor.wire:
        case "messages":
            return raw(vendor.stream(*vendor.said("I will "), *vendor.last("refusal")))
        case "responses":
            return raw(vendor.stream(*vendor.said("I will "), *vendor.last("incomplete:content_filter")))
    return raw(vendor.stream(*vendor.said("I will "), *vendor.last("content_filter")))


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
async def test_the_fallback_answers_what_a_model_declines(vendor: Vendor) -> None:
    async with open_exchange(decline(vendor), OPENAI.answer("second"), main=vendor, vendor=OPENAI) as opened:
        exchange, recorder, first, second = opened
        assert (await exchange.reply("one")).reason == "stop"
        assert [message.text for message in exchange.history.messages] == ["one", "second"]
        assert (len(first.requests), len(second.requests)) == (1, 1)
        (note,) = [event.text for event in recorder.events if isinstance(event, Retrying)]
        assert note.endswith("; openai:m1 answers until this turn ends")


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
async def test_what_a_model_wrote_before_it_declined_leaves_the_history(vendor: Vendor) -> None:
    async with open_exchange(decline(vendor), main=vendor, vendor=None) as (exchange, _, first, _):
        done = await exchange.reply("one")
        assert (done.reason, done.exit_code) == ("error", 1)
        assert "say it in other words, or choose another model" in done.detail
        assert [message.text for message in exchange.history.messages] == ["one"]
        assert History.replay(exchange.session.read_events()).messages == exchange.history.messages
        first.play(vendor.answer("fine"))
        await exchange.reply("two")
        assert "I will" not in first.requests[0].body.decode()


async def test_the_same_model_of_another_server_is_a_fallback() -> None:
    async with open_exchange(refusal(503), OPENAI.answer("second"), vendor=OPENAI) as (exchange, _, first, second):
        assert (await exchange.reply("one")).reason == "stop"
        assert exchange.history.messages[-1].text == "second"
    assert (len(first.requests), len(second.requests)) == (3, 1)


@pytest.mark.parametrize(("settings", "has_fallback"), [({}, False), ({"temperature": 1.0}, True)])
async def test_only_the_same_choice_is_no_fallback(settings: dict[str, float], has_fallback: bool) -> None:
    main = OPENAI.choice("http://127.0.0.1:1/v1")
    models = open_models(Profile(processor=main, fallback=main.model_copy(update=settings)))
    assert (models.processor.fallback is not None) == has_fallback
    for provider in models.providers:
        await provider.close()


async def test_a_refused_key_is_no_outage() -> None:
    async with open_exchange(refusal(401), ANTHROPIC.answer("second")) as (exchange, _, _, second):
        end = await exchange.reply("one")
    assert (end.exit_code, second.requests) == (76, [])


async def test_both_models_are_out_of_reach() -> None:
    async with open_exchange(refusal(503), refusal(529, "overloaded")) as (exchange, _, first, second):
        end = await exchange.reply("one")
    assert (end.exit_code, len(first.requests), len(second.requests)) == (77, 3, 3)
    assert "overloaded" in end.detail
