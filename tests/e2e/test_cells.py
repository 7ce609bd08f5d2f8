"""Cells in the real command: what a person sees of them, and nothing left when goose-like is gone."""

import signal
import sys
import time

import pytest

from goose_like.workspace.sandbox import bubblewrap
from tests.e2e.command import Place
from tests.e2e.pages import find_blocks
from tests.processes import wait_for_count


@pytest.fixture
def analyst(place: Place) -> Place:
    """A profile with the toolkit `code`."""
    (place.home / "config").mkdir(parents=True)
    (place.home / "config" / "profiles.yaml").write_text("analyst:\n  toolkits: [code]\n")
    return place


def cell(code: str, **arguments):
    return {"tool": "run_python", "arguments": {"code": code, **arguments}}


def test_screen_shows_cells(analyst):
    model = analyst.script(
        {"calls": [cell("import math\ndef area(r):\n    return math.pi * r ** 2")]},
        {"calls": [cell("print('working')\nsize = area(2)"), cell("plt.plot([1, 2]);")]},
        {"calls": [cell("area('x')")], "expect": r"size = 12\.56.*\[figure: .*\.png\]"},
        {"text": "it is 12.57", "expect": r"cell line 1\n.*\[raised TypeError\]"},
    )
    done = analyst.run("run", "--profile", "analyst", "--model", model, "how large?")
    assert (done.returncode, done.stdout) == (0, "it is 12.57\n"), done.stderr
    assert (
        "▸ run_python  import math\n              def area(r):\n                  return math.pi * r ** 2\n"
        in done.stderr
    )
    assert "  │1 working\n  │1 size = 12.56" in done.stderr
    assert "  ✓2 figure: " in done.stderr
    assert "  ✗ raised TypeError · " in done.stderr


def test_docs_profile_works(place):
    (written,) = find_blocks("docs/code.md", "yaml")
    (place.home / "config" / "profiles").mkdir(parents=True)
    (place.home / "config" / "profiles" / "notebook.yaml").write_text(written)
    (place.work / ".venv").symlink_to(sys.prefix)
    model = place.script({"calls": [cell("import sys\nsys.prefix")]}, {"text": "seen", "expect": r"\.venv"})
    done = place.run("run", "--profile", "notebook", "--model", model, "go")
    assert done.stdout == "seen\n", done.stderr


def test_resumed_session_reports_lost_kernel(analyst):
    report = r"\[this is a new kernel: the previous kernel ended with its session; its variables are gone \(x\)\]"
    model = analyst.script(
        {"calls": [cell("x = 41")]},
        {"text": "kept", "expect": "x = 41"},
        {"calls": [cell("1")]},
        {"text": "seen", "expect": report},
    )
    words = ("run", "--profile", "analyst", "--model", model, "--session", "s")
    assert analyst.run(*words, "go").stdout == "kept\n"
    done = analyst.run(*words, "--resume", "go on")
    assert done.stdout == "seen\n", done.stderr


@pytest.mark.parametrize("mode", ["workspace", "full"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_running(analyst, mode, end):
    if mode == "workspace" and (why := bubblewrap.find_sandbox_problem()):
        pytest.skip(why)
    child = f"sleep 5678{time.time_ns() % 100_000}"
    code = f"import subprocess, time\nsubprocess.Popen({child.split()!r}, start_new_session=True)\ntime.sleep(300)"
    model = analyst.script({"calls": [cell(code)]})
    process = analyst.start("run", "--profile", "analyst", "--model", model, "--sandbox", mode, "go")
    try:
        wait_for_count(1, child)
        process.send_signal(end)
        process.communicate(timeout=60)
        wait_for_count(0, child)
    finally:
        process.kill()
        process.wait()
