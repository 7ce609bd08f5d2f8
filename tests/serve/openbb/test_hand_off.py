"""Tests of work before a hand-off to the client, which comes back with the client's next request."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from goose_like.core.events import (
    Compacted,
    Event,
    PlanUpdated,
    StateSaved,
    Task,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED, PROMPT_STATE_KEY, History
from goose_like.core.message import Image, Message, RedactedThinking, Text, Thinking, ToolCall
from goose_like.core.tool import tool
from goose_like.serve.openbb.history import (
    Conversation,
    build_conversation,
)
from goose_like.serve.openbb.query import (
    Query,
)
from goose_like.serve.openbb.response import EventWriter
from goose_like.serve.state import StateSigner
from goose_like.toolkit import Toolkit
from tests.fakes import HEADER, ExchangeHarness, FakeToolkit, is_well_formed
from tests.serve.openbb.conversations import LISTED, ONE, SIGNER, TIERS, TWO, list_sources, start_turn, summarize
from tests.serve.request_bodies import ai, build_query, data, human
from tests.serve.sse_reader import read_events


@tool(remote=True)
def get_widget_data(widget_uuid: str) -> None:
    """Gives a widget's data."""


def look(at: str) -> str:
    """Looks."""
    return f"saw {at}"


class Client:
    """A client that records the conversation and answers calls; each request gets an exchange of its own."""

    def __init__(self, folder: Any, dialect: str, *messages: dict[str, Any], records_text: bool = False) -> None:
        self.folder, self.dialect, self.messages, self.records_text = folder, dialect, [*messages], records_text
        self.harnesses: list[ExchangeHarness] = []
        self.events: list[Event] = []

    def query(self) -> Query:
        return build_query(*self.messages, widgets=LISTED if self.dialect == "copilot" else TIERS)

    def build_conversation(self) -> Conversation:
        return build_conversation(self.query(), SIGNER)

    async def ask(self, *script: Any, toolkits: Sequence[Toolkit] = ()) -> History:
        """Run one request and return its history as the exchange left it."""
        conversation = self.build_conversation()
        folder = self.folder / str(len(self.harnesses))
        harness = ExchangeHarness(script, look, get_widget_data, folder=folder, toolkits=toolkits)
        harness.session.history = conversation.history
        harness.journal.emit(HEADER)
        self.harnesses.append(harness)
        await harness.exchange.reply(conversation.message)
        harness.session.close()
        self.events = harness.recorder.events
        return conversation.history

    def hand_off(self, conversation: History | Conversation, *answers: str) -> None:
        """Send the newest open calls, or those that wait, to the client; it answers with its next request."""
        if isinstance(conversation, Conversation):
            sent = EventWriter(self.query(), conversation, SIGNER).write_calls(conversation.pending_calls)
        else:
            writer = EventWriter(self.query(), Conversation(conversation, Message.user("")), SIGNER)
            writer.write(self.events)
            sent = writer.finish(TurnFinished(reason="handed_off"))
        call = read_events(sent)[-1][1]
        state = call.pop("extra_state", {})
        if self.records_text:
            self.messages += [ai("said "), ai("before")]
        self.messages.append(ai(json.dumps(call)))
        if self.dialect == "copilot":
            self.messages.append(data(answers[0]))
        else:
            found = [{"items": [{"content": answer}]} for answer in answers]
            self.messages.append({"role": "tool", **call, "data": found, "extra_state": state})


def widget_call(uuid: str, id: str) -> ToolCall:
    return ToolCall(id=id, name="get_widget_data", arguments=json.dumps({"widget_uuid": uuid}))


def assistant(*parts: Any) -> Message:
    return Message(role="assistant", parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


LOOK = ToolCall(id="toolu_1", name="look", arguments='{"at": "it"}')
THOUGHT = Thinking(text="I think.", signature="signed")
dialects = pytest.mark.parametrize("dialect", ["copilot", "workspace"])


@dialects
@pytest.mark.parametrize("records_text", [False, True])
async def test_local_calls_and_thinking_come_back_as_they_were(tmp_path, dialect, records_text):
    client = Client(tmp_path, dialect, human("a"), records_text=records_text)
    first = await client.ask(
        assistant(THOUGHT, "said before", LOOK), assistant(RedactedThinking(data="x"), widget_call(ONE, "toolu_2"))
    )
    client.hand_off(first, "1")
    conversation = client.build_conversation()
    assert conversation.history.messages == first.messages
    assert conversation.history.context.messages == first.context.messages
    assert list(conversation.history.open_calls) == ["toolu_2"]
    second = await client.ask(assistant(widget_call(TWO, "toolu_3")))
    client.hand_off(second, "2")
    assert client.build_conversation().history.messages == second.messages
    third = await client.ask("done")
    assert third.messages[: len(second.messages)] == second.messages
    assert summarize(third.messages) == [
        ("user", "a"),
        ("assistant", "said before look"),
        ("tool", "saw it"),
        ("assistant", "get_widget_data"),
        ("tool", "1"),
        ("assistant", "get_widget_data"),
        ("tool", "2"),
        ("assistant", "done"),
    ]
    client.messages += [ai("done"), human("b")]
    assert summarize(client.build_conversation().history.messages) == summarize(third.messages)


async def test_what_another_agent_said_before_a_call_stands_before_it(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(assistant("mine", widget_call(ONE, "c1")))
    client.hand_off(history, "1")
    client.messages[1:1] = [ai("theirs", agent_id="prices"), ai("mine", agent_id="me")]
    assert summarize(client.build_conversation().history.messages) == [
        ("user", "a"),
        ("assistant", "theirs"),
        ("assistant", "mine get_widget_data"),
    ]


@dialects
async def test_thinking_is_kept_while_the_words_before_it_are_the_same(tmp_path, dialect):
    client = Client(tmp_path, dialect, human("a"))
    history = await client.ask(assistant(THOUGHT, widget_call(ONE, "c1")))
    client.hand_off(history, "1")
    conversation = client.build_conversation()
    assert conversation.history.messages[1].parts[0] == THOUGHT
    assert conversation.history.state[PROMPT_STATE_KEY] == history.state[PROMPT_STATE_KEY]
    client.messages += [ai("b"), human("c")]  # the dashboard stands with these words now, no more with the first
    assert not any(isinstance(part, Thinking) for m in client.build_conversation().history.messages for part in m.parts)


async def test_thinking_after_another_prompt_is_sent_no_more(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(assistant(THOUGHT, widget_call(ONE, "c1")))
    client.events.append(StateSaved(toolkit=PROMPT_STATE_KEY, value="another"))
    client.hand_off(history, "1")
    await client.ask("done")
    [request] = client.harnesses[-1].provider.requests
    assert not any(isinstance(part, Thinking) for message in request.messages for part in message.parts)


async def test_a_call_at_a_time_where_the_client_takes_no_more(tmp_path):
    client = Client(tmp_path, "copilot", human("a"))
    history = await client.ask(assistant(widget_call(ONE, "c1"), LOOK, widget_call(TWO, "c2")))
    client.hand_off(history, "1")
    conversation = client.build_conversation()
    assert [wanted.id for wanted in conversation.pending_calls] == ["c2"]
    assert list_sources(conversation, client.query()) == ["One"]
    client.hand_off(conversation, "2")
    conversation = client.build_conversation()
    assert conversation.pending_calls == ()
    assert conversation.history.messages == history.messages
    assert list_sources(conversation, client.query()) == ["One", "Two"]
    assert start_turn(conversation).messages[-1].tool_results[1].output == "saw it"
    assert summarize(start_turn(conversation).messages)[-1] == ("tool", "1 | saw it | 2")
    assert summarize((await client.ask("done")).messages)[-1] == ("assistant", "done")


async def test_calls_that_go_together_are_answered_together(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(assistant(widget_call(ONE, "c1"), widget_call(TWO, "c2")))
    client.hand_off(history, "1", "2")
    conversation = client.build_conversation()
    assert conversation.pending_calls == ()
    assert summarize(start_turn(conversation).messages)[-1] == ("tool", "1 | 2")


async def test_waiting_calls_without_what_was_sent_along_are_interrupted(tmp_path):
    client = Client(tmp_path, "copilot", human("a"))
    client.hand_off(await client.ask(assistant(widget_call(ONE, "c1"), widget_call(TWO, "c2"))), "1")
    client.messages += [human("b")]
    assert summarize(client.build_conversation().history.messages)[-1] == ("tool", f"1 | {INTERRUPTED}")


@dialects
@pytest.mark.parametrize(
    "forge", [lambda s: s[:-8], lambda s: "A" + s[1:], lambda s: StateSigner(b"f").sign({}, "a"), {}.get]
)
async def test_what_is_forged_cut_or_foreign_is_as_if_it_were_not_there(tmp_path, dialect, forge):
    client = Client(tmp_path, dialect, human("a"))
    client.hand_off(await client.ask(assistant(LOOK), assistant(widget_call(ONE, "toolu_2"))), "1")
    text = json.dumps(client.messages)
    [state] = {word for word in text.replace("\\", "").split('"') if len(word) > 100}
    client.messages = json.loads(text.replace(state, forge(state) or "null"))
    assert summarize(start_turn(client.build_conversation()).messages) == [
        ("user", "a"),
        ("assistant", "get_widget_data"),
        ("tool", "1"),
    ]


async def test_what_was_sent_along_with_other_words_is_not_taken(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    client.hand_off(await client.ask(assistant(LOOK), assistant(widget_call(ONE, "c2"))), "1")
    client.messages[0] = human("b")
    assert summarize(start_turn(client.build_conversation()).messages)[1:] == [
        ("assistant", "get_widget_data"),
        ("tool", "1"),
    ]


async def test_a_client_that_repeats_itself_does_not_repeat_ids(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    client.hand_off(await client.ask(assistant(LOOK), assistant(widget_call(ONE, "c2"))), "1")
    client.messages += [ai("b"), *client.messages]
    history = start_turn(client.build_conversation())
    assert is_well_formed(history.messages)
    assert [c.id for m in history.messages for c in m.tool_calls] == ["toolu_1", "c2", "call_3"]


async def test_reminders_plan_state_and_summary_come_back(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(
        "done?", assistant(widget_call(ONE, "c2")), toolkits=[FakeToolkit(before_finish=lambda: "Look again.")]
    )
    client.events += [StateSaved(toolkit="notes", value=[1]), PlanUpdated(tasks=(Task(description="t"),))]
    start = next(index for index, event in enumerate(client.events) if isinstance(event, TurnStarted))
    client.events.insert(start + 1, Compacted(summary="What was said.", kept_count=1))
    client.hand_off(history, "1")
    conversation = client.build_conversation().history
    assert conversation.messages == history.messages
    assert summarize(conversation.messages)[1:3] == [("assistant", "done?"), ("system", "Look again.")]
    assert (conversation.state["notes"], conversation.plan) == ([1], (Task(description="t"),))
    assert [message.first_text for message in conversation.context.messages[:2]] == ["What was said.", "a"]


async def test_a_picture_that_a_tool_made_here_is_named(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(assistant(LOOK), assistant(widget_call(ONE, "c2")))
    image = Image(name="a.png", media_type="image/png", source="a.png")
    client.events = [
        ToolFinished(result=event.result.model_copy(update={"images": (image,)}))
        if isinstance(event, ToolFinished)
        else event
        for event in client.events
    ]
    client.hand_off(history, "1")
    [result] = client.build_conversation().history.messages[2].tool_results
    assert (result.output, result.images) == ("saw it\n[its picture is not kept]", ())


async def test_a_call_whose_first_part_is_gone_is_taken_as_it_was_recorded(tmp_path):
    client = Client(tmp_path, "copilot", human("a"))
    client.hand_off(await client.ask(assistant(widget_call(ONE, "c1"), widget_call(TWO, "c2"))), "1")
    client.hand_off(client.build_conversation(), "2")
    del client.messages[1:3]
    assert summarize(start_turn(client.build_conversation()).messages) == [
        ("user", "a"),
        ("assistant", "get_widget_data"),
        ("tool", "2"),
    ]
