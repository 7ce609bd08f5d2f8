"""Look at processes that may end at any moment."""

import subprocess
import time
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 60.0
"""The time that a loaded machine may take."""


def is_alive(pid: int) -> bool:
    """Return whether the process runs; one that has ended and waits for its parent does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def list_children(pid: int) -> list[int]:
    """List the ids of a process's children; a process that is gone has none."""
    children = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children += map(int, (task / "children").read_text().split())
    return children


def read_command(pid: int) -> str:
    """Return the command line of a process, separated by NUL; a process that is gone has an empty one."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def wait_for_count(number: int, command: str) -> None:
    """Wait until so many processes have this command line. A new process has none until its exec has ended."""
    ends = time.monotonic() + PATIENCE_S
    while (count := count_processes(command)) != number:
        assert time.monotonic() < ends, f"{count} processes run `{command}`, not {number}"
        time.sleep(0.02)


def count_processes(command: str) -> int:
    """Count the processes with this command line."""
    listed = subprocess.run(["ps", "-eo", "args", "ww"], capture_output=True, text=True, check=True)
    return listed.stdout.splitlines().count(command)
