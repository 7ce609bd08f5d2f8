"""Tests of attachments: images, files and folders in a user message."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

import pytest

from goose_like.agent.mentions import (
    MAX_FILE_BYTES,
    MAX_IMAGES,
    MAX_NAMES,
    MAX_TOTAL_BYTES,
    build_message,
    find_image_paths,
    format_mention,
    format_pasted_image,
)
from goose_like.core.images import MAX_IMAGE_BYTES, save_image
from goose_like.core.message import Image, Message, Text
from goose_like.core.notifier import Recorder
from goose_like.providers.base import FileLimits, Model
from goose_like.workspace.workspace import Workspace
from tests.fakes import FakeProvider
from tests.serve.documents.sample_files import build_pdf
from tests.workspace.workspace_harness import find_place

PNG = b"\x89PNG\r\n\x1a\n1"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def build(root: Path, tmp_path: Path):
    """Build the message of a text in a sandboxed workspace, with the notes for the user."""

    def build(text: str, typed: str | None = None, limits: FileLimits | None = None) -> tuple[Message, list[str]]:
        workspace = Workspace(root, mode="workspace", approval="auto", notifier=Recorder())
        model = Model(FakeProvider(), "x", "scripted:x", sees_images=True, file_limits=limits)
        return asyncio.run(build_message(text, workspace, tmp_path / "outputs", model, typed=typed))

    return build


def texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Text)]


def test_a_pdf_is_a_document_or_its_text(root, build):
    (root / "a.pdf").write_bytes(build_pdf(["Revenue rose"], ["Costs fell"]))
    message, notes = build("read @a.pdf", limits=FileLimits(max_bytes=1_000_000, max_images=9))
    assert [(image.media_type, image.source) for image in message.images] == [("application/pdf", "a.pdf")]
    assert notes == []
    message, notes = build("read @a.pdf")
    assert texts(message)[1] == "\n[a.pdf]\n[page 1]\nRevenue rose\n[page 2]\nCosts fell"
    (root / "a.pdf").write_bytes(b"%PDF-1.7 no more")
    message, notes = build("read @a.pdf")
    assert "the model does not see a.pdf: it is damaged" in notes[0]


def test_a_long_log_is_looked_through_at_once(root, build):
    """Each look at the disk for one of a million words took minutes, in which no signal counted."""
    (root / "a.py").write_text("print(1)\n")
    (root / "late.py").write_text("")
    log = "see @b\n" * 500_000 + "".join(f"@word{number} " for number in range(2_000))
    message, notes = build(f"explain @a.py {log} @late.py")
    assert texts(message)[1:] == ["\n[a.py]\nprint(1)\n"]
    limit = "only the first 1,000 words with @ are looked up; name files before long text"
    assert notes == [f"the model sees no file that @word998 or a later word names: {limit}"]
    most = " ".join(f"@word{number}" for number in range(998))
    message, notes = build(f"{most} @b {most} @late.py")
    assert (texts(message)[1:], notes) == (["\n[late.py]\n"], [])


def test_a_file_follows_the_text(root, build):
    (root / "a.py").write_text("print(1)\n")
    message, notes = build("explain @a.py to me")
    assert texts(message) == ["explain @a.py to me", "\n[a.py]\nprint(1)\n"]
    assert message.first_text == "explain @a.py to me"
    assert notes == []


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@a.py", ["a.py"]),
        ("see @a.py, (@sub/b.txt), and `@a.py`.", ["a.py", "sub/b.txt"]),
        ("is it @a.py?", ["a.py"]),
        ('@"my notes.md" and @a.py', ["my notes.md", "a.py"]),
        ("@odd,", ["odd,"]),
        ("@./a.py", ["./a.py"]),
        ('see /file:a.py and /file:"my notes.md", not a/file:a.py', ["a.py", "my notes.md"]),
        ("me@a.py, @property, @nobody/here, @, @@a.py, @a.py/x and @" + "x" * 5000, []),
    ],
)
def test_mentions_in_a_text(root, build, text, paths):
    (root / "sub").mkdir()
    for name in ("a.py", "sub/b.txt", "my notes.md", "odd,", "odd"):
        (root / name).write_text("x\n")
    message, notes = build(text)
    assert texts(message)[1:] == [f"\n[{path}]\nx\n" for path in paths]
    assert notes == []


def test_a_folder_is_listed(root, build):
    (root / "sub/below").mkdir(parents=True)
    (root / "sub/b.txt").write_text("")
    assert texts(build("@sub/")[0])[1:] == ["\n[sub/]\nb.txt\nbelow/\n"]
    for number in range(MAX_NAMES):
        (root / f"sub/{number}").touch()
    assert texts(build("@sub")[0])[1].endswith("\n[2 more]\n")


def test_a_long_file_is_cut(root, build):
    (root / "long file.log").write_text("".join(f"line {number:04}\n" for number in range(6000)))
    message, notes = build('@"long file.log"')
    text = texts(message)[1]
    assert "line 4999\n\n[the first 50,000 of 60,000 bytes; read on with `tail -c +50001 'long file.log'`]" in text
    assert notes == ["the model sees the first 50,000 of 60,000 bytes of long file.log"]


def test_a_long_line_is_cut_between_characters(root, build):
    (root / "min.js").write_text("x" + "ü" * MAX_FILE_BYTES)
    text = texts(build("@min.js")[0])[1]
    note = "[the first 49,999 of 100,001 bytes; read on with `tail -c +50000 min.js`]"
    assert "x" + "ü" * ((MAX_FILE_BYTES - 1) // 2) + f"\n{note}" in text


def test_all_files_share_a_limit(root, build):
    for number in range(5):
        (root / f"{number}.txt").write_text("x" * 49 + "\n" * MAX_FILE_BYTES)
    message, notes = build("@0.txt @1.txt @2.txt @3.txt @4.txt")
    assert sum(map(len, texts(message)[1:])) < MAX_TOTAL_BYTES + 1000
    assert notes[-1].startswith("the model does not see 4.txt: the files of one message may have 200,000 bytes")


def test_an_image_is_attached_as_an_image(root, build):
    (root / "shot.png").write_bytes(PNG)
    (root / "shot").write_bytes(PNG)
    message, _ = build('@shot.png and @shot and "shot.png"')
    assert [part.source for part in message.parts if isinstance(part, Image)] == ["shot.png", "shot"]
    assert texts(message)[1:] == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<html>not found</html>", "is not a PNG, JPEG, GIF or WebP image"),
        (b"", "is not a PNG, JPEG, GIF or WebP image"),
        (b"\x00\x01BMP", "is not a PNG, JPEG, GIF or WebP image"),
        (PNG + bytes(MAX_IMAGE_BYTES), "bytes, more than"),
    ],
)
@pytest.mark.parametrize("text", ["see shot.png", "see @shot.png"])
def test_an_image_that_no_model_can_read_is_not_attached(root, build, data, reason, text):
    (root / "shot.png").write_bytes(data)
    message, (note,) = build(text)
    assert message.parts == (Text(text=text),)
    assert note.startswith("the model does not see shot.png: ")
    assert reason in note


def test_a_pasted_image_is_found_in_its_own_session_only(root, build, tmp_path):
    image = save_image(PNG, "in the clipboard", tmp_path / "outputs")
    message, notes = build(f"what is {format_pasted_image(image)}?")
    assert [(part.name, part.source) for part in message.images] == [
        (image.name, str(tmp_path / "outputs" / image.name))
    ]
    assert notes == []
    message, notes = build("what is @pasted-00000000.png?")
    assert message.images == ()
    assert notes == ["the model does not see pasted-00000000.png: it was pasted in another session; paste it again"]


def test_files_that_cannot_be_attached(root, build):
    (root / "data").write_bytes(b"\x01\xff\xfe")
    (root / "zero").write_bytes(b"a\0b")
    with NamedTemporaryFile(dir="/tmp") as mine:
        mine.write(b"words")
        mine.flush()
        message, notes = build(f"@data @zero @{mine.name}")
    assert texts(message)[1:] == []
    assert [sentence.partition(": ")[2] for sentence in notes] == [
        "it is binary; ask for a tool that reads it",
        "it is binary; ask for a tool that reads it",
        "commands have a private /tmp; put the file into the workspace, or start with --add-dir /tmp",
    ]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("5 € für Müller\n".encode("cp1252"), "\n[f: unknown 8-bit encoding, shown as Windows-1252]\n5 € für Müller\n"),
        ("これは、メモです。\n".encode("cp932"), "\n[f: Shift-JIS]\nこれは、メモです。\n"),
        ("é\n".encode("utf-16"), "\n[f: utf-16-le]\né\n"),
        (b"\xef\xbb\xbf\xc3\xa9\r\n", "\n[f]\né\r\n"),
    ],
)
def test_text_in_any_encoding_is_attached(root, build, data, shown):
    (root / "f").write_bytes(data)
    message, notes = build("see @f")
    assert texts(message)[1:] == [shown]
    assert notes == []


def test_the_rest_of_a_long_file_is_named_by_its_bytes(root, build):
    (root / "f").write_bytes("é".encode("latin-1") * 60_000)
    message, _ = build("see @f")
    assert texts(message)[1].endswith("é\n[the first 50,000 of 60,000 bytes; read on with `tail -c +50001 f`]\n")


def test_a_secret_is_not_attached(root, build, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    (root / ".ssh").mkdir()
    (root / ".ssh/id_rsa").write_text("secret")
    message, notes = build("@~/.ssh/id_rsa and @.ssh")
    assert texts(message)[1:] == []
    assert ["it may hold secrets" in sentence for sentence in notes] == [True, True]


@pytest.mark.parametrize("path", ["a.py", "my file.py"])
def test_a_formatted_mention_is_found(root, build, path):
    (root / path).write_text("x\n")
    assert texts(build(f"see {format_mention(path)} now")[0])[1:] == [f"\n[{path}]\nx\n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what is in shot.png?", ["shot.png"]),
        ("compare a.png, b.JPEG and (c.webp)", ["a.png", "b.JPEG", "c.webp"]),
        ("see ../x/my-shot.v2.gif.", ["../x/my-shot.v2.gif"]),
        ("see 'my shot.png' and \"other shot.jpg\"", ["my shot.png", "other shot.jpg"]),
        (r"see my\ shot.png", ["my shot.png"]),
        (r"/a/shot\ \(1\).png '/b/my shot.png' 'c.png'", ["/a/shot (1).png", "/b/my shot.png", "c.png"]),
        (r"what's in 'a.png', and what isn't in 'b.png'?", ["a.png", "b.png"]),
        ("see file:///a/gr%C3%BCn%20(1).png, file:///b.png", ["/a/grün (1).png", "/b.png"]),
        ("'file:///a/my shot.png'\nfile://localhost/b.JPG\n", ["/a/my shot.png", "/b.JPG"]),
        ("a.png a.png", ["a.png"]),
        ("grün.png ~/x.png", ["grün.png", "~/x.png"]),
        ("a.pngs, png, .jpegx", []),
        *((long * 20_000, []) for long in ("a", "\\", "'a", "file://a", "file://a,", "\\ ", "\\(")),  # at once
    ],
)
def test_image_paths_in_a_text(text: str, expected: list[str]) -> None:
    assert find_image_paths(text) == expected


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that is neither in the workspace nor in /tmp, which a session does not see."""
    with TemporaryDirectory(dir=find_place()) as folder:
        yield Path(folder).resolve()


@pytest.mark.parametrize("form", ["@{}", '@"{}"', "/file:{}", "`{}`"])
def test_only_typed_words_name_files_elsewhere(root, build, elsewhere, form):
    for folder in (root, elsewhere):
        (folder / "shot.png").write_bytes(PNG)
    (root / "link.png").symlink_to(elsewhere / "shot.png")
    relative = os.path.relpath(elsewhere / "shot.png", root)
    paths = (f"{elsewhere}/shot.png", relative, "link.png", "./shot.png", "../none.png", "/none.png")
    text = " ".join(map(form.format, paths))
    message, notes = build(text, typed="")
    assert [part.source for part in message.images] == ["./shot.png"]
    reason = "the command of a project names only files of the workspace; type @{} yourself"
    expected = {f"the model does not see {path}: {reason.format(path)}" for path in paths[:3]}
    assert expected <= set(notes)
    message, notes = build(text, typed=f"see {form.format(relative)}")
    assert [part.source for part in message.images][-1] == "./shot.png"
    assert expected - set(notes) == {f"the model does not see {relative}: {reason.format(relative)}"}
    assert build(text, typed=text)[1] == build(text)[1]
    assert all("is no file and was sent as a word" in note for note in build(text)[1])


def test_images_of_both_texts_share_the_limit(root, build):
    for number in range(2 * MAX_IMAGES):
        (root / f"{number}.png").write_bytes(PNG)
    names = [f"{number}.png" for number in range(2 * MAX_IMAGES)]
    message, _ = build(" ".join(names), typed=" ".join(names[-2:]))
    assert [part.source for part in message.images] == [*names[-2:], *names[: MAX_IMAGES - 2]]
