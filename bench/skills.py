"""Measure the start with 500 skills. `python bench/skills.py [--rounds N]`.

Skills of the person need no trust; those of a project are read and compared with what the person trusted.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from server import print_medians, read_processor_s, record

COUNT = 500
TARGET_MS = 15

TEXT = """---
name: skill-{number}
description: Handles table number {number} of a report. Use it when somebody asks for the figures of a table like that.
---

# Table {number}

"""


def write_skills(top: Path) -> None:
    for number in range(COUNT):
        folder = top / f"skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(TEXT.format(number=number) + "Read the table, then write its sum.\n" * 40)


def trust(project: Path, env: dict[str, str]) -> None:
    command = [sys.executable, "-m", "goose_like", "trust", "add", str(project)]
    subprocess.run(command, env=env, check=True, capture_output=True)


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        folder = Path(name)
        for part in ("none", "project", "person/none", "person/project", "person/person"):
            (folder / part / ".git").mkdir(parents=True)
        write_skills(folder / "project/.claude/skills")
        write_skills(folder / "person/person/.claude/skills")
        ours = [sys.executable, "-m", "goose_like"]
        subjects = {
            "no skills": ("none", "none"),
            f"{COUNT} of the person": ("none", "person"),
            f"{COUNT} of the project": ("project", "project"),
        }
        homes = {subject: folder / "person" / home for subject, (_, home) in subjects.items()}
        variables = {
            subject: {**os.environ, "HOME": str(home), "GOOSE_LIKE_HOME": str(home / "ours")}
            for subject, home in homes.items()
        }
        trust(folder / "project", variables[f"{COUNT} of the project"])
        starts: dict[str, list[float]] = {subject: [] for subject in subjects}
        work: dict[str, list[float]] = {subject: [] for subject in subjects}
        words = ["run", "--model", "openai:bench", "--sandbox", "full", "go"]
        for count in range(rounds + 1):  # the first round fills the caches
            order = [*subjects][count % len(subjects) :] + [*subjects][: count % len(subjects)]
            for subject in order:
                place, _ = subjects[subject]
                before_s = read_processor_s()
                recording, start_s = await record([*ours, *words], variables[subject], 1, str(folder / place))
                prompt = json.dumps(json.loads(recording.bodies[0]))
                assert ("And " in prompt and "search_skills" in prompt) == (subject != "no skills")
                if count:
                    starts[subject].append(start_s * 1000)
                    work[subject].append((read_processor_s() - before_s) * 1000)
    print(f"medians of {rounds} interleaved runs; the start should be at most {TARGET_MS} ms later")
    print_medians("process start to first request", starts)
    print_medians("processor time of the whole process", work)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    asyncio.run(main(parser.parse_args().rounds))
