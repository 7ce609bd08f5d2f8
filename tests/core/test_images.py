"""Tests of images: in messages, in tool results and on the wires."""

import json
from operator import is_
from pathlib import Path
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.context import estimate_tokens
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import (
    Logged,
    MessageCompleted,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    saved_event_adapter,
)
from goose_like.core.history import History
from goose_like.core.images import MAX_IMAGE_BYTES, check_image, detect_media_type, save_image
from goose_like.core.message import Image, Message, Text, ToolCall, ToolResult, replace_images
from goose_like.core.tool import ImageResult
from goose_like.providers.base import Request
from goose_like.providers.json_tool_calls import convert_request
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.openai_wire import OpenAIEncoder
from tests.fakes import ExchangeHarness, call, calls
from tests.loopback import Loopback, said, sse
from tests.toolkits.developer.developer_harness import open_developer

PNG = b"\x89PNG\r\n\x1a\n1"
GIF = b"GIF89a2"
IMAGE = Image(name="a.png", media_type="image/png", source="a.png")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\x0a\0\0\nWEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"<svg/>", None),
        (b"", None),
        (b" \x89PNG\r\n\x1a\n", None),
    ],
)
def test_the_media_type_comes_from_the_first_bytes(data: bytes, expected: str | None) -> None:
    assert detect_media_type(data) == expected


def test_an_image_is_saved_once(tmp_path: Path) -> None:
    one, other, third = (save_image(data, f"{n}.png", tmp_path / "o") for n, data in enumerate((PNG, PNG, GIF)))
    assert one.name == other.name != third.name
    assert third.media_type == "image/gif"  # by its bytes, whatever its name says
    assert {file.name: file.read_bytes() for file in (tmp_path / "o").iterdir()} == {one.name: PNG, third.name: GIF}


def test_a_wrong_or_large_image_is_refused() -> None:
    with pytest.raises(GooseLikeError, match="not a PNG"):
        check_image(b"text", "x.png")
    with pytest.raises(GooseLikeError, match="make it smaller"):
        check_image(PNG + bytes(MAX_IMAGE_BYTES), "x.png")


# --- from a person


async def reply(words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> ExchangeHarness:
    work = folder / "work"
    work.mkdir()
    for name, data in (("shot.png", PNG), ("my shot.gif", GIF), ("fake.png", b"text")):
        (work / name).write_bytes(data)
    (work / "huge.png").write_bytes(PNG + bytes(MAX_IMAGE_BYTES))
    monkeypatch.chdir(work)
    bench = ExchangeHarness(["seen"], folder=folder / "session", **how)
    assert await bench.exchange.reply(words) == TurnFinished(reason="stop")
    return bench


async def test_an_image_in_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await reply("what is in shot.png and 'my shot.gif'?", tmp_path, monkeypatch, takes_images=True)
    (request,) = bench.provider.requests
    text, *images = request.messages[0].parts
    assert text == Text(text="what is in shot.png and 'my shot.gif'?")
    assert [(image.source, image.media_type) for image in images if isinstance(image, Image)] == [
        ("shot.png", "image/png"),
        ("my shot.gif", "image/gif"),
    ]
    assert request.images
    assert [(request.images / image.name).read_bytes() for image in request.messages[0].images] == [PNG, GIF]
    assert bench.replay() == bench.exchange.history
    assert bench.events_of(Logged) == []
    assert all(size < 1_000 for size in map(len, bench.session.file.read_bytes().splitlines()))


async def test_text_replaces_images_for_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await reply("what is in shot.png?", tmp_path, monkeypatch)
    (message,) = bench.provider.requests[0].messages
    assert message.text == "what is in shot.png?\n[image shot.png: you can't see images]"
    assert message.images == ()
    assert len(bench.messages[0].images) == 1  # another model may see it yet
    assert ["takes no images" in event.text for event in bench.events_of(Logged)] == [True]


@pytest.mark.parametrize(
    ("words", "report"),
    [
        ("make a plot.png", []),
        ("see https://example.org/x.png and shot.png/x.png", []),
        ("see huge.png", ["make it smaller"]),
    ],
)
async def test_images_that_cannot_be_attached(
    words: str, report: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await reply(words, tmp_path, monkeypatch, takes_images=True)
    assert bench.provider.requests[0].messages == (Message.user(words),)
    logged = bench.events_of(Logged)
    assert len(logged) == len(report)
    assert all(part in event.text for part, event in zip(report, logged, strict=True))


async def test_an_image_in_the_tmp_of_the_machine_is_attached(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.png").write_bytes(PNG)  # below the machine's /tmp, which the sandbox has not
    (tmp_path / "fake.png").write_text("words")
    async with open_developer(tmp_path) as here:
        bench = ExchangeHarness(["yes"], folder=tmp_path / "s2", takes_images=True, workspace=here.workspace)
        await bench.exchange.reply(f"see {tmp_path}/elsewhere.png and {tmp_path}/fake.png")
    (message,) = bench.provider.requests[0].messages
    assert [image.source for image in message.images] == [f"{tmp_path}/elsewhere.png"]
    assert ["put the file into the workspace" in event.text for event in bench.events_of(Logged)] == [True]


# --- from a tool


def look() -> ImageResult:
    """Looks."""
    return ImageResult(PNG, "the screen", "here it is")


def stare() -> ImageResult:
    """Looks, in vain."""
    return ImageResult(b"nothing", "the screen")


@pytest.mark.parametrize("takes_images", [True, False])
async def test_an_image_of_a_tool(takes_images: bool, tmp_path: Path) -> None:
    script = [calls(call("look", id="1"), call("stare", id="2")), "seen"]
    bench = ExchangeHarness(script, look, stare, folder=tmp_path, takes_images=takes_images)
    await bench.exchange.reply("look")
    results = {event.result.call_id: event.result for event in bench.events_of(ToolFinished)}
    assert [image.source for image in results["1"].images] == ["the screen"]
    assert results["2"].is_error
    assert "not a PNG" in results["2"].output
    sent = bench.provider.requests[1].messages[-1].tool_results[0]
    assert sent.output == ("here it is" if takes_images else "here it is\n[image the screen: you can't see images]")
    assert len(sent.images) == takes_images
    assert bench.replay() == bench.exchange.history


async def test_the_developer_toolkit_reads_images(tmp_path: Path) -> None:
    async with open_developer(tmp_path, mode="full") as here:
        (here.root / "a.png").write_bytes(PNG)
        outcome = await here.outcome("read_file", path="a.png")
    assert outcome.output == "[a.png: an image, 9 bytes]"
    assert outcome.image == ImageResult(PNG, "a.png", outcome.output)


def test_replacing_images_reuses_the_object() -> None:
    plain, shown = Message.user("x"), Message(role="user", parts=(Text(text="x"), IMAGE))
    assert replace_images(plain) is plain
    assert replace_images(shown) is replace_images(shown)


def test_many_messages_without_their_images_stay_the_same_objects() -> None:
    """Otherwise the whole conversation would be encoded anew in each step."""
    images = [Image(name=f"{at}.png", media_type="image/png", source="x") for at in range(200)]
    shown = [Message(role="user", parts=(image,)) for image in images]
    first = list(map(replace_images, shown))
    assert all(map(is_, first, map(replace_images, shown)))


def test_an_image_counts_in_the_window() -> None:
    assert estimate_tokens(Message(role="user", parts=(IMAGE,))) > estimate_tokens(Message.user("x" * 4_000))


# --- chat completions


def test_images_on_openais_wire(tmp_path: Path) -> None:
    image = save_image(PNG, "a.png", tmp_path)
    lost = image.model_copy(update={"name": "lost.png"})
    history = [
        Message(role="user", parts=(Text(text="see"), image)),
        Message.assistant("", [ToolCall(id="1", name="t", arguments=""), ToolCall(id="2", name="t", arguments="")]),
        Message(
            role="tool",
            parts=(ToolResult(call_id="1", output="one", images=(image, lost)), ToolResult(call_id="2", output="two")),
        ),
    ]
    request = Request("m", "", history, images=tmp_path)
    encoder, before = OpenAIEncoder(), b""
    for end in range(len(history) + 1):
        body = encoder.encode_request(Request("m", "", history[:end], images=tmp_path))
        assert body.startswith(before)
        before = body.removesuffix(b"]}")
    assert body == OpenAIEncoder().encode_request(request)
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgox"}}
    report = {"type": "text", "text": "[image a.png]"}
    gone = {"type": "text", "text": "[image a.png: its file is gone]"}
    said_, _, one, two, shown = json.loads(body)["messages"]
    assert said_ == {"role": "user", "content": [{"type": "text", "text": "see"}, report, url]}
    assert (one["content"], two["content"]) == ("one", "two")
    assert shown == {"role": "user", "content": [report, url, gone]}


def test_the_constrained_form_keeps_the_images_of_results() -> None:
    result = Message(role="tool", parts=(ToolResult(call_id="1", output="one", images=(IMAGE,)),))
    assert convert_request(Request("m", "", [result])).messages[0].images == (IMAGE,)


async def test_images_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    image = save_image(PNG, "a.png", tmp_path)
    async with Loopback([sse(said("red"))]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m", base_url=server.base_url))
        request = Request("m", "", [Message(role="user", parts=(Text(text="see"), image))], images=tmp_path)
        done = [delta async for delta in provider.stream(request)][-1]
        await provider.close()
        assert isinstance(done, MessageCompleted)
        assert server.requests[0].json["messages"][0]["content"][2]["image_url"]["url"].startswith("data:image/png;")


def test_sessions_with_images_are_replayed() -> None:
    event = TurnStarted(message=Message(role="user", parts=(Text(text="see"), IMAGE)))
    read = saved_event_adapter.validate_json(event.model_dump_json())
    assert History.replay([read]).messages[0].images == (IMAGE,)
