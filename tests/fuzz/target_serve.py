"""The reader of requests to the server: bodies of the OpenBB protocol."""

import json
from pathlib import Path

from starlette.responses import JSONResponse

from goose_like.core.events import MessageCompleted, TextDelta, ToolFinished, TurnFinished, TurnStarted
from goose_like.core.message import Message, Text, Thinking, ToolCall, ToolResult
from goose_like.core.tool import ToolError
from goose_like.serve.openbb.client_tools import check_call
from goose_like.serve.openbb.history import Conversation, build_conversation
from goose_like.serve.openbb.query import Query
from goose_like.serve.openbb.request import RequestError, parse_query
from goose_like.serve.openbb.response import EventWriter
from goose_like.serve.state import TurnState
from tests.fakes import is_well_formed
from tests.fuzz.source import Source
from tests.serve.openbb.conversations import SIGNER, TIERS
from tests.serve.request_bodies import BODIES, ai, call, data, human, load_body

CALLS = [ToolCall(id=f"call_{number}", name="get_widget_data", arguments='{"widget_uuid": "w1"}') for number in (1, 2)]
STATE = TurnState(
    events=(
        MessageCompleted(message=Message(role="assistant", parts=(Thinking(text="hm"), Text(text="So."), *CALLS))),
        ToolFinished(result=ToolResult(call_id="call_1", output="o")),
    ),
    requested_calls=2,
)
SIGNED = SIGNER.sign(STATE.model_dump(mode="json"), "Hi.")
QUERIES = [load_body(file.stem) for file in sorted(BODIES.glob("*.json")) if "messages" in load_body(file.stem)]
MESSAGES = (
    *(
        human("Hi."),
        human("Hi."),
        human(""),
        ai("An answer."),
        ai("Of another.", agent_id="x"),
        ai("", agent_id="openbb-copilot"),
    ),
    *(
        call(),
        call(goose_like=SIGNED),
        data("[1]"),
        data("[1]", extra_state={"goose_like": SIGNED}),
        data("iVBORw0KGgo="),
    ),
    *(message for query in QUERIES for message in query["messages"]),
)
FIELDS = (
    *({key: value} for query in QUERIES for key, value in query.items() if key != "messages"),
    *({"widgets": TIERS}, {"widgets": [{"uuid": "w1", "name": "One"}]}, {"timezone": "UTC"}, {"urls": ["http://x"]}),
    {"tools": [{"name": "a b", "server_id": "s", "url": "u", "input_schema": {"properties": {}}}] * 2},
    {"context": [{"name": "c", "data": {"items": [{"content": "x", "data_format": {"data_type": "png"}}]}}]},
)
KEYS = (
    "role",
    "content",
    "data",
    "items",
    "function",
    "input_arguments",
    "widgets",
    "tools",
    "status",
    "error_type",
    "uuid",
)
PIECES = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\0", b"\xff", b"\xed\xa0\x80", b"\\ud83d", b"\\u0000", b"NaN",
    b"null", b"1e999", b"9" * 400, b"true", b'\\"', b"\xef\xbb\xbf", b" ", b"\n", b'"<<UNDEFINED>>"', b"[" * 300,
    b'"openbb-copilot"',
)  # fmt: skip
_LARGE_SHARE = 0.1


class FuzzTarget:
    """Bodies of queries. Each one is answered, or refused with a list of errors that JSON can hold."""

    def __init__(self, folder: Path) -> None:
        pass

    def create(self, source: Source) -> bytes:
        if source.happens(_LARGE_SHARE):
            body = source.choice(QUERIES)
        else:
            body = {"messages": source.some(MESSAGES, 5)}
            for _ in range(source.below(4)):
                body |= source.choice(FIELDS)
        for _ in range(source.below(3)):
            body = source.graft(body, KEYS)
        if source.long_size and isinstance(body, dict) and isinstance(body.get("messages"), list):
            body = {**body, "messages": body["messages"] * 300}
        text = json.dumps(body, ensure_ascii=source.happens(0.5)).encode("utf-8", "surrogatepass")
        return source.mutate(text, PIECES) if source.happens(0.3) else text

    def check(self, body: bytes) -> None:
        try:
            query = parse_query(body, reserved_names=("shell",))
        except RequestError as error:
            errors = error.errors
        else:
            errors = ()
            self._answer(query, build_conversation(query, SIGNER))
        for each in errors:
            assert each.keys() == {"loc", "msg", "type"}
        assert JSONResponse({"detail": list(errors)}, 422).body

    def _answer(self, query: Query, conversation: Conversation) -> None:
        assert build_conversation(query, SIGNER) == conversation
        writer, history = EventWriter(query, conversation, SIGNER), conversation.history
        sent = writer.start()
        if conversation.pending_calls:
            sent += writer.write_calls(conversation.pending_calls)
        else:
            history.apply(TurnStarted(message=conversation.message))
            assert is_well_formed(history.messages), history.messages
            sent += self._run_turn(writer, conversation, query)
        for frame in sent.decode().split("\n\n")[:-1]:
            name, _, text = frame.partition("\n")
            assert name.startswith("event: copilot") or name == ":", frame
            assert name == ":" or isinstance(json.loads(text.removeprefix("data: ")), dict), frame

    def _run_turn(self, writer: EventWriter, conversation: Conversation, query: Query) -> bytes:
        """Finish the turn with a text or, if the client has a widget, with a call."""
        name, arguments = "get_widget_data", {"widget_uuid": query.all_widgets[0].uuid} if query.all_widgets else {}
        if query.tools:
            name, arguments = query.tools[0].alias, {}
        calls = [ToolCall(id="new", name=name, arguments=json.dumps(arguments))]
        try:
            check_call(name, arguments, query)
        except ToolError:
            calls = []
        done = MessageCompleted(message=Message.assistant("Here.", calls))
        conversation.history.apply(done)
        finished = TurnFinished(reason="handed_off" if calls else "stop")
        conversation.history.apply(finished)
        return writer.write([TurnStarted(message=conversation.message), TextDelta(text="Here."), done]) + writer.finish(
            finished
        )
