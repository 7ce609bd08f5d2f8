"""The end of the process."""

import subprocess
import sys

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
