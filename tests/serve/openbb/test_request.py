"""Tests of bodies in both dialects, and of the errors for invalid ones."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
import xxhash
from hypothesis import given
from openbb_ai.models import QueryRequest
from openbb_ai.models import Widget as WorkspaceWidget

from goose_like.serve.openbb.query import (
    AddedContext,
    AgentMessage,
    DataItem,
    FunctionCall,
    FunctionResult,
    UserMessage,
)
from goose_like.serve.openbb.request import RequestError, parse_query
from tests.serve.request_bodies import BODIES, ai, any_body, build_query, call, data, human, load_body, load_query

W = "38181a68-9650-4940-84fb-a3f29c8869f3"
PRICE = "91ae1153-7b4d-451c-adc5-49856e90a0e6"
NAMES = sorted(path.stem for path in BODIES.glob("*.json") if path.stem != "copilots")


def list_errors(text: str | bytes) -> list[dict]:
    with pytest.raises(RequestError) as caught:
        parse_query(text.encode() if isinstance(text, str) else text)
    assert all(error.keys() == {"loc", "msg", "type"} and error["loc"][0] == "body" for error in caught.value.errors)
    json.dumps(caught.value.errors)
    return caught.value.errors


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("today_")])
def test_todays_fixtures_are_what_upstream_accepts(name):
    if name == "today_context_content":  # which the Workspace's own examples send
        with pytest.raises(ValueError, match="items"):
            QueryRequest.model_validate(load_body(name))
    else:
        QueryRequest.model_validate(load_body(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_body_tells_the_dialect(name):
    is_old = name.startswith("seed_") and name not in ("seed_greeting", "seed_conversation")  # both eras send these
    assert load_query(name).dialect == ("copilot" if is_old else "workspace")


@pytest.mark.parametrize(
    ("fields", "dialect"),
    [
        ({}, "workspace"),
        ({"context": [], "widgets": None}, "workspace"),
        ({"use_docs": True}, "copilot"),
        ({"widgets": []}, "copilot"),
        ({"widgets": [], "timezone": "UTC"}, "copilot"),  # a list knows no origin, so it is asked for by uuid
        ({"context": "words"}, "copilot"),
        ({"context": [{"data": {"content": "1"}}]}, "copilot"),
        ({"context": [{"data": {"items": []}}]}, "workspace"),
        ({"widgets": {}}, "workspace"),
        ({"widgets": None, "timezone": "UTC"}, "workspace"),
        ({"workspace_state": None}, "workspace"),
        ({"workspace_options": {}}, "workspace"),
        ({"tools": None}, "workspace"),
        ({"urls": []}, "workspace"),
        ({"selected_skills": []}, "workspace"),
    ],
)
def test_a_field_that_one_dialect_has_tells(fields, dialect):
    assert build_query(human("Hi."), **fields).dialect == dialect


@pytest.mark.parametrize("message", [data("5"), {"role": "tool", "function": "f", "content": "5"}, call("w")])
def test_a_message_in_the_form_of_2024_tells_the_dialect(message):
    assert build_query(human("Hi."), message).dialect == "copilot"
    assert build_query(human("Hi."), message, urls=[]).dialect == "workspace"


def test_the_seeds_conversation():
    said, call, result = load_query("seed_followup").messages
    assert said == UserMessage(text="What is the current stock price of AAPL?")
    assert call == FunctionCall(function="get_widget_data", arguments={"widget_uuid": W})
    assert isinstance(result, FunctionResult)
    [one] = result.outcomes
    assert [row["close"] for row in json.loads(one.items[0].content)] == [233.85, 231.3, 231.0]
    [widget] = load_query("seed_query").widgets.secondary
    assert (widget.uuid, widget.name, widget.metadata["symbol"]) == (W, "Historical Stock Price", "AAPL")


def test_content_and_arguments_where_the_first_copilots_had_them():
    plain, with_arguments = load_query("seed_era_followup"), load_query("seed_era_arguments")
    assert plain.messages[2].outcomes == load_query("seed_followup").messages[2].outcomes
    assert with_arguments.messages[2].arguments == {"widget_uuid": W}
    assert plain.context == (AddedContext(items=(DataItem(content="The person looks at Apple."),)),)
    assert with_arguments.context == ()


@pytest.mark.parametrize("name", ["today_doubly_encoded", "today_object_call"])
def test_a_call_in_any_writing_is_the_same(name):
    assert load_query(name) == load_query("today_followup")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '"',
        '{"a": 1}',
        '{"function": 1, "input_arguments": {}}',
        '{"function": "f"}',
        '"{"',
        "[" * 500,
        '{"a":' * 500,
    ],
)
def test_words_that_look_like_a_call_are_words(content):
    assert build_query(human("Hi."), ai(content)).messages[1] == AgentMessage(text=content)


def test_arguments_may_be_json_text_once_more():
    content = json.dumps({"function": "f", "input_arguments": json.dumps({"a": 1})})
    assert build_query(human("Hi."), ai(content)).messages[1] == FunctionCall(function="f", arguments={"a": 1})


def test_outcomes():
    price, news = load_query("today_two_sources").messages[2].outcomes
    assert (price.items[0].content, price.is_error) == ('[{"symbol":"MSFT","price":417.32}]', False)
    assert (news.message, news.is_error) == ("fetch_failed: the news feed is down", True)
    [status] = load_query("today_status").messages[2].outcomes
    assert (status.message, status.items[0].content) == ("2 filings", '{"filings":["10-K","10-Q"]}')
    [refusal] = load_query("today_refused").messages[2].outcomes
    assert (refusal.message, refusal.is_error) == ("error: the server is not connected", True)
    [page] = load_query("today_urls").messages[2].outcomes
    assert (page.items[0].url, page.items[0].kind) == ("https://example.com/report.pdf", "pdf")
    assert page.citations[0]["source_info"]["name"] == "Example"
    files = load_query("today_files").messages[2].outcomes[0].items
    assert [item.kind for item in files] == ["png", "pdf", "csv", "md"]


@pytest.mark.parametrize(
    ("data", "content"),
    [
        ("text", "text"),
        ([{"a": 1}], '{"a":1}'),
        ({"content": [{"a": 1}]}, '[{"a":1}]'),
        ({"status": "success", "content": "x"}, "x"),
        ({"status": "new", "rows": []}, '{"status":"new","rows":[]}'),
        (7, "7"),
    ],
)
def test_data_in_no_known_shape_is_data(data, content):
    [one] = build_query(human("Hi."), {"role": "tool", "function": "f", "data": data}).messages[1].outcomes
    assert [item.content for item in one.items] == [content]


def test_what_was_sent_along_is_found_in_both_dialects():
    call = json.dumps({"function": "f", "input_arguments": {}, "goose_like": "s"})
    today = {"role": "tool", "function": "f", "data": [], "extra_state": {"goose_like": "t", "other": 1}}
    _, asked_for, given_for = build_query(human("Hi."), ai(call), today).messages
    assert (asked_for.state, given_for.state) == ("s", "t")
    inside = json.dumps({"function": "f", "input_arguments": {}, "extra_state": {"goose_like": "u"}})
    assert build_query(human("Hi."), ai(inside)).messages[1].state == "u"
    assert load_query("today_two_sources").messages[2].state == ""


def test_todays_dashboard():
    query = load_query("today_query")
    [price], [news], [earnings] = query.widgets.primary, query.widgets.secondary, query.widgets.extra
    assert (price.name, news.name, earnings.name) == ("Stock price", "Company news", "Earnings")
    assert price.current_values == {"symbol": "MSFT", "fields": "price"}
    assert price.params[0].has_options_endpoint
    assert price.params[1].is_multiple
    assert news.current_values == {"limit": 10}
    assert (query.timezone, query.workspace_options["tone"]) == ("Europe/London", "brief")
    assert query.workspace_state["current_dashboard_info"]["name"] == "Shares"
    assert [(tool.server_id, tool.name) for tool in query.tools] == [("server-1", "list_filings")]
    assert "not-shown" not in query.model_dump_json()  # neither keys nor tokens go further than this


def test_a_widget_without_a_uuid_gets_the_workspaces():
    without = load_body("today_query")["widgets"]["extra"][0]
    assert load_query("today_query").widgets.extra[0].uuid == str(WorkspaceWidget.model_validate(without).uuid)


def test_a_uuid_is_derived_with_every_version_of_xxhash(monkeypatch):
    class BytesOnly:
        """xxhash 4, which refuses text."""

        def __init__(self, data):
            self.hexdigest = xxhash.xxh64(memoryview(data)).hexdigest

    without = load_body("today_query")["widgets"]["extra"][0]
    uuid = str(WorkspaceWidget.model_validate(without).uuid)
    monkeypatch.setitem(sys.modules, "xxhash", SimpleNamespace(xxh64=BytesOnly))
    assert load_query("today_query").widgets.extra[0].uuid == uuid


def test_the_orchestrators_task_is_the_persons_words():
    assert load_query("today_orchestration").messages[1] == UserMessage(text="Find the newest price of MSFT.")
    assert load_query("today_other_agent").messages[1] == AgentMessage(text="It costs 417.32.", agent_id="prices")


@pytest.mark.parametrize("body", ['{"messages": []}', '{"messages": null}', "{}"])
def test_no_messages(body):
    [error] = list_errors(body)
    assert error["loc"] == ("body", "messages")
    assert "messages list cannot be empty" in error["msg"]


WRONG = (5, 1.5, True, "hi", {"a": 1}, [5], [[1]], [None, {"name": []}])
EMPTY = {"{}": "an object", '""': "text", "0": "a number", "false": "true or false"}


@pytest.mark.parametrize("value", EMPTY)
def test_an_empty_value_of_a_wrong_type_is_no_empty_list(value):
    [error] = list_errors(f'{{"messages": {value}}}')
    assert error["msg"] == f"messages: expected a list, not {EMPTY[value]}"


FIELDS = (
    *("messages", "widgets", "context", "urls", "tools", "timezone", "workspace_state", "workspace_options"),
    *("selected_skills", "skills_catalog", "api_keys"),
)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", WRONG, ids=str)
def test_a_wrong_type_is_told_in_plain_words(field, value):
    body = {"messages": [{"role": "human", "content": "hi"}], field: value}
    try:
        parse_query(json.dumps(body).encode())
    except RequestError as error:
        text = str(error)
        assert text.startswith((field, "a message's role")), text
        assert not re.search("Input|valid|tuple|dictionary|Field|instance", text), text


def test_a_wrong_type_names_what_is_expected():
    told = {"messages": "hi", "context": 5, "widgets": 5, "urls": {"a": 1}}
    for field, value in told.items():
        [error] = list_errors(json.dumps({"messages": [{"role": "human", "content": "hi"}], field: value}))
        assert re.fullmatch(rf"{field}: expected (a list|an object), not (a number|text|an object)", error["msg"])


def test_a_byte_order_mark_is_left_out():
    body = b'\xef\xbb\xbf{"messages": [{"role": "human", "content": "hi"}]}'
    assert parse_query(body).messages == (UserMessage(text="hi"),)


@pytest.mark.parametrize(
    ("text", "loc"),
    [
        ("{}", ("messages",)),
        ('{"messages": 1}', ("messages",)),
        ('{"messages": [1]}', ("messages", 0)),
        ('{"messages": [{"role": "boss", "content": ""}]}', ("messages", 0, "role")),
        ('{"messages": [{"content": ""}]}', ("messages", 0, "role")),
        ('{"messages": [{"role": "human"}]}', ("messages", 0, "content")),
        ('{"messages": [{"role": "human", "content": [1]}]}', ("messages", 0, "content")),
        ('{"messages": [{"role": "human", "content": ""}], "widgets": 1}', ("widgets",)),
        ('{"messages": [{"role": "human", "content": ""}], "widgets": [{"name": "n"}]}', ("widgets", 0, "uuid")),
        (
            '{"messages": [{"role": "human", "content": ""}], "widgets": {"extra": [{"origin": "o"}]}}',
            ("widgets", "extra", 0, "uuid"),
        ),
        ('{"messages": [{"role": "human", "content": ""}], "widgets": [{"metadata": 1}]}', ("widgets", 0, "metadata")),
        ('{"messages": [{"role": "human", "content": ""}], "context": 1}', ("context",)),
        ('{"messages": [{"role": "human", "content": ""}], "tools": [{}]}', ("tools", 0, "name")),
        ("[]", ()),
        ("", ()),
        ("{", ()),
        (b"\xff", ()),
        (b'{"messages": [{"role": "human", "content": "\xff"}]}', ()),
        ('{"messages":' + "[" * 100_000, ()),
        (f'{{"messages": [{{"role": "human", "content": "", "x": {"9" * 5000}}}]}}', ()),
    ],
)
def test_what_is_wrong_is_named(text, loc):
    assert list_errors(text)[0]["loc"] == ("body", *loc)


def test_a_thousand_wrong_messages_are_not_told_one_by_one():
    assert len(list_errors(json.dumps({"messages": [1] * 1000}))) == 20


def test_numbers_and_characters_that_json_has_not_are_taken():
    query = parse_query(
        b'{"messages": [{"role": "human", "content": "a\\ud83d b"}], "timezone": "UTC", "timezone": "CET",'
        b' "workspace_options": {"x": NaN, "y": [1e999, -1e999], "\\udc00": 1}}'
    )
    assert query.messages == (UserMessage(text="a\ufffd b"),)
    assert query.timezone == "CET"
    assert query.workspace_options == {"x": None, "y": [None, None], "\ufffd": 1}


@pytest.mark.parametrize("state", [1e999, ["a"], {"x": 1e999}, None])
def test_what_is_beside_a_call_and_no_text_was_never_ours(state):
    call = {"function": "f", "input_arguments": {}}
    given_back = {"role": "tool", "function": "f", "data": [], "extra_state": {"goose_like": state}}
    for beside in ({"goose_like": state}, {"extra_state": {"goose_like": state}}):
        query = parse_query(
            json.dumps({"messages": [{"role": "ai", "content": {**call, **beside}}, given_back]}).encode()
        )
        assert [said.state for said in query.messages] == ["", ""]
        assert query.model_validate_json(query.model_dump_json()) == query


@given(any_body)
def test_any_body_is_a_query_or_refused(text):
    try:
        query = parse_query(text)
    except RequestError:
        list_errors(text)
    else:
        assert query.messages
        assert query.model_validate_json(query.model_dump_json()) == query
