"""Tests of kept engine states, with an engine that knows only its state: a text."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from json import loads
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest

from goose_like.providers.prompt_state import name_state, restore_or_save, states_folder

BODY = {"messages": [{"role": "system", "content": "Be brief."}]}


@dataclass
class Engine:
    """An engine behind a socket. It refuses to restore an empty state, and must never see a damaged one."""

    socket: Path
    state: str = ""
    can_save: bool = True
    evaluations: int = 0
    actions: list[str] = field(default_factory=list)

    def evaluate(self) -> bool:
        self.state = "STATE of a prompt"
        self.evaluations += 1
        return True

    def call(self, path: str, file: Path) -> int:
        action = path.removeprefix("/slots/0?action=")
        self.actions.append(action)
        if action == "save":
            file.write_text(self.state[: None if self.can_save else 3])
            return 200 if self.can_save else 500
        self.state = file.read_text()
        return 200 if self.state else 400


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    servers = []

    def start() -> Engine:
        engine = Engine(tmp_path / f"{len(servers)}.sock")

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(engine.call(self.path, states_folder() / body["filename"]))
                self.end_headers()

            def address_string(self) -> str:
                return "engine"

        server = ThreadingUnixStreamServer(str(engine.socket), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return engine

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def list_states() -> dict[str, str]:
    """Return the kept states by their names, which a hash follows."""
    return {path.name.partition("-")[0]: path.read_text() for path in states_folder().iterdir()}


def test_the_second_start_restores_what_the_first_saved(start_engine: Callable[[], Engine]) -> None:
    first, second = start_engine(), start_engine()
    for engine in (first, second):
        restore_or_save(engine.socket, "abc", engine.evaluate)
        assert engine.state == "STATE of a prompt"
    assert (first.evaluations, first.actions) == (1, ["save"])
    assert (second.evaluations, second.actions) == (0, ["restore"])
    assert list_states() == {"abc": "STATE of a prompt"}
    assert states_folder().stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", ["", "STATE of a promp", "STATE of a prompt and more"])
def test_a_damaged_state_never_reaches_the_engine(start_engine: Callable[[], Engine], content: str) -> None:
    engine = start_engine()
    restore_or_save(engine.socket, "abc", engine.evaluate)
    (kept,) = states_folder().iterdir()
    kept.write_text(content)
    restore_or_save(engine.socket, "abc", engine.evaluate)
    assert (engine.evaluations, engine.actions) == (2, ["save", "save"])
    assert list_states() == {"abc": "STATE of a prompt"}


def test_a_state_that_the_engine_refuses_is_replaced(start_engine: Callable[[], Engine]) -> None:
    engine = start_engine()
    restore_or_save(engine.socket, "abc", lambda: True)
    restore_or_save(engine.socket, "abc", engine.evaluate)
    assert engine.actions == ["save", "restore", "save"]
    assert "STATE of a prompt" in list_states().values()


def test_an_unfinished_evaluation_is_not_saved(start_engine: Callable[[], Engine]) -> None:
    engine = start_engine()
    restore_or_save(engine.socket, "abc", lambda: engine.evaluate() and False)
    assert (engine.evaluations, engine.actions) == (1, [])


def test_an_engine_that_cannot_save_leaves_nothing(start_engine: Callable[[], Engine]) -> None:
    engine = start_engine()
    engine.can_save = False
    restore_or_save(engine.socket, "abc", engine.evaluate)
    assert engine.actions == ["save"]
    assert list_states() == {}


def test_a_cache_that_cannot_be_written_is_no_error(start_engine: Callable[[], Engine], home: Path) -> None:
    engine = start_engine()
    home.mkdir()
    (home / "cache").write_text("a file")
    restore_or_save(engine.socket, "abc", engine.evaluate)
    assert engine.evaluations == 1


def test_the_states_that_were_used_last_are_kept(start_engine: Callable[[], Engine]) -> None:
    engine = start_engine()
    for age, name in enumerate(["a", "b", "c", "d"]):
        restore_or_save(engine.socket, name, engine.evaluate)
        (state,) = states_folder().glob(f"{name}-*")
        os.utime(state, (1000 + age, 1000 + age))
    restore_or_save(engine.socket, "a", engine.evaluate)
    restore_or_save(engine.socket, "e", engine.evaluate)
    assert sorted(list_states()) == ["a", "c", "d", "e"]


def test_another_model_engine_or_prompt_has_another_state(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    names = [name_state(model, "1", BODY), name_state(model, "2", BODY), name_state(model, "1", {**BODY, "seed": 1})]
    assert name_state(model, "1", dict(BODY)) == names[0]
    model.write_bytes(b"GGUF and more")
    names.append(name_state(model, "1", BODY))
    assert len(set(names)) == 4
