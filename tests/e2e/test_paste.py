"""Images by paste: the clipboard's own, by a program on the PATH that is ours, and the paths that terminals paste."""

import os

import pytest

from goose_like.core.images import MAX_IMAGE_BYTES
from tests.e2e.command import Place, shell

PNG = b"\x89PNG\r\n\x1a\n\x00shot"


@pytest.fixture
def clipboard(place: Place):
    """Puts such a program into the place of a system's, and gives the variables that lead to it."""

    def put(program: str, line: str, variable: str) -> dict[str, str]:
        folder = place.home / "bin"
        folder.mkdir(exist_ok=True)
        (place.home / "shot.png").write_bytes(PNG)
        (folder / program).write_text(f"#!/bin/sh\n{line}\n")
        (folder / program).chmod(0o755)
        others = {"WAYLAND_DISPLAY": "", "DISPLAY": "", "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        return others | {variable: ":9"}

    return put


def images(place: Place) -> list[bytes]:
    """The images of the first message, as they are kept."""
    (message,) = [event["message"] for event in place.events() if event["type"] == "turn_started"]
    (outputs,) = (place.home / "state/sessions").glob("*/outputs")
    return [(outputs / part["name"]).read_bytes() for part in message["parts"] if part["type"] == "image"]


@pytest.mark.parametrize(
    ("program", "variable", "wanted", "key"),
    [
        ("wl-paste", "WAYLAND_DISPLAY", "--type image/png", "\x16"),
        ("xclip", "DISPLAY", "-selection clipboard -t image/png -o", "\x1bv"),
    ],
)
def test_an_image_in_the_clipboard(session, place, clipboard, program, variable, wanted, key):
    env = clipboard(program, f'echo noise >&2; [ "$*" = "{wanted}" ] && cat {place.home}/shot.png', variable)
    terminal = session("I see it", columns=300, **env)
    terminal.see("context")
    terminal.type(f"what is{key}")
    terminal.see("goose> what is @pasted-")
    terminal.type("about?")
    terminal.see(".png about?")
    terminal.type("\r")
    terminal.see("I see it")
    assert images(place) == [PNG]
    assert not list(place.work.iterdir()), "the person's folder stays as it was"


@pytest.mark.parametrize(
    ("line", "report"),
    [
        ("exit 1", "there is no image in the clipboard; copy one"),
        ("echo only text", "there is no image in the clipboard; copy one"),
        (
            f"cat $0.png; head -c {MAX_IMAGE_BYTES} /dev/zero",
            "the image in the clipboard has more than 3,750,000 bytes",
        ),
        ("sleep 300", "wl-paste did not return the clipboard within 2 s"),
    ],
)
def test_a_clipboard_that_gives_no_image(session, place, clipboard, line, report):
    env = clipboard("wl-paste", line, "WAYLAND_DISPLAY")
    (place.home / "bin/wl-paste.png").write_bytes(PNG)
    terminal = session("hello", columns=300, **env)
    terminal.see("context")
    terminal.type("half a\x16 thought")
    terminal.see("goose> half a thought")  # at once, whatever the program does
    terminal.see(report)
    terminal.see("goose> half a thought")


def test_a_machine_without_a_clipboard(session):
    terminal = session("hello", WAYLAND_DISPLAY="", DISPLAY="", columns=300)
    terminal.see("context")
    terminal.type("\x16")
    terminal.see("cannot paste an image: no clipboard")


def test_an_image_that_comes_at_a_question_waits_beside_it(session, place, clipboard):
    os.mkfifo(place.home / "wait")
    os.mkfifo(place.work / "wait")
    env = clipboard("wl-paste", f"read x < {place.home}/wait; cat {place.home}/shot.png", "WAYLAND_DISPLAY")
    calls = [shell("echo working; read < wait; sleep 1")], [shell("echo x", access="network") | {"id": "b"}]
    terminal = session({"calls": calls[0]}, {"calls": calls[1]}, "as you say", **env)
    terminal.type("go\r")
    terminal.see("│ working")
    (place.work / "wait").write_text("\n")
    terminal.type("see\x16")
    terminal.see("[N] no:")
    (place.home / "wait").write_text("\n")
    terminal.type("n\r")
    terminal.see("as you say")
    terminal.see("goose> see @pasted-")
    assert place.list_answers() == [("deny", "person")]


@pytest.mark.parametrize("form", ["'{}'", '"{}"', "file://{}", "{}"])
def test_a_path_that_a_terminal_pastes(session, place, form):
    file = place.work / "my shot (1).png"
    file.write_bytes(PNG)
    path = str(file)
    if form == "{}":
        path = path.replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")
    if form == "file://{}":
        path = path.replace(" ", "%20")
    terminal = session("I see it", columns=300)
    terminal.type(f"\x1b[200~{form.format(path)}\x1b[201~")
    terminal.see("(1" if "\\" not in path else "\\(1")
    terminal.type("\r")
    terminal.see("I see it")
    assert images(place) == [PNG]
