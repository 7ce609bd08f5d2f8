"""The examples of docs/boss-python.md, run unchanged."""

import shlex
import subprocess
import sys

from tests.e2e.pages import find_blocks

PAGE = "docs/boss-python.md"


def run_program(place, text: str) -> "subprocess.CompletedProcess[str]":
    (place.work / "program.py").write_text(text)
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=place.work, env=place.env(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_program_of_the_page(place):
    (program,) = find_blocks(PAGE, "python")
    prices = [{"calls": [{"tool": "price", "arguments": {"fruit": fruit}}]} for fruit in ("apple", "pear")]
    finish = {"calls": [{"tool": "finish", "arguments": {"result": "5", "summary": "added both"}}]}
    model = place.script("1. look both up\n2. add", *prices, {**finish, "expect": "looked up apple.*looked up pear"})
    profile = f"default: {{processor: '{model}', toolkits: [], sandbox: full, approval: yolo}}\n"
    (place.home / "config").mkdir(parents=True, exist_ok=True)
    (place.home / "config/profiles.yaml").write_text(profile)
    done = run_program(place, program)
    assert done.stdout == "{'result': '5 euros', 'summary': 'priced it', 'status': 'finished'}\n", done.stderr
    assert (place.work / "plan.md").read_text() == "1. look both up\n2. add\n"


def test_command_of_the_page(place):
    (configuration,) = find_blocks(PAGE, "yaml")
    (line,) = find_blocks(PAGE, "sh")
    (place.work / "jarvis.yaml").write_text(configuration)
    finish = {"calls": [{"tool": "finish", "arguments": {"result": "there it is", "summary": "wrote it"}}]}
    model = place.script("1. write it", finish)
    done = place.run(*shlex.split(line)[1:], "--model", model, "--sandbox", "full")
    assert (done.returncode, done.stdout) == (0, "there it is\n"), done.stderr
    (reported,) = find_blocks(PAGE, "text")
    assert reported in done.stderr
    assert "wrote it" in (place.work / "logs.md").read_text()
