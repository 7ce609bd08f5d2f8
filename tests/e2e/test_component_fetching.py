"""Components that are fetched when a session begins: what a person sees meanwhile, and how they stop it."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.e2e.command import Place
from tests.toolkits.components.component_server import ComponentServer, component_server, reply

WHERE = "/maven/releases/org/ada/words/1.0"
CONFIG = b"""\
group_id: org.ada
artifact_id: words
version: "1.0"
type: plugin
as_plugin: true
info: {title: words, description: Counts words.}
commands: [{command_name: count, description: Counts.}]
setup: {package: words}
"""


@contextmanager
def stuck_server(folder: Path) -> Iterator[tuple[ComponentServer, threading.Event]]:
    """A server that has a component, and stops in the middle of its second file; the event says that it does."""
    is_asked, is_over = threading.Event(), threading.Event()

    def stuck(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("content-length", "2000000")
        request.end_headers()
        request.wfile.write(b"x" * 100_000)
        is_asked.set()
        is_over.wait(60)

    with component_server(folder) as server:
        listing = b"- words-1.0-config.yaml\n- words-1.0-large.bin\n"
        server.more[f"{WHERE}/__FILES.yaml"] = lambda request: reply(request, 200, listing)
        server.more[f"{WHERE}/words-1.0-config.yaml"] = lambda request: reply(request, 200, CONFIG)
        server.more[f"{WHERE}/words-1.0-large.bin"] = stuck
        try:
            yield server, is_asked
        finally:
            is_over.set()


def profile(place: Place, *addresses: str) -> None:
    used = {"group_id": "org.ada", "artifact_id": "words", "version": "1.0"}
    toolkit = {"name": "components", "config": {"repositories": addresses, "use": [used]}}
    written = {"use": "words", "words": {"processor": place.script({"text": "hello"}), "toolkits": [toolkit]}}
    (place.home / "config").mkdir(exist_ok=True)
    (place.home / "config" / "profiles.yaml").write_text(json.dumps(written))


def files_of(place: Place) -> list[Path]:
    return [file for file in (place.home / ".concopilot").rglob("*") if not file.is_dir() or file.name.startswith(".")]


def test_a_run_that_is_stopped_while_it_fetches_ends_at_once_and_leaves_nothing(place: Place, tmp_path: Path):
    (tmp_path / "remote").mkdir()
    with stuck_server(tmp_path / "remote") as (server, is_asked):
        profile(place, server.url)
        process = place.start("run", "hi", env={"HOME": str(place.home)})
        assert is_asked.wait(60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, "Traceback" in err) == (130, "", False), err
        assert files_of(place) == []


def test_a_session_shows_what_it_waits_for_and_ctrl_c_ends_it(place: Place, tmp_path: Path, open_screen):
    (tmp_path / "remote").mkdir()
    with stuck_server(tmp_path / "remote") as (server, is_asked):
        profile(place, server.url)
        terminal = open_screen("session", "start", HOME=str(place.home))
        terminal.see(f"asking {server.url} for org.ada:words:1.0")
        assert is_asked.wait(60)
        terminal.type("half a sentence")
        terminal.see("goose> half a sentence")
        terminal.type("\x03")
        assert terminal.wait_exit() == 130
        assert files_of(place) == []


def test_a_repository_that_gives_no_answer_is_asked_once(place: Place, tmp_path: Path):
    with component_server(tmp_path) as server:
        server.more[WHERE] = lambda request: reply(request, 405)
        server.more[f"{WHERE}/__FILES.yaml"] = lambda request: reply(request, 503)
        profile(place, server.url)
        done = place.run("run", "hi", env={"HOME": str(place.home)})
        assert (done.returncode, done.stderr.count("503")) == (2, 1), done.stderr
        assert "profiles.yaml, line " in done.stderr
        assert [method for method, _, _ in server.asked] == ["POST", "GET"]


def test_switching_sessions_shows_progress_and_ctrl_c_returns(place: Place, tmp_path: Path, open_screen):
    (tmp_path / "remote").mkdir()
    with stuck_server(tmp_path / "remote") as (server, is_asked):
        profile(place, server.url)
        file = place.home / "config" / "profiles.yaml"
        profiles = json.loads(file.read_text())
        plain = {"processor": place.script({"text": "here as before"}), "toolkits": []}
        file.write_text(json.dumps(profiles | {"use": "plain", "plain": plain}))
        terminal = open_screen("session", "start", HOME=str(place.home))
        terminal.type("/profile words\r")
        terminal.see(f"asking {server.url} for org.ada:words:1.0")
        assert is_asked.wait(60)
        terminal.type("\x03")
        terminal.type("hi\r")
        terminal.see("here as before")
        terminal.type("exit\r")
        assert terminal.wait_exit() == 0
