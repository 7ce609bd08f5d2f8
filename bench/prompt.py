"""Compare the start and keys of our prompt with a bare prompt_toolkit prompt. `python bench/prompt.py [--rounds N]`."""

import argparse
import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

TARGET_MS = 150
KEY_TARGET_MS = 20
KEYS = "the quick brown fox jumps over the lazy dog"
SETTLE_S = 3.0
CODES = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]?")
BARE = """
from prompt_toolkit import PromptSession
PromptSession("goose> ").prompt()
"""


def measure_prompt_s(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds from the start of a process until its prompt shows a key, and the median of later keys.

    The later keys are typed after the rest of the session has started, each when the one before is on the screen.
    """
    terminal, child = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    env = {
        **os.environ,
        "TERM": "xterm-256color",
        "GOOSE_LIKE_HOME": str(folder / "home"),
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    began = time.perf_counter()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command],
        cwd=folder,
        env=env,
        stdin=child,
        stdout=child,
        stderr=child,
    )
    os.close(child)
    seen = b""
    try:
        while b"goose>" not in seen:
            seen += os.read(terminal, 65536)
        type_key(terminal, b"z")
        start_s = time.perf_counter() - began
        settled_at = time.perf_counter() + SETTLE_S
        while (left_s := settled_at - time.perf_counter()) > 0:
            if select.select([terminal], [], [], left_s)[0]:
                os.read(terminal, 65536)
        return start_s, statistics.median(type_key(terminal, key.encode()) for key in KEYS if key != " ")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def type_key(terminal: int, key: bytes) -> float:
    """Type a key and return the seconds until the terminal receives it back."""
    began, seen = time.perf_counter(), b""
    os.write(terminal, key)
    while key not in CODES.sub(b"", seen):
        if select.select([terminal], [], [], 30)[0]:
            seen += os.read(terminal, 65536)
    return time.perf_counter() - began


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        folder = Path(name)
        script = folder / "script.yaml"
        script.write_text("- hello\n")
        ours = [sys.executable, "-m", "goose_like"]
        commands = {
            "bare prompt_toolkit": [sys.executable, "-c", BARE],
            "goose-like": ours,
            "goose-like session start": [*ours, "session", "start", "--model", f"scripted:{script}"],
        }
        os.environ["OPENAI_API_KEY"] = "none"
        taken: dict[str, list[tuple[float, float]]] = {label: [] for label in commands}
        for _ in range(rounds):
            for label, command in commands.items():
                taken[label].append(measure_prompt_s(command, folder))
    titles = {
        f"process start to a prompt that takes keys, medians of {rounds}; at most {TARGET_MS} ms later": 0,
        f"key to screen, medians of {rounds}; at most {KEY_TARGET_MS} ms later": 1,
    }
    for title, index in titles.items():
        print(title)
        floor = statistics.median(times[index] for times in taken["bare prompt_toolkit"])
        for label, times in taken.items():
            middle = statistics.median(one[index] for one in times)
            print(f"  {label:<24} {middle * 1000:8.1f} ms  {middle / floor:5.2f}x  {(middle - floor) * 1000:+8.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    main(parser.parse_args().rounds)
