"""Turns whose last message has to fit a JSON schema: over all wires, with tools before it, and when it stays wrong."""

import json
from dataclasses import replace
from importlib.util import find_spec

import pytest

from goose_like.config.profile import Limits, ModelChoice
from goose_like.core.events import Reminded, UsageRecorded
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Model, ModelPair
from goose_like.providers.json_answer import AnswerSchema
from goose_like.providers.local import LocalProvider
from tests.agent.loop import echo
from tests.fakes import call, calls
from tests.loopback import Loopback
from tests.providers.test_answer_json import (
    NATIVE,
    PLAIN_CHAT,
    SCHEMA,
    VALID,
    call_chat,
    call_messages,
    open_provider,
    say_chat,
    say_messages,
)
from tests.providers.vendors import set_keys_only

WANTED = AnswerSchema.read(SCHEMA)
ANN = {"name": "Ann", "tags": ["new"]}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    set_keys_only(monkeypatch)


def want(harness, **changes):
    return replace(harness.exchange, answer_schema=WANTED, **changes)


async def reply_over(server, wire, provider, harness):
    """Run a turn with the model behind a server; return its end and the value of its answer."""
    opened = open_provider(wire, provider, server.base_url)
    model = Model(opened, "claude-1", "scripted:x")
    end = await want(harness, models=ModelPair(model, model)).reply("who?")
    await opened.close()
    value, _ = WANTED.read_last_answer(harness.messages)
    return end, value


@pytest.mark.parametrize(("wire", "provider", "say", "get_schema"), NATIVE)
async def test_an_answer_that_fits_costs_no_further_request(wire, provider, say, get_schema, create_harness):
    async with Loopback([say(VALID)]) as server:
        end, value = await reply_over(server, wire, provider, create_harness([]))
        (asked,) = server.requests
    assert (end.reason, value) == ("stop", ANN)
    assert "A program reads your final answer" in asked.body.decode()
    with pytest.raises(KeyError):
        get_schema(asked.json)  # it would constrain what the model says beside its calls


@pytest.mark.parametrize(("wire", "provider", "say", "get_schema"), NATIVE)
async def test_a_wrong_answer_is_corrected_in_the_vendors_format(wire, provider, say, get_schema, create_harness):
    harness = create_harness([], echo)
    async with Loopback([say("Ann, I think."), say('{"name": "A"}'), say(VALID)]) as server:
        end, value = await reply_over(server, wire, provider, harness)
        first, second, third = [asked.json for asked in server.requests]
    assert (end.reason, value) == ("stop", ANN)
    assert "tools" in first
    for body in (second, third):
        assert "tools" not in body
        assert "name" in get_schema(body)["properties"]
    assert "It is no JSON" in json.dumps(second)
    assert "At `$.name`: " in json.dumps(third)
    assert harness.messages[-1].text == '{"name": "Ann", "tags": ["new"]}'
    assert [event.purpose for event in harness.events_of(UsageRecorded)] == ["corrected answer"] * 2


@pytest.mark.parametrize(
    ("wire", "provider", "say", "call_tool"),
    [
        ("chat", PLAIN_CHAT, say_chat, call_chat),
        ("messages", AnthropicProvider, say_messages, call_messages),
    ],
)
async def test_a_server_without_structured_output_gets_a_tool(wire, provider, say, call_tool, create_harness):
    harness = create_harness([], echo)
    model = "glm-5"  # one of another vendor, which has the tool on Anthropic's wire, too
    async with Loopback([say("Ann."), call_tool('{"name": 1}'), call_tool(VALID)]) as server:
        opened = open_provider(wire, provider, server.base_url, model)
        models = Model(opened, model, "scripted:x")
        end = await want(harness, models=ModelPair(models, models)).reply("who?")
        await opened.close()
        bodies = [asked.json for asked in server.requests]
    assert end.reason == "stop"
    assert WANTED.read_last_answer(harness.messages)[0] == ANN
    for body in bodies[1:]:
        assert "final_answer" in json.dumps(body["tools"])
        assert "echo" not in json.dumps(body["tools"])
    assert "Call `final_answer` once more" in json.dumps(bodies[2])


async def test_tools_run_before_the_answer(create_harness):
    harness = create_harness([calls(call("echo", '{"text": "Ann"}'), text="I look."), f"```json\n{VALID}\n```"], echo)
    end = await want(harness).reply("who?")
    assert end.reason == "stop"
    assert WANTED.read_last_answer(harness.messages) == (ANN, [])
    assert len(harness.events_of(Reminded)) == 1


async def test_an_answer_that_stays_wrong_ends_the_turn_with_the_reasons(create_harness):
    harness = create_harness(["Ann", "{", '{"name": "A"}', '{"age": 1}', VALID])
    end = await want(harness).reply("who?")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert "At `$`: 'name' is a required property." in end.detail
    assert len(harness.provider.requests) == 4  # the answer, and three corrections


async def test_a_limit_holds_before_a_correction(create_harness):
    harness = create_harness(["Ann", VALID], limits=Limits(steps=1))
    end = await want(harness).reply("who?")
    assert (end.reason, end.exit_code) == ("step_limit", 3)
    assert len(harness.provider.requests) == 1


@pytest.mark.local
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
async def test_a_grammar_holds_the_embedded_model_to_the_schema(request, create_harness, weights):
    """A smaller schema of the same kind is in `test_real_answers` of tests/providers/test_local.py."""
    if not request.config.getoption("--local-answers"):
        pytest.skip("it takes half a minute: --local-answers")
    properties = {"dog_legs": {"type": "integer", "minimum": 6}, "code": {"type": "string", "pattern": "^[A-Z]{3}$"}}
    legs = {"type": "object", "properties": properties, "required": [*properties]}
    wanted = AnswerSchema.read({"type": "array", "items": legs, "minItems": 1, "maxItems": 1})
    harness = create_harness([])
    provider = LocalProvider(ModelChoice(model="local", window=2048, max_output_tokens=100))
    model = Model(provider, "", "local:")
    exchange = replace(harness.exchange, models=ModelPair(model, model))
    try:
        end = await exchange.reply("How many legs has a dog?")
        assert end.reason == "stop", end.detail
        await exchange.client.correct_answer(wanted, ["It is no JSON."])
    finally:
        await provider.close()
    value, problems = wanted.read_last_answer(harness.messages)
    assert (problems, type(value[0]["dog_legs"])) == ([], int)  # six or more, against what it knows
