"""The reader of the usual command lines of `run`, beside Typer."""

import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from goose_like.cli import run_start
from goose_like.cli.app import add_groups, app

KNOWN = [
    "run",
    "run go",
    "run 'fix the tests' and more",
    "-p 'say hello'",
    "--print hello serve",
    "run -q go --no-session",
    "run --output-format json --max-steps 5 go",
    "run --output-format=stream-json --max-cost=0.25 --max-tokens 1000 --timeout 7 go",
    "run -P mine -m openai:x --sandbox full --approval yolo go",
    "run --add-dir /a --add-dir /b --allowed-tools 'git push' go",
    "run -c go",
    "run -r name go on",
    "run --resume=name --fork go",
    "run -r 'two words'",
    "run --session one go",
    "run -w go",
    "run -i task.md --worktree=tree",
    "run --max-steps 1 --max-steps 2 go",
]
OTHER = [
    "",
    "doctor",
    "session start",
    "run --help",
    "run -h",
    "run --max-steps 0 go",
    "run --max-steps 1.5 go",
    "run --max-steps 5. go",
    "run --max-steps -5 go",
    "run --max-steps many go",
    "run --timeout nan go",
    "run --timeout .5 go",
    "run --max-cost 0 go",
    "run --max-cost",
    "run --output-format xml go",
    "run --unknown go",
    "run -qq go",
    "run -cq go",
    "run -- go",
    "run go -",
    "run --fork go",
    "run --no-session -r name go",
    "run --no-session --session one go",
    "run --no-session -w",
    "run -r name -w tree go",
    "-c -p go",
    "--model openai:x run go",
]

add_groups()


@pytest.mark.parametrize("line", KNOWN)
def test_a_run_is_parsed_as_typer_does(line, monkeypatch):
    parsed = []
    monkeypatch.setattr(run_start, "start_run", lambda *arguments: parsed.append(arguments))
    words = shlex.split(line)
    CliRunner().invoke(app, words, catch_exceptions=False)
    arguments = run_start.parse_run_command(words)
    assert arguments is not None
    assert [tuple(arguments.values())] == parsed


@pytest.mark.parametrize("line", OTHER)
def test_other_command_lines_are_left_to_typer(line):
    assert run_start.parse_run_command(shlex.split(line)) is None


def test_a_run_imports_no_typer():
    command = [sys.executable, "-X", "importtime", "-m", "goose_like", "run", "--model", "none:none", "go"]
    report = subprocess.run(command, capture_output=True, text=True, check=False)
    assert report.returncode == 2
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in report.stderr.splitlines()}
    assert "pydantic" in imported
    assert not imported & {"typer", "genai_prices", "rich"}
