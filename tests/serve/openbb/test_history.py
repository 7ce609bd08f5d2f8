"""Tests of conversations, complete or damaged, that become a history."""

import copy
import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.events import PlanUpdated, StateSaved, Task
from goose_like.core.history import INTERRUPTED, PROMPT_STATE_KEY, History
from goose_like.core.images import save_image
from goose_like.core.message import Image, Message, RedactedThinking, Text, Thinking, ToolCall
from goose_like.core.tool import tool
from goose_like.serve.openbb.client_tools import to_client_call
from goose_like.serve.openbb.history import (
    EMPTY_MESSAGE,
    MISSING_START,
    NO_NEW_MESSAGE,
    Conversation,
    build_conversation,
)
from goose_like.serve.openbb.prompt import NO_DATA, format_client_context
from goose_like.serve.openbb.query import (
    AgentMessage,
    DataItem,
    FunctionCall,
    FunctionResult,
    Outcome,
    Query,
    UserMessage,
)
from goose_like.serve.openbb.request import RequestError, parse_query
from goose_like.serve.openbb.state import StateSigner, build_turn_state
from goose_like.toolkit import Toolkit
from tests.fakes import HEADER, ExchangeHarness, FakeToolkit, is_well_formed
from tests.serve.request_bodies import ai, any_body, build_query, call, data, human, load_body, load_query

SIGNER = StateSigner(b"k" * 32)
ONE, TWO = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
LISTED = [{"uuid": ONE, "name": "One"}, {"uuid": TWO, "name": "Two"}]
TIERS = {"primary": [widget | {"origin": "o", "widget_id": widget["name"]} for widget in LISTED]}


def summarize(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """List roles and texts, with names of calls and outputs of results."""
    return [
        (message.role, " ".join([message.first_text, *(c.name for c in message.tool_calls)]).strip())
        if message.role != "tool"
        else ("tool", " | ".join(one.output for one in message.tool_results))
        for message in messages
    ]


def start_turn(folded: Conversation) -> History:
    """Start the turn, as the exchange does, and return the history."""
    history = copy.deepcopy(folded.history)
    history._start_turn(folded.message)
    return history


def converse(*messages: dict[str, Any], **fields: Any) -> Conversation:
    return build_conversation(build_query(*messages, **fields), SIGNER)


# --- conversations that are whole


def test_the_seeds_conversation():
    query = load_query("seed_followup")
    conversation = build_conversation(query, SIGNER)
    assert summarize(conversation.history.messages) == [
        ("user", "What is the current stock price of AAPL?"),
        ("assistant", "get_widget_data"),
    ]
    [wanted] = conversation.history.open_calls.values()
    assert (wanted.id, json.loads(wanted.arguments)) == (
        "call_1",
        {"widget_uuid": "38181a68-9650-4940-84fb-a3f29c8869f3"},
    )
    assert conversation.history.last_turn.reason == "handed_off"
    [result] = conversation.message.tool_results
    assert result.call_id == "call_1"
    assert json.loads(result.output)[0]["close"] == 233.85
    [source] = conversation.sources
    assert (source.name, source.uuid) == ("Historical Stock Price", "38181a68-9650-4940-84fb-a3f29c8869f3")


def test_people_and_answers():
    conversation = build_conversation(load_query("seed_conversation"), SIGNER)
    assert summarize(conversation.history.messages) == [
        ("user", "Hi there."),
        ("assistant", "Hi there, I'm a copilot. How are you?"),
    ]
    assert conversation.message == Message.user("I'm fine, thank you. What is the weather in Tokyo?")
    assert (conversation.pending_calls, conversation.sources, conversation.images) == ((), (), ())


def test_the_dashboard_stands_with_the_persons_last_words_only():
    conversation = converse(human("a"), ai("b"), human("c"), call(ONE), data("d"), widgets=LISTED)
    first, _, last, _ = conversation.history.messages
    assert first == Message.user("a")
    assert last.first_text == "c"
    assert ONE in last.parts[1].text


@pytest.mark.parametrize(
    ("name", "outputs", "errors"),
    [
        ("today_followup", ['[{"symbol":"MSFT","price":417.32}]'], [False]),
        ("today_doubly_encoded", ['[{"symbol":"MSFT","price":417.32}]'], [False]),
        ("today_object_call", ['[{"symbol":"MSFT","price":417.32}]'], [False]),
        (
            "today_two_sources",
            ['[{"symbol":"MSFT","price":417.32}]', "fetch_failed: the news feed is down"],
            [False, True],
        ),
        ("today_urls", ["[pdf report.pdf at https://example.com/report.pdf, not fetched]"], [False]),
        ("today_status", ['2 filings\n\n{"filings":["10-K","10-Q"]}'], [False]),
        ("today_refused", ["error: the server is not connected"], [True]),
        ("today_error", ["timeout: the backend took too long"], [True]),
        ("today_more_data", ["\n\n".join(['[{"symbol":"MSFT","price":417.32}]'] * 2)], [False]),
        ("today_less_data", ['[{"symbol":"MSFT","price":417.32}]', NO_DATA], [False, True]),
    ],
)
def test_each_call_has_its_outcome(name, outputs, errors):
    conversation = build_conversation(load_query(name), SIGNER)
    results = conversation.message.tool_results
    assert [result.call_id for result in results] == list(conversation.history.open_calls)
    assert [result.output for result in results] == outputs
    assert [result.is_error for result in results] == errors


def test_a_tool_of_the_client_has_its_own_name():
    [wanted] = build_conversation(load_query("today_status"), SIGNER).history.open_calls.values()
    assert (wanted.name, wanted.arguments) == ("list_filings", '{"ticker": "MSFT"}')


def test_files_and_pictures(tmp_path):
    conversation = build_conversation(load_query("today_files"), SIGNER)
    [result] = conversation.message.tool_results
    assert result.output == (
        "[pdf report.pdf, 19 bytes, which can't be read here]\n\n[rows.csv]\na,b\n1,2\n\n\n[notes.md]\n# Notes\n"
    )
    [(picture, source)] = conversation.images
    assert picture.startswith(b"\x89PNG")
    assert result.images == (save_image(picture, source, tmp_path),)


def test_sources_are_those_since_the_person_spoke():
    messages = [human("a"), call(ONE), data("1"), ai("b"), human("c"), call(TWO), data("2")]
    assert [source.name for source in converse(*messages, widgets=LISTED).sources] == ["Two"]
    assert converse(*messages[:5], widgets=LISTED).sources == ()
    [price] = build_conversation(load_query("today_two_sources"), SIGNER).sources  # of what failed nothing is cited
    assert (price.origin, price.widget_id) == ("OpenBB Sandbox", "stock_price_quote")
    assert price.arguments == {"symbol": "MSFT", "fields": "price"}
    [page] = build_conversation(load_query("today_urls"), SIGNER).sources
    assert page.citations[0]["source_info"]["name"] == "Example"


def test_an_answer_that_another_agent_gave_is_gone_on_from():
    conversation = converse(human("a"), ai("b", agent_id="prices"))
    assert summarize(conversation.history.messages) == [("user", "a"), ("assistant", "b")]
    assert conversation.message == Message.user(NO_NEW_MESSAGE)


def test_a_task_of_the_orchestrator_is_what_to_reply_to():
    conversation = build_conversation(load_query("today_orchestration"), SIGNER)
    assert conversation.message.first_text == "Find the newest price of MSFT."
    assert "Stock price" in conversation.message.parts[1].text


# --- conversations that are damaged


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (
            [human("a"), call(), human("b")],
            [("user", "a"), ("assistant", "get_widget_data"), ("tool", INTERRUPTED), ("user", "b")],
        ),
        ([human("a"), human("b")], [("user", "a"), ("user", "b")]),
        ([ai("a"), human("b")], [("user", MISSING_START), ("assistant", "a"), ("user", "b")]),
        ([ai("a")], [("user", MISSING_START), ("assistant", "a"), ("user", NO_NEW_MESSAGE)]),
        ([ai(""), human("a")], [("user", "a")]),
        ([human(" ")], [("user", EMPTY_MESSAGE)]),
        ([human("a"), data("1")], [("user", "a"), ("assistant", "get_widget_data"), ("tool", "1")]),
        ([data("1")], [("user", MISSING_START), ("assistant", "get_widget_data"), ("tool", "1")]),
        (
            [human("a"), call()],
            [("user", "a"), ("assistant", "get_widget_data"), ("tool", INTERRUPTED), ("user", NO_NEW_MESSAGE)],
        ),
        (
            [human("a"), call(), data("1"), data("2")],
            [
                ("user", "a"),
                ("assistant", "get_widget_data"),
                ("tool", "1"),
                ("assistant", "get_widget_data"),
                ("tool", "2"),
            ],
        ),
        (
            [human("a"), call(), call(), data("1"), ai("b"), ai("c"), human("d")],
            [
                ("user", "a"),
                ("assistant", "get_widget_data"),
                ("tool", INTERRUPTED),
                ("assistant", "get_widget_data"),
                ("tool", "1"),
                ("assistant", "b"),
                ("assistant", "c"),
                ("user", "d"),
            ],
        ),
        (
            [human("a"), call(), data("1"), human("b")],
            [("user", "a"), ("assistant", "get_widget_data"), ("tool", "1"), ("user", "b")],
        ),
        (
            [human("a"), ai("b"), ai("c"), call(), data("1")],
            [("user", "a"), ("assistant", "b\n\nc get_widget_data"), ("tool", "1")],
        ),
    ],
)
def test_damaged_conversations(messages, expected):
    history = start_turn(converse(*messages))
    assert summarize(history.messages) == expected
    assert is_well_formed(history.messages)


words = st.sampled_from(["", "a", '{"function": "f"}'])
states = st.just("") | st.text(max_size=5) | st.integers(0, 3).map(lambda n: SIGNER.sign(_state(n), "a"))
arguments = st.sampled_from(
    [{}, {"widget_uuid": ONE}, {"data_sources": [{"widget_uuid": ONE}, {"id": "Two"}]}, {"data_sources": [1]}]
)
functions = st.sampled_from(["get_widget_data", "execute_agent_tool", "f", ""])
outcomes = st.lists(st.builds(Outcome, items=st.lists(st.builds(DataItem, content=words, kind=words)).map(tuple)))
messages = st.one_of(
    st.builds(UserMessage, text=words),
    st.builds(AgentMessage, text=words, agent_id=words),
    st.builds(FunctionCall, function=functions, arguments=arguments, state=states),
    st.builds(FunctionResult, function=functions, arguments=arguments, outcomes=outcomes.map(tuple), state=states),
)


def _state(number: int) -> dict[str, Any]:
    """Build a state that another version or another conversation might have left."""
    wanted = [ToolCall(id=f"c{n}", name="get_widget_data", arguments="{}") for n in range(number)]
    message = Message(role="assistant", parts=(Thinking(text="t", signature="s"), *wanted))
    return {"messages": [message.model_dump(mode="json")], "requested_calls": number, "history_digest": "other"}


@given(st.lists(messages, min_size=1, max_size=12), st.sampled_from(["copilot", "workspace"]))
def test_any_query_folds_into_a_well_formed_history(said, dialect):
    check_conversation(Query(dialect=dialect, messages=tuple(said)))


@given(any_body)
def test_whatever_is_read_folds(text):
    try:
        query = parse_query(text)
    except RequestError:
        return
    check_conversation(query)
    json.dumps([source.model_dump() for source in build_conversation(query, SIGNER).sources], allow_nan=False)


def check_conversation(query: Query) -> None:
    conversation = build_conversation(query, SIGNER)
    assert conversation == build_conversation(query, SIGNER)
    assert conversation.message.parts
    assert all(message.parts for message in conversation.history.messages)
    history = start_turn(conversation)
    assert is_well_formed(history.messages)
    assert len(history.call_ids) == sum(len(message.tool_calls) for message in history.messages)
    assert not history.open_calls
    for message in history.messages:
        message.model_dump_json()


# --- what an exchange did before a hand-off comes back


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
        return conversation.history

    def hand_off(self, history: History, waiting: Sequence[ToolCall] = (), *answers: str) -> None:
        """Send the call to the client, which returns the answers with its next request."""
        opened = [wanted for wanted in history.open_calls.values() if history.is_open(wanted.id)]
        calls = [*waiting] or opened
        wanted = to_client_call(calls, self.query())
        state = SIGNER.sign(build_turn_state(history, len(opened) - len(calls) + wanted.count), self.last_user_text)
        written = {"function": wanted.function, "input_arguments": wanted.arguments}
        if self.records_text:
            self.messages += [ai("said "), ai("before")]
        if self.dialect == "copilot":
            self.messages += [ai(json.dumps(written | {"goose_like": state})), data(answers[0])]
        else:
            found = [{"items": [{"content": answer}]} for answer in answers]
            given = {"role": "tool", **written, "data": found, "extra_state": {"goose_like": state}}
            self.messages += [ai(json.dumps(written)), given]

    @property
    def last_user_text(self) -> str:
        return [message["content"] for message in self.messages if message["role"] == "human"][-1]


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
    client.hand_off(first, (), "1")
    conversation = client.build_conversation()
    assert conversation.history.messages == first.messages
    assert conversation.history.context == first.context
    assert list(conversation.history.open_calls) == ["toolu_2"]
    second = await client.ask(assistant(widget_call(TWO, "toolu_3")))
    client.hand_off(second, (), "2")
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
    client.hand_off(history, (), "1")
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
    client.hand_off(history, (), "1")
    conversation = client.build_conversation()
    assert conversation.history.messages[1].parts[0] == THOUGHT
    assert conversation.history.state[PROMPT_STATE_KEY] == history.state[PROMPT_STATE_KEY]
    client.messages += [ai("b"), human("c")]  # the dashboard stands with these words now, no more with the first
    assert not any(isinstance(part, Thinking) for m in client.build_conversation().history.messages for part in m.parts)


async def test_thinking_after_another_prompt_is_sent_no_more(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(assistant(THOUGHT, widget_call(ONE, "c1")))
    history.apply(StateSaved(toolkit=PROMPT_STATE_KEY, value="another"))
    client.hand_off(history, (), "1")
    await client.ask("done")
    [request] = client.harnesses[-1].provider.requests
    assert not any(isinstance(part, Thinking) for message in request.messages for part in message.parts)


async def test_a_call_at_a_time_where_the_client_takes_no_more(tmp_path):
    client = Client(tmp_path, "copilot", human("a"))
    history = await client.ask(assistant(widget_call(ONE, "c1"), LOOK, widget_call(TWO, "c2")))
    client.hand_off(history, (), "1")
    conversation = client.build_conversation()
    assert [wanted.id for wanted in conversation.pending_calls] == ["c2"]
    assert [source.name for source in conversation.sources] == ["One"]
    client.hand_off(conversation.history, conversation.pending_calls, "2")
    conversation = client.build_conversation()
    assert conversation.pending_calls == ()
    assert conversation.history.messages == history.messages
    assert [source.name for source in conversation.sources] == ["One", "Two"]
    assert start_turn(conversation).messages[-1].tool_results[1].output == "saw it"
    assert summarize(start_turn(conversation).messages)[-1] == ("tool", "1 | saw it | 2")
    assert summarize((await client.ask("done")).messages)[-1] == ("assistant", "done")


async def test_calls_that_go_together_are_answered_together(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(assistant(widget_call(ONE, "c1"), widget_call(TWO, "c2")))
    client.hand_off(history, (), "1", "2")
    conversation = client.build_conversation()
    assert conversation.pending_calls == ()
    assert summarize(start_turn(conversation).messages)[-1] == ("tool", "1 | 2")


async def test_waiting_calls_without_what_was_sent_along_are_interrupted(tmp_path):
    client = Client(tmp_path, "copilot", human("a"))
    client.hand_off(await client.ask(assistant(widget_call(ONE, "c1"), widget_call(TWO, "c2"))), (), "1")
    client.messages += [human("b")]
    assert summarize(client.build_conversation().history.messages)[-1] == ("tool", f"1 | {INTERRUPTED}")


@dialects
@pytest.mark.parametrize(
    "forge", [lambda s: s[:-8], lambda s: "A" + s[1:], lambda s: StateSigner(b"f").sign({}, "a"), {}.get]
)
async def test_what_is_forged_cut_or_foreign_is_as_if_it_were_not_there(tmp_path, dialect, forge):
    client = Client(tmp_path, dialect, human("a"))
    client.hand_off(await client.ask(assistant(LOOK), assistant(widget_call(ONE, "toolu_2"))), (), "1")
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
    client.hand_off(await client.ask(assistant(LOOK), assistant(widget_call(ONE, "c2"))), (), "1")
    client.messages[0] = human("b")
    assert summarize(start_turn(client.build_conversation()).messages)[1:] == [
        ("assistant", "get_widget_data"),
        ("tool", "1"),
    ]


async def test_a_client_that_repeats_itself_does_not_repeat_ids(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    client.hand_off(await client.ask(assistant(LOOK), assistant(widget_call(ONE, "c2"))), (), "1")
    client.messages += [ai("b"), *client.messages]
    history = start_turn(client.build_conversation())
    assert is_well_formed(history.messages)
    assert [c.id for m in history.messages for c in m.tool_calls] == ["toolu_1", "c2", "call_3", "call_4"]


async def test_reminders_plan_and_state_come_back(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(
        "done?", assistant(widget_call(ONE, "c2")), toolkits=[FakeToolkit(before_finish=lambda: "Look again.")]
    )
    history.apply(StateSaved(toolkit="notes", value=[1]))
    history.apply(PlanUpdated(tasks=(Task(description="t"),)))
    client.hand_off(history, (), "1")
    conversation = client.build_conversation().history
    assert conversation.messages == history.messages
    assert summarize(conversation.messages)[1:3] == [("assistant", "done?"), ("user", "Look again.")]
    assert (conversation.state["notes"], conversation.plan) == ([1], history.plan)


async def test_a_picture_that_a_tool_made_here_is_named(tmp_path):
    client = Client(tmp_path, "workspace", human("a"))
    history = await client.ask(assistant(LOOK), assistant(widget_call(ONE, "c2")))
    [result] = history.messages[2].tool_results
    image = Image(name="a.png", media_type="image/png", source="a.png")
    history.messages[2] = Message(role="tool", parts=(result.model_copy(update={"images": (image,)}),))
    client.hand_off(history, (), "1")
    [result] = client.build_conversation().history.messages[2].tool_results
    assert (result.output, result.images) == ("saw it\n[its picture is not kept]", ())


def test_carried_without_a_turn_of_its_own_is_small():
    conversation = build_conversation(load_query("seed_followup"), SIGNER)
    assert build_turn_state(start_turn(conversation), 1)["messages"] == []


# --- what stands around the words


def test_the_surroundings_of_todays_dashboard():
    assert format_client_context(load_query("today_query")).startswith(
        "[Widgets that the person picked]\n"
        "- 91ae1153-7b4d-451c-adc5-49856e90a0e6 Stock price: The newest price of a share\n"
        '  - symbol (ticker) = "MSFT", its options can be asked for: The ticker\n'
        '  - fields (string, several) = "price", one of ["price","volume"]: Which figures\n'
        "\n"
        "[Widgets on the dashboard]\n"
        "- 5f2b2a7e-5cb1-4c30-9b6b-0d7f4a4f7e10 Company news: News on a company\n"
        "  - limit (integer) = 10: How many\n"
        "\n"
        "[Widgets that are not on the dashboard, but have data too]\n"
        "- 91e65d7a-ce25-eae5-91e6-5d7ace25eae5 Earnings: Earnings by quarter\n"
        "  - symbol (ticker): The ticker\n"
        "\n"
        "[Addresses that the person added]\n"
        "- https://example.com/report.html\n"
        "\n"
        "[The person's time zone] Europe/London\n"
        "\n"
        "[Options that the person set]\n"
        '{"deep-research":true,"tone":"brief"}\n'
    )


def test_the_seeds_widgets_and_context():
    assert format_client_context(load_query("seed_query")) == (
        "[Widgets on the dashboard]\n- 38181a68-9650-4940-84fb-a3f29c8869f3 Historical Stock Price "
        '{"symbol":"AAPL","source":"Financial Modelling Prep"}'
    )
    assert "- Analyst Estimates: Contains analyst estimates for a ticker" in format_client_context(
        load_query("seed_context")
    )
    assert format_client_context(load_query("seed_greeting")) == ""


@pytest.mark.parametrize("name", ["today_context", "today_context_content"])
def test_data_that_was_added(name):
    assert (
        '[Data that the person added]\n- Notes: What was noted {"symbol":"MSFT"}\nbuy below 400'
        in format_client_context(load_query(name))
    )


def test_a_refreshed_dashboard_is_the_same_one():
    refreshed = load_body("today_query")
    refreshed["widgets"]["primary"][0]["metadata"]["lastUpdated"] += 1
    assert format_client_context(build_query(*refreshed.pop("messages"), **refreshed)) == format_client_context(
        load_query("today_query")
    )


def test_surroundings_of_any_size_fit():
    widget = {
        "name": "w " * 9_000,
        "params": [{"name": "p", "options": ["o" * 99] * 999}],
        "metadata": {"m": "m" * 9999},
    }
    many = {tier: [widget | {"uuid": f"{tier}{n}"} for n in range(500)] for tier in ("primary", "secondary", "extra")}
    context = [{"name": "c", "data": {"items": [{"content": "x" * 500_000}]}}] * 3
    text = format_client_context(build_query(human("a"), widgets=many, context=context, urls=["u" * 9999] * 99))
    assert len(text) < 160_000
    assert "primary0" in text
    assert "more are left out here]" in text
    assert "440,0" in text


def count_calls(work):
    """Count function calls, which measure work without the noise of time."""
    count = 0

    def take(_, event, __):
        nonlocal count
        count += event == "call"

    sys.setprofile(take)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def build_large_query(size):
    asked = {"function": "get_widget_data", "input_arguments": {"data_sources": [{"origin": "x", "id": "y"}] * size}}
    run = {"function": "execute_agent_tool", "input_arguments": {"tool_name": "x", "server_id": "s"}}
    many = {"role": "tool", "function": "x", "data": [{"items": [{"content": "1"}]}] * size}
    one = many | {"data": [{"items": []}]}
    body = {
        "messages": [
            {"role": "human", "content": "hi"},
            *({"role": "ai", "content": json.dumps(asked)}, many),
            *[message for _ in range(size) for message in ({"role": "ai", "content": json.dumps(run)}, one)],
        ],
        "widgets": {"primary": [{"uuid": f"w-{n}", "origin": "o", "widget_id": "i", "name": "n"} for n in range(size)]},
        "tools": [{"name": f"t{n % 5}", "server_id": "s"} for n in range(size)],
    }
    return parse_query(json.dumps(body).encode())


def test_the_work_grows_no_faster_than_the_request():
    small, large = build_large_query(40), build_large_query(160)
    build_conversation(small, SIGNER)
    assert count_calls(lambda: build_conversation(large, SIGNER)) < 8 * count_calls(
        lambda: build_conversation(small, SIGNER)
    )
