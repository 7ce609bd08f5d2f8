"""The real command as a process: a home and a workspace of its own, no key, no terminal."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")


@dataclass(frozen=True)
class Place:
    """Where a test's commands run: `home` holds configuration and sessions, `work` is the current folder."""

    home: Path
    work: Path

    def env(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in KEYS}
        return {**kept, "GOOSE_LIKE_HOME": str(self.home), **more}

    def start(self, *words: str, env: dict[str, str] | None = None, **how: Any) -> "subprocess.Popen[str]":
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
        command = [sys.executable, "-m", "goose_like", *words]
        return subprocess.Popen(command, cwd=self.work, env=self.env(**(env or {})), **how)

    def run(
        self, *words: str, env: dict[str, str] | None = None, input: str | None = None
    ) -> "subprocess.CompletedProcess[str]":
        process = self.start(*words, env=env, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE)
        out, err = process.communicate(input, timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def complete(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Ask for candidates of the last word as the script for fish does."""
        request = {"_GOOSE_LIKE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        line = " ".join(["goose-like", *words])
        return self.run(env={**request, "_TYPER_COMPLETE_ARGS": line, "COLUMNS": "9999"})

    def script(self, *steps: Any) -> str:
        """A `scripted:` model that plays these steps."""
        file = self.home / f"script-{len(list(self.home.glob('script-*')))}.yaml"
        with file.open("w") as target:
            YAML().dump(list(steps), target)
        return f"scripted:{file}"

    def events(self) -> list[dict[str, Any]]:
        """What the newest session's file holds."""
        files = sorted((self.home / "state" / "sessions").glob("*/events.jsonl"))
        return [json.loads(line) for line in files[-1].read_text().splitlines()]

    def said(self) -> list[str]:
        """What the person said, in turns and between them."""
        kinds = ("turn_started", "interjected")
        return [event["message"]["parts"][0]["text"] for event in self.events() if event["type"] in kinds]

    def ends(self) -> list[str]:
        """How the turns ended."""
        return [event["reason"] for event in self.events() if event["type"] == "turn_finished"]

    def answers(self) -> list[tuple[str, str]]:
        """What was answered to questions, and by whom."""
        found = [event["answer"] for event in self.events() if event["type"] == "answered"]
        return [(answer["choice"], answer["by"]) for answer in found]


def shell(command: str, **arguments: Any) -> dict[str, Any]:
    """A script's call of `shell`."""
    return {"tool": "shell", "arguments": {"command": command, **arguments}}
