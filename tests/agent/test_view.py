"""Tests of the view: the conversation and side questions."""

import pytest

from goose_like.core.errors import ProviderError
from goose_like.core.message import Message


async def test_the_view_shows_the_conversation_and_asks_questions(create_harness):
    harness = create_harness(["Hello.", "Blue."])
    await harness.exchange.reply("Hi.")
    view = harness.exchange.view
    assert view.processor.messages[-1] == Message.assistant("Hello.")
    assert view.last_user_text == "Hi."
    assert await view.accelerator.ask("Which colour?") == "Blue."
    assert len(view.processor.messages) == 2
    assert harness.recorder.events[-1].purpose == "side question"


async def test_a_model_whose_server_does_not_search(create_harness):
    model = create_harness([]).exchange.view.processor
    assert not model.can_search_web
    with pytest.raises(ProviderError, match="cannot search the web"):
        await model.search_web("primes")


async def test_an_answer_in_json_and_its_tokens(create_harness):
    harness = create_harness(['{"colour": 5}', '{"colour": "blue"}'])
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    assert await harness.exchange.view.accelerator.ask_json("Which colour?", schema) == {"colour": "blue"}
    assert [event.purpose for event in harness.recorder.events if event.type == "usage_recorded"] == [
        "side question"
    ] * 2
