"""The profile's models as a component's cerebrum: what the model is sent, what it may call, what comes of it."""

import asyncio
import json
import uuid
from contextlib import asynccontextmanager

import pytest
from goose_like_toolkits.components.bridges.cerebrum import interact
from goose_like_toolkits.components.bridges.conversation import BEGINNING, GO_ON, wire_names
from goose_like_toolkits.components.bridges.plugin_calls import Plugin
from goose_like_toolkits.components.surroundings import Surroundings
from hypothesis import given
from hypothesis import strategies as st

from goose_like.agent.budget import Budget
from goose_like.agent.journal import Journal
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits, ModelChoice
from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, SessionStarted, SubagentEvent, TurnStarted, UsageRecorded
from goose_like.core.history import INTERRUPTED
from goose_like.core.message import Message, Usage
from goose_like.core.notifier import Recorder
from goose_like.core.tool import ToolError, current_call
from goose_like.providers import anthropic_wire, openai_wire
from goose_like.providers.base import Model, ModelPair
from goose_like.providers.scripted import ScriptedProvider
from goose_like.providers.xml_tool_calls import XmlCallFormat, build_grammar
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace
from tests.fakes import FAST_RETRIES, PAUSE, FakeProvider, call, calls, is_well_formed
from tests.loopback import Loopback, answer, called, raw, sse, usage, wish, words
from tests.providers.vendor_rules import valid_for_anthropic, valid_for_openai
from tests.providers.vendors import ANTHROPIC, OPENAI, set_keys_only

DISK = Plugin.read(
    {
        "name": "disk",
        "prompt": "disk reads files.",
        "commands": [
            {
                "command_name": "read",
                "description": "Read a file.",
                "parameter": {"type": {"path": {"type": "string"}}},
            },
            {"command_name": "say", "description": "Say it.", "parameter": {"type": "string"}},
        ],
    }
)


class Head:
    """A brain in a session's running turn."""

    def __init__(self, provider, session, label="scripted:x", limits=Limits()):  # noqa: B008
        self.provider, self.session, self.recorder = provider, session, Recorder()
        model = Model(provider, label.partition(":")[2], label)
        journal = Journal(session, self.recorder)
        journal.emit(SessionStarted(version="0", name="n", cwd="/", profile="p", models={"processor": label}, tools=()))
        journal.emit(TurnStarted(message=Message.user("go")))
        journal.emit(MessageCompleted(message=calls(call("chat_talk", "{}", "call_7"))))
        workspace = Workspace(session.folder, mode="full", approval="yolo", notifier=journal)
        budget = Budget(limits, session)
        view = ExchangeView(session, ModelPair(model, model), journal, budget)
        self.around = Surroundings(workspace, session, view, budget, journal, str)

    async def interact(self, *plugins, **asked):
        return await interact(self.around, asked, plugins, retry_policy=FAST_RETRIES)

    @property
    def lines(self):
        """The newest request's messages as short lines."""
        lines = []
        for message in self.provider.requests[-1].messages:
            lines += [f"call {each.id} {each.name} {each.arguments}" for each in message.tool_calls]
            lines += [
                f"result {each.call_id}{' failed' * each.is_error} {each.output}" for each in message.tool_results
            ]
            lines += [f"{message.role}: {message.text}"] if message.text else []
        return lines


@asynccontextmanager
async def thinking(*script, **how):
    session = Session.temporary()
    try:
        yield Head(FakeProvider(script), session, **how)
    finally:
        session.close()


def message(sender, content, receiver=None, **more):
    return {"sender": {"role": sender, **more}, "receiver": receiver, "content": content}


def made(command, param, **more):
    content = {"command": command, "param": param, **more}
    return message("cerebrum", content, {"role": "plugin", "name": "disk"})


def gave(command, response, **more):
    return message("plugin", {"command": command, "response": response, **more}, {"role": "cerebrum"}, name="disk")


# --- what is sent


async def test_all_that_may_be_asked():
    async with thinking("fine") as head:
        answered = await head.interact(
            DISK,
            instructions=["Be good.", "", "Be short."],
            command="Now answer.",
            content="It rains.",
            message_history=[message("user", "hello"), message("cerebrum", "hi"), message("user", "how is it?")],
        )
        assert answered == {"content": "fine", "plugin_calls": None, "plugin_call": None}
        (request,) = head.provider.requests
        assert request.system == "Be good.\n\nBe short.\n\ndisk reads files."
        assert [tool.name for tool in request.tools] == ["disk_read", "disk_say"]
        assert head.lines == ["user: hello", "assistant: hi", "user: how is it?\n\nIt rains.\n\nNow answer."]


async def test_nothing_at_all_is_asked():
    async with thinking("hello") as head:
        assert (await head.interact())["content"] == "hello"
        assert head.lines == [f"user: {BEGINNING}"]
        assert head.provider.requests[0].system == ""


async def test_prompts_that_the_instructions_hold_are_not_said_twice():
    async with thinking("fine") as head:
        await head.interact(DISK, instructions="Use these:\ndisk reads files.\nGo.")
        assert head.provider.requests[0].system == "Use these:\ndisk reads files.\nGo."


async def test_calls_and_their_responses():
    async with thinking("done") as head:
        await head.interact(
            DISK,
            message_history=[
                message("cerebrum", "welcome"),
                message("user", "read both"),
                message("cerebrum", "I shall."),
                made("read", {"path": "a"}, id="x"),
                made("read", {"path": "b"}, id="y"),
                made("say", "word"),
                gave("read", {"text": "B"}, id="y"),
                gave("say", None),
                gave("read", "A"),
            ],
        )
        assert head.lines == [
            f"user: {BEGINNING}",
            "assistant: welcome",
            "user: read both",
            'call x disk_read {"path": "a"}',
            'call y disk_read {"path": "b"}',
            'call call_3 disk_say {"param": "word"}',
            "assistant: I shall.",
            "result x A",
            'result y {"text": "B"}',
            "result call_3 ",
        ]


async def test_a_call_without_its_sender_is_one():
    """Older copilots of `component new` keep what a message manager gives them, which names no sender."""
    async with thinking("done") as head:
        call_ = {**made("read", {"path": "a"}, id="x"), "sender": None}
        await head.interact(DISK, message_history=[message("user", "read"), call_, gave("read", "A", id="x")])
        assert head.lines == ["user: read", 'call x disk_read {"path": "a"}', "result x A"]


async def test_what_else_may_come_of_a_call():
    async with thinking("done") as head:
        await head.interact(
            DISK,
            message_history=[
                message("user", "go"),
                made("read", {"path": "a"}),
                message("system", {"error": "KeyError", "detail": "'a'"}, {"role": "cerebrum"}),
                made("read", {"path": "b"}),
                message("plugin", {"asset_id": "big", "field_path": None}, name="disk"),
                made("read", {"path": "c"}),
                message("user", "stop that"),
                made("look", None),
                message("plugin", {"command": "look"}, name="disk"),
                gave("read", "too late"),
                message("plugin", "a word", name="clock"),
                message("system", {"error": "E"}),
                message("interactor", "x", name="auto"),
                {"sender": "user", "receiver": None, "content": ["a", 1]},
                {"content": "who?"},
                {},
            ],
            content="Well?",
        )
        assert head.lines == [
            "user: go",
            'call call_1 disk_read {"path": "a"}',
            """result call_1 failed {"error": "KeyError", "detail": "'a'"}""",
            'call call_2 disk_read {"path": "b"}',
            "result call_2 [it is in the asset asset://big]",
            'call call_3 disk_read {"path": "c"}',
            f"result call_3 failed {INTERRUPTED}",
            "user: stop that",
            "call call_4 disk_look {}",
            "result call_4 (it gave no response)",
            "user: [result of disk_read]\ntoo late\n\n[plugin clock]\na word\n\n"
            '[system]\n{"error": "E"}\n\n[interactor auto]\nx\n\n["a", 1]\n\n[system]\nwho?\n\nWell?',
        ]


async def test_without_plugins_calls_are_words():
    async with thinking("done") as head:
        await head.interact(message_history=[made("read", {"path": "a"}), gave("read", "A"), message("cerebrum", "A")])
        assert head.lines == [
            f"user: {BEGINNING}",
            'assistant: [called disk_read with {"path": "a"}]',
            "user: [result of disk_read]\nA",
            "assistant: A",
            f"user: {GO_ON}",
        ]


async def test_assets_are_listed_last():
    async with thinking("done", "done", "done") as head:
        assets = [
            {"asset_id": "s", "asset_type": "summary", "description": None, "content": "long ago"},
            {"asset_id": "t", "asset_type": "table", "content": [{"n": at} for at in range(1000)]},
            *({"asset_id": str(at), "content": "word " * 1500} for at in range(4)),
            {"asset_id": "m", "asset_type": "model"},
        ]
        await head.interact(content="Well?", assets=assets)
        (line,) = head.lines
        table = json.dumps(assets[1]["content"])
        said, _, listed = line.partition("\n\n")
        assert said == "user: Well?"
        assert [json.loads(each) for each in listed.splitlines()[1:]] == [
            {"asset_id": "s", "asset_type": "summary", "content": "long ago"},
            {"asset_id": "t", "asset_type": "table", "content": table[:600], "characters": len(table)},
            *({"asset_id": str(at), "content": "word " * 1500} for at in range(3)),
            {"asset_id": "3", "content": json.dumps("word " * 1500)[:600], "characters": 7502},
            {"asset_id": "m", "asset_type": "model"},
        ]
        await head.interact(DISK, message_history=[made("say", "x"), gave("say", "y")], assets={"s": assets[0]})
        assert head.lines[-2:] == ["result call_1 y", f"user: {head.lines[-1].removeprefix('user: ')}"]
        assert head.lines[-1].startswith("user: The assets")
        await head.interact(assets=[{"asset_id": str(at)} for at in range(60)])
        assert head.lines[0].endswith('{"asset_id": "59"}\n(and 10 older ones)')


SENDERS = st.sampled_from(["cerebrum", "plugin", "user", "system", "", None])
PARTIES = st.none() | SENDERS | st.fixed_dictionaries({"role": SENDERS}, optional={"name": st.just("disk")})
COMMANDS = st.fixed_dictionaries(
    {"command": st.sampled_from(["read", "say", "x", "", 5, None])},
    optional={
        "param": st.sampled_from([None, {}, {"path": "a"}, "word", [1]]),
        "response": st.sampled_from([None, {}, "text", 5]),
        "id": st.sampled_from(["a", 1, None, "call_1", "a.b", "a:b", "x" * 99]),
        "error": st.just("E"),
    },
)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"sender": PARTIES, "receiver": PARTIES, "content": st.none() | st.text(max_size=5) | COMMANDS}
)


@given(st.lists(MESSAGES, max_size=10), st.booleans())
async def test_whatever_was_said_in_whatever_order_is_a_sound_request(history, has_plugins):
    async with thinking("ok") as head:
        await head.interact(*[DISK] * has_plugins, message_history=history)
        sent = head.provider.requests[0].messages
        assert is_well_formed(sent)
        assert sent[0].role == "user"
        assert sent[-1].role != "assistant"
        assert has_plugins or not any(each.tool_calls for each in sent)
        (request,) = head.provider.requests
        assert valid_for_openai(json.loads(openai_wire.OpenAIEncoder().encode_request(request)))
        assert valid_for_anthropic(
            json.loads(anthropic_wire.AnthropicEncoder().encode_request(request, {"max_tokens": 9}))
        )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"instructions": [1]}, r"instructions\.0: expected text, not 1"),
        ({"command": 5}, "command: expected text, not 5"),
        ({"message_history": "hello"}, "message_history: expected a valid list, not 'hello'"),
        ({"assets": 5}, "assets"),
        ({"require_cost": 1}, "require_cost"),
        ({"max_tokens": "20"}, "max_tokens: expected a valid integer, not '20'"),
        ({"temperature": float("inf")}, "temperature.*not inf"),
    ],
)
async def test_what_is_wrong_is_told_by_its_field(asked, told):
    async with thinking("never") as head:
        with pytest.raises(ToolError, match=told):
            await head.interact(**asked)
        assert head.provider.requests == []


# --- what else is wished of the answer


async def test_a_caller_bounds_the_answer_and_its_temperature():
    async with thinking("fine", "fine") as head:
        await head.interact(command="Go on.", max_tokens=20, temperature=0.25, top_k=3, purpose={"of": "the caller"})
        await head.interact(command="Go on.", max_tokens=None)
        assert [(asked.max_tokens, asked.temperature) for asked in head.provider.requests] == [(20, 0.25), (None, None)]


async def test_wishes_hold_in_all_requests_of_an_interaction():
    async with thinking(calls(call("disk_read", "{}")), calls(call("disk_read", '{"path": "a"}', "c2"))) as head:
        answered = await head.interact(DISK, command="Read.", max_tokens=9.0, temperature=0)
        assert answered["plugin_call"]["param"] == {"path": "a"}
        assert [(asked.max_tokens, asked.temperature) for asked in head.provider.requests] == [(9, 0)] * 2


async def test_a_temperature_that_the_vendor_refuses_is_left_out():
    refused = ProviderError("HTTP 400: 'temperature' does not support 0.2 with this model")
    async with thinking(refused, calls(call("disk_read", "{}")), "fine") as head:
        assert (await head.interact(DISK, command="Go on.", temperature=0.2))["content"] == "fine"
        assert [asked.temperature for asked in head.provider.requests] == [0.2, None, None]
    async with thinking(refused) as head:
        with pytest.raises(ToolError, match="temperature"):
            await head.interact(command="Go on.")


async def test_an_answer_that_is_cut_where_it_was_asked_for_is_one():
    cut = MessageCompleted(message=Message.assistant("half an"), is_cut=True)
    async with thinking([cut], [cut]) as head:
        assert (await head.interact(command="Go on.", max_tokens=2))["content"] == "half an"
        with pytest.raises(ToolError, match="cut at the model's output limit"):
            await head.interact(command="Go on.")
    nothing = BrokenStreamError("used up before the answer began; raise max_output_tokens", is_retryable=False)
    async with thinking(nothing) as head:
        with pytest.raises(ToolError, match="raise `max_tokens`"):
            await head.interact(command="Go on.", max_tokens=2)


async def test_a_call_that_is_cut_goes_back_as_a_wrong_one():
    half = MessageCompleted(message=calls(call("disk_read", '{"path": "')), is_cut=True)
    async with thinking([half], "in words, then") as head:
        assert (await head.interact(DISK, command="Read.", max_tokens=5))["content"] == "in words, then"
        assert "failed" in head.lines[-1]
    async with thinking(*[[half]] * 5) as head:
        with pytest.raises(ToolError, match=r"same failing call.*`max_tokens`"):
            await head.interact(DISK, command="Read.", max_tokens=5)


# --- what is called


async def test_calls_come_back_with_ids_of_our_own():
    wanted = calls(
        call("disk_read", '{"path": "a"}', "toolu_1"), call("disk_say", '{"param": "b"}', "toolu_2"), text="x"
    )
    async with thinking(wanted) as head:
        answered = await head.interact(DISK, content="read it")
        first, second = answered["plugin_calls"]
        assert uuid.UUID(first.pop("id")) != uuid.UUID(second.pop("id"))
        assert first == {"plugin_name": "disk", "command": "read", "param": {"path": "a"}}
        assert second == {"plugin_name": "disk", "command": "say", "param": "b"}
        assert answered["plugin_call"] is answered["plugin_calls"][0]
        assert answered["content"] == "x"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("disk_read", '{"file": "a"}'), "wrong arguments for disk_read: the parameter: "),
        (call("disk_read", '{"path": '), "wrong arguments for disk_read: invalid JSON"),
        (call("disk_say", "{}"), "wrong arguments for disk_say: the parameter: None is not of type 'string'"),
        (call("disk_reed", "{}"), "no tool 'disk_reed'; did you mean 'disk_read'"),
    ],
)
async def test_a_wrong_call_goes_back(wrong, told):
    right = call("disk_read", '{"path": "a"}', "right")
    async with thinking(calls(wrong), calls(right)) as head:
        answered = await head.interact(DISK, content="read it")
        assert [each["param"] for each in answered["plugin_calls"]] == [{"path": "a"}]
        (result,) = head.provider.requests[1].messages[-1].tool_results
        assert (result.is_error, told in result.output) == (True, True), result.output


async def test_beside_a_wrong_call_the_right_one_is_run():
    wrong = call("disk_read", '{"file": "a"}', "wrong")
    async with thinking(calls(call("disk_say", '{"param": "b"}', "right"), wrong)) as head:
        (made,) = (await head.interact(DISK, content="read it"))["plugin_calls"]
        assert (made["command"], made["param"]) == ("say", "b")


async def test_plugins_of_any_name():
    query = [{"command_name": "查询"}]
    plugins = [Plugin.read({"name": name, "commands": query}) for name in ("天气", "时间")]
    _, second = wire_names(["天气_查询", "时间_查询"])
    async with thinking(calls(call(second, "{}", "c1"))) as head:
        plugin_call = (await head.interact(*plugins, content="?"))["plugin_call"]
        assert (plugin_call["plugin_name"], plugin_call["command"]) == ("时间", "查询")


# --- what it takes


async def test_tokens_and_cost_where_they_are_asked_for():
    wrong = calls(call("disk_read", "{}"))
    async with thinking(wrong, Message.assistant("ok"), label="openai:gpt-4o") as head:
        answered = await head.interact(DISK, content="?", require_token_len=True, require_cost=True)
        assert (answered["input_token_len"], answered["output_token_len"]) == (20, 10)
        assert 0 < answered["cost"] < 0.01
    async with thinking(Message.assistant("ok"), label="openai:nobody-knows-1") as head:
        answered = await head.interact(content="?", require_cost=True)
        assert answered["cost"] is None
        assert "input_token_len" not in answered


async def test_tokens_count_in_the_session_and_it_is_heard_within():
    async with thinking(Message.assistant("ok")) as head:
        current_call.set("call_7")
        await head.interact(content="?")
        told = [event for event in head.recorder.events if isinstance(event, UsageRecorded)]
        spent = Usage(input_tokens=10, output_tokens=5)
        assert told == [UsageRecorded(model="scripted:x", usage=spent, purpose="component", steps=1)]
        assert head.session.history.usage.turn_by_model["scripted:x"] == spent
        assert {event.call_id for event in head.recorder.events if isinstance(event, SubagentEvent)} == {"call_7"}
        assert [message.text for message in head.session.history.messages] == ["go", ""]


async def test_the_turns_limits_hold():
    async with thinking(Message.assistant("ok"), "never", limits=Limits(tokens=5_000)) as head:
        head.provider.usage = Usage(input_tokens=4_000, output_tokens=1_000)
        await head.interact(content="?")
        with pytest.raises(ToolError, match="nothing is left of this turn: the limit of 5,000 tokens; 5,000 are"):
            await head.interact(content="?")
    wrong = [calls(call("disk_read", "{}"))] * 3
    async with thinking(*wrong, limits=Limits(steps=3)) as head:
        with pytest.raises(ToolError, match="nothing is left of this turn: the limit of 3 steps in the whole run"):
            await head.interact(DISK, content="?")
        assert len(head.provider.requests) == 2


async def test_what_goes_wrong_is_told():
    async with thinking(ProviderError("HTTP 400: no")) as head:
        with pytest.raises(ToolError, match=r"the model gave no answer \(error\): HTTP 400: no"):
            await head.interact(content="?")
    cut = MessageCompleted(message=Message.assistant("half"), is_cut=True)
    async with thinking([cut]) as head:
        with pytest.raises(ToolError, match="cut at the model's output limit"):
            await head.interact(content="?")


async def test_cancelling_it_stops_the_model():
    async with thinking([PAUSE]) as head:
        work = asyncio.create_task(head.interact(content="?"))
        for _ in range(100):
            await asyncio.sleep(0)
        assert head.provider.opened == 1
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        for _ in range(100):
            await asyncio.sleep(0)
        assert head.provider.streams_closed == 1


async def test_a_history_longer_than_the_window_is_made_shorter():
    history = [message("user" if at % 2 else "cerebrum", f"{at} " + "word " * 4000) for at in range(200)]
    async with thinking("done") as head:
        await head.interact(message_history=history, content="Well?")
        sent = "".join(each.text for each in head.provider.requests[0].messages)
        assert len(sent) < 600_000
        assert sent.endswith("Well?")


# --- models


async def test_a_scripted_conversation(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(
        "- calls: [{tool: disk_read, arguments: {path: a}}]\n- {text: it says A, expect: '^A$', usage: {input: 9}}\n"
    )
    session = Session.temporary()
    head = Head(ScriptedProvider(ModelChoice(model=f"scripted:{script}")), session)
    history = [message("user", "read a")]
    plugin_call = (await head.interact(DISK, message_history=history))["plugin_call"]
    history += [made(plugin_call["command"], plugin_call["param"], id=plugin_call["id"])]
    history += [gave("read", "A", id=plugin_call["id"])]
    answered = await head.interact(DISK, message_history=history, require_token_len=True)
    assert (answered["content"], answered["input_token_len"]) == ("it says A", 9)
    session.close()


OPENAI_CALL = sse([*called(("vendors-own", "disk_read", '{"path": "a"}')), usage()])
ANTHROPIC_CALL = answer(words(0, "a moment"), wish(1, "vendors-own", "disk_read", '{"path": "a"}'), stop="tool_use")
TOLD_CALL = sse([*OPENAI.said(json.dumps({"tool": "disk_read", "arguments": {"path": "a"}})), *OPENAI.last("stop")])


@pytest.mark.parametrize(
    ("vendor", "choice", "response"),
    [
        (OPENAI, {}, OPENAI_CALL),
        (OPENAI, {"tools": "constrained"}, TOLD_CALL),
        (ANTHROPIC, {}, ANTHROPIC_CALL),
    ],
    ids=["openai", "told in words", "anthropic"],
)
async def test_over_each_vendors_wire(monkeypatch, vendor, choice, response):
    set_keys_only(monkeypatch)
    session = Session.temporary()
    async with Loopback([response, raw(vendor.whole("it says A"))]) as server:
        url = server.base_url if vendor is OPENAI else server.base_url.removesuffix("/v1")
        provider = vendor.provider(vendor.choice(url, **choice))
        head = Head(provider, session, f"{vendor.name}:m1")
        history = [message("user", "read a")]
        answered = await head.interact(DISK, instructions=["Be good."], message_history=history, require_cost=True)
        plugin_call = answered["plugin_call"]
        assert (plugin_call["command"], plugin_call["param"]) == ("read", {"path": "a"})
        assert "vendors-own" not in json.dumps(answered)
        assert vendor.name not in json.dumps(answered)
        history += [made("read", {"path": "a"}, id=plugin_call["id"]), gave("read", "THE RESULT", id=plugin_call["id"])]
        assert (await head.interact(DISK, instructions=["Be good."], message_history=history))["content"] == "it says A"
        await provider.close()
        first, second = (request.body.decode() for request in server.requests)
        assert "Be good." in first
        assert "THE RESULT" in second
        assert plugin_call["id"] in second or choice
    session.close()


async def test_the_embedded_models_form_can_say_it():
    async with thinking("ok") as head:
        await head.interact(DISK, content="?")
        tools = head.provider.requests[0].tools
        assert "<disk_read" in build_grammar(tools)
        form = XmlCallFormat(tools)
        read = form.parse_call(form.format_call("disk_say", '{"param": "word"}'))
        assert (read.name, read.value) == ("disk_say", {"param": "word"})
