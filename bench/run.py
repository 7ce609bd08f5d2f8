"""Compare goose_like with bare scripts in the same run. `python bench/run.py [--rounds N] [OPTION ...]`.

`--codex` names the program of npm's `@openai/codex`, `--before` the Python of another version of goose_like.
"""

import argparse
import asyncio
import itertools
import json
import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server import Recording, record

HERE = Path(__file__).parent
STEPS = 200
STARTS = 5  # per round
EARLY, LATE = slice(0, 20), slice(179, 199)
CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
RESPONSES = """\
responses:
  base_url: ${OPENAI_BASE_URL}
  key_variable: OPENAI_API_KEY
  wire: responses
"""
"""A provider with the wire `responses` at the loopback server."""


CODEX = (
    "model_providers.bench={name='bench',base_url='$OPENAI_BASE_URL',env_key='OPENAI_API_KEY',"
    "wire_api='responses',supports_websockets=false}"
)
"""Codex's entry for the loopback server. It reads no base URL from a variable: the shell writes it."""


def agent_command(sandbox: str, steps: int, provider: str = "openai", python: str = sys.executable) -> list[str]:
    return [
        python,
        "-m",
        "goose_like",
        "run",
        "--model",
        f"{provider}:bench",
        "--sandbox",
        sandbox,
        "--max-steps",
        str(steps + 1),
        "go",
    ]


def codex_command(program: str) -> list[str]:
    words = "--skip-git-repo-check --ignore-user-config --dangerously-bypass-approvals-and-sandbox -m bench"
    return ["sh", "-c", f'exec {shlex.quote(program)} exec {words} -c model_provider=bench -c "{CODEX}" go']


def script_command(name: str, *words: str) -> list[str]:
    return [sys.executable, str(HERE / name), *words]


def median_ms(gaps: list[float], part: slice) -> float:
    return statistics.median(gaps[part]) * 1000


def is_append_only(recording: Recording) -> bool:
    """Check that each request begins with the former one, except for cache marks and closing brackets."""
    bodies = [body.replace(CACHE_MARK, b"").removesuffix(b"]}") for body in recording.bodies]
    return all(later.startswith(earlier) for earlier, later in itertools.pairwise(bodies))


def measure_session_bytes(home: Path) -> tuple[int, int]:
    """Return the bytes of the newest session's folder, and of its events without their times."""
    folder = max((home / "state" / "sessions").iterdir(), key=lambda folder: folder.stat().st_mtime)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    own = sum(
        len(json.dumps({**event, "at": None}, ensure_ascii=False, separators=(",", ":")).encode()) - len(',"at":null')
        for event in events
    )
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), own


def measure_process_ms(command: list[str]) -> float:
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return (time.monotonic() - started) * 1000


async def main(rounds: int, codex: str, before: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="goose-like-bench-"))
    (folder / "work").mkdir()
    (folder / "home" / "config").mkdir(parents=True)
    (folder / "home" / "config" / "providers.yaml").write_text(RESPONSES)
    # Files that changed since their last import would be compiled at each start.
    env = {**os.environ, "GOOSE_LIKE_HOME": str(folder / "home"), "PYTHONDONTWRITEBYTECODE": ""}
    (folder / "codex").mkdir()
    env["CODEX_HOME"] = str(folder / "codex")

    async def play(command: list[str], steps: int) -> tuple[Recording, float]:
        return await record(command, env, steps, str(folder / "work"))

    subjects = {
        "bare httpx loop": lambda steps: script_command("floor_httpx.py"),
        "bare httpx, no shell": lambda steps: script_command("floor_httpx.py", "--no-shell"),
        "bare openai loop": lambda steps: script_command("floor_openai.py"),
        "goose-like openai, full": lambda steps: agent_command("full", steps),
        "goose-like openai, sandboxed": lambda steps: agent_command("workspace", steps),
        "goose-like openai responses": lambda steps: agent_command("full", steps, "responses"),
        "bare anthropic loop": lambda steps: script_command("floor_anthropic.py"),
        "goose-like anthropic, full": lambda steps: agent_command("full", steps, "anthropic"),
    }
    if codex:
        subjects["codex, openai responses"] = lambda steps: codex_command(codex)
    if before:
        subjects["openai sandboxed, before"] = lambda steps: agent_command("workspace", steps, python=before)
    starts: dict[str, list[float]] = {name: [] for name in subjects}
    exits: dict[str, list[float]] = {name: [] for name in subjects}
    early: dict[str, list[float]] = {name: [] for name in subjects}
    late: dict[str, list[float]] = {name: [] for name in subjects}
    peaks: dict[str, list[float]] = {name: [] for name in subjects}
    last: dict[str, Recording] = {}
    dirtied: dict[str, int] = {}
    for count in range(rounds + 1):  # the first round warms the caches
        # Interleaved, so that a slow moment of the machine affects all alike.
        for _, (name, command) in itertools.product(range(STARTS if count else 1), subjects.items()):
            recording, start = await play(command(1), 1)
            if count:
                starts[name].append(start * 1000)
                exits[name].append(recording.exit_s * 1000)
        for name, command in subjects.items():
            blocks = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock
            recording, _ = await play(command(STEPS), STEPS)
            dirtied[name] = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock - blocks) * 512
            last[name] = recording
            if count:
                peaks[name].append(recording.peak_kb / 1024)
                early[name].append(median_ms(recording.gaps_s, EARLY))
                late[name].append(median_ms(recording.gaps_s, LATE))

    def table(title: str, figures: dict[str, list[float]], floor: str, unit: str = "ms", wire: str = "") -> None:
        base = statistics.median(figures[floor])
        print(f"\n{title}; ratio to: {floor}")
        for name, values in figures.items():
            if wire in name:
                print(f"  {name:28} {statistics.median(values):8.1f} {unit} {statistics.median(values) / base:6.2f}x")

    for wire in ("openai", "anthropic"):
        table("process start to first request", starts, f"bare {wire} loop", wire=wire)
        table(f"peak memory of {STEPS} steps", peaks, f"bare {wire} loop", "MB", wire)
    table("last answer to the end of the process, one request", exits, "bare httpx loop")
    table(f"gap between answer and request, steps 1-20 of {STEPS}", early, "bare httpx loop")
    table(f"gap between answer and request, steps 180-199 of {STEPS}", late, "bare httpx loop")
    for name in ("goose-like openai, sandboxed", "goose-like openai responses", "goose-like anthropic, full"):
        print(f"\n{name}: first request's body: {len(last[name].bodies[0]):,} bytes (at most 5,200)")
        print(f"append-only over {STEPS} requests: {is_append_only(last[name])}")
    written, own = measure_session_bytes(folder / "home")
    print(f"\non the disk after {STEPS} steps: {written:,} bytes, events {own:,}, {written / own:.2f}x (at most 1.30x)")

    print(f"blocks dirtied by {STEPS} steps: " + ", ".join(f"{name} {size:,} bytes" for name, size in dirtied.items()))

    print_process_times(rounds)
    shutil.rmtree(folder)


def print_process_times(rounds: int) -> None:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "--version": [*agent_command("full", 1)[:3], "--version"],
        "--help": [*agent_command("full", 1)[:3], "--help"],
    }
    times = {}
    for name, command in commands.items():
        times[name] = statistics.median(measure_process_ms(command) for _ in range(5 * rounds))
    print("\nwhole process, more than python -c pass")
    for name, value in times.items():
        print(f"  {name:24} {value:8.1f} ms {value - times['python -c pass']:+8.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codex", default="", metavar="FILE")
    parser.add_argument("--before", default="", metavar="FILE")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.rounds, arguments.codex, arguments.before))
