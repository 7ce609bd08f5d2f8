"""The pages of the documentation as tests read them: blocks of code, and lines that a person would type."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.forked import get_server
from tests.loopback import said, sse, threaded


def find_blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def find_indented_commands(page: str) -> list[str]:
    """Return the commands that stand indented in a page, not in a block."""
    return re.findall(r"^    (goose-like .*)$", (ROOT / page).read_text(), re.MULTILINE)


def put_command_on_path(folder: Path) -> str:
    """Write a `goose-like` that runs this checkout, whatever is installed, and return a PATH with its folder."""
    file = folder / "goose-like"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m goose_like "$@"\n')
    file.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def put_forking_command_on_path(folder: Path) -> str:
    """Write a `goose-like` that starts fast, for shells without a terminal, and return a PATH with its folder."""
    get_server().write_command(folder / "goose-like")
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def run_line(place: Place, line: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a line of a page in a shell, with a server that answers `ok` in place of OpenAI's."""
    with threaded([sse(said("ok"))]) as server:
        path = put_forking_command_on_path(place.home)
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url, "PATH": path, "VISUAL": "true", **env}
        return subprocess.run(
            ["bash", "-c", line],
            cwd=place.work,
            env=place.env(**env),
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )


def write_project_profiles(place: Place, text: str) -> None:
    """Write the profiles that the project in the current folder brings."""
    (place.work / ".goose-like").mkdir()
    (place.work / ".goose-like/profiles.yaml").write_text(text)
