"""What a person's words bring along: files and folders that they name with `@`."""

from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from goose_like.agent.mentions import (
    MAX_FILE_BYTES,
    MAX_NAMES,
    MAX_TOTAL_BYTES,
    build_message,
    find_image_paths,
    format_mention,
    format_pasted_image,
)
from goose_like.core.images import save_image
from goose_like.core.message import Image, Message, Text
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model
from goose_like.workspace.workspace import Workspace
from tests.fakes import FakeProvider

PNG = b"\x89PNG\r\n\x1a\n1"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def said(root: Path, tmp_path: Path):
    """The message that words make in the sandbox's jail, and what the person is told."""

    def said(words: str) -> tuple[Message, list[str]]:
        workspace = Workspace(root, mode="workspace", approval="auto", notifier=Recorder())
        model = Model(FakeProvider(), "x", "scripted:x", takes_images=True)
        return build_message(words, workspace, tmp_path / "outputs", model)

    return said


def texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Text)]


def test_a_file_follows_the_words_which_stay_as_they_were_typed(root, said):
    (root / "a.py").write_text("print(1)\n")
    message, told = said("explain @a.py to me")
    assert texts(message) == ["explain @a.py to me", "\n[a.py]\nprint(1)\n"]
    assert message.first_text == "explain @a.py to me"
    assert told == []


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        ("@a.py", ["a.py"]),
        ("see @a.py, (@sub/b.txt), and `@a.py`.", ["a.py", "sub/b.txt"]),
        ("is it @a.py?", ["a.py"]),
        ('@"my notes.md" and @a.py', ["my notes.md", "a.py"]),
        ("@odd,", ["odd,"]),
        ("@./a.py", ["./a.py"]),
        ("me@a.py, @property, @nobody/here, @, @@a.py, @a.py/x and @" + "x" * 5000, []),
    ],
)
def test_what_is_a_mention(root, said, words, paths):
    (root / "sub").mkdir()
    for name in ("a.py", "sub/b.txt", "my notes.md", "odd,", "odd"):
        (root / name).write_text("x\n")
    message, told = said(words)
    assert texts(message)[1:] == [f"\n[{path}]\nx\n" for path in paths]
    assert told == []


def test_a_folder_is_its_names(root, said):
    (root / "sub/below").mkdir(parents=True)
    (root / "sub/b.txt").write_text("")
    assert texts(said("@sub/")[0])[1:] == ["\n[sub/]\nb.txt\nbelow/\n"]
    for number in range(MAX_NAMES):
        (root / f"sub/{number}").touch()
    assert texts(said("@sub")[0])[1].endswith("\n[2 more]\n")


def test_a_long_file_is_cut_at_a_line_and_says_how_to_read_on(root, said):
    (root / "long file.log").write_text("".join(f"line {number:04}\n" for number in range(6000)))
    message, told = said('@"long file.log"')
    text = texts(message)[1]
    assert "line 4999\n\n[1,000 of 6,000 lines are left out; read on with `tail -c +50001 'long file.log'`]" in text
    assert told == ["the model sees the first 50,000 of 60,000 bytes of long file.log"]


def test_one_long_line_is_cut_within_and_never_within_a_letter(root, said):
    (root / "min.js").write_text("x" + "ü" * MAX_FILE_BYTES)
    text = texts(said("@min.js")[0])[1]
    assert "x" + "ü" * ((MAX_FILE_BYTES - 1) // 2) + "\n[1 of 1 lines" in text


def test_all_together_have_a_limit(root, said):
    for number in range(5):
        (root / f"{number}.txt").write_text("x" * 49 + "\n" * MAX_FILE_BYTES)
    message, told = said("@0.txt @1.txt @2.txt @3.txt @4.txt")
    assert sum(map(len, texts(message)[1:])) < MAX_TOTAL_BYTES + 1000
    assert told[-1].startswith("the model does not see 4.txt: the files of one message may have 200,000 bytes")


def test_an_image_is_an_image(root, said):
    (root / "shot.png").write_bytes(PNG)
    (root / "shot").write_bytes(PNG)
    message, _ = said('@shot.png and @shot and "shot.png"')
    assert [part.source for part in message.parts if isinstance(part, Image)] == ["shot.png", "shot"]
    assert texts(message)[1:] == []


def test_a_pasted_image_is_found_in_its_own_session_only(root, said, tmp_path):
    image = save_image(PNG, "in the clipboard", tmp_path / "outputs")
    message, told = said(f"what is {format_pasted_image(image)}?")
    assert [(part.name, part.source) for part in message.images] == [
        (image.name, str(tmp_path / "outputs" / image.name))
    ]
    assert told == []
    message, told = said("what is @pasted-00000000.png?")
    assert message.images == ()
    assert told == ["the model does not see pasted-00000000.png: it was pasted in another session; paste it again"]


def test_what_can_not_be_shown_is_told(root, said):
    (root / "data").write_bytes(b"\xff\xfe\xfd")
    (root / "zero").write_bytes(b"a\0b")
    with NamedTemporaryFile(dir="/tmp") as mine:
        message, told = said(f"@data @zero @{mine.name}")
    assert texts(message)[1:] == []
    assert [sentence.partition(": ")[2] for sentence in told] == [
        "it is no UTF-8 text; ask for a tool that reads it",
        "it is binary; ask for a tool that reads it",
        "commands have a private /tmp; put the file into the workspace",
    ]


def test_a_secret_is_not_shown(root, said, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    (root / ".ssh").mkdir()
    (root / ".ssh/id_rsa").write_text("secret")
    message, told = said("@~/.ssh/id_rsa and @.ssh")
    assert texts(message)[1:] == []
    assert ["it may hold secrets" in sentence for sentence in told] == [True, True]


@pytest.mark.parametrize("path", ["a.py", "my file.py"])
def test_a_path_is_written_as_it_is_read(root, said, path):
    (root / path).write_text("x\n")
    assert texts(said(f"see {format_mention(path)} now")[0])[1:] == [f"\n[{path}]\nx\n"]


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
