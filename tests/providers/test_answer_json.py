"""Tests of answers in JSON, over loopback servers of all wires; the vendors' SDKs check each body."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import ContextLengthError, ProviderError, UsageError
from goose_like.core.message import Message
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Provider, Request
from goose_like.providers.json_answer import AnswerSchema, answer_json
from goose_like.providers.json_schema_reduction import find_target
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.presets import Preset
from goose_like.providers.scripted import ScriptedProvider
from tests.loopback import Loopback, Response, answer, called, chunk, refusal, said, sse, usage, wish, words
from tests.providers.vendors import QUICK_RETRIES, set_keys_only
from tests.responses_events import call, respond, speak

Play = Callable[[str], Response]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}},
    },
    "required": ["name"],
}
VALID = '{"name": "Ann", "age": null, "tags": ["new"]}'
MAPPING = {"type": "object", "additionalProperties": {"type": "number"}}

PLAIN_CHAT = OpenAIProvider.for_preset(Preset(name="plain", base_url="http://127.0.0.1"))
SCHEMA_CHAT = OpenAIProvider.for_preset(Preset(name="able", base_url="http://127.0.0.1", takes_json_schema=True))


def say_chat(text: str) -> Response:
    return sse(said(text))


def say_messages(text: str) -> Response:
    return answer(words(0, text))


def say_responses(text: str) -> Response:
    return respond(speak(0, "msg_1", text))


def call_chat(arguments: str) -> Response:
    return sse(called(("c1", "final_answer", arguments)))


def call_messages(arguments: str) -> Response:
    return answer(wish(0, "c1", "final_answer", arguments), stop="tool_use")


def call_responses(arguments: str) -> Response:
    return respond(call(0, "fc_1", "c1", "final_answer", arguments))


def get_chat_schema(body: Any) -> Any:
    shaped = body["response_format"]["json_schema"]
    assert shaped["strict"] is True
    return shaped["schema"]


def get_messages_schema(body: Any) -> Any:
    return body["output_config"]["format"]["schema"]


def get_responses_schema(body: Any) -> Any:
    shaped = body["text"]["format"]
    assert shaped["strict"] is True
    return shaped["schema"]


NATIVE = [
    pytest.param("chat", SCHEMA_CHAT, say_chat, get_chat_schema, id="chat"),
    pytest.param("messages", AnthropicProvider, say_messages, get_messages_schema, id="messages"),
    pytest.param("responses", OpenAIProvider, say_responses, get_responses_schema, id="responses"),
]
TOOLS = [
    pytest.param("chat", PLAIN_CHAT, call_chat, say_chat, id="chat"),
    pytest.param("messages", AnthropicProvider, call_messages, say_messages, id="messages"),
    pytest.param("responses", OpenAIProvider, call_responses, say_responses, id="responses"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


def open_provider(wire: str, provider: type[Any], url: str, model: str = "claude-1", **more: Any) -> Provider:
    name = "anthropic" if wire == "messages" else "openai"
    chosen = "responses" if wire == "responses" else None
    settings = {"tools": "native", **more}  # no probe
    opened: Provider = provider(ModelChoice(model=f"{name}:{model}", base_url=url, wire=chosen, **settings))
    return opened


async def ask(server: Loopback, wire: str, provider: type[Any], schema: Any, **choice: Any) -> Any:
    """Ask for an answer. The server holds each body against the SDK's type."""
    opened = open_provider(wire, provider, server.base_url, **choice)
    request = Request(choice.get("model", "claude-1"), "be good", (Message.user("who?"),))
    try:
        return await answer_json(opened, request, schema, QUICK_RETRIES)
    finally:
        await opened.close()


# --- the vendors' own formats


@pytest.mark.parametrize(("wire", "provider", "say", "get_schema"), NATIVE)
async def test_an_answer_in_the_vendors_format(wire: str, provider: type[Any], say: Play, get_schema: Any) -> None:
    async with Loopback([say(VALID)]) as server:
        found = await ask(server, wire, provider, SCHEMA)
        (asked,) = server.requests
    assert found == {"name": "Ann", "tags": ["new"]}
    assert "tools" not in asked.json
    sent = get_schema(asked.json)
    assert sent["properties"]["name"] == {"type": "string", "description": "(minLength: 2)"}
    assert sent["additionalProperties"] is False


@pytest.mark.parametrize(("wire", "provider", "say", "get_schema"), NATIVE)
async def test_a_wrong_answer_goes_back_once(wire: str, provider: type[Any], say: Play, get_schema: Any) -> None:
    async with Loopback([say('{"name": "A", "age": "?", "tags": ["x"]}'), say(VALID)]) as server:
        assert await ask(server, wire, provider, SCHEMA) == {"name": "Ann", "tags": ["new"]}
        first, second = [asked.json for asked in server.requests]
    assert get_schema(first) == get_schema(second)
    sent = json.dumps(second)
    for place in ("$.name", "$.age", "$.tags[0]"):
        assert f"At `{place}`: " in sent
        assert place not in json.dumps(first)


@pytest.mark.parametrize(("wire", "provider", "say", "get_schema"), NATIVE)
async def test_an_answer_that_is_wrong_twice(wire: str, provider: type[Any], say: Play, get_schema: Any) -> None:
    async with Loopback([say("Ann, I think.")]) as server:
        with pytest.raises(ProviderError, match=r"no valid JSON.*It is no JSON: .*choose another model"):
            await ask(server, wire, provider, SCHEMA)
        assert len(server.requests) == 2


@pytest.mark.parametrize(("wire", "provider", "say", "get_schema"), NATIVE)
async def test_a_server_that_refuses_the_schema(wire: str, provider: type[Any], say: Play, get_schema: Any) -> None:
    """The tool takes its place, and the next answer begins with it."""
    tool = {"chat": call_chat, "messages": call_messages, "responses": call_responses}[wire]
    refused = refusal(400, "response_format is not supported with this model", code="invalid_request_error")
    async with Loopback([refused, tool('{"name": "x"}'), tool(VALID), tool(VALID)]) as server:
        opened = open_provider(wire, provider, server.base_url)
        request = Request("claude-1", "", (Message.user("who?"),))
        for _ in range(2):
            found = await answer_json(opened, request, SCHEMA, QUICK_RETRIES)
            assert found == {"name": "Ann", "tags": ["new"]}
        await opened.close()
        bodies = [asked.json for asked in server.requests]
    get_schema(bodies[0])
    for body in bodies[1:]:
        assert len(body["tools"]) == 1
        with pytest.raises(KeyError):
            get_schema(body)


async def test_another_refusal_is_told() -> None:
    too_long = refusal(400, "prompt is too long: 300000 tokens > 200000 maximum")
    async with Loopback([too_long]) as server:
        with pytest.raises(ContextLengthError):
            await ask(server, "messages", AnthropicProvider, SCHEMA)
        assert len(server.requests) == 1


# --- the tool


@pytest.mark.parametrize(("wire", "provider", "call_tool", "say"), TOOLS)
async def test_an_answer_by_the_tool(wire: str, provider: type[Any], call_tool: Play, say: Play) -> None:
    """No vendor's format can express an object with any keys."""
    async with Loopback([call_tool('{"a": 1.5}')]) as server:
        assert await ask(server, wire, provider, MAPPING) == {"a": 1.5}
        (asked,) = server.requests
    assert "final_answer" in json.dumps(asked.json["tools"])
    assert MAPPING["additionalProperties"] in [
        find_target(tool, path) for tool in asked.json["tools"] for path in _list_schema_paths(wire)
    ]


def _list_schema_paths(wire: str) -> Sequence[str]:
    place = {"chat": "function/parameters", "messages": "input_schema", "responses": "parameters"}[wire]
    return [f"#/{place}/additionalProperties"]


@pytest.mark.parametrize(("wire", "provider", "call_tool", "say"), TOOLS)
async def test_a_wrong_call_goes_back_as_its_result(wire: str, provider: type[Any], call_tool: Play, say: Play) -> None:
    async with Loopback([call_tool('{"a": "x"}'), call_tool('{"a": 2}')]) as server:
        assert await ask(server, wire, provider, MAPPING) == {"a": 2}
        second = json.dumps(server.requests[1].json)
    assert "At `$.a`: 'x' is not of type 'number'." in second
    assert "Call `final_answer` once more" in second


@pytest.mark.parametrize(("wire", "provider", "call_tool", "say"), TOOLS)
async def test_a_text_instead_of_a_call_is_read(wire: str, provider: type[Any], call_tool: Play, say: Play) -> None:
    async with Loopback([say('```json\n{"a": 3}\n```')]) as server:
        assert await ask(server, wire, provider, MAPPING) == {"a": 3}
        assert len(server.requests) == 1


async def test_other_models_behind_anthropics_api_get_the_tool() -> None:
    async with Loopback([call_messages(VALID)]) as server:
        assert await ask(server, "messages", AnthropicProvider, SCHEMA, model="glm-5") == {
            "name": "Ann",
            "tags": ["new"],
        }
        assert "output_config" not in server.requests[0].json


async def test_a_model_without_tool_calls_gets_the_schema() -> None:
    async with Loopback([say_chat(VALID)]) as server:
        found = await ask(server, "chat", PLAIN_CHAT, SCHEMA, tools="constrained")
        assert found == {"name": "Ann", "tags": ["new"]}
        assert get_chat_schema(server.requests[0].json)["properties"].keys() == SCHEMA["properties"].keys()


async def test_effort_and_format_share_a_key() -> None:
    async with Loopback([say_messages(VALID)]) as server:
        await ask(server, "messages", AnthropicProvider, SCHEMA, model="claude-opus-5-5", effort="low")
        assert server.requests[0].json["output_config"].keys() == {"effort", "format"}


@pytest.mark.parametrize(
    "step", ['{"text": "[1, 2]"}', '{"calls": [{"tool": "final_answer", "arguments": {"answer": [1, 2]}}]}']
)
async def test_a_scripted_model(step: str, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(f"[{step}]")
    provider = ScriptedProvider(ModelChoice(model=f"scripted:{script}"))
    request = Request("m", "", (Message.user("list them"),))
    found = await answer_json(provider, request, {"type": "array", "items": {"type": "integer"}})
    assert found == [1, 2]


# --- values


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "array", "items": {"type": "string"}}, '{"answer": ["a"]}', ["a"]),
        ({"type": "array", "items": {"type": "string"}}, '["a"]', ["a"]),
        ({"type": "integer"}, '{"answer": 123456789012345678901234567890}', 123456789012345678901234567890),
        ({"type": "number"}, '{"answer": 1e300}', 1e300),
        ({"type": "null"}, '{"answer": null}', None),
        ({"type": ["string", "null"]}, "null", None),
        ({"enum": ["yes", "no", None]}, '{"answer": "no"}', "no"),
        ({"const": 5}, '{"answer": 5}', 5),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "boolean"}}}, '{"answer": true}', True),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]}, '{"answer": [["a"]]}', [["a"]]),
    ],
)
async def test_values_of_all_types(schema: Any, text: str, value: Any) -> None:
    async with Loopback([say_responses(text)]) as server:
        found = await ask(server, "responses", OpenAIProvider, schema)
        (asked,) = server.requests
    assert (found, type(found)) == (value, type(value))
    sent = get_responses_schema(asked.json)
    assert (sent["type"], sent["required"]) == ("object", ["answer"])


async def test_a_recursive_answer() -> None:
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["name"],
    }
    text = '{"answer": {"name": "a", "children": [{"name": "b", "children": null}]}}'
    async with Loopback([say_responses(text)]) as server:
        schema = {"$ref": "#/$defs/node", "$defs": {"node": node}}
        found = await ask(server, "responses", OpenAIProvider, schema)
    assert found == {"name": "a", "children": [{"name": "b"}]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"answer": NaN}', "NaN is no number in JSON"),
        ('{"answer": -Infinity}', "-Infinity is no number"),
        ('{"answer": 1e999}', "too large"),
        ("9" * 5000, "It is no JSON"),
        ('{"answer": 1' + "0" * 400 + "}", "too large"),
        ("[" * 100_000, "nested too deeply"),
        ('{"answer": "1"}', "At `$`: '1' is not of type 'number'."),
        ("", "It is no JSON"),
    ],
)
def test_what_is_wrong_with_a_number(text: str, problem: str) -> None:
    _, problems = AnswerSchema.read({"type": "number", "multipleOf": 0.5}).parse(text)
    assert len(problems) == 1
    assert problem in problems[0]


def test_at_most_five_problems_are_told() -> None:
    _, problems = AnswerSchema.read({"type": "array", "items": {"type": "null"}}).parse("[1,2,3,4,5,6,7]")
    assert len(problems) == 5


# --- refusals and cuts


async def test_a_model_that_declines() -> None:
    part = {"type": "refusal", "refusal": "I won't."}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    finished = {"type": "response.output_item.done", "output_index": 0, "item": item}
    answers = {
        "responses": respond([finished]),
        "chat": sse([chunk({"refusal": "I won't."}), chunk(finish="stop"), usage()]),
        "messages": answer(words(0, "I w"), stop="refusal"),
    }
    for wire, provider in (("responses", OpenAIProvider), ("chat", SCHEMA_CHAT), ("messages", AnthropicProvider)):
        async with Loopback([answers[wire]]) as server:
            with pytest.raises(ProviderError, match="the model declined to answer"):
                await ask(server, wire, provider, SCHEMA)
            assert len(server.requests) == 1


async def test_an_answer_that_is_cut() -> None:
    answers = {
        "responses": respond(
            speak(0, "m", VALID), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
        ),
        "chat": sse([chunk({"content": VALID}), chunk(finish="length"), usage()]),
        "messages": answer(words(0, VALID), stop="max_tokens"),
    }
    for wire, provider in (("responses", OpenAIProvider), ("chat", SCHEMA_CHAT), ("messages", AnthropicProvider)):
        async with Loopback([answers[wire]]) as server:
            with pytest.raises(ProviderError, match="was cut at the output limit; raise max_output_tokens"):
                await ask(server, wire, provider, SCHEMA)
            assert len(server.requests) == 1


# --- schemas


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "strin"}, "invalid at `\\$.type`"),
        ({"type": "string", "pattern": "("}, "invalid at `\\$.pattern`"),
        ({"maximum": float("nan")}, "is no JSON"),
        ({"enum": {1, 2}}, "is no JSON"),
        ([{"type": "string"}], "no JSON object"),
        ({"$ref": "#/$defs/nothing"}, "nothing at its `\\$ref` '#/\\$defs/nothing'"),
        ({"$ref": "https://example.org/schema"}, "nothing at its"),
        ({"items": {"$ref": "other.json"}}, "nothing at its"),
        ({"$ref": "#"}, "leads to itself"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "leads to itself"),
        ({"properties": {"a": {"$id": "https://example.org/a"}}}, "`\\$id` inside"),
    ],
)
async def test_an_invalid_schema_is_refused_before_any_request(schema: Any, problem: str) -> None:
    async with Loopback([say_responses(VALID)]) as server:
        with pytest.raises(UsageError, match=problem):
            await ask(server, "responses", OpenAIProvider, schema)
        assert server.requests == []


def test_properties_with_the_names_of_keywords() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "enum": {"type": "object"}, "$id": {"const": 1}}}
    wanted = AnswerSchema.read(schema)
    assert wanted.parse('{"$ref": "x", "enum": {}, "$id": 1}') == ({"$ref": "x", "enum": {}, "$id": 1}, [])


def test_nulls_that_the_schema_allows_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "string"}, "c": {"type": "null"}},
        "required": ["c"],
    }
    assert AnswerSchema.read(schema).parse('{"a": null, "b": null, "c": null}') == ({"a": None, "c": None}, [])
