import os
import random
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.forked import get_server
from tests.e2e.screen import ScreenTerminal

NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture
def place(tmp_path):
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    return Place(tmp_path / "home", tmp_path / "work")


@pytest.fixture
def newcomer(place, tmp_path):
    """Runs lines of a shell in an environment that is new and active, and knows what this one has installed.

    With `forks`, goose-like starts fast and does not find what the lines install.
    """
    if not find_spec("pip") or int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("pip and the setuptools of the extra `dev` install the package")
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    installed = [str(path) for path in map(Path, sys.path) if path.name in ("site-packages", "dist-packages")]
    (site / "installed.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in installed))
    for name, module in (("pip", "pip"), ("goose-like", "goose_like")):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec python -m {module} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    get_server().write_command(place.home / "goose-like")

    def run(lines: str, *, forks: bool = False, **env: str) -> "subprocess.CompletedProcess[str]":
        command = ["bash", "-ec", lines]
        here = {"PATH": f"{place.home}{os.pathsep}{path}"} if forks else {"PATH": path, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command, cwd=place.work, env=place.env(**here, **NO_INDEX, **env), capture_output=True, text=True,
            timeout=300, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def open_screen(place) -> Iterator[object]:
    """Open commands in emulated terminals and close them at the end of the test."""
    terminals: list[ScreenTerminal] = []

    def start(*words: str, **how) -> ScreenTerminal:
        terminals.append(ScreenTerminal(place, *words, **how))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.fixture
def session(place, open_screen):
    """Start a session with a scripted model and wait for its prompt."""

    def start(*steps: object, words: tuple[str, ...] = (), **how) -> ScreenTerminal:
        terminal = open_screen("session", "start", "talk", "--model", place.script(*steps), *words, **how)
        terminal.see("goose>")
        return terminal

    return start


class Moments:
    """The moments at which processes are killed, without those that an earlier run of the suite has passed.

    `note` describes the current moment in the state file.
    """

    def __init__(self, count: int, file: Path | None) -> None:
        self._count = count
        self._file = file
        self.note = ""

    def __call__(self, kind: str) -> Iterator[tuple[int, random.Random]]:
        """Yield the moments of one kind of process, each with its own source of chance."""
        lines = self._file.read_text().splitlines() if self._file and self._file.exists() else []
        passed = {line.partition(":")[0] for line in lines}
        for moment in range(self._count):
            name = f"{kind} {moment}"
            if name not in passed:
                yield moment, random.Random(name)
                if self._file:
                    with self._file.open("a") as file:
                        file.write(f"{name}: {self.note}\n")


@pytest.fixture
def moments(request) -> Moments:
    """The moments of the options `--kills` and `--kill-state`."""
    file = request.config.getoption("--kill-state")
    return Moments(request.config.getoption("--kills"), Path(file) if file else None)
