"""The profile's models as a component's LLM: what is asked, what is answered, and what reaches the vendors' wires."""

import asyncio
import json
from pathlib import Path

import pytest
from goose_like_toolkits.components.bridges.conversation import BEGINNING, wire_names
from goose_like_toolkits.components.bridges.exchange import SpentError
from goose_like_toolkits.components.bridges.llm import infer
from goose_like_toolkits.components.surroundings import Surroundings
from hypothesis import given
from hypothesis import strategies as st

from goose_like.agent.budget import Budget
from goose_like.agent.journal import Journal
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits, ModelChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import MessageCompleted, TurnFinished, TurnStarted, UsageRecorded
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import Message, Usage
from goose_like.core.notifier import Recorder
from goose_like.core.tool import ToolError
from goose_like.providers import anthropic_wire, openai_wire
from goose_like.providers.base import Model, ModelPair, Request
from goose_like.providers.local import LocalProvider
from goose_like.providers.scripted import ScriptedProvider
from goose_like.providers.tagged_requests import TaggedRequest
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace
from tests.fakes import FAST_RETRIES, HEADER, FakeProvider, call, calls, is_well_formed
from tests.loopback import Loopback, answer, called, events, raw, refusal, said, sse, usage, wish, words
from tests.providers.vendor_rules import valid_for_anthropic, valid_for_openai
from tests.providers.vendors import ANTHROPIC, OPENAI, set_keys_only

WEATHER = {
    "name": "Weather_now",
    "description": "The weather of a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}


class Asking:
    """A view over one provider, and what was told meanwhile."""

    def __init__(self, provider, label="scripted:x", limits=Limits()):  # noqa: B008
        self.provider, self.recorder = provider, Recorder()
        self.session = Session(Path("unused"), "n", History()).detach(History())
        journal = Journal(self.session, self.recorder)
        journal.emit(HEADER)
        journal.emit(TurnStarted(message=Message.user("go")))
        model = Model(provider, label.partition(":")[2], label)
        budget = Budget(limits, self.session)
        view = ExchangeView(self.session, ModelPair(model, model), journal, budget)
        workspace = Workspace(Path(), mode="full", approval="yolo", notifier=self.recorder)
        self.around = Surroundings(workspace, self.session, view, budget, journal, str)

    async def infer(self, model="processor", /, **asked):
        return await infer(self.around, asked, model, FAST_RETRIES)


def played(*script):
    return Asking(FakeProvider(script))


def shape(request):
    """The messages as short lines."""
    lines = []
    for message in request.messages:
        lines += [f"{message.role}: {message.text}"] if message.text else []
        lines += [f"call {each.id} {each.name} {each.arguments}" for each in message.tool_calls]
        lines += [f"result {each.call_id}{' failed' * each.is_error} {each.output}" for each in message.tool_results]
    return lines


# --- what is asked


async def test_a_prompt_alone_is_enough():
    asking = played("hello")
    assert await asking.infer(prompt="hi") == {"role": "assistant", "content": "hello", "calls": None}
    (request,) = asking.provider.requests
    assert shape(request) == ["user: hi"]
    assert (request.system, request.tools, request.max_tokens, request.temperature) == ("", (), None, None)


async def test_history_messages_and_prompt_are_one_conversation():
    asking = played("fine")
    await asking.infer(
        history=[
            {"role": "system", "content": "be good"},
            {"role": "system", "content": "be short"},
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        ],
        messages=[
            {"role": "assistant", "content": "three"},
            {"role": "system", "content": "Assets: none"},
            {"role": "narrator", "content": "night falls"},
            {"role": "user", "content": None},
        ],
        prompt="and now?",
    )
    (request,) = asking.provider.requests
    assert request.system == "be good\n\nbe short"
    assert shape(request) == [
        "user: one\ntwo",
        "assistant: three",
        "user: [system]\nAssets: none\n\n[narrator]\nnight falls\n\nand now?",
    ]


async def test_system_words_alone_are_asked():
    asking = played("yes")
    await asking.infer(messages=[{"role": "system", "content": "say yes"}], prompt="")
    assert shape(asking.provider.requests[0]) == ["user: say yes"]
    assert asking.provider.requests[0].system == ""


async def test_calls_in_both_forms_and_their_results():
    asking = played("done")
    await asking.infer(
        functions=[WEATHER],
        messages=[
            {"role": "user", "content": "where is it warm?"},
            {"role": "assistant", "content": None, "function_call": {"name": "Weather_now", "arguments": '{"town":1}'}},
            {"role": "function", "name": "Weather_now", "content": "12"},
            {
                "role": "assistant",
                "content": "two at once",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "Weather_now", "arguments": '{"town": "A"}'}},
                    {"id": "b", "type": "function", "function": {"name": "Weather_now", "arguments": {"town": "B"}}},
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "warm"},
            {"role": "function", "name": "Elsewhere", "content": "lost"},
        ],
    )
    (request,) = asking.provider.requests
    assert shape(request) == [
        "user: where is it warm?",
        'call call_1 Weather_now {"town":1}',
        "result call_1 12",
        "assistant: two at once",
        'call a Weather_now {"town": "A"}',
        'call b Weather_now {"town": "B"}',
        f"result a failed {INTERRUPTED}",
        "result b warm",
        "user: [result of Elsewhere]\nlost",
    ]


async def test_without_functions_calls_are_words():
    asking = played("done")
    await asking.infer(
        messages=[
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "observation", "content": "12"},
        ]
    )
    assert shape(asking.provider.requests[0]) == [
        f"user: {BEGINNING}",
        "assistant: [called f with {}]",
        "user: [result]\n12",
    ]


ROLES = ("system", "user", "assistant", "function", "tool", "observation", "", "narrator")
ENTRIES = st.fixed_dictionaries(
    {"role": st.sampled_from(ROLES), "content": st.sampled_from([None, "", " ", "words", "\ud83d", "[]"])},
    optional={
        "name": st.sampled_from(["f", "g", None]),
        "tool_call_id": st.sampled_from(["a", "b", "call_1", None]),
        "function_call": st.just({"name": "f", "arguments": "{"}),
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {
                    "id": st.sampled_from(["a", "a", "a.b", "a:b", "call_2", "", None]),
                    "function": st.just({"name": "g"}),
                }
            ),
            max_size=3,
        ),
    },
)


@given(st.lists(ENTRIES, min_size=1, max_size=12), st.booleans())
async def test_whatever_was_said_in_whatever_order_is_a_sound_request(entries, has_functions):
    asking = played("ok")
    functions = [{"name": "f"}, {"name": "g"}] if has_functions else None
    await asking.infer(messages=entries, functions=functions)
    (request,) = asking.provider.requests
    assert is_well_formed(request.messages)
    assert request.messages[0].role == "user"
    assert request.messages[-1].role != "assistant"
    assert has_functions or not any(message.tool_calls for message in request.messages)
    assert not any(one.role == two.role for one, two in zip(request.messages, request.messages[1:], strict=False))
    assert valid_for_openai(json.loads(openai_wire.OpenAIEncoder().encode_request(request)))
    assert valid_for_anthropic(json.loads(anthropic_wire.AnthropicEncoder().encode_request(request, {"max_tokens": 9})))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "there is nothing to answer: give a `prompt`, or `messages`"),
        ({"prompt": 5}, "prompt: expected text, not 5"),
        ({"prompt": "x", "max_tokens": "20"}, "max_tokens: expected a valid integer, not '20'"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens: expected greater than 0, not 0"),
        ({"prompt": "x", "temperature": float("nan")}, "temperature"),
        ({"prompt": "x", "require_cost": "yes"}, "require_cost: expected a valid boolean, not 'yes'"),
        ({"messages": ["hello"]}, "messages.0: expected a mapping, not 'hello'"),
        ({"messages": [{"role": "user", "content": {"a": 1}}]}, "the content of a message is text, or a list"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "a list of parts with `text`"),
    ],
)
async def test_what_is_wrong_is_told_by_its_field(asked, told):
    asking = played("never")
    with pytest.raises(ToolError, match=told):
        await asking.infer(**asked)
    assert asking.provider.requests == []


# --- what is answered


async def test_calls_come_back_in_both_forms():
    made = calls(call("Weather_now", '{"town": "A"}', "c1"), call("Weather_now", "", "c2"))
    answer_ = await played(made).infer(prompt="?", functions=[WEATHER])
    first, second = answer_["calls"]
    assert first == {
        "name": "Weather_now",
        "arguments": '{"town": "A"}',
        "id": "c1",
        "type": "function",
        "function": {"name": "Weather_now", "arguments": '{"town": "A"}'},
    }
    assert json.loads(second["arguments"]) == {}
    assert answer_["content"] == ""


async def test_names_that_no_vendor_takes_go_there_and_back():
    long = "x" * 70
    names = ["天气_查询", "天气_预报", "a b", "a.b", f"{long}1", f"{long}2"]
    sent = wire_names(names)
    asking = played(calls(*(call(name, "{}", f"c{at}") for at, name in enumerate(sent))))
    answered = await asking.infer(prompt="?", tools=[{"type": "function", "function": {"name": n}} for n in names])
    assert [each["name"] for each in answered["calls"]] == names
    assert len({tool.name for tool in asking.provider.requests[0].tools}) == len(names)
    assert all(len(name) <= 64 for name in sent)


@given(st.lists(st.text(max_size=70), max_size=12))
def test_no_two_tools_have_one_name(names):
    made = wire_names(names)
    assert len({*made}) == len(names)
    assert all(0 < len(name) <= 64 and name.isascii() for name in made)


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        ({}, ["f", "g"]),
        ({"function_call": "auto"}, ["f", "g"]),
        ({"function_call": "none"}, []),
        ({"tool_choice": "none"}, []),
        ({"function_call": {"name": "g"}}, ["g"]),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, ["f"]),
        ({"tool_choice": {"type": "function", "function": None}}, ["f", "g"]),
    ],
)
async def test_which_functions_are_offered(choice, offered):
    asking = played("ok")
    functions = [{"name": "f"}, {"name": "g"}, {"name": "f", "description": "another"}]
    await asking.infer(prompt="?", functions=functions, **choice)
    assert [tool.name for tool in asking.provider.requests[0].tools] == offered


async def test_a_call_that_nobody_could_run_goes_back_to_the_model():
    asking = played(calls(call("Wether")), calls(call("Weather_now", "[1", "c2")), "in words")
    assert (await asking.infer(prompt="?", functions=[WEATHER]))["content"] == "in words"
    told = [request.messages[-1].tool_results[0].output for request in asking.provider.requests[1:]]
    assert told[0].startswith("no tool 'Wether'")
    assert "invalid JSON" in told[1]


async def test_tokens_and_cost_where_they_are_asked_for():
    reply = Message.assistant("ok")
    answered = await played(reply).infer(prompt="?", require_token_len=True, require_cost=True)
    assert (answered["input_token_len"], answered["output_token_len"], answered["cost"]) == (10, 5, 0.0)
    priced = await Asking(FakeProvider([reply]), "openai:gpt-4o").infer(prompt="?", require_cost=True)
    assert 0 < priced["cost"] < 0.01
    assert "input_token_len" not in priced
    unknown = await Asking(FakeProvider([reply]), "openai:nobody-knows-1").infer(prompt="?", require_cost=True)
    assert unknown["cost"] is None
    assert {"cost", "input_token_len"}.isdisjoint(await played(reply).infer(prompt="?", require_cost=False))


async def test_tokens_count_in_the_session_for_their_purpose():
    asking = played(Message.assistant("ok"))
    await asking.infer("accelerator", prompt="?")
    (told,) = (event for event in asking.recorder.events if isinstance(event, UsageRecorded))
    usage_ = Usage(input_tokens=10, output_tokens=5)
    assert told == UsageRecorded(model="scripted:x", usage=usage_, purpose="component", steps=1)


async def test_other_keys_come_back():
    kept = {"trace": {"id": [1, None]}, "知": "x"}
    answered = await played("ok").infer(prompt="?", top_p=0.5, **kept, content="mine", calls=1)
    assert answered == {**kept, "top_p": 0.5, "role": "assistant", "content": "ok", "calls": None}


async def test_stop_ends_the_answer():
    answered = await played("Thought: x\nObservation: y").infer(prompt="?", stop=["", "\nObservation:"])
    assert answered["content"] == "Thought: x"
    assert (await played("abc").infer(prompt="?", stop="z"))["content"] == "abc"


async def test_an_answer_cut_where_it_was_asked_for_is_one():
    cut = MessageCompleted(message=Message.assistant("half an"), is_cut=True)
    assert (await played([cut]).infer(prompt="?", max_tokens=2.0))["content"] == "half an"
    with pytest.raises(ToolError, match="cut at the model's output limit"):
        await played([cut]).infer(prompt="?")


async def test_nothing_is_asked_where_nothing_is_left_of_the_turn():
    asking = Asking(FakeProvider(["ok"]), limits=Limits(tokens=10))
    asking.session.history.apply(UsageRecorded(model="scripted:x", usage=Usage(input_tokens=10), purpose="another"))
    with pytest.raises(ToolError, match="nothing is left of this turn: the limit of 10 tokens; 10 are used"):
        await asking.infer(prompt="?")


async def test_each_request_is_a_step_of_the_turn():
    asking = Asking(FakeProvider(["ok"] * 9), limits=Limits(steps=3))
    answers = await asyncio.gather(*(asking.infer(prompt=str(at)) for at in range(5)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, SpentError)]
    assert (len(refused), len(asking.provider.requests), refused[0].exit_code) == (2, 3, 3)
    asking.session.history.apply(TurnFinished(reason="stop"))
    asking.session.history.apply(TurnStarted(message=Message.user("the next turn")))
    assert (await asking.infer(prompt="?"))["content"] == "ok"


async def test_a_limit_of_cost_holds():
    asking = Asking(FakeProvider(["ok", "ok"]), label="openai:gpt-5-mini", limits=Limits(cost_usd=0.01))
    assert (await asking.infer(prompt="?"))["content"] == "ok"
    spent = Usage(output_tokens=1_000_000)
    asking.session.history.apply(UsageRecorded(model="openai:gpt-5-mini", usage=spent, purpose="component"))
    with pytest.raises(SpentError, match=r"the limit of \$0.01; \$2.0000 is spent") as caught:
        await asking.infer(prompt="?")
    assert caught.value.exit_code == 4


async def test_a_limit_of_cost_needs_a_price():
    asking = Asking(FakeProvider(["ok"]), label="openai:of-unknown-price", limits=Limits(cost_usd=1))
    with pytest.raises(GooseLikeError, match="the price of openai:of-unknown-price is not known"):
        await asking.infer(prompt="?")
    assert asking.provider.requests == []


# --- the wires


@pytest.fixture
def keys(monkeypatch):
    set_keys_only(monkeypatch)


async def asked_of(vendor, responses, *, choice=None, **asked):
    """The answer, and what the server was sent."""
    is_warm = vendor is ANTHROPIC and "temperature" in asked
    odd_bodies = "only older models of Anthropic take a temperature; the SDK knows none" if is_warm else ""
    async with Loopback(responses, odd_bodies=odd_bodies) as server:
        url = server.base_url if vendor is OPENAI else server.base_url.removesuffix("/v1")
        provider = vendor.provider(vendor.choice(url, **(choice or {})))
        try:
            answered = await Asking(provider, f"{vendor.name}:m1").infer(**asked)
        finally:
            await provider.close()
        return answered, [request.json for request in server.requests]


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("vendor", "responses"),
    [
        (OPENAI, [sse([*called(("c1", "Weather_now", '{"town": "A"}')), usage()])]),
        (ANTHROPIC, [answer(words(0, "a moment"), wish(1, "c1", "Weather_now", '{"town":', ' "A"}'), stop="tool_use")]),
    ],
    ids=["openai", "anthropic"],
)
async def test_a_call_over_each_vendors_wire(vendor, responses):
    answered, (body,) = await asked_of(
        vendor, responses, prompt="?", functions=[WEATHER], max_tokens=50, temperature=0.25, require_token_len=True
    )
    assert [(each["name"], json.loads(each["arguments"])) for each in answered["calls"]] == [
        ("Weather_now", {"town": "A"})
    ]
    assert (answered["input_token_len"], answered["output_token_len"]) == (10, 5)
    assert (body["max_tokens"], body["temperature"]) == (50, 0.25)
    assert "Weather_now" in json.dumps(body["tools"])


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
async def test_a_cut_answer_over_each_vendors_wire(vendor):
    cut = raw(vendor.stream(*vendor.said("hel", "lo"), *vendor.last(vendor.cut)) + vendor.done)
    answered, _ = await asked_of(vendor, [cut], prompt="?", max_tokens=2)
    assert answered["content"] == "hello"


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
async def test_the_profiles_limit_holds(vendor):
    _, (body,) = await asked_of(
        vendor, [vendor.answer("ok")], choice={"max_output_tokens": 20}, prompt="?", max_tokens=500
    )
    assert body["max_tokens"] == 20


@pytest.mark.usefixtures("keys")
async def test_each_vendors_own_ways_with_a_temperature():
    _, (body,) = await asked_of(ANTHROPIC, [ANTHROPIC.answer("ok")], prompt="?", temperature=1.5)
    assert body["temperature"] == 1
    _, (body,) = await asked_of(OPENAI, [OPENAI.answer("ok")], choice={"temperature": 0.9}, prompt="?", temperature=0)
    assert body["temperature"] == 0
    refused = refusal(400, "Unsupported value: 'temperature' does not support 0 with this model.")
    answered, bodies = await asked_of(OPENAI, [refused, OPENAI.answer("ok")], prompt="?", temperature=0)
    assert answered["content"] == "ok"
    assert ["temperature" in body for body in bodies] == [True, False]


@pytest.mark.usefixtures("keys")
def test_a_model_that_thinks_is_sent_no_temperature():
    provider = ANTHROPIC.provider(ModelChoice(model="anthropic:claude-opus-5-5"))
    bare, asked = (
        provider._encode_body(Request("claude-opus-5-5", "", [Message.user("hi")], temperature=value))
        for value in (None, 0.5)
    )
    assert bare == asked


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_what_is_not_asked_for_changes_no_byte(vendor):
    provider = vendor.provider(vendor.choice("http://127.0.0.1:1"))
    plain = Request("m1", "be good", [Message.user("hi")])
    before = provider._encode_body(plain)
    assert (
        provider._encode_body(Request("m1", "be good", [Message.user("hi")], max_tokens=5, temperature=0.5)) != before
    )
    assert provider._encode_body(plain) == before
    assert b"temperature" not in before


def test_the_embedded_model_is_told_both():
    provider = LocalProvider(ModelChoice(model="local", temperature=0.7))
    plain = provider._build_body(TaggedRequest(Request("", "", [Message.user("hi")]), 0.7).plain)
    assert (plain["temperature"], plain["max_tokens"]) == (0.7, 2048)
    request = Request("", "", [Message.user("hi")], max_tokens=9, temperature=0.0)
    asked = provider._build_body(TaggedRequest(request, 0.7).plain)
    assert (asked["temperature"], asked["max_tokens"]) == (0.0, 9)
    assert provider._build_body(Request("", "", [], max_tokens=9_999))["max_tokens"] == 2048


@pytest.mark.usefixtures("keys")
async def test_a_model_without_tools_of_its_own_calls_too():
    text = json.dumps({"tool": "Weather_now", "arguments": {"town": "A"}})
    answered, (body,) = await asked_of(
        OPENAI,
        [raw(events([*said(text), usage()]))],
        choice={"tools": "constrained"},
        prompt="?",
        functions=[WEATHER],
        max_tokens=30,
    )
    assert answered["calls"][0]["name"] == "Weather_now"
    assert body["max_tokens"] == 30
    assert "Weather_now" in body["messages"][0]["content"]


async def test_a_script_keeps_to_the_limit(tmp_path):
    script = tmp_path / "s.yaml"
    script.write_text("- one two three\n- one two three\n")
    asking = Asking(ScriptedProvider(ModelChoice(model=f"scripted:{script}")))
    assert (await asking.infer(prompt="?", max_tokens=2))["content"] == "one two "
    assert (await asking.infer(prompt="?", max_tokens=3))["content"] == "one two three"
