"""The wire of the Responses API: how answers return, and how changes of tools and effort follow."""

import json

import pytest

from goose_like.core.message import EffortChange, Message, NewTools, Text, ToolCall, ToolResult, ToolSpec, Verbatim
from goose_like.providers.base import Request
from goose_like.providers.native_patch import parse_patch_call
from goose_like.providers.responses_wire import ResponsesEncoder, ResponsesStreamParser, build_items
from tests.responses_events import call, call_patch, reason, speak, stream
from tests.sdk_types import check_body, check_event

ORIGIN = "api.example.com"
LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
WRITE = ToolSpec("write", "Write.", {"type": "object", "properties": {}})


def reasoning(**keys):
    return {"type": "reasoning", "id": "rs_1", "summary": [], **keys}


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []}


def answer(*items, origin=ORIGIN):
    parts = (Text(text="I look."), ToolCall(id="c1", name="look", arguments="{}"))
    return Message(role="assistant", parts=parts, verbatim=Verbatim(wire="responses", origin=origin, items=items))


def encode(encoder, messages, **keys):
    tools = keys.pop("tools", (LOOK,))
    native = keys.pop("native", frozenset())
    request = Request("m", "be good", messages, tools, **keys)
    body = json.loads(encoder.encode_request(request, {}, native))
    check_body("/v1/responses", body)
    return body


def test_an_answer_returns_as_it_came():
    items = [reasoning(encrypted_content="E"), SAID, CALL]
    assert build_items(answer(*items), origin=ORIGIN) == items


@pytest.mark.parametrize("lost", [{}, {"encrypted_content": None}, {"encrypted_content": ""}])
def test_reasoning_that_nobody_can_read_goes_with_the_id_after_it(lost):
    first, second = build_items(answer(reasoning(**lost), SAID, CALL), origin=ORIGIN)
    assert first == {key: value for key, value in SAID.items() if key != "id"}
    assert second == CALL  # only the next item depends on the reasoning


def test_reasoning_in_plain_text_returns():
    items = [reasoning(content=[{"type": "reasoning_text", "text": "hm"}]), CALL]
    assert build_items(answer(*items), origin=ORIGIN) == items


@pytest.mark.parametrize(
    ("indexes", "done_count"),
    [((0, 1, 2), 3), ((0, 1, 2), 1), ((0, 1, 2), 0), ((0, 0, 0), 3), ((0, 0, 1), 3), ((1, 2, 3), 3), ((0, 2, 4), 3)],
)
def test_each_item_counts_once(indexes, done_count):
    """Routers between the two APIs of OpenAI confuse the indexes, or leave out events."""
    first, second, third = indexes
    said = reason(first, "rs_1", "hm"), speak(second, "msg_1", "hi"), call(third, "fc_1", "c1", "look", "{}")
    parser = ResponsesStreamParser(ORIGIN)
    fed = 0
    for event in stream(*said):
        is_done = event["type"] == "response.output_item.done"
        fed += is_done
        if not is_done or fed <= done_count:
            parser.feed(event)
    message = parser.build_message().message
    assert message.text == "hi"
    assert [call.id for call in message.tool_calls] == ["c1"]
    assert [item["id"] for item in message.verbatim.items] == ["rs_1", "msg_1", "fc_1"]


def test_another_server_gets_the_parts():
    items = build_items(answer(reasoning(encrypted_content="E"), CALL, origin="elsewhere"), origin=ORIGIN)
    assert [item.get("type", item.get("role")) for item in items] == ["assistant", "function_call"]
    assert "id" not in items[1]


CHANGED = Message(
    role="system", parts=(Text(text="Two tools now."), NewTools(tools=(WRITE,)), EffortChange(effort="high"))
)


def test_changes_follow_as_items():
    body = encode(ResponsesEncoder(ORIGIN), [Message.user("go"), CHANGED], first_effort="low")
    assert [item.get("type") or item["role"] for item in body["input"][2:]] == [
        "additional_tools",
        "developer",
        "configuration_update",
    ]
    assert [tool["name"] for tool in body["tools"]] == ["look"]


def test_a_server_that_takes_no_changes_gets_all_tools_in_the_body():
    encoder = ResponsesEncoder(ORIGIN)
    request = [Message.user("go"), CHANGED]
    encode(encoder, request, first_effort="low")
    encoder.refuse_changes()
    body = encode(encoder, request, first_effort="low")
    assert [tool["name"] for tool in body["tools"]] == ["look", "write"]
    assert [item["role"] for item in body["input"]] == ["developer", "user", "developer"]


def test_an_effort_of_another_model_is_no_item():
    body = encode(ResponsesEncoder(ORIGIN), [Message.user("go"), CHANGED], first_effort=None)
    assert "configuration_update" not in json.dumps(body)


@pytest.mark.parametrize(
    ("allowed", "names"), [(None, None), (("look", "write"), None), (("write",), ["write"]), ((), "none")]
)
def test_forbidden_tools_are_left_to_the_choice(allowed, names):
    body = encode(ResponsesEncoder(ORIGIN), [Message.user("go")], tools=(LOOK, WRITE), allowed_tools=allowed)
    assert [tool["name"] for tool in body["tools"]] == ["look", "write"]
    choice = body.get("tool_choice")
    if isinstance(names, list):
        assert choice["type"] == "allowed_tools"
        assert [tool["name"] for tool in choice["tools"]] == names
    else:
        assert choice == names
    assert list(body)[-1] == ("tool_choice" if choice else "input")


def withhold(*reasons):
    return [{"id": "rs_1", "action": "removed", "type": "reasoning", "reason": reason} for reason in reasons]


@pytest.mark.parametrize(
    ("told", "reasons"),
    [
        (None, ()),
        ([], ()),
        (withhold("turn_boundary"), ()),
        (withhold("prefix_mismatch", "prefix_mismatch", "model_mismatch"), ("model_mismatch", "prefix_mismatch")),
        ("nonsense", ()),
    ],
)
def test_withheld_reasoning_is_named(told, reasons):
    parser = ResponsesStreamParser(ORIGIN)
    for event in stream(speak(0, "msg_1", "hi"), input_transformations=told):
        parser.feed(event)
    assert parser.build_message().withheld == reasons


# --- apply_patch

PATCH_FILE = ToolSpec("patch_file", "Patch.", {"type": "object", "properties": {}}, native="apply_patch")
PATCHED = {"type": "update_file", "path": "a.py", "diff": "@@\n-x\n+y\n"}
NATIVE = frozenset({"apply_patch"})


def patch_answer():
    parser = ResponsesStreamParser(ORIGIN, "patch_file")
    for event in stream(reason(0, "rs_1", "hm"), call_patch(1, "apc_1", "call_1", **PATCHED)):
        check_event("/v1/responses", event)
        parser.feed(event)
    return parser.build_message().message


def give_result(answer, **how):
    result = ToolResult(call_id=answer.tool_calls[0].id, output="saved", **how)
    return Message(role="tool", parts=(result,))


def test_a_patch_is_a_call_of_the_tool_for_it():
    (patch,) = patch_answer().tool_calls
    assert patch.name == "patch_file"
    assert json.loads(patch.arguments) == {"path": "a.py", "patches": "*** Update File: a.py\n@@\n-x\n+y\n"}


@pytest.mark.parametrize("is_error", [False, True])
def test_a_patch_and_its_result_return_in_the_form_of_the_vendor(is_error):
    answer = patch_answer()
    messages = [Message.user("do"), answer, give_result(answer, is_error=is_error)]
    body = encode(ResponsesEncoder(ORIGIN), messages, tools=(LOOK, PATCH_FILE), native=NATIVE)
    assert body["tools"][1] == {"type": "apply_patch"}
    *_, sent, result = body["input"]
    assert sent["operation"] == PATCHED
    status = "failed" if is_error else "completed"
    assert result == {"type": "apply_patch_call_output", "call_id": "call_1", "status": status, "output": "saved"}


@pytest.mark.parametrize(
    "operation",
    [PATCHED, {"type": "create_file", "path": "a", "diff": "+x"}, {"type": "delete_file", "path": "a"}],
)
def test_a_patch_is_built_anew_after_a_summary(operation):
    item = {"type": "apply_patch_call", "call_id": "call_1", "operation": operation, "status": "completed"}
    call_ = parse_patch_call(item, "patch_file")
    answer = Message(role="assistant", parts=(call_,))
    body = encode(ResponsesEncoder(ORIGIN), [answer, give_result(answer)], tools=(PATCH_FILE,), native=NATIVE)
    assert body["input"][1] == item


def test_a_model_without_the_tool_gets_calls_of_a_function():
    """Also with the answer as it came, and from one request to the next with the same encoder."""
    answer = patch_answer()
    messages = [Message.user("do"), answer, give_result(answer)]
    encoder = ResponsesEncoder(ORIGIN)
    encode(encoder, messages, tools=(PATCH_FILE,), native=NATIVE)
    body = encode(encoder, messages, tools=(PATCH_FILE,))
    assert body["tools"][0]["type"] == "function"
    *_, sent, result = body["input"]
    assert (sent["type"], sent["call_id"]) == ("function_call", "call_1")
    assert (result["type"], result["call_id"]) == ("function_call_output", "call_1")


def test_the_choice_of_tools_names_the_vendors_own():
    tools = (LOOK, WRITE, PATCH_FILE)
    allowed = ("look", "patch_file")
    body = encode(ResponsesEncoder(ORIGIN), [Message.user("x")], tools=tools, allowed_tools=allowed, native=NATIVE)
    assert body["tool_choice"]["tools"] == [{"type": "function", "name": "look"}, {"type": "apply_patch"}]
