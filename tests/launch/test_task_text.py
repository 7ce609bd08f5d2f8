"""The text of a task from files and pipes: its size has a limit, and none is read without end."""

import os
import threading

import pytest

from goose_like.core.errors import UsageError
from goose_like.launch.piped_input import MAX_TASK_BYTES
from goose_like.launch.run_options import read_task

EXAMPLE = "run 'x'"
TOO_LONG = "has more than 10,000,000 bytes; name a file with it in the task instead"


@pytest.fixture
def pipe(monkeypatch):
    """A pipe in place of standard input, for whoever writes to it."""
    source, target = os.pipe()
    with os.fdopen(source) as stdin, os.fdopen(target, "wb") as writer:
        monkeypatch.setattr("sys.stdin", stdin)
        yield writer


def test_a_pipe_without_end_is_refused(pipe, capsys):
    is_gone = threading.Event()

    def write() -> None:
        while not is_gone.is_set():
            try:
                os.write(pipe.fileno(), b"y\n" * 30_000)
            except BlockingIOError:
                is_gone.wait(0.001)

    os.set_blocking(pipe.fileno(), False)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(UsageError, match=f"standard input {TOO_LONG}"):
            read_task(["explain"], None, EXAMPLE)
    finally:
        is_gone.set()
        writer.join()
    assert "is added to the task" not in capsys.readouterr().err


def test_a_pipe_of_several_parts_is_read_whole(pipe):
    pipe.write("größer\n".encode())
    pipe.close()
    assert read_task(["explain", "-"], None, EXAMPLE) == ("explain\n\ngrößer\n", True)


def test_a_file_without_end_is_refused(pipe):
    with pytest.raises(UsageError, match=f"/dev/zero {TOO_LONG}"):
        read_task([], "/dev/zero", EXAMPLE)


def test_the_largest_file_is_read(pipe, tmp_path):
    pipe.close()
    file = tmp_path / "task.txt"
    file.write_bytes(b"x" * MAX_TASK_BYTES)
    task, _ = read_task([], str(file), EXAMPLE)
    assert len(task) == MAX_TASK_BYTES
