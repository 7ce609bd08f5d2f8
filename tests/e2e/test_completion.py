"""Shell completion: the candidates, and the scripts in real shells on a pseudo-terminal."""

import shutil
import subprocess
import sys

import pytest

from tests.e2e.command import Place
from tests.e2e.pages import find_blocks, put_command_on_path
from tests.e2e.test_terminal import Terminal

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}


def candidates(place: Place, *words: str) -> list[str]:
    done = place.complete(*words)
    assert done.returncode == 0, done.stderr
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


def talk(place: Place, name: str) -> None:
    assert place.run("run", "--session", name, "--model", place.script("hello"), "hi there").returncode == 0


def test_candidates(place):
    talk(place, "talk")
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text("mine: {}\n'my own': {}\n\"b\\e[0md\": {}\n")
    assert candidates(place, "pro") == ["profile", "provider"]
    assert {"start", "resume", "list"} <= set(candidates(place, "session", ""))
    assert candidates(place, "session", "resume", "") == ["talk"]
    assert candidates(place, "run", "--resume", "--session", "t") == ["talk"]
    assert candidates(place, "-r", "t") == candidates(place, "-c", "--resume", "t") == ["talk"]
    assert candidates(place, "profile", "show", "m") == ["mine", "my own"]
    assert candidates(place, "profile", "edit", "") == ["mine", "my own"]
    assert "local" in candidates(place, "profile", "new", "x", "--from", "")
    assert candidates(place, "run", "-P", "def") == ["default"]
    assert candidates(place, "run", "--profile=def") == ["default"]
    assert candidates(place, "run", "--model", "scr") == ["scripted:"]
    assert candidates(place, "run", "--output-format", "s") == ["stream-json"]
    assert "--output-format" in candidates(place, "run", "--out")
    assert candidates(place, "toolkit", "show", "dev") == ["developer"]
    assert candidates(place, "completion", "") == ["bash", "zsh", "fish"]
    assert candidates(place, "help", "exit") == ["exit-codes"]
    assert candidates(place, "help", "profile", "e") == ["edit"]
    assert candidates(place, "run", "-i", "") == []


def test_candidates_are_sanitized(place):
    assert place.run("run", "--model", place.script("x"), "--session", "s", "a\x1b]0;b\u202ec\td").returncode == 0
    assert place.complete("session", "resume", "").stdout == "s\ta]0;bc d\n"


def test_brackets_in_a_title_are_no_markup(place):
    assert place.run("run", "--model", place.script("x"), "--session", "s", "see [/a] and [b] and [1]").returncode == 0
    assert place.complete("session", "resume", "").stdout == "s\tsee [/a] and [b] and [1]\n"


def test_completing_imports_nothing_heavy(place):
    heavy = "openai|anthropic|rich|httpx2|prompt_toolkit|asyncio"
    program = f"""
import sys
from goose_like.cli.app import run_command_line
sys.argv[1:] = []
run_command_line()
print(*sorted(set({heavy.split("|")}) & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=place.env(_GOOSE_LIKE_COMPLETE="complete_bash", COMP_WORDS="goose-like profile show l", COMP_CWORD="3"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "local\n\n", done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_names(place, shell):
    """Seen is what the shell adds to what was typed when Tab is pressed."""
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    talk(place, "talk-of-today")
    (place.work / "script-file").touch()
    path = put_command_on_path(place.home)
    terminal = Terminal(place, ["env", f"PATH={path}", "PS1=> ", f"HOME={place.home}", *SHELLS[shell]])
    try:
        (lines,) = find_blocks("docs/terminal.md", shell)
        for line in lines.splitlines():
            terminal.type(f"{line}\r")
        terminal.type("echo load''ed\r")
        terminal.see("loaded")
        for typed, added in (
            ("goose-like session resume ta", "lk-of-today"),
            ("goose-like run --profile def", "ault"),
            ("goose-like run --profile=def", "ault"),
            ("goose-like run -m scr", "ipted:"),
            ("goose-like run --output-format js", "on"),
            ("goose-like run -i script-", "file"),
        ):
            terminal.type(f"{typed}\t")
            terminal.see(typed[-3:])
            terminal.see(added)
            terminal.type("\x15")
    finally:
        terminal.close()
