"""Tests of the Responses API with OpenAI's own SDK over loopback."""

import asyncio
import json

import pytest

pytest.importorskip("uvicorn")

import httpx2
import openai
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from goose_like.core.events import TurnStarted
from goose_like.serve.openai.history import build_turn
from goose_like.serve.openai.request import RequestError
from goose_like.serve.openai.responses_body import ResponsesBody
from tests.fakes import is_well_formed
from tests.loopback import called, chunk, events, raw, refusal, said, sse, usage
from tests.serve.openai_server import serving_openai
from tests.serve.test_openai_chat import PNG_URL
from tests.serve.test_openai_requests import SIGNER

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Tell the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
EVENT = TypeAdapter(ResponseStreamEvent)


class City(BaseModel):
    """An answer."""

    name: str
    rivers: list[str]
    mayor: str | None


async def ask(server, given, **more):
    """Ask for a response, and check it with the SDK's own types."""
    answer = await server.client.responses.create(model="openbb", input=given, **more)
    Response.model_validate(answer.model_dump(by_alias=True), strict=True)
    return answer


async def stream(server, given, **more):
    """Stream a response through the SDK, which keeps its own picture of it; return the events and the response."""
    async with server.client.responses.stream(model="openbb", input=given, **more) as parts:
        listed = [event async for event in parts]
        final = await parts.get_final_response()
    return listed, final


def ask_in_a_thread(url):
    with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client:
        return client.responses.create(model="openbb", input="hi", instructions="Be short.", max_output_tokens=7)


async def test_a_conversation(monkeypatch, tmp_path):
    async with serving_openai(monkeypatch, tmp_path, [sse(said("Now\u2028it is."))]) as server:
        first = await asyncio.to_thread(ask_in_a_thread, server.url)
        assert (first.output_text, first.status, first.instructions) == ("Now\u2028it is.", "completed", "Be short.")
        assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens) == (10, 5, 15)
        image = {"type": "input_image", "image_url": PNG_URL, "detail": "low"}
        given = [
            {"role": "developer", "content": "Answer in verse."},
            {"role": "user", "content": "hi"},
            *first.output,
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}, image]},
        ]
        second = await ask(server, given, temperature=0.5)
        assert [item.type for item in second.output] == ["message"]
        one, two = (request.json for request in server.model.requests)
        assert one["messages"][0]["content"].endswith("Be short.")
        assert one.get("max_completion_tokens", one.get("max_tokens")) == 7
        assert two["messages"][0]["content"].endswith("Answer in verse.")
        assert [message["role"] for message in two["messages"][1:]] == ["user", "assistant", "user"]
        assert two["messages"][2]["content"] == "Now\u2028it is."
        assert PNG_URL in json.dumps(two["messages"][3])
        assert two["temperature"] == 0.5


@pytest.mark.parametrize("is_stream", [False, True])
async def test_tools_of_both_sides(monkeypatch, tmp_path, is_stream):
    """The result of the server's tool travels as encrypted reasoning, so that the model's next prompt only grows."""
    own = called(("own", "count_bottles", '{"shelf": "top shelf"}'))
    thinking = chunk({"reasoning_content": "Which shelf?"})
    wire = [
        sse([thinking, chunk({"content": "I count."}), *own]),
        sse(called(("a", "get_weather", '{"city": "Rome"}'))),
        sse(said("9, and sunny.")),
    ]
    async with serving_openai(monkeypatch, tmp_path, wire, toolkits=["cellar"]) as server:
        question = {"role": "user", "content": "how many, and how is the weather?"}
        more = {"tools": [WEATHER], "reasoning": {"effort": "low", "summary": "auto"}}
        if is_stream:
            listed, first = await stream(server, [question], **more)
            assert "".join(event.delta for event in listed if event.type == "response.output_text.delta") == "I count."
        else:
            first = await ask(server, [question], **more)
        kinds = [item.type for item in first.output if item.type != "reasoning"]
        assert (kinds, first.output_text, first.reasoning.summary) == (["message", "function_call"], "I count.", "auto")
        summaries = "".join(part.text for item in first.output if item.type == "reasoning" for part in item.summary)
        assert "Which shelf?" in summaries
        assert "Using count_bottles" in summaries
        call = first.output[-1]
        assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Rome"})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sun"}
        last = await ask(server, [question, *first.output, result], tools=[WEATHER])
        assert last.output_text == "9, and sunny."
        assert not [item for item in last.output if item.type == "reasoning" and item.summary]  # it was not asked for
        before, sent = (request.json["messages"] for request in server.model.requests[-2:])
        assert sent[: len(before)] == before
        assert [each["content"] for each in sent if each["role"] == "tool"] == ["9 bottles on top shelf", "sun"]
        bare = [item for item in first.output if item.type != "reasoning"]
        await ask(server, [question, *bare, result], tools=[WEATHER])
        sent = server.model.requests[-1].json["messages"]
        assert [each["content"] for each in sent if each["role"] == "tool"] == ["sun"]


async def test_every_event_is_one_of_the_sdk(monkeypatch, tmp_path):
    wire = [sse([chunk({"reasoning_content": "Hm."}), *said("Yes.")])]
    async with (
        serving_openai(monkeypatch, tmp_path, wire) as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        body = {"model": "openbb", "input": "is it?", "stream": True, "reasoning": {"summary": "auto"}}
        text = (await client.post("/responses", json=body)).text
        *blocks, done, end = text.split("\n\n")
        assert (done, end) == ("data: [DONE]", "")
        kinds = []
        for number, block in enumerate(blocks):
            name, data = block.split("\n")
            event = EVENT.validate_json(data.removeprefix("data: "))
            assert (name, event.sequence_number) == (f"event: {event.type}", number)
            kinds.append(event.type)
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


JSON = '{"name": "Rome", "rivers": ["Tiber"], "mayor": null}'


@pytest.mark.parametrize("api", ["chat", "responses", "chat stream", "responses stream"])
async def test_structured_answers(monkeypatch, tmp_path, api):
    """The SDK parses the answer. Text before a call and a wrong first try do not reach the client."""
    own = called(("own", "count_bottles", '{"shelf": "top"}'))
    wrong = sse(said('{"name": "Rome"}'))
    wire = [sse([chunk({"content": "I count."}), *own]), wrong, sse(said(JSON))]
    async with serving_openai(monkeypatch, tmp_path, wire, toolkits=["cellar"]) as server:
        client = server.client
        asked = {"model": "openbb", "messages": [{"role": "user", "content": "which city?"}], "response_format": City}
        wanted = {"model": "openbb", "input": "which city?", "text_format": City}
        match api:
            case "chat":
                parsed = (await client.chat.completions.parse(**asked)).choices[0].message.parsed
            case "responses":
                parsed = (await client.responses.parse(**wanted)).output_parsed
            case "chat stream":
                async with client.chat.completions.stream(**asked) as parts:
                    parsed = (await parts.get_final_completion()).choices[0].message.parsed
            case _:
                async with client.responses.stream(**wanted) as parts:
                    parsed = (await parts.get_final_response()).output_parsed
        assert parsed == City(name="Rome", rivers=["Tiber"], mayor=None)
        assert len(server.model.requests) == 3


async def test_any_object(monkeypatch, tmp_path):
    async with serving_openai(monkeypatch, tmp_path, [sse(said('```json\n{"a": 1}\n```'))]) as server:
        answer = await server.ask("x", response_format={"type": "json_object"})
        assert answer.choices[0].message.content == '{"a": 1}'
        assert (await ask(server, "x", text={"format": {"type": "json_object"}})).output_text == '{"a": 1}'
        assert (await ask(server, "x", text={"format": {"type": "text"}})).output_text.startswith("```")


@pytest.mark.parametrize("is_stream", [False, True])
async def test_an_answer_ends_before_a_stop(monkeypatch, tmp_path, is_stream):
    """The sequence may come in pieces; the model is not asked for more, and a tool after it does not run."""
    pieces = [chunk({"content": text}) for text in ("One. T", "wo. EN", "D Three.")]
    late = called(("late", "count_bottles", '{"shelf": "top"}'))
    wire = [sse([*pieces, *late]), sse(said("Four. E"))]
    async with serving_openai(monkeypatch, tmp_path, wire, toolkits=["cellar"]) as server:
        for text in ("One. Two. ", "Four. E"):
            answer = await server.ask("count", stop=["END", "never"], stream=is_stream)
            if is_stream:
                chunks = [piece async for piece in answer]
                content = "".join(piece.choices[0].delta.content or "" for piece in chunks)
                reason = chunks[-1].choices[0].finish_reason
            else:
                content, reason = answer.choices[0].message.content, answer.choices[0].finish_reason
            assert (content, reason) == (text, "stop")
        assert len(server.model.requests) == 2


@pytest.mark.parametrize("text", ['{"a": 2} END', '```json\n{"a": 2}\n```\nEND'])
async def test_a_structured_answer_ends_before_a_stop(monkeypatch, tmp_path, text):
    """The answer is what came before the sequence, never one of an earlier turn."""
    form = {"type": "json_object"}
    wire = [sse(said(text)), sse(said('{"a": EN'))]
    async with serving_openai(monkeypatch, tmp_path, wire) as server:
        earlier = [{"role": "user", "content": "x"}, {"role": "assistant", "content": '{"a": 1}'}]
        asked = {"model": "openbb", "messages": [*earlier, {"role": "user", "content": "y"}], "response_format": form}
        answer = await server.client.chat.completions.create(**asked, stop=["END"])
        assert answer.choices[0].message.content == '{"a": 2}'
        assert answer.usage.total_tokens
        with pytest.raises(openai.APIStatusError, match="does not fit the schema") as caught:
            await server.client.chat.completions.create(**asked, stop=["EN"])
        assert caught.value.status_code == 502


async def test_a_required_call(monkeypatch, tmp_path):
    wire = [sse(called(("a", "get_weather", '{"city": "Rome"}'))), sse(said("No."))]
    other = {**WEATHER, "name": "get_time"}
    async with serving_openai(monkeypatch, tmp_path, wire) as server:
        more = {"tools": [WEATHER, other], "tool_choice": {"type": "function", "name": "get_weather"}}
        answer = await ask(server, "weather?", **more)
        assert [item.name for item in answer.output if item.type == "function_call"] == ["get_weather"]
        sent = server.model.requests[0].json
        assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_weather"]
        assert sent["messages"][0]["content"].endswith("Your next message must call one of these tools: get_weather.")
        with pytest.raises(openai.APIStatusError, match="the model called no tool") as caught:
            await ask(server, "weather?", tools=[WEATHER], tool_choice="required")
        assert caught.value.status_code == 502


async def test_ends_of_an_answer(monkeypatch, tmp_path):
    cut = [chunk({"content": "It beg"}), chunk(finish="length"), usage()]
    half = raw(events([chunk({"content": "One, tw"})], is_done=False))
    broken = refusal(400, "no such thing")
    wire = [sse(cut), half, sse(said("One, two.")), broken, broken]
    async with serving_openai(monkeypatch, tmp_path, wire) as server:
        answer = await ask(server, "x", max_output_tokens=2)
        assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert answer.output_text == "It beg"
        assert (await ask(server, "count")).output_text == "One, two."
        with pytest.raises(openai.InternalServerError, match="no such thing"):
            await ask(server, "x")
        listed = [event async for event in await server.client.responses.create(model="openbb", input="x", stream=True)]
        assert listed[-1].type == "response.failed"
        assert (listed[-1].response.error.code, "no such thing" in listed[-1].response.error.message) == (
            "server_error",
            True,
        )


USER = {"role": "user", "content": "x"}
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "a", "output": "1"}
REFUSED = {
    "no model": ({"model": None}, "model"),
    "no input": ({"input": []}, "input"),
    "a memory": ({"previous_response_id": "resp_1"}, "previous_response_id"),
    "a job": ({"background": True}, "background"),
    "an unknown item": ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
    "an item of another type": ({"input": [5]}, "input[0]"),
    "an unknown part": ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0]"),
    "a call without an id": ({"input": [USER, {**CALL, "call_id": ""}]}, "input[1].call_id"),
    "a result without a call": ({"input": [USER, RESULT]}, "input[1].tool_call_id"),
    "two calls of one id": ({"input": [USER, CALL, CALL]}, "input[2].tool_calls"),
    "a tool of the vendor": ({"tools": [{"type": "web_search"}]}, "tools[0].name"),
    "a schema that is none": (
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": 5}}}},
        "text.format",
    ),
}


async def test_refused_requests(monkeypatch, tmp_path):
    async with (
        serving_openai(monkeypatch, tmp_path, []) as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        for name, (fields, param) in REFUSED.items():
            answer = await client.post("/responses", json={"model": "openbb", "input": "x", **fields})
            assert answer.status_code == 400, (name, answer.text)
            error = answer.json()["error"]
            assert (error["type"], error["param"]) == ("invalid_request_error", param), (name, error)
        assert not server.model.requests


ITEMS = (USER, {"role": "assistant", "content": "y"}, CALL, {**CALL, "call_id": "b"}, RESULT, {"type": "reasoning"})


@pytest.mark.parametrize("start", range(len(ITEMS)))
def test_any_items_give_a_well_formed_history(start):
    """Each call in the history has one result in the next message, whatever the client sent; or the request fails."""
    for second in ITEMS:
        for third in ITEMS:
            body = {"model": "openbb", "input": [USER, ITEMS[start], second, third]}
            try:
                turn = build_turn(ResponsesBody.parse(json.dumps(body).encode()).convert(), SIGNER)
            except RequestError:
                continue
            turn.history.apply(TurnStarted(message=turn.message))
            assert is_well_formed(turn.history.messages)
