"""Measure the start of a session with 100 ConCopilot components. `python bench/components.py [--rounds N]`.

Each start is a new process that builds the exchange of a profile, with the toolkit `components` and without it.
`goose-like component install` puts the components into the local repository and caches them. The last row is measured
without that cache. A start must not start other processes.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 100
TARGET_MS = 200

YAML = """group_id: org.example.many
artifact_id: counter-{number}
version: 1.0.0

type: plugin
as_plugin: true

info:
  title: counter_{number}
  description: Counts the rows of a table that fulfil the condition {number}.
  description_for_model: Counts rows; use it when somebody asks how many there are of something.
commands:
  -
    command_name: count
    description: How many rows there are with at least a value in a column.
    parameter:
      type:
        rows:
          type:
            -
              name: name
              type: string
              description: What the row is about.
            -
              name: value
              type: float
              description: What is compared.
          description: The table.
          asset_ref_acceptable: true
        least:
          type: float
          description: The smallest value that counts.
          required: false
          example: 0.5
        order:
          type: string
          enum: [up, down]
          required: false
    response:
      type:
        count:
          type: int
          description: How many.
  -
    command_name: forget
    description: Forget what was counted.
    parameter:
      type:
        name:
          type: string
          description: What to forget.
    response:
      type:
        status:
          type: bool
          description: Whether there was something.

setup:
  package: many.counter

url: https://example.org/counter
developers:
  - name: Ada
licenses:
  - name: Apache-2.0

config:
  limit: {number}
"""

START = """
import asyncio, os, sys, time
from goose_like.agent.build import build_exchange
from goose_like.core.notifier import Recorder
from goose_like.config.profile import ModelChoice, Profile, ToolkitChoice

started = []
sys.addaudithook(lambda event, _: started.append(event) if event in ("subprocess.Popen", "os.fork") else None)
count = int(sys.argv[1])
use = [
    {"group_id": "org.example.many", "artifact_id": f"counter-{number}", "version": "1.0.0"} for number in range(count)
]
toolkits = (ToolkitChoice(name="components", config={"use": use}),) if count else ()
model = ModelChoice(model="scripted:script.yaml")
profile = Profile(name="p", processor=model, accelerator=model, toolkits=toolkits, sandbox="full", approval="yolo")


async def main():
    begun = time.perf_counter()
    async with build_exchange(profile, Recorder()) as exchange:
        took = (time.perf_counter() - begun) * 1000
        print(took, len(exchange.tools), len(started))


asyncio.run(main())
"""


def measure_start_ms(count: int, folder: Path, env: dict[str, str]) -> float:
    """Return the milliseconds until the exchange is built."""
    command = [sys.executable, "-c", START, str(count)]
    ended = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True)
    took, tools, processes = ended.stdout.split()
    assert int(processes) == 0, f"{processes} processes were started"
    assert not count or int(tools) >= 2 * count, f"{tools} tools"
    return float(took)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    rounds = options.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        for number in range(COUNT):
            written = top / "written" / f"counter-{number}" / ".config"
            written.mkdir(parents=True)
            (written / "config.yaml").write_text(YAML.format(number=number))
        took: dict[str, list[float]] = {"without": [], "just installed": [], "from then on": [], "never read": []}
        for at in range(rounds):
            folder = top / f"work{at}"
            folder.mkdir()
            (folder / "script.yaml").write_text("- nothing is asked")
            env = {**os.environ, "HOME": str(top), "GOOSE_LIKE_HOME": str(top / f"home{at}")}
            measure_start_ms(0, folder, env)  # read all modules once
            took["without"].append(measure_start_ms(0, folder, env))
            install = [sys.executable, "-m", "goose_like", "component", "install", str(top / "written")]
            subprocess.run(install, env=env, capture_output=True, check=True)
            for when in ("just installed", "from then on", "never read"):
                if when == "never read":
                    shutil.rmtree(top / f"home{at}")
                took[when].append(measure_start_ms(COUNT, folder, env))
    floor = statistics.median(took["without"])
    for when, spent in took.items():
        median = statistics.median(spent)
        print(f"{when:>14}: {median:6.1f} ms (best {min(spent):.1f}), {median - floor:+.1f} ms")
    print(f"wanted for {COUNT} components: {TARGET_MS} ms more, and no process; none was started")


if __name__ == "__main__":
    main()
