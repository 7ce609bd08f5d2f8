"""The real ConCopilot of PyPI in a virtual environment of its own, made once for all tests that look at it."""

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

# `regex` is imported by one of its modules and missing in what the package says it needs.
NEEDED = ("concopilot==0.0.5", "regex")


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


def _make(folder: Path) -> None:
    venv.create(folder, clear=True, symlinks=True)
    python = folder / "bin" / "python"
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "around.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *NEEDED]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
