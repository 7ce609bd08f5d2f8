"""Tests of chat completions with OpenAI's own SDK over loopback."""

import asyncio
import base64
import json

import pytest

pytest.importorskip("uvicorn")

import openai

from goose_like.config.profile import ModelChoice
from goose_like.config.profile_loader import load_profile
from tests.loopback import called, chunk, events, raw, refusal, said, sse, usage
from tests.serve.openai_server import serving_openai

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


async def test_models_are_the_profiles(monkeypatch, tmp_path):
    other = load_profile("openbb")[0].model_copy(update={"name": "other", "processor": ModelChoice(model="openai:n")})
    async with serving_openai(monkeypatch, tmp_path, [sse(said("hello"))], other) as server:
        assert [model.id async for model in server.client.models.list()] == ["openbb", "other"]
        assert (await server.client.models.retrieve("other")).id == "other"
        answer = await server.client.chat.completions.create(
            model="other", messages=[{"role": "user", "content": "hi"}]
        )
        assert (answer.model, answer.choices[0].message.content) == ("other", "hello")
        assert server.model.requests[0].json["model"] == "n"
        with pytest.raises(openai.NotFoundError, match="'opnbb' does not exist; this server offers: openbb, other"):
            await server.client.chat.completions.create(model="opnbb", messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.NotFoundError):
            await server.client.models.retrieve("opnbb")


def ask_in_a_thread(url):
    """Ask with the SDK's synchronous client, as one object and as a stream."""
    messages = [
        {"role": "system", "content": "Answer in verse."},
        {"role": "developer", "content": [{"type": "text", "text": "Be short."}]},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": "and "}, {"type": "text", "text": "now?"}]},
    ]
    with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client:
        more = {"temperature": 0.5, "max_tokens": 9, "max_completion_tokens": 7, "seed": 3, "top_p": 0.9}
        whole = client.chat.completions.create(model="openbb", messages=messages, **more)
        options = {"include_usage": True}
        chunks = list(
            client.chat.completions.create(model="openbb", messages=messages, stream=True, stream_options=options)
        )
    return whole, chunks


async def test_a_conversation_as_one_object_and_as_a_stream(monkeypatch, tmp_path):
    async with serving_openai(monkeypatch, tmp_path, [sse(said("Now\u2028it is."))]) as server:
        whole, chunks = await asyncio.to_thread(ask_in_a_thread, server.url)
        sent = server.model.requests[0].json
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Now\u2028it is.", "stop")
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens) == (10, 5, 15)
    assert sent["messages"][0]["content"].endswith("Answer in verse.\n\nBe short.")
    said_before = [(message["role"], message["content"]) for message in sent["messages"][1:]]
    assert [role for role, _ in said_before] == ["user", "assistant", "user"]
    assert "and now?" in json.dumps(said_before[-1]).replace('"}, {"type": "text", "text": "', "")
    assert (sent["temperature"], sent.get("max_completion_tokens", sent.get("max_tokens"))) == (0.5, 7)
    *pieces, end, counted = chunks
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "Now\u2028it is."
    assert end.choices[0].finish_reason == "stop"
    assert (counted.choices, counted.usage.total_tokens) == ([], 15)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_the_clients_tools(monkeypatch, tmp_path, is_stream):
    """Two calls at once, which the client runs; then the model reads both results."""
    calls = called(("a", "get_weather", '{"city": "Rome"}'), ("b", "get_weather", '{"city": "Oslo"}'))
    wire = [sse([chunk({"content": "I look."}), *calls]), sse(said("Sunny, then rain."))]
    async with serving_openai(monkeypatch, tmp_path, wire) as server:
        question = {"role": "user", "content": "how is the weather?"}
        if is_stream:
            stream = server.client.chat.completions.stream(model="openbb", messages=[question], tools=[WEATHER])
            async with stream as parts:
                answer = await parts.get_final_completion()
        else:
            answer = await server.ask(question, tools=[WEATHER])
        choice = answer.choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I look.")
        cities = [json.loads(call.function.arguments)["city"] for call in choice.message.tool_calls]
        assert (cities, {call.function.name for call in choice.message.tool_calls}) == (
            ["Rome", "Oslo"],
            {"get_weather"},
        )
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"{call.id}: {word}"}
            for call, word in zip(choice.message.tool_calls, ["sun", "rain"], strict=True)
        ]
        last = await server.ask(question, choice.message, *reversed(results), tools=[WEATHER])
        assert last.choices[0].message.content == "Sunny, then rain."
        first, second = (request.json for request in server.model.requests)
        assert [each["function"]["name"] for each in first["tools"]] == ["get_weather"]
        assert [message["content"] for message in second["messages"] if message["role"] == "tool"] == [
            "a: sun",
            "b: rain",
        ]


async def test_one_call_at_a_time(monkeypatch, tmp_path):
    """A client that wants one call gets the first; the model is told that the other one did not run."""
    calls = called(("a", "get_weather", '{"city": "Rome"}'), ("b", "get_weather", '{"city": "Oslo"}'))
    async with serving_openai(monkeypatch, tmp_path, [sse(calls), sse(said("Sunny."))]) as server:
        first = await server.ask("weather?", tools=[WEATHER], parallel_tool_calls=False)
        message = first.choices[0].message
        assert [call.id for call in message.tool_calls] == ["a"]
        result = {"role": "tool", "tool_call_id": "a", "content": "sun"}
        await server.ask("weather?", message, result, tools=[WEATHER], parallel_tool_calls=False)
        sent = [each for each in server.model.requests[-1].json["messages"] if each["role"] == "tool"]
        assert [each["tool_call_id"] for each in sent] == ["a", "b"]
        assert (sent[0]["content"], "interrupted" in sent[1]["content"]) == ("sun", True)


@pytest.mark.parametrize("keeps_details", [True, False])
async def test_work_of_the_server_before_a_call_of_the_client(monkeypatch, tmp_path, keeps_details):
    """The result of the server's tool returns with the client, if it sends back what it got."""
    own = called(("own", "count_bottles", '{"shelf": "top shelf"}'))
    wire = [sse(own), sse(called(("a", "get_weather", '{"city": "Rome"}'))), sse(said("9, and sunny."))]
    async with serving_openai(monkeypatch, tmp_path, wire, toolkits=["cellar"]) as server:
        first = await server.ask("how many, and how is the weather?", tools=[WEATHER])
        message = first.choices[0].message
        assert [call.function.name for call in message.tool_calls] == ["get_weather"]
        assert "Using count_bottles" in message.reasoning_content
        assert message.content is None
        back = message.model_dump(exclude_none=True)
        if not keeps_details:
            back = {key: value for key, value in back.items() if not key.startswith("reasoning")}
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sun"}
        last = await server.ask("how many, and how is the weather?", back, result, tools=[WEATHER])
        assert last.choices[0].message.content == "9, and sunny."
        sent = server.model.requests[-1].json["messages"]
        before = server.model.requests[-2].json["messages"]
        assert (sent[: len(before)] == before) is keeps_details  # so that the vendor's cache works
        results = [each["content"] for each in sent if each["role"] == "tool"]
        assert results == (["9 bottles on top shelf", "sun"] if keeps_details else ["sun"])
        changed = json.loads(json.dumps(back))
        changed["content"] = "I never said so."
        await server.ask("how many, and how is the weather?", changed, result, tools=[WEATHER])
        sent = server.model.requests[-1].json["messages"]
        assert [each["content"] for each in sent if each["role"] == "tool"] == ["sun"]


async def test_the_servers_tools_in_a_stream(monkeypatch, tmp_path):
    """Progress is reasoning, tables are Markdown, and the answer stays apart; the next turn knows the results."""
    own = called(
        ("x", "count_bottles", '{"shelf": "none"}'),
        ("y", "draw_shelf", "{}"),
        ("z", "count_bottles", '{"shelf": "top"}'),
    )
    wire = [sse([chunk({"content": "I count."}), *own]), sse(said("Three.")), sse(said("As before."))]
    async with serving_openai(monkeypatch, tmp_path, wire, toolkits=["cellar"]) as server:
        chunks = [piece async for piece in await server.ask("how many?", stream=True)]
        deltas = [piece.choices[0].delta for piece in chunks]
        content = "".join(delta.content or "" for delta in deltas)
        head, table, tail = content.split("\n\n", 1)[0], content, content.rsplit("\n\n", 1)[1]
        assert (head, "| Rioja | 3 |" in table, tail) == ("I count.", True, "Three.")
        lines = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas).splitlines()
        assert lines[0] == 'Using count_bottles {"shelf": "none"}'
        assert lines.count("count_bottles failed") == 1
        assert lines.count("+ Rioja") == 1
        assert "there is no such shelf" not in "".join(lines)
        (details,) = (delta.reasoning_details for delta in deltas if hasattr(delta, "reasoning_details"))
        answer = {"role": "assistant", "content": content, "reasoning_details": details}
        await server.ask("how many?", answer, "and now?")
        sent = server.model.requests[-1].json["messages"]
        assert [message["content"] for message in sent if message["role"] == "tool"][-1] == "3 bottles on top"
        assert "show_table" not in json.dumps(server.model.requests[0].json["tools"])  # of the Workspace


async def test_images_reach_the_model(monkeypatch, tmp_path):
    async with serving_openai(monkeypatch, tmp_path, [sse(said("A dot."))]) as server:
        image = {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}}
        message = {"role": "user", "content": [{"type": "text", "text": "what is it?"}, image]}
        answer = await server.ask(message, {"role": "assistant", "content": "A dot."}, "sure?")
        assert answer.choices[0].message.content == "A dot."
        assert PNG_URL in server.model.requests[0].body.decode()
        for url in ("https://example.com/x.png", "data:image/png;base64,%%%", "data:image/png;base64,aGVsbG8="):
            bad = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
            with pytest.raises(openai.BadRequestError, match=r"messages\[0\]: ") as caught:
                await server.ask(bad)
            assert caught.value.code.startswith("invalid_image")


async def test_ends_of_an_answer(monkeypatch, tmp_path):
    cut = [chunk({"content": "It beg"}), chunk(finish="length"), usage()]
    broken = refusal(400, "no such thing")
    loop = sse(called(("x", "count_bottles", '{"shelf": "a"}')))
    wire = [sse(cut), broken, broken, *[loop] * 30]
    async with serving_openai(monkeypatch, tmp_path, wire, toolkits=["cellar"]) as server:
        answer = await server.ask("x", max_tokens=2)
        assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("length", "It beg")
        with pytest.raises(openai.InternalServerError, match="no such thing") as caught:
            await server.ask("x")
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert caught.value.body["type"] == "server_error"
        with pytest.raises(openai.APIError, match="no such thing"):
            [piece async for piece in await server.ask("x", stream=True)]
        answer = await server.ask("x")
        assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == (
            "length",
            "Stopped: the limit of 24 steps.",
        )


async def test_an_answer_that_breaks_off_and_begins_again(monkeypatch, tmp_path):
    half = raw(events([chunk({"content": "One, tw"})], is_done=False))
    whole = sse(said("One, two."))
    async with serving_openai(monkeypatch, tmp_path, [half, whole, half, whole]) as server:
        assert (await server.ask("count")).choices[0].message.content == "One, two."
        pieces = [piece.choices[0].delta.content or "" async for piece in await server.ask("count", stream=True)]
        assert "".join(pieces) == "One, tw\n\n(The answer broke off here and begins again.)\n\nOne, two."
