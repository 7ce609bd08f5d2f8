"""The real ConCopilot of PyPI in a virtual environment of its own, made once for all tests that look at it."""

import fcntl
import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

# `regex` is imported by one of its modules and missing in what the package says it needs.
NEEDED = ("concopilot==0.0.5", "regex")

# Imports once what takes long, then runs each program in a process forked off.
SERVER = """
import json, os, sys, traceback
import concopilot.framework.run, concopilot.basic.message.manager.jsonmanager

def run(job):
    out = os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(job["folder"])
    sys.argv[:] = ["-c", *job["arguments"]]
    try:
        exec(compile(job["program"], "<program>", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        return 0
    except BaseException:
        traceback.print_exc()
        return 1

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os._exit(run(json.loads(line)))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="session")
def real_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that can import the real `concopilot`; what else it needs may come from the environment around."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "concopilot-real"
    with (shared / "concopilot-real.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            _make(folder)
            (folder / "made").touch()
    return folder / "bin" / "python"


class Real:
    """The real package in a process that has imported it."""

    def __init__(self, python: Path, out: Path) -> None:
        self._out = out
        command = [str(python), "-I", "-c", SERVER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, program: str, folder: Path, arguments: Sequence[str] = ()) -> str:
        """What the program prints, run in the folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"program": program, "folder": str(folder), "arguments": arguments, "out": str(self._out)}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        ended = self._process.stdout.readline()
        printed = self._out.read_text()
        assert ended == "0\n", (ended, printed[-3000:])
        return printed

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="session")
def real(real_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """Runs programs with the real package."""
    made = Real(real_python, tmp_path_factory.mktemp("real") / "out.txt")
    yield made
    made.end()


def _make(folder: Path) -> None:
    venv.create(folder, clear=True, symlinks=True)
    python = folder / "bin" / "python"
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "around.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *NEEDED]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
