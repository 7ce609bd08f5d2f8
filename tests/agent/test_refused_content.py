"""Content that a server refuses each time: it is left out once, noted for the session, and blocks nothing."""

from pathlib import Path

import pytest

from goose_like.core.errors import ContextLengthError, ProviderError
from goose_like.core.events import Retrying, StateSaved
from goose_like.core.history import PROMPT_STATE_KEY, History
from goose_like.core.images import save_image
from goose_like.core.message import Message, Text, Thinking, Verbatim
from goose_like.providers.wire import build_status_error
from tests.fakes import ExchangeHarness

PNG = b"\x89PNG\r\n\x1a\n"


def refuse(text: str) -> ProviderError:
    error = ProviderError(f"the request was refused (HTTP 400: {text}); choose another model")
    error.refusal = text
    return error


def attach(harness: ExchangeHarness, *names: str) -> Message:
    """Return a message with images, which are stored in the session's folder."""
    images = [save_image(PNG + name.encode(), name, harness.session.outputs) for name in names]
    return Message(role="user", parts=(Text(text="look"), *images))


def list_sent(harness: ExchangeHarness) -> list[list[str]]:
    """List the sources of the images of each request."""
    return [
        [image.source for message in request.messages for image in message.images]
        for request in harness.provider.requests
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Could not process image",
        "messages.0.content.1.image.source.base64: The image was specified using the image/png media type",
        "image_parse_error: the image data is invalid",
    ],
)
async def test_the_newest_image_is_left_out(tmp_path: Path, text: str) -> None:
    harness = ExchangeHarness([refuse(text), "fine", "again"], folder=tmp_path, takes_images=True)
    done = await harness.exchange.reply(attach(harness, "old.png", "new.png"))
    assert (done.reason, done.exit_code) == ("stop", 0)
    await harness.exchange.reply("more")
    assert list_sent(harness) == [["old.png", "new.png"], ["old.png"], ["old.png"]]
    assert "[image new.png: the server refused it]" in harness.provider.requests[-1].messages[0].text
    (note,) = [event.text for event in harness.recorder.events if isinstance(event, Retrying)]
    assert "the server refuses the image new.png; it is left out" in note
    # A resumed session knows it, too.
    assert History.replay(harness.session.read_events()).state == harness.exchange.history.state


@pytest.mark.parametrize(
    "text",
    [
        "request_too_large",
        "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        "too many images: 101 > 100",
    ],
)
async def test_older_images_are_left_out_of_a_request_that_is_too_large(tmp_path: Path, text: str) -> None:
    harness = ExchangeHarness([refuse(text), "fine"], folder=tmp_path, takes_images=True)
    await harness.exchange.reply(attach(harness, "1.png", "2.png", "3.png"))
    assert list_sent(harness) == [["1.png", "2.png", "3.png"], ["3.png"]]


async def test_a_request_with_too_many_bytes_and_no_image_is_shortened(tmp_path: Path) -> None:
    error = build_status_error(
        413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}, "m", "K"
    )
    assert "more bytes than the server takes" in str(error)
    assert isinstance(error, ContextLengthError)
    with_image = ExchangeHarness([error, "fine"], folder=tmp_path / "a", takes_images=True)
    await with_image.exchange.reply(attach(with_image, "1.png", "2.png"))
    assert list_sent(with_image) == [["1.png", "2.png"], ["2.png"]]


async def test_all_images_are_left_out_for_a_model_that_takes_none(tmp_path: Path) -> None:
    harness = ExchangeHarness(
        [refuse("this model does not support image input"), "fine"], folder=tmp_path, takes_images=True
    )
    await harness.exchange.reply(attach(harness, "old.png", "new.png"))
    assert list_sent(harness) == [["old.png", "new.png"], []]


async def test_a_refusal_that_stays_ends_the_turn(tmp_path: Path) -> None:
    harness = ExchangeHarness([refuse("Could not process image")] * 2, folder=tmp_path, takes_images=True)
    done = await harness.exchange.reply(attach(harness, "old.png", "new.png"))
    assert (done.reason, done.exit_code) == ("error", 1)
    assert list_sent(harness) == [["old.png", "new.png"], ["old.png"]]


@pytest.mark.parametrize("text", ["Could not process image", "thinking blocks cannot be modified", "something else"])
async def test_a_refusal_without_such_content_ends_the_turn(tmp_path: Path, text: str) -> None:
    harness = ExchangeHarness([refuse(text), "never"], folder=tmp_path, takes_images=True)
    done = await harness.exchange.reply("hello")
    assert (done.reason, len(harness.provider.requests)) == ("error", 1)


@pytest.mark.parametrize(
    "text",
    [
        "The block is bound to a different conversation",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item",
        "invalid_encrypted_content: the encrypted content could not be verified",
        "Function call is missing a thought_signature",
    ],
)
async def test_refused_thinking_is_left_out(tmp_path: Path, text: str) -> None:
    verbatim = Verbatim(wire="responses", origin="x", items=({"type": "reasoning", "id": "rs_1"},))
    thought = Message(role="assistant", parts=(Thinking(text="hm", signature="S"), Text(text="one")), verbatim=verbatim)
    harness = ExchangeHarness([thought, refuse(text), "two", "three"], folder=tmp_path)
    await harness.exchange.reply("a")
    done = await harness.exchange.reply("b")
    assert done.reason == "stop"
    answers = [request.messages[1] for request in harness.provider.requests[1:]]
    assert [(len(answer.parts), answer.verbatim is not None) for answer in answers] == [(2, True), (1, False)]
    await harness.exchange.reply("c")
    assert harness.provider.requests[-1].messages[1] == answers[1]


async def test_refused_thinking_of_a_chat_server_stays_left_out(tmp_path: Path) -> None:
    """Such thinking is not bound to the text before it, so that another prompt alone leaves it in."""
    items = ({"tool_calls": [{"extra_content": {"google": {"thought_signature": "S"}}}]},)
    verbatim = Verbatim(wire="chat", origin="x", items=items)
    thought = Message(role="assistant", parts=(Text(text="one"),), verbatim=verbatim)
    later = thought.model_copy(update={"parts": (Text(text="two"),)})
    harness = ExchangeHarness(
        [thought, refuse("Thought signature is not valid: thought_signature"), later, "three", "four"], folder=tmp_path
    )
    await harness.exchange.reply("a")
    assert (await harness.exchange.reply("b")).reason == "stop"
    harness.journal.emit(StateSaved(toolkit=PROMPT_STATE_KEY, value="another prompt"))
    await harness.exchange.reply("c")
    kept = [[message.text for message in request.messages if message.verbatim] for request in harness.provider.requests]
    assert kept == [[], ["one"], [], ["two"]]
    assert History.replay(harness.session.read_events()).context.messages == harness.exchange.history.context.messages
