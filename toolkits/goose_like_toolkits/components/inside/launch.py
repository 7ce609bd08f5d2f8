"""The process of the components, from its first line to its last."""

import builtins
import faulthandler
import os
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .faults import told
from .wire import Handler, Wire, call, connect


def main() -> None:
    """Serves the host, whose socket is the standard input, until it is gone."""
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    faulthandler.enable(all_threads=False)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    wire = Wire(connection)
    connect(wire)
    builtins.input = _asked
    handlers: dict[str, Handler] = {}

    def setup(**settings: Any) -> str:
        handlers.update(_set_up(**settings))
        return sys.version.partition(" ")[0]

    handlers["setup"] = setup
    wire.serve(handlers, told)


def _set_up(
    root: str,
    paths: Sequence[str],
    readable: Sequence[str],
    listed: Sequence[str],
    dot_folders: Sequence[str],
    tmp: str,
) -> dict[str, Handler]:
    """Makes ready for components: their folders for imports, the names they import, the bounds they keep to.

    Args:
        root: the running directory.
        paths: where their packages lie, beside the environment's.
        readable: what they may read.
        listed: the folders whose names they may list, as imports do.
        dot_folders: the folders with a leading dot that they may use.
        tmp: the folder for temporary files.
    """
    sys.path += paths
    import_module(".compat", __package__).install()
    performing = import_module(".performing", __package__)
    performing.find_by_host()
    settings = import_module("concopilot.package.config").Settings()
    settings.working_directory, settings.skip_setup = root, True
    guards = import_module(".guards", __package__)
    os.environ.update(TMPDIR=tmp)
    guards.Guard(root, [os.path.dirname(__file__), *readable], dot_folders, [tmp], listed).install()
    components = performing.Components()
    return {
        "load": components.load,
        "command": components.command,
        "construct": performing.construct,
        "run": components.run,
        "finish": components.finish,
    }


def _asked(prompt: object = "") -> str:
    """In place of `input`: the person is asked by the host."""
    sys.stdout.flush()
    text = call("ask", text=str(prompt))
    if text is None:
        raise EOFError("nobody answers any more")
    return str(text)
