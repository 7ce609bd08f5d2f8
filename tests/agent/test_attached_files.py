"""Images and PDF files: what a server takes in one request, and the text of a file for a model that takes none."""

import struct

import pytest

from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Logged
from goose_like.core.history import History
from goose_like.core.images import MAX_DOCUMENT_BYTES, check_image, measure_image, save_image
from goose_like.core.message import Message, Text
from goose_like.core.tool import ImageResult
from goose_like.providers.base import FileLimits
from tests.fakes import ExchangeHarness, call, calls
from tests.serve.documents.sample_files import build_pdf

PDF = build_pdf(["Revenue rose"])
ROOMY = FileLimits(max_bytes=1_000_000, max_images=100)


def build_png(side: int, name: str) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", side, side) + name.encode()


def attach(harness: ExchangeHarness, *files: tuple[str, bytes]) -> Message:
    images = [save_image(data, name, harness.session.outputs) for name, data in files]
    return Message(role="user", parts=(Text(text="look"), *images))


def list_sent(harness: ExchangeHarness) -> list[list[str]]:
    """List the sources of the images and files of each request."""
    return [
        [image.source for message in request.messages for image in message.images]
        for request in harness.provider.requests
    ]


def read_report() -> ImageResult:
    return ImageResult(PDF, "report.pdf", "[report.pdf: a PDF file]")


@pytest.mark.parametrize("takes_documents", [True, False])
async def test_a_result_is_a_document_or_its_text(tmp_path, takes_documents):
    limits = ROOMY if takes_documents else None
    script = [calls(call("read_report")), "fine"]
    harness = ExchangeHarness(script, read_report, folder=tmp_path, takes_images=True, file_limits=limits)
    await harness.exchange.reply("read it")
    (result,) = harness.provider.requests[-1].messages[-1].tool_results
    if takes_documents:
        assert [image.media_type for image in result.images] == ["application/pdf"]
        assert result.output == "[report.pdf: a PDF file]"
    else:
        assert result.images == ()
        assert result.output == "[report.pdf: a PDF file]\n[page 1]\nRevenue rose"


async def test_a_model_that_takes_no_documents_is_told_of_earlier_ones(tmp_path):
    harness = ExchangeHarness(["fine"], folder=tmp_path, takes_images=True)
    await harness.exchange.reply(attach(harness, ("a.pdf", PDF), ("b.png", build_png(1, "b"))))
    assert list_sent(harness) == [["b.png"]]
    assert "[document a.pdf: you can't read PDF files; ask for a tool]" in harness.provider.requests[0].messages[0].text


async def test_a_file_twice_is_left_out_once(tmp_path):
    """Each place counts. A file that was said again is as new as that, and the note comes once."""
    old = ("old.png", build_png(10, "old"))
    new = ("new.png", build_png(10, "new"))
    limits = FileLimits(1_000_000, max_images=2)
    harness = ExchangeHarness(["fine"] * 4, folder=tmp_path, takes_images=True, file_limits=limits)
    for files in ([old, new], [old], []):
        await harness.exchange.reply(attach(harness, *files))
    assert list_sent(harness) == [["old.png", "new.png"], ["old.png", "old.png"], ["old.png", "old.png"]]
    await harness.exchange.reply(attach(harness, old))
    assert list_sent(harness)[-1] == []
    notes = [event.text for event in harness.recorder.events if isinstance(event, Logged)]
    assert [note.rpartition("documents: ")[2] for note in notes] == ["the oldest (1) are left out"] * 2


NAMES = [f"{number}.png" for number in range(8)]
SMALL = [(name, build_png(10, name)) for name in NAMES]
LARGE = [("old.png", build_png(3_000, "old")), *SMALL]


@pytest.mark.parametrize(
    ("files", "limits", "sent"),
    [
        pytest.param(SMALL, FileLimits(1_000_000, max_images=8), NAMES, id="all fit"),
        pytest.param(SMALL, FileLimits(1_000_000, max_images=7), NAMES[4:], id="too many"),
        pytest.param(SMALL, FileLimits(150, max_images=9), NAMES[6:], id="too many bytes"),
        pytest.param(LARGE, FileLimits(1_000_000, 99, 5, 2_000), NAMES[4:], id="a large one among many"),
        pytest.param(LARGE, FileLimits(1_000_000, 99, 9, 2_000), ["old.png", *NAMES], id="a large one among few"),
        pytest.param([("a.pdf", PDF)], FileLimits(10, max_images=9), [], id="one that is too large"),
    ],
)
async def test_the_oldest_are_left_out(tmp_path, files, limits, sent):
    """The server never refuses the request, and later requests begin with the same messages."""
    harness = ExchangeHarness(["fine", "again"], folder=tmp_path, takes_images=True, file_limits=limits)
    await harness.exchange.reply(attach(harness, *files))
    await harness.exchange.reply("more")
    assert list_sent(harness) == [sent, sent]
    notes = [event.text for event in harness.recorder.events if isinstance(event, Logged)]
    left_out = len(files) - len(sent)
    assert len(notes) == bool(left_out)
    assert all(f"the oldest ({left_out}) are left out" in note for note in notes)
    assert History.replay(harness.session.read_events()).state == harness.exchange.history.state


def test_the_size_of_each_kind_of_image():
    assert measure_image(build_png(3_000, "")) == (3_000, 3_000)
    assert measure_image(b"GIF89a" + struct.pack("<HH", 7, 9)) == (7, 9)
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, 9, 7) + bytes(9)
    assert measure_image(b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + bytes(14) + frame) == (7, 9)
    assert measure_image(b"\xff\xd8\xff\xe0") == (0, 0)
    assert measure_image(b"RIFF....WEBPVP8 " + bytes(10) + struct.pack("<HH", 7, 9)) == (7, 9)
    assert measure_image(b"RIFF....WEBPVP8L" + bytes(5) + struct.pack("<I", 6 | 8 << 14)) == (7, 9)
    extended = struct.pack("<I", 6)[:3] + struct.pack("<I", 8)[:3]
    assert measure_image(b"RIFF....WEBPVP8X" + bytes(8) + extended) == (7, 9)


def test_a_pdf_that_is_too_large():
    with pytest.raises(GooseLikeError, match="take the pages that are needed into a smaller one"):
        check_image(b"%PDF-" + bytes(MAX_DOCUMENT_BYTES), "a.pdf")
