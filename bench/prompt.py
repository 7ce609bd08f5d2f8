"""Compare the start of our prompt with a bare prompt_toolkit prompt. `python bench/prompt.py [--rounds N]`."""

import argparse
import fcntl
import os
import pty
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
BARE = """
from prompt_toolkit import PromptSession
PromptSession("goose> ").prompt()
"""


def measure_start_s(command: list[str], folder: Path) -> float:
    """Return the seconds from the start of a process until its prompt shows a typed key."""
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
        typed_at = len(seen)
        os.write(terminal, b"z")
        while b"z" not in seen[typed_at:]:
            if select.select([terminal], [], [], 30)[0]:
                seen += os.read(terminal, 65536)
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


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
        taken: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(rounds):
            for label, command in commands.items():
                taken[label].append(measure_start_s(command, folder))
    floor = statistics.median(taken["bare prompt_toolkit"])
    print(f"process start to a prompt that takes keys, medians of {rounds}; at most {TARGET_MS} ms later")
    for label, seconds in taken.items():
        middle = statistics.median(seconds)
        print(f"  {label:<24} {middle * 1000:8.1f} ms  {middle / floor:5.2f}x  {(middle - floor) * 1000:+8.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    main(parser.parse_args().rounds)
