"""The reader of requests to the server: bodies of OpenAI's chat completions."""

import json
from pathlib import Path

from goose_like.core.events import MessageCompleted, TextDelta, ToolFinished, TurnFinished, TurnStarted
from goose_like.core.message import Message, Text, Thinking, ToolCall, ToolResult
from goose_like.serve.openai.chat_body import ChatBody
from goose_like.serve.openai.chat_encoder import ChatEncoder
from goose_like.serve.openai.errors import build_error_response
from goose_like.serve.openai.history import STATE_FORMAT, ChatTurn, build_context, build_turn
from goose_like.serve.openai.request import RequestError, check_tool_names
from goose_like.serve.openai.response import AnswerWriter
from goose_like.serve.state import StateSigner, TurnState
from tests.fakes import is_well_formed
from tests.fuzz.source import Source

SIGNER = StateSigner(b"k" * 32)
OWN = ToolCall(id="own", name="shell", arguments="{}")
THEIRS = ToolCall(id="a", name="f", arguments="{}")
STATE = TurnState(
    events=(
        MessageCompleted(message=Message(role="assistant", parts=(Thinking(text="hm"), Text(text="So."), OWN, THEIRS))),
        ToolFinished(result=ToolResult(call_id="own", output="o")),
    ),
)
SIGNED = SIGNER.sign(STATE.model_dump(mode="json"), build_context("Hi.", "So."))
CALLS = [{"id": name, "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}} for name in "ab"]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
DETAILS = [{"type": "reasoning.encrypted", "format": STATE_FORMAT, "data": SIGNED}]
HI = {"role": "user", "content": "Hi."}
ASKED = {"role": "assistant", "content": "So.", "tool_calls": CALLS[:1]}
RESULTS = [{"role": "tool", "tool_call_id": name, "content": "1"} for name in "ab"]
GROUPS = (
    *([HI], [{"role": "user", "content": ""}], [{"role": "user", "content": [{"type": "text", "text": "see"}]}]),
    *([{"role": "user", "content": [IMAGE]}], [{"role": "system", "content": "Be short."}]),
    *([{"role": "assistant", "content": "An answer."}], [{"role": "assistant", "content": None}]),
    *([ASKED], [ASKED, RESULTS[0]], [{**ASKED, "tool_calls": CALLS}, *reversed(RESULTS)], [RESULTS[0]]),
    *([HI, {**ASKED, "reasoning_details": DETAILS}, RESULTS[0]],) * 3,
)
FIELDS = (
    *({"stream": True, "stream_options": {"include_usage": True}}, {"stream": False}, {"parallel_tool_calls": False}),
    *({"max_tokens": 5}, {"temperature": 0.5}, {"stop": ["re"]}, {"n": 1}, {"tool_choice": "none"}),
    {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string"}}}},
    {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {}}}}}]},
)
KEYS = ("role", "content", "type", "tool_calls", "id", "function", "tools", "reasoning_details", "image_url", "url")
PIECES = (b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\0", b"\xff", b"\\ud83d", b"NaN", b"1e999", b"[" * 300)


class FuzzTarget:
    """Bodies of requests. Each one is answered, or refused with an error that names a field."""

    def __init__(self, folder: Path) -> None:
        pass

    def create(self, source: Source) -> bytes:
        body = {"model": "m", "messages": [message for group in source.some(GROUPS, 4) for message in group]}
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
            chat = ChatBody.parse(body)
            request = chat.convert()
            check_tool_names(request, ("shell",))
            turn = build_turn(request, SIGNER)
        except RequestError as error:
            refused = build_error_response(str(error), error.status, error.param, error.code)
        else:
            turn.history.apply(TurnStarted(message=turn.message))
            assert is_well_formed(turn.history.messages), turn.history.messages
            self._answer(chat, turn)
            return
        assert json.loads(bytes(refused.body))["error"]["message"]

    def _answer(self, chat: ChatBody, turn: ChatTurn) -> None:
        """Finish the turn with a text or, if the client has a tool, with a call."""
        request = chat.convert()
        calls = [ToolCall(id="new", name=function.name, arguments="{}") for function in request.functions[:1]]
        done = MessageCompleted(message=Message.assistant("Here.", calls))
        finished = TurnFinished(reason="handed_off" if calls else "stop")
        turn.history.apply(done)
        turn.history.apply(finished)
        writer = AnswerWriter(request, turn, SIGNER, ChatEncoder(chat))
        sent = writer.start() + writer.write([TurnStarted(message=turn.message), TextDelta(text="Here."), done])
        sent += writer.finish(finished)
        *lines, end = sent.decode().split("\n\n") if request.is_stream else (sent.decode(), "")
        assert not end
        for line in lines:
            text = line.removeprefix("data: ")
            assert text == "[DONE]" or isinstance(json.loads(text), dict), line
