"""Tests of streamed answers: retries, broken streams, cut text and ids of calls."""

import json

import pytest

from goose_like.agent.exchange import CUT_ANSWER_ERROR
from goose_like.core.errors import CredentialError, ModelUnavailableError
from goose_like.core.events import (
    MessageCompleted,
    Retrying,
    TextDelta,
    TurnFinished,
)
from goose_like.core.message import Message
from tests.agent.loop import cancel_after, echo, list_types
from tests.fakes import PAUSE, call, calls


async def test_cancelling_keeps_the_streamed_text(create_harness):
    b = create_harness([[TextDelta(text="Once "), TextDelta(text="upon"), PAUSE], "Hello again."])
    await cancel_after(b, TextDelta, 2)
    assert b.events_of(MessageCompleted) == [MessageCompleted(message=Message.assistant("Once upon"), is_cut=True)]
    assert b.provider.streams_closed == 1
    await b.exchange.reply("Go on.")
    assert [message.text for message in b.provider.requests[1].messages] == [
        "Hi.",
        "Once upon",
        "Go on.\n\n[Your previous answer was cut off before its end.]",
    ]


async def test_an_error_keeps_the_partial_text(create_harness):
    b = create_harness([[TextDelta(text="ab"), CredentialError("set X")], "ok"])
    end = await b.exchange.reply("Hi.")
    assert end == TurnFinished(reason="error", detail="set X", exit_code=76)
    assert [(m.role, m.text) for m in b.messages] == [("user", "Hi."), ("assistant", "ab")]
    assert (await b.exchange.reply("Again.")).reason == "stop"


async def test_a_retry_discards_the_streamed_text(create_harness):
    broken = ModelUnavailableError("gone", is_retryable=True)
    b = create_harness([[TextDelta(text="void"), broken], [TextDelta(text="kept"), CredentialError("refused")]])
    await b.exchange.reply("Hi.")
    assert list_types(b.recorder.events)[3:6] == ["text_delta", "retrying", "text_delta"]
    assert [message.text for message in b.messages] == ["Hi.", "kept"]


async def test_retries_end(create_harness):
    b = create_harness([ModelUnavailableError("gone", is_retryable=True)] * 5)
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.detail, end.exit_code) == ("error", "gone", 77)
    assert (len(b.provider.requests), len(b.events_of(Retrying))) == (3, 2)


async def test_a_stream_without_a_message_is_no_answer(create_harness):
    b = create_harness([[TextDelta(text="so")]] * 3)
    end = await b.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 77)
    assert "ended its stream without a message" in end.detail


async def test_nothing_after_the_message_counts(create_harness):
    b = create_harness([["Hello.", ModelUnavailableError("gone", is_retryable=True)]])
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert len(b.provider.requests) == 1


async def test_an_unexpected_error_of_a_provider_ends_the_turn(create_harness):
    b = create_harness([[TextDelta(text="so"), KeyError("choices")]])
    with pytest.raises(KeyError):
        await b.exchange.reply("Hi.")
    assert (b.recorder.events[-1].reason, b.recorder.events[-1].exit_code) == ("error", 1)
    assert b.messages[-1].text == "so"


async def test_ids_are_made_unique(create_harness):
    twice = calls(
        *(call("echo", json.dumps({"text": text}), id=id) for text, id in [("1", "a"), ("2", "a"), ("3", "")])
    )
    b = create_harness([twice, calls(call("echo", '{"text": "4"}', id="a")), "Done."], echo)
    await b.exchange.reply("Hi.")
    ids = [call.id for message in b.messages for call in message.tool_calls]
    assert (ids[0], len(set(ids)), "" in ids) == ("a", 4, False)
    assert b.outputs == ["1", "2", "3", "4"]


async def test_cut_by_length(create_harness):
    cut = [TextDelta(text="Once"), MessageCompleted(message=Message.assistant("Once"), is_cut=True)]
    b = create_harness([cut])
    assert await b.exchange.reply("Hi.") == TurnFinished(reason="error", detail=CUT_ANSWER_ERROR, exit_code=1)
    assert [message.text for message in b.messages] == ["Hi.", "Once"]
    with_call = [MessageCompleted(message=calls(call("echo", '{"text": "a')), is_cut=True)]
    b = create_harness([with_call, "Done."], echo)
    assert (await b.exchange.reply("Hi.")).reason == "stop"
    assert "invalid JSON" in b.outputs[0]
