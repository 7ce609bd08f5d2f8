"""Tests of streamed answers: retries, broken streams, cut text and ids of calls."""

import dataclasses
import json
from contextlib import aclosing

import pytest

from goose_like.agent.exchange import CUT_ANSWER_ERROR
from goose_like.core.errors import CredentialError, ModelUnavailableError, ProviderError, RateLimitError
from goose_like.core.events import (
    Logged,
    MessageCompleted,
    Retrying,
    TextDelta,
    TurnFinished,
    UsageRecorded,
)
from goose_like.core.message import Message, Usage
from goose_like.providers.base import Model, ModelPair, ServerFacts, TellsFacts
from goose_like.providers.retry import RetryPolicy
from tests.agent.loop import cancel_after, echo, list_types
from tests.fakes import PAUSE, FakeProvider, call, calls
from tests.loopback import Loopback, raw, refusal
from tests.providers.vendors import ANTHROPIC, OPENAI, set_keys_only

TOLD = "cut answer"
ESTIMATED = "cut answer (estimated)"


async def test_cancelling_keeps_the_streamed_text(create_harness):
    harness = create_harness([[TextDelta(text="Once "), TextDelta(text="upon"), PAUSE], "Hello again."])
    await cancel_after(harness, TextDelta, 2)
    assert harness.events_of(MessageCompleted) == [
        MessageCompleted(message=Message.assistant("Once upon"), is_cut=True)
    ]
    assert harness.provider.streams_closed == 1
    await harness.exchange.reply("Go on.")
    assert [message.text for message in harness.provider.requests[1].messages] == [
        "Hi.",
        "Once upon",
        "Go on.\n\n[Your previous answer was cut off before its end.]",
    ]


async def test_an_error_keeps_the_partial_text(create_harness):
    harness = create_harness([[TextDelta(text="ab"), CredentialError("set X")], "ok"])
    end = await harness.exchange.reply("Hi.")
    assert end == TurnFinished(reason="error", detail="set X", exit_code=76)
    assert [(m.role, m.text) for m in harness.messages] == [("user", "Hi."), ("assistant", "ab")]
    assert (await harness.exchange.reply("Again.")).reason == "stop"


async def test_a_retry_discards_the_streamed_text(create_harness):
    broken = ModelUnavailableError("gone", is_retryable=True)
    harness = create_harness([[TextDelta(text="void"), broken], [TextDelta(text="kept"), CredentialError("refused")]])
    await harness.exchange.reply("Hi.")
    assert list_types(harness.recorder.events)[4:7] == ["text_delta", "retrying", "text_delta"]
    assert [message.text for message in harness.messages] == ["Hi.", "kept"]


async def test_retries_end(create_harness):
    harness = create_harness([ModelUnavailableError("gone", is_retryable=True)] * 5)
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.detail, end.exit_code) == ("error", "gone", 77)
    assert (len(harness.provider.requests), len(harness.events_of(Retrying))) == (3, 2)


async def test_a_stream_without_a_message_is_no_answer(create_harness):
    harness = create_harness([[TextDelta(text="so")]] * 3)
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 77)
    assert "ended its stream without a message" in end.detail


async def test_nothing_after_the_message_counts(create_harness):
    harness = create_harness([["Hello.", ModelUnavailableError("gone", is_retryable=True)]])
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    assert len(harness.provider.requests) == 1


async def test_an_unexpected_error_of_a_provider_ends_the_turn(create_harness):
    harness = create_harness([[TextDelta(text="so"), KeyError("choices")], "ok"])
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert end.detail.startswith(
        "the provider tests.fakes.FakeProvider failed in `stream`: KeyError: 'choices'; at tests."
    )
    assert harness.messages[-1].text == "so"
    assert (await harness.exchange.reply("Again.")).reason == "stop"


class _Telling(FakeProvider):
    """A provider that tells the tokens of an attempt where its script has a `Usage`."""

    async def stream(self, request):
        async with aclosing(super().stream(request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, Usage):
                    request.told_usage[:] = [delta]
                else:
                    yield delta


FAILED = Usage(input_tokens=50, output_tokens=3)
GONE = ModelUnavailableError("gone", is_retryable=True)
ANSWER = MessageCompleted(message=Message.assistant("ok"), usage=Usage(input_tokens=100, output_tokens=20))


def tell_usage(harness, script):
    """Let the exchange use a provider that tells the tokens of its attempts."""
    model = Model(_Telling(script), "x", "scripted:x")
    harness.exchange = dataclasses.replace(harness.exchange, models=ModelPair(model, model))
    return harness


@pytest.mark.parametrize(
    ("script", "purposes"),
    [
        ([[FAILED, GONE], [ANSWER]], ["failed attempt"]),
        ([[FAILED, GONE], [GONE], [ANSWER]], ["failed attempt"]),
        ([[FAILED, GONE], [FAILED, GONE], [FAILED, ANSWER]], ["failed attempt"] * 2),
        ([[FAILED, GONE], [FAILED, GONE], [FAILED, GONE]], ["failed attempt", "failed attempt", "cut answer"]),
        ([[FAILED, GONE], [GONE], [GONE]], ["failed attempt"]),
        ([[FAILED, GONE], [FAILED, TextDelta(text="so"), CredentialError("no")]], ["failed attempt", "cut answer"]),
    ],
)
async def test_the_tokens_of_failed_attempts_count(create_harness, script, purposes):
    harness = tell_usage(create_harness([]), script)
    end = await harness.exchange.reply("Hi.")
    recorded = [UsageRecorded(model="scripted:x", usage=FAILED, purpose=purpose) for purpose in purposes]
    assert harness.events_of(UsageRecorded) == recorded
    answered = 120 if end.reason == "stop" else 0
    assert harness.exchange.history.usage.total.total_tokens == answered + 53 * len(purposes)


@pytest.mark.parametrize(("told", "purposes"), [([], ["failed attempt"]), ([FAILED], ["failed attempt", "cut answer"])])
async def test_the_tokens_of_a_failed_attempt_count_when_the_person_cuts_the_next_one(create_harness, told, purposes):
    harness = tell_usage(create_harness([]), [[FAILED, GONE], [*told, TextDelta(text="more"), PAUSE]])
    await cancel_after(harness, TextDelta)
    assert [(event.usage, event.purpose) for event in harness.events_of(UsageRecorded)] == [
        (FAILED, each) for each in purposes
    ]


async def test_a_person_who_cuts_the_pause_after_a_failed_attempt_pays_it_once(create_harness):
    harness = tell_usage(create_harness([]), [[FAILED, GONE], "ok"])
    harness.exchange = dataclasses.replace(harness.exchange, retry_policy=RetryPolicy(first_wait_s=60))
    await cancel_after(harness, Retrying)
    assert [event.usage for event in harness.events_of(UsageRecorded)] == [FAILED]


async def test_the_tokens_of_failed_attempts_of_side_questions_count(create_harness):
    slow = RateLimitError("slow", retry_after_s=0)
    harness = tell_usage(create_harness([]), [[FAILED, slow], [ANSWER], [FAILED, CredentialError("no")]])
    assert await harness.exchange.view.accelerator.ask("Why?") == "ok"
    with pytest.raises(CredentialError):
        await harness.exchange.view.accelerator.ask("Why?")
    assert [event.usage for event in harness.events_of(UsageRecorded)] == [FAILED, ANSWER.usage, FAILED]


async def test_a_stream_that_is_a_coroutine_is_explained(create_harness):
    class Coroutine(FakeProvider):
        async def stream(self, request):
            return "hello"

    harness = create_harness([])
    model = Model(Coroutine(), "x", "scripted:x")
    harness.exchange = dataclasses.replace(harness.exchange, models=ModelPair(model, model))
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert "failed in `stream`: it is no async generator, but a coroutine; `async def` with `yield`" in end.detail


async def test_ids_are_made_unique(create_harness):
    twice = calls(
        *(call("echo", json.dumps({"text": text}), id=id) for text, id in [("1", "a"), ("2", "a"), ("3", "")])
    )
    harness = create_harness([twice, calls(call("echo", '{"text": "4"}', id="a")), "Done."], echo)
    await harness.exchange.reply("Hi.")
    ids = [call.id for message in harness.messages for call in message.tool_calls]
    assert (ids[0], len(set(ids)), "" in ids) == ("a", 4, False)
    assert harness.outputs == ["1", "2", "3", "4"]


async def test_cut_by_length(create_harness):
    cut = [TextDelta(text="Once"), MessageCompleted(message=Message.assistant("Once"), is_cut=True)]
    harness = create_harness([cut])
    assert await harness.exchange.reply("Hi.") == TurnFinished(reason="error", detail=CUT_ANSWER_ERROR, exit_code=1)
    assert [message.text for message in harness.messages] == ["Hi.", "Once"]
    with_call = [MessageCompleted(message=calls(call("echo", '{"text": "a')), is_cut=True)]
    harness = create_harness([with_call, "Done."], echo)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    assert "reached its output limit within this call, so it was cut" in harness.outputs[0]


@pytest.mark.parametrize(
    ("vendor", "usage"),
    [
        # OpenAI's servers tell the tokens at the end alone, Anthropic's those of the request at the start.
        (OPENAI, UsageRecorded(model="openai:m1", usage=Usage(input_tokens=16, output_tokens=10), purpose=ESTIMATED)),
        (ANTHROPIC, UsageRecorded(model="anthropic:m1", usage=Usage(input_tokens=10, output_tokens=10), purpose=TOLD)),
    ],
    ids=["openai", "anthropic"],
)
async def test_the_tokens_of_a_cancelled_answer_count(create_harness, monkeypatch, vendor, usage):
    set_keys_only(monkeypatch)
    harness = create_harness([], label=f"{vendor.name}:m1")
    async with Loopback([raw(vendor.stream(*vendor.said("x" * 40)[:2]), hang_s=60)]) as server:
        base_url = server.base_url.removesuffix("/v1") if vendor is ANTHROPIC else server.base_url
        provider = vendor.provider(vendor.choice(base_url))
        model = Model(provider, "m1", f"{vendor.name}:m1")
        harness.exchange = dataclasses.replace(harness.exchange, models=ModelPair(model, model))
        await cancel_after(harness, TextDelta)
        await provider.close()
    assert harness.events_of(UsageRecorded) == [usage]
    assert harness.exchange.history.usage.turn_by_model[model.label] == usage.usage


async def test_a_refused_request_costs_nothing(create_harness, monkeypatch):
    set_keys_only(monkeypatch)
    harness = create_harness([])
    async with Loopback([refusal(400)]) as server:
        provider = OPENAI.provider(OPENAI.choice(server.base_url))
        model = Model(provider, "m1", "openai:m1")
        await dataclasses.replace(harness.exchange, models=ModelPair(model, model)).reply("Hi.")
        await provider.close()
    assert harness.events_of(UsageRecorded) == []


async def test_withheld_reasoning_is_told_once(create_harness):
    answers = [MessageCompleted(message=Message.assistant(text), withheld=("prefix_mismatch",)) for text in "ab"]
    harness = create_harness([[answer] for answer in answers])
    await harness.exchange.reply("Hi.")
    await harness.exchange.reply("Go on.")
    told = [event.text for event in harness.events_of(Logged)]
    assert told == ["the server withheld earlier reasoning from the model (prefix_mismatch)"]


class _Faulty(FakeProvider, TellsFacts):
    """A provider whose optional methods fail."""

    facts = ServerFacts()
    embedding_model = "vectors"
    can_search_web = True

    async def fetch_facts(self, model):
        raise KeyError("facts")

    async def embed(self, texts):
        raise KeyError("vectors")

    async def search_web(self, query, model):
        raise KeyError("pages")


async def test_faults_in_optional_methods_are_explained(create_harness):
    harness = create_harness([])
    model = Model(_Faulty(), "x", "scripted:x")
    harness.exchange = dataclasses.replace(harness.exchange, models=ModelPair(model, model))
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert "_Faulty failed in `fetch_facts`: KeyError: 'facts'; at tests." in end.detail
    view = harness.exchange.view.accelerator
    with pytest.raises(ProviderError, match="_Faulty failed in `embed`: KeyError: 'vectors'; at tests"):
        await view.embed(["a"], purpose="test")
    with pytest.raises(ProviderError, match="_Faulty failed in `search_web`: KeyError: 'pages'; at tests"):
        await view.search_web("a")
