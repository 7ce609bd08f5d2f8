"""A process that has imported goose-like, and forks itself for each start: 30 ms of processor time instead of 450.

A forked process differs from a started one only in its imports: arguments, environment, folder, standard streams and
terminal are its own, and its parent is the process of the tests.
"""

import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import re
import runpy
import select
import socket
import struct
import sys
import tempfile
import termios
from contextlib import suppress
from types import ModuleType
from typing import Any, TextIO

NUMBER = struct.Struct("i")
PASSED_FILES = 3

# Those that run in processes of their own, the types of editors, which take a second, and OpenTelemetry's packages,
# which read variables.
NOT_IMPORTED = re.compile(r"\.(__main__|worker|shipped_plugins|conpack|acp|otel)\b")


def serve(tests: socket.socket, shells: socket.socket) -> dict[str, Any]:
    """Fork for each request of the tests or of a shell; return the request in the forked process."""
    middles = set()
    while True:
        of_shell = shells in select.select([tests, shells], [], [])[0]
        channel = shells.accept()[0] if of_shell else tests
        head, files, _, _ = socket.recv_fds(channel, NUMBER.size, PASSED_FILES)
        if not head and of_shell:
            channel.close()  # the shell was killed
            continue
        if not head:
            os._exit(0)  # the process of the tests has ended
        text = _receive(channel, NUMBER.unpack(head)[0])
        answers, answer = os.pipe()
        if middle := os.fork():
            pid = os.read(answers, NUMBER.size)
            if of_shell:
                middles.add(middle)
                channel.close()
            else:
                os.waitpid(middle, 0)  # now the child belongs to the process of the tests
                channel.sendall(pid)
            for file in (answers, answer, *files):
                os.close(file)
            middles -= {each for each in middles if os.waitpid(each, os.WNOHANG)[0]}
        elif child := os.fork():
            os.write(answer, NUMBER.pack(child))
            if of_shell:
                _report(child, channel, files)
            os._exit(0)
        else:
            for number, file in enumerate(files):
                os.dup2(file, number)
            return json.loads(text)


def _report(child: int, channel: socket.socket, files: list[int]) -> None:
    """Tell a shell the id of the process and, when it has ended, its status."""
    for file in files:
        os.close(file)
    channel.sendall(NUMBER.pack(child))
    channel.sendall(NUMBER.pack(os.waitpid(child, 0)[1]))


def _receive(channel: socket.socket, size: int) -> bytes:
    text = b""
    while len(text) < size:
        part = channel.recv(size - len(text))
        if not part:
            break
        text += part
    return text


def import_all() -> None:
    """Import the modules of the commands."""
    from goose_like.launch.pydantic_plugins import skip_plugin_search

    with tempfile.TemporaryDirectory() as home:
        os.environ["GOOSE_LIKE_HOME"] = home
        skip_plugin_search()
        for package in map(importlib.import_module, ("goose_like", "goose_like_toolkits")):
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not NOT_IMPORTED.search(module.name):
                    with suppress(ImportError):  # of an extra that is not installed
                        importlib.import_module(module.name)
    for module in [module for name, module in sys.modules.items() if name.startswith("goose_like")]:
        _forget_answers(module)
    gc.collect()
    gc.freeze()


def _forget_answers(module: ModuleType) -> None:
    """Empty the caches of a module: each process finds out by itself what its home says."""
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def run(request: dict[str, Any]) -> None:
    """Become `python -m goose_like` with the arguments of the request."""
    os.closerange(PASSED_FILES, os.sysconf("SC_OPEN_MAX"))
    if request["has_terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None  # that of TMPDIR is no longer known
    os.chdir(request["folder"])
    sys.stdin = sys.__stdin__ = _reopen(sys.stdin, buffers_lines=False)
    sys.stdout = sys.__stdout__ = _reopen(sys.stdout, buffers_lines=os.isatty(1))
    sys.stderr = sys.__stderr__ = _reopen(sys.stderr, buffers_lines=True)
    sys.argv[1:] = request["words"]
    sys.path.insert(0, request["folder"])
    runpy.run_module("goose_like", run_name="__main__", alter_sys=True)


def _reopen(stream: TextIO, buffers_lines: bool) -> TextIO:
    raw = io.FileIO(stream.fileno(), stream.mode, closefd=False)
    buffered = io.BufferedReader(raw) if stream.mode == "r" else io.BufferedWriter(raw)
    newline = None if stream.mode == "r" else "\n"
    opened = io.TextIOWrapper(buffered, stream.encoding, stream.errors, newline, line_buffering=buffers_lines)
    opened.mode = stream.mode
    return opened


if __name__ == "__main__":
    del sys.path[0]
    of_tests, of_shells = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    import_all()
    run(serve(of_tests, of_shells))
