"""Start of a session: its command line, few imports, and a stop while it starts."""

import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from goose_like.cli.app import add_groups, app
from goose_like.cli.chat import startup

DEFAULTS = {"session": None, "is_resumed": False, "is_forked": False, "picks": False, "first": "", "worktree": None}
KNOWN = [
    "",
    "-m scripted:a",
    "session start",
    "session start one",
    "session start --model scripted:a one",
    "session start --model=a=b -P local --trust",
    "session resume",
    "session resume one --profile local --fork",
    "'fix the tests' -m scripted:a",
    "-c",
    "--continue --fork 'go on'",
    "-r",
    "-r one",
    "--resume 'go on' --allowed-tools 'git push,tool:x' --allowed-tools=ls --add-dir /usr",
    "-r -m scripted:a",
    "--worktree",
    "-w one 'fix the tests'",
    "--worktree 'fix the tests'",
    "session start one --worktree two",
    "session start -w -m scripted:a",
    "session start --sandbox full --approval=ask --effort low",
    "-cr",
    "-r=one --fork",
]
OTHER = [
    "run x",
    "session",
    "session list",
    "session start one two",
    "session start --help",
    "session start --plan p.md",
    "session start --model",
    "session start --model --trust",
    "session start -mscripted:a",
    "session start -m=a",
    "session start -- one",
    "session start --sandbox none",
    "session start --trust=yes",
    "session start -r one",
    "session resume -c",
    "--add-dir= x",
    "session resume --modell x",
    "-- session start",
    "one",
    "--fork",
    "-c -w",
    "session resume one -w",
    "-p 'say hello'",
    "fix the tests",
]


add_groups()


@pytest.mark.parametrize("line", KNOWN)
def test_a_session_is_parsed_as_typer_does(line, monkeypatch):
    parsed = []

    def start_session(options, **arguments):
        parsed.append((options, DEFAULTS | arguments))

    monkeypatch.setattr(startup, "start_session", start_session)
    monkeypatch.setattr(startup, "has_prompt", lambda: True)
    CliRunner().invoke(app, shlex.split(line), catch_exceptions=False)
    arguments = startup.parse_session_command(shlex.split(line))
    assert arguments is not None
    assert [(arguments.pop("options"), DEFAULTS | arguments)] == parsed


@pytest.mark.parametrize("line", OTHER)
def test_other_command_lines_are_left_to_typer(line):
    assert startup.parse_session_command(shlex.split(line)) is None


def test_help_imports_no_heavy_library():
    command = [sys.executable, "-X", "importtime", "-m", "goose_like", "--help"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in report.splitlines()}
    assert "typer" in imported
    assert not imported & {"asyncio", "email", "prompt_toolkit", "pydantic", "rich", "tempfile", "yaml"}
