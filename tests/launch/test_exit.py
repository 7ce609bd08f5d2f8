"""The end of the process."""

import subprocess
import sys

import pytest

_LEAVE = "from goose_like.launch.exit import leave; leave(3)"


def _run(code: str) -> tuple[int, str]:
    ended = subprocess.run([sys.executable, "-c", f"{code}; {_LEAVE}"], stdout=subprocess.PIPE, text=True, check=False)
    return ended.returncode, ended.stdout


def test_exit_functions_run_and_output_is_written() -> None:
    assert _run("import atexit; atexit.register(print, 'last words'); print('answer', end=' ')") == (
        3,
        "answer last words\n",
    )


def test_a_thread_that_works_ends_first() -> None:
    work = "lambda: (time.sleep(0.3), print('worked'))"
    assert _run(f"import threading, time; threading.Thread(target={work}).start()") == (3, "worked\n")


def test_the_executor_of_a_toolkit_ends_its_work() -> None:
    submit = "ThreadPoolExecutor().submit(lambda: (time.sleep(0.3), print('worked')))"
    assert _run(f"import time; from concurrent.futures import ThreadPoolExecutor; {submit}") == (3, "worked\n")


_INTERRUPTED = """
import sys
from goose_like.__main__ import main

class Finder:
    def find_spec(self, name, path, target=None):
        if name == interrupted:
            raise KeyboardInterrupt

interrupted = sys.argv[1]
sys.argv = ["goose-like", "--version"]
sys.meta_path.insert(0, Finder())
main()
"""


@pytest.mark.parametrize("module", ["goose_like.launch.exit", "goose_like.core.version"])
def test_ctrl_c_while_modules_are_imported_ends_without_a_traceback(module: str) -> None:
    words = [sys.executable, "-c", _INTERRUPTED, module]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")
