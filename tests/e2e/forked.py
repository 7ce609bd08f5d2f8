"""Starts of goose-like that `fork_server` makes fast."""

import ctypes
import json
import os
import shlex
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from tests.e2e import fork_client, fork_server

PR_SET_CHILD_SUBREAPER = 36

READ_BY_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "TZ")
READ_BY_TYPER = ("TYPER_", "TERMINAL_WIDTH", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")
FIRST_READ = (*READ_BY_PYTHON, *READ_BY_TYPER)
"""The first letters of variables that Python or an imported module reads before goose-like runs."""

LATER_READ = ("PYTHON_KEYRING_BACKEND",)


class ForkServer:
    """The server of this process of the tests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._first_read = list_first_read(os.environ)
        self._started: set[str] = set()
        self._channel, theirs = socket.socketpair()
        self._address = f"\0goose-like-tests-{os.getpid()}"  # of no file
        with theirs, socket.socket(socket.AF_UNIX) as shells:
            shells.bind(self._address)
            shells.listen()
            numbers = (theirs.fileno(), shells.fileno())
            command = [sys.executable, fork_server.__file__, *map(str, numbers)]
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
            self._process = subprocess.Popen(command, pass_fds=numbers, **streams)

    def write_command(self, file: Path) -> None:
        """Write a program `goose-like` for shells that forks. Not for those with a terminal, which it would not own."""
        settings = {"address": self._address, "python": sys.executable}
        settings |= {"first_letters": FIRST_READ, "later_read": LATER_READ, "first_read": self._first_read}
        settings_file = file.with_name("fork-settings.json")
        settings_file.write_text(json.dumps(settings))
        line = shlex.join([sys.executable, "-I", "-S", fork_client.__file__, str(settings_file)])
        file.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        file.chmod(0o755)

    def can_start(self, words: tuple[str, ...], env: dict[str, str]) -> bool:
        """Return whether a fork is the same as a start. The first start of each command is never a fork."""
        name = words[0] if words else ""
        if name not in self._started:
            self._started.add(name)
            return False
        return list_first_read(env) == self._first_read

    def fork(self, files: list[int], **request: Any) -> int:
        """Fork, and return the id of the process, which is a child of this one."""
        text = json.dumps(request).encode()
        with self._lock:
            _take_orphans(True)
            try:
                socket.send_fds(self._channel, [fork_server.NUMBER.pack(len(text))], files)
                self._channel.sendall(text)
                answer = self._channel.recv(fork_server.NUMBER.size)
            finally:
                _take_orphans(False)
        return fork_server.NUMBER.unpack(answer)[0]


def list_first_read(env: Any) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(FIRST_READ) and name not in LATER_READ}


def _take_orphans(takes: bool) -> None:
    """Become the parent of processes below this one whose parent ends, or no longer."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(takes), 0, 0, 0)


@cache
def get_server() -> ForkServer:
    return ForkServer()


class ForkedProcess(subprocess.Popen):  # type: ignore[type-arg]
    """`python -m goose_like` with the words, forked."""

    def __init__(self, words: tuple[str, ...], has_terminal: bool = False, **how: Any) -> None:
        self._has_terminal = has_terminal
        super().__init__([sys.executable, "-m", "goose_like", *words], **how)

    def _execute_child(self, args: Any, *more: Any) -> None:
        _, _, _, _, folder, env, _, _, _, read_in, our_in, our_out, write_out, our_err, write_err = more[:15]
        given = (read_in, write_out, write_err)
        files = [number if file == -1 else file for number, file in enumerate(given)]
        words = list(map(os.fsdecode, args[3:]))
        self.pid = get_server().fork(
            files, words=words, env=env, folder=os.path.abspath(folder), has_terminal=self._has_terminal
        )
        self._child_created = True
        self._close_pipe_fds(read_in, our_in, our_out, write_out, our_err, write_err)
