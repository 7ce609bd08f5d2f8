"""Tests of small models behind llama-server, which write their calls as tags, as the embedded model does."""

import json
from dataclasses import replace
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, Part, ToolCall, ToolResult, ToolSpec
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Request
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.presets import load_presets
from tests.loopback import Loopback, said, sse
from tests.providers.vendors import REQUEST, set_keys_only

SHELL = replace(
    REQUEST.tools[0],
    schema={
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout_s": {"type": "number"}},
        "required": ["command"],
    },
)
WRITE = ToolSpec(
    name="write",
    description="Write a file.",
    schema={"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
    has_long_arguments=True,
)
ANY_SCHEMA = {"type": "object", "properties": {}}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


def create_class(name: str) -> type[OpenAIProvider]:
    return OpenAIProvider.for_preset(load_presets()[name])


async def ask(request: Request, answer: str, **how: Any) -> tuple[dict[str, Any], MessageCompleted]:
    """Return the body that the server got, and the message that was made of its answer."""
    async with Loopback([sse(said(answer))]) as server:
        choice = ModelChoice(model="llama-server:small", base_url=server.base_url, tools="tags", **how)
        provider = create_class("llama-server")(choice)
        deltas = [delta async for delta in provider.stream(request)]
        await provider.close()
        (asked,) = server.requests  # no probe
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    return asked.json, done


def repeat_steps(count: int) -> Request:
    messages = [Message.user("go")]
    for number in range(count):
        part: Part = ToolResult(call_id=str(number), output="no such file", is_error=True)
        call = ToolCall(id=str(number), name="shell", arguments='{"command": "cat a"}')
        messages += [Message.assistant("", (call,)), Message(role="tool", parts=(part,))]
    return replace(REQUEST, messages=messages, tools=(SHELL,))


async def test_a_grammar_and_the_closing_tag_hold_the_model_to_one_call() -> None:
    body, done = await ask(replace(REQUEST, tools=(SHELL,)), "<shell>\nls -l\n")
    assert "tools" not in body
    assert body["grammar"].startswith(r'root ::= "<shell" ">\n" anything | "<finish" ">\n" anything')
    assert body["stop"] == ["</shell>", "</finish>"]
    assert body["temperature"] == 0
    assert body["dry_multiplier"] > 0
    system, *_ = body["messages"]
    assert "<shell>\nthe command\n</shell>" in system["content"]
    (call,) = done.message.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("shell", {"command": "ls -l"})


async def test_repeated_steps_are_left_out_and_raise_the_temperature() -> None:
    body, _ = await ask(repeat_steps(3), "<finish>\nfine", temperature=0.2)
    assert [message["role"] for message in body["messages"][1:]] == ["user", "assistant", "user"]
    assert body["temperature"] == 1.0
    body, done = await ask(repeat_steps(1), "<finish>\nfine", temperature=0.2)
    assert body["temperature"] == 0.2
    assert done.message.text == "fine"


@pytest.mark.parametrize(
    ("task", "can_write"),
    [
        ("How many lines in a.py contain TODO?", False),
        ("which file is the largest?\n", False),
        ("What is wrong with a.py? Fix it.", True),
        ("Why is the sum wrong, and could you mend it?", True),
        ("a.py crashes. Why?", True),
        ("Sort a.txt", True),
        ("Where does a.py write its log, and who reads it?", False),
        ("Why does a.py note nothing?", False),
        ("How about adding a test for parse() in test_a.py?", True),
        ("What about a README?", True),
        ("what  if x were y?", True),
        ("Why not rename x in a.py to y?", True),
        ("Why isn't there a README?", True),
        ("Why don\u2019t we rename x?", True),
        ("How can we make a.py faster?", True),
        ("When is it done, please write it into notes.txt?", True),
        ("Which file is the largest and write its name to b.txt?", True),
        ("How long is a.py, then save it in b.txt?", True),
    ],
)
async def test_a_question_allows_no_call_that_writes_a_file(task: str, can_write: bool) -> None:
    messages = [Message.user("Sort a.txt"), Message.assistant("done"), Message.user(task)]
    body, _ = await ask(replace(REQUEST, messages=messages, tools=(SHELL, WRITE)), "<finish>\nfine")
    assert ("<write" in body["grammar"]) is can_write
    assert "<write>" in body["messages"][0]["content"]  # the prompt stays the same


async def test_requests_without_tools_get_no_grammar() -> None:
    plain = replace(REQUEST, tools=())
    body, done = await ask(plain, "<b>bold</b>")
    assert not body.keys() & {"grammar", "stop"}
    assert done.message.text == "<b>bold</b>"
    body, _ = await ask(replace(plain, answer_schema=ANY_SCHEMA), "{}")
    assert "grammar" not in body
    assert body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("name", ["ollama", "lmstudio", "vllm"])
def test_other_servers_take_no_grammar(name: str) -> None:
    error = create_class(name).find_setup_error(ModelChoice(model=f"{name}:m", tools="tags"))
    assert "write `tools: constrained`" in str(error)


def test_an_unknown_server_may_be_llama_server() -> None:
    choice = ModelChoice(model="openai:m", base_url="http://127.0.0.1:8080/v1", tools="tags")
    assert "`llama-server:MODEL`" in str(OpenAIProvider.find_setup_error(choice))


@pytest.mark.parametrize("provider", [AnthropicProvider, OpenAIProvider])
def test_the_models_of_vendors_need_no_tags(
    provider: type[AnthropicProvider | OpenAIProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    error = provider.find_setup_error(ModelChoice(model="vendor:m", tools="tags"))
    assert "remove `tools: tags`" in str(error)
