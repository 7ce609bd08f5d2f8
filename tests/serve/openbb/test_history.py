"""Tests of conversations, complete or damaged, that become a history."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.events import (
    MessageCompleted,
)
from goose_like.core.history import INTERRUPTED
from goose_like.core.images import save_image
from goose_like.core.message import Message, Thinking, ToolCall
from goose_like.serve.openbb.citations import cite_outcomes
from goose_like.serve.openbb.history import (
    EMPTY_MESSAGE,
    MISSING_START,
    NO_NEW_MESSAGE,
    Conversation,
    build_conversation,
)
from goose_like.serve.openbb.prompt import NO_DATA
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
from tests.fakes import is_well_formed
from tests.serve.openbb.conversations import LISTED, ONE, SIGNER, TWO, list_sources, start_turn, summarize
from tests.serve.request_bodies import ai, any_body, build_query, call, data, human, load_query


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
    assert list_sources(conversation, query) == ["Historical Stock Price"]


def test_people_and_answers():
    conversation = build_conversation(load_query("seed_conversation"), SIGNER)
    assert summarize(conversation.history.messages) == [
        ("user", "Hi there."),
        ("assistant", "Hi there, I'm a copilot. How are you?"),
    ]
    assert conversation.message == Message.user("I'm fine, thank you. What is the weather in Tokyo?")
    assert (conversation.pending_calls, conversation.outcomes, conversation.images) == ((), (), ())


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
    query = build_query(*messages, widgets=LISTED)
    assert list_sources(build_conversation(query, SIGNER), query) == ["Two"]
    assert converse(*messages[:5], widgets=LISTED).outcomes == ()
    query = load_query("today_two_sources")  # of what failed nothing is cited
    assert list_sources(build_conversation(query, SIGNER), query) == ["Stock price"]
    query = load_query("today_urls")
    assert list_sources(build_conversation(query, SIGNER), query) == ["Stock price", "Example"]


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
    events = [MessageCompleted(message=message).model_dump(mode="json")]
    return {"events": events, "requested_calls": number, "history_digest": "other"}


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
    json.dumps(cite_outcomes(build_conversation(query, SIGNER).outcomes, query), allow_nan=False)


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


# --- effort


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
