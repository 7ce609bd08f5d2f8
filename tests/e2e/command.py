"""The real command as a process with its own home and workspace, without API keys and terminal."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goose_like.config.yaml_reader import format_document
from tests.e2e.forked import ForkedProcess, get_server

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")


@dataclass(frozen=True)
class Place:
    """The folders of a test: `home` for configuration and sessions, `work` as the current folder."""

    home: Path
    work: Path

    def env(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in KEYS}
        return {**kept, "GOOSE_LIKE_HOME": str(self.home), **more}

    def start(
        self, *words: str, env: dict[str, str] | None = None, has_terminal: bool = False, **how: Any
    ) -> "subprocess.Popen[str]":
        """Start the command; with `has_terminal` its standard streams are a terminal, which becomes its own."""
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
        how |= {"cwd": self.work, "env": self.env(**(env or {}))}
        if get_server().can_start(words, how["env"]):
            return ForkedProcess(words, has_terminal, **how)
        opening = ["setsid", "--ctty", "--wait"] if has_terminal else []
        return subprocess.Popen([*opening, sys.executable, "-m", "goose_like", *words], **how)

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
        """Write a script and return the name of its model."""
        file = self.home / f"script-{len(list(self.home.glob('script-*')))}.yaml"
        file.write_text(format_document(list(steps)))
        return f"scripted:{file}"

    def events(self) -> list[dict[str, Any]]:
        """Read the events of the newest session."""
        found = []
        for file in (self.home / "state" / "sessions").glob("*/events.jsonl"):
            events = [json.loads(line) for line in file.read_text().splitlines()]
            second = file.parent.name.partition("-")[0]
            # A fork has the first event of its origin, and may be made in the same second.
            found.append((second, events[0]["at"], file.stat().st_mtime_ns, events))
        return max(found, key=lambda each: each[:3])[-1]

    def list_messages(self) -> list[str]:
        """List the messages of the person, at the start of turns and within them."""
        kinds = ("turn_started", "interjected")
        return [event["message"]["parts"][0]["text"] for event in self.events() if event["type"] in kinds]

    def list_turn_ends(self) -> list[str]:
        """List the reasons with which the turns ended."""
        return [event["reason"] for event in self.events() if event["type"] == "turn_finished"]

    def list_answers(self) -> list[tuple[str, str]]:
        """List the answers to questions, each with its author."""
        answers = [event["answer"] for event in self.events() if event["type"] == "answered"]
        return [(answer["choice"], answer["by"]) for answer in answers]


def shell(command: str, **arguments: Any) -> dict[str, Any]:
    """Return a call of `shell` for a script."""
    return {"tool": "shell", "arguments": {"command": command, **arguments}}
