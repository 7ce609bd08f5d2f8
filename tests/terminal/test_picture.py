"""Pictures in terminals."""

import io
import os
import re
from base64 import b64decode
from pathlib import Path

import pytest
from PIL import Image as Picture
from rich.console import Console

from goose_like.core.message import Image, ToolResult
from goose_like.terminal.picture import encode_picture, find_protocol, read_pictures
from goose_like.terminal.wrap import ConsoleLines


def draw(width: int = 90, height: int = 50) -> bytes:
    file = io.BytesIO()
    Picture.effect_noise((width, height), 90).convert("RGB").save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("variables", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "TMUX": "/x"}, None),
        ({"TERM": "dumb", "TERM_PROGRAM": "iTerm.app"}, None),
        ({}, None),
    ],
)
def test_terminals_are_recognised(variables, protocol):
    assert find_protocol(variables) == protocol


def test_kitty_gets_the_image_in_chunks():
    data = draw()
    parts = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", encode_picture(data, "kitty", 80))
    assert len(parts) > 1
    assert parts[0][0] == "a=T,f=100,q=2,c=9,m=1"
    assert [head for head, _ in parts[1:]] == ["m=1"] * (len(parts) - 2) + ["m=0"]
    assert b64decode("".join(chunk for _, chunk in parts)) == data
    assert encode_picture(b"\xff\xd8\xff", "kitty", 80) == ""


def test_iterm2_gets_the_image():
    data = draw(9_000, 2)
    found = re.fullmatch(r"\x1b]1337;File=inline=1;size=(\d+);width=80:(.*)\x1b\\", encode_picture(data, "iterm2", 80))
    assert (int(found[1]), b64decode(found[2])) == (len(data), data)


def test_sixel_draws_every_pixel():
    picture = Picture.new("RGB", (7, 8), "white")
    picture.putpixel((3, 7), (255, 0, 0))
    file = io.BytesIO()
    picture.save(file, "PNG")
    _, *colors, bands = re.fullmatch(
        r'\x1bPq("1;1;7;8)((?:#\d+;2;\d+;\d+;\d+)+)(.*)\x1b\\', encode_picture(file.getvalue(), "sixel", 80)
    ).groups()
    numbers = {tuple(map(int, rgb)): at for at, *rgb in re.findall(r"#(\d+);2;(\d+);(\d+);(\d+)", colors[0])}
    red, white = numbers[100, 0, 0], numbers[100, 100, 100]
    first, second, _ = bands.split("-")
    assert first == f"#{white}!7~"
    assert sorted(second.split("$")) == sorted([f"#{white}BBB@BBB", f"#{red}???A???"])
    assert encode_picture(b"\x89PNG broken", "sixel", 80) == ""


def test_pictures_of_a_result_are_read(tmp_path):
    files = [tmp_path / "a.png", tmp_path / "b.png", tmp_path / "text.png"]
    for file in files[:2]:
        file.write_bytes(draw())
    files[2].write_text("secret")
    os.mkfifo(tmp_path / "pipe.png")
    names = [*files, tmp_path / "pipe.png", Path("/dev/zero"), tmp_path / "gone", tmp_path]
    text = "\n".join(f"[figure: {name}]" for name in (files[0], *names[2:]))
    images = tuple(Image(name="x.png", media_type="image/png", source=str(name)) for name in files[:2])
    found = list(read_pictures(ToolResult(call_id="1", output=text, images=images)))
    assert found == [file.read_bytes() for file in files[:2]]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_terminals_get_pictures(tmp_path, monkeypatch, is_terminal):
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("TERM", "xterm-kitty")
    (tmp_path / "a.png").write_bytes(draw())
    file = io.StringIO()
    lines = ConsoleLines(Console(file=file, force_terminal=is_terminal))
    lines.write_pictures(ToolResult(call_id="1", output=f"[figure: {tmp_path}/a.png]"))
    assert ("\x1b_G" in file.getvalue()) == is_terminal
