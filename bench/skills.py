"""Measure the start with 500 skills and 20 hooks, and with much of everything. `python bench/skills.py [--rounds N]`.

Skills of the person need no trust; those of a project are compared with what the person trusted. The last subject has
30 installed toolkits, 500 skills and 10 MCP servers that nothing uses.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from goose_like_toolkits.mcp.config import load_servers
from goose_like_toolkits.mcp.definitions import Definitions, DefinitionStore, ToolDefinition
from hooks import HOOKS, trust, write_settings
from server import print_medians, read_processor_s, record, shuffle

from toolkits import INSTALLED, install

COUNT = 500
SERVERS = 10
TARGET_MS = 15
FULL_TARGET_MS = 60
SETTLING_S = 3
"""Files that changed a moment ago are read at each start."""

TEXT = """---
name: skill-{number}
description: Handles table number {number} of a report. Use it when somebody asks for the figures of a table like that.
---

# Table {number}

"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A start: the folder of the project, the home, and a folder with installed packages."""

    name: str
    project: Path
    home: Path
    packages: Path

    @property
    def env(self) -> dict[str, str]:
        own = {"HOME": self.home, "GOOSE_LIKE_HOME": self.home / "ours", "PYTHONPATH": self.packages}
        return {**os.environ, **{name: str(path) for name, path in own.items()}}


def write_skills(top: Path) -> None:
    for number in range(COUNT):
        folder = top / f"skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(TEXT.format(number=number) + "Read the table, then write its sum.\n" * 40)


def write_servers(home: Path) -> None:
    """Configure servers of 20 tools each, which were used in an earlier session."""
    file = home / "ours/config/mcp.json"
    file.parent.mkdir(parents=True)
    entries = {f"server-{number}": {"command": f"server-{number}"} for number in range(SERVERS)}
    file.write_text(json.dumps({"mcpServers": entries}))
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": "A condition on it."}}}
    text = "Searches the items of a project by words, state, owner and date. " * 8
    tools = [ToolDefinition(name=f"search_{number}", description=text, input_schema=schema) for number in range(20)]
    os.environ["GOOSE_LIKE_HOME"] = str(home / "ours")
    for server in load_servers({}, None)[0]:
        DefinitionStore().save(server, Definitions(era="2025-11-25", tools=tuple(tools)))
    del os.environ["GOOSE_LIKE_HOME"]


def prepare(folder: Path) -> list[Subject]:
    """Write what the subjects need. Trust comes last, so that each file has settled."""
    empty = folder / "empty"
    for part in ("empty", "project/.git", "home/none", "home/project", "home/person", "home/full"):
        (folder / part).mkdir(parents=True)
    write_settings(folder / "project")
    write_skills(folder / "project/.claude/skills")
    write_skills(folder / "home/person/.claude/skills")
    write_servers(folder / "home/full")
    for number in range(INSTALLED):
        install(folder / "site", number)
    full = f"{INSTALLED} toolkits, {SERVERS} servers too"
    subjects = [
        Subject("nothing", empty, folder / "home/none", empty),
        Subject(f"{COUNT} skills of the person", empty, folder / "home/person", empty),
        Subject(f"{COUNT} of the project, {HOOKS} hooks", folder / "project", folder / "home/project", empty),
        Subject(full, folder / "project", folder / "home/full", folder / "site"),
    ]
    for subject in subjects[2:]:
        trust(subject.project, subject.env)
    time.sleep(SETTLING_S)
    return subjects


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        subjects = prepare(Path(name))
        starts: dict[str, list[float]] = {subject.name: [] for subject in subjects}
        work: dict[str, list[float]] = {subject.name: [] for subject in subjects}
        command = [sys.executable, "-m", "goose_like", "run", "--model", "openai:bench", "--sandbox", "full", "go"]
        for count in range(rounds + 1):  # the first round fills the caches
            for subject in shuffle(subjects, count):
                before_s = read_processor_s()
                recording, start_s = await record(command, subject.env, 1, str(subject.project))
                has_skills = b"search_skills" in recording.bodies[0]
                assert has_skills == (subject is not subjects[0])
                if count:
                    starts[subject.name].append(start_s * 1000)
                    work[subject.name].append((read_processor_s() - before_s) * 1000)
    print(f"medians of {rounds} interleaved runs; skills and hooks should add at most {TARGET_MS} ms to the start,")
    print(f"and everything together at most {FULL_TARGET_MS} ms")
    print_medians("process start to first request", starts)
    print_medians("processor time of the whole process", work)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    asyncio.run(main(parser.parse_args().rounds))
