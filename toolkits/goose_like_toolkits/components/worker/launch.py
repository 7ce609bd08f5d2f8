"""The worker process from its first line to its last."""

import builtins
import faulthandler
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from .connection import Connection, Handler, call, connect
from .errors import describe_error
from .imports import use_folders


def main() -> None:
    """Serve goose_like, whose socket is standard input, until it is gone."""
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    faulthandler.enable(all_threads=False)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    line = Connection(connection)
    connect(line)
    builtins.input = _input
    handlers: dict[str, Handler] = {}
    is_online: list[bool] = []

    def setup(has_network: bool, **settings: Any) -> None:
        is_online.append(has_network)
        handlers.update(_set_up(**settings))

    handlers["setup"] = setup
    line.serve(handlers, lambda error: describe_error(error, all(is_online)))


def _set_up(
    root: str,
    runtime_root: str,
    folders: Mapping[str, Sequence[str]],
    tmp: str,
    site_folders: Sequence[str] = (),
    more_folders: Sequence[str] = (),
    repositories: Sequence[str] = (),
    readable: Sequence[str] = (),
    listed: Sequence[str] = (),
    dot_folders: Sequence[str] = (),
    packaging: Mapping[str, Any] | None = None,
) -> dict[str, Handler]:
    """Set up imports, corrections and the guard; return the handlers of requests.

    Args:
        root: the running directory.
        runtime_root: see `corrections.apply`.
        folders: see `use_folders`.
        tmp: the folder for temporary files.
        site_folders: see `use_folders`.
        more_folders: see `use_folders`.
        repositories: local repositories of components.
        readable: files and folders that components may read.
        listed: folders whose names they may list, as imports do.
        dot_folders: dot folders that they may use.
        packaging: settings of `conpack install`, `deploy` and downloads; None where components run.
    """
    use_folders(folders, site_folders, more_folders)
    os.environ.update(TMPDIR=tmp)
    corrections = import_module(".corrections", __package__)
    corrections.apply(root, runtime_root, repositories, packaging is not None)
    if packaging is not None:
        return dict(import_module(".packaging", __package__).build_handlers(**packaging))
    components = import_module(".components", __package__)
    guard = import_module(".guard", __package__)
    guard.Guard(root, [os.path.dirname(__file__), *readable], dot_folders, [tmp], listed).install()
    loaded = components.Components()
    handlers = {name: getattr(loaded, name) for name in ("load", "command", "finalize")}
    return {**handlers, "build": partial(components.build), "run": partial(components.run)}


def _input(prompt: object = "") -> str:
    """Ask the person in place of Python's `input`."""
    sys.stdout.flush()
    text = call("ask", text=str(prompt))
    if text is None:
        raise EOFError("nobody answers any more")
    return str(text)
