"""The engine's state after the fixed beginning of a prompt, kept on disk: the next start need not evaluate it again.

The engine saves and restores a state only over HTTP.
"""

import hashlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from goose_like.config.paths import cache_folder, create_private_folder

_KEPT_STATES = 4
"""The number of states in the cache. A state of 450 tokens of the embedded model has 13 MB."""


def states_folder() -> Path:
    """Return the folder that the engine writes its states into."""
    return cache_folder() / "prompts"


def name_state(model: Path, engine_version: str, body: Mapping[str, Any]) -> str:
    """Return a name for the state that a request leaves in an engine with this model."""
    file = model.stat()
    origin = [str(model), file.st_size, file.st_mtime_ns, engine_version, body]
    return hashlib.sha256(json.dumps(origin).encode()).hexdigest()


def restore_or_save(engine_socket: Path, name: str, evaluate: Callable[[], bool]) -> None:
    """Restore a state. If there is none, call `evaluate`, which returns whether it came to its end, and save the state.

    A state that cannot be read or written costs time and is no error.
    """
    with suppress(OSError):
        state = _find_state(name)
        if state and _call_engine(engine_socket, "restore", state.name):
            return
    if not evaluate():
        return
    unfinished = states_folder() / f"{name}.{os.getpid()}"
    with suppress(OSError):
        create_private_folder(unfinished.parent)
        if _call_engine(engine_socket, "save", unfinished.name):
            unfinished.replace(unfinished.with_name(f"{name}-{_hash(unfinished)}"))
        else:
            unfinished.unlink()
        for state in sorted(unfinished.parent.iterdir(), key=lambda state: state.stat().st_mtime)[:-_KEPT_STATES]:
            state.unlink()


def _find_state(name: str) -> Path | None:
    """Return the file of a state. The engine would end the process over a damaged file, so such a file is removed."""
    for state in states_folder().glob(f"{name}-*"):
        if state.name == f"{name}-{_hash(state)}":
            os.utime(state)  # the states in use are kept
            return state
        state.unlink()
    return None


def _hash(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _call_engine(engine_socket: Path, action: Literal["save", "restore"], name: str) -> bool:
    """Let the engine save or restore the state of its only slot, and return whether it did."""
    body = json.dumps({"filename": name})
    request = f"POST /slots/0?action={action} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(engine_socket))
        connection.sendall(request.encode())
        with connection.makefile("rb") as answer:
            return b" 200 " in answer.readline()
