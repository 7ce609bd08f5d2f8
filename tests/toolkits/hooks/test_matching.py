"""Which names and calls a hook is meant for."""

from pathlib import Path

import pytest
from goose_like_toolkits.hooks.matching import matches, meets

ROOT = Path("/work")
BASH = {"shell", "Bash", "terminal"}


@pytest.mark.parametrize(
    ("matcher", "names", "wanted"),
    [
        ("", BASH, True),
        ("*", BASH, True),
        ("Bash", BASH, True),
        ("bash", BASH, True),
        ("shell", BASH, True),
        ("Edit|Bash", BASH, True),
        ("Edit, Bash", BASH, True),
        ("Edit|Write", BASH, False),
        ("Bas", BASH, False),
        ("^Bash$", BASH, True),
        ("mcp__.*", BASH, False),
        ("mcp__git.*", {"mcp__git__log"}, True),
        ("mcp__my-server__get", {"mcp__my-server__get"}, True),
        ("mcp__my-server__get", {"mcp__my-server__get_all"}, False),
        ("(unclosed", BASH, True),
    ],
)
def test_matchers(matcher: str, names: set[str], wanted: bool) -> None:
    assert matches(matcher, names) is wanted


@pytest.mark.parametrize(
    ("condition", "command", "wanted"),
    [
        ("Bash", "ls", True),
        ("Edit", "ls", False),
        ("Bash(git push *)", "git push origin", True),
        ("Bash(git push *)", "git push", True),
        ("Bash(git push:*)", "git push --force", True),
        ("Bash(git push)", "git push --force", False),
        ("Bash(git push *)", "echo git push", False),
        ("Bash(rm *)", "cd a && rm -rf b", True),
        ("Bash(rm *)", 'git commit -m "rm it"', False),
        ("Bash(rm *)", 'bash -c "rm -rf a"', True),
        ("Bash(rm *)", "/bin/rm a", True),
        ("Bash(rm *)", "echo $HOME", False),
        ("Bash(git push *)", "git $x", True),
        ("Bash(git push *)", "git $x origin", True),
        ("Bash(rm *)", "$tool -rf a", True),
        ("Bash(rm *)", "echo $(rm a)", True),
        ("Bash((", "ls", True),
    ],
)
def test_conditions_about_commands(condition: str, command: str, wanted: bool) -> None:
    assert meets(condition, BASH, {"command": command}, ROOT) is wanted


@pytest.mark.parametrize(
    ("condition", "path", "wanted"),
    [
        ("Edit(*.ts)", "/work/src/a.ts", True),
        ("Edit(*.ts)", "/work/src/a.py", False),
        ("Edit(src/**)", "/work/src/a/b.py", True),
        ("Edit(./src/*)", "/work/src/b.py", True),
        ("Edit(src/*)", "/work/docs/b.py", False),
        ("Edit(/etc/*)", "/etc/hosts", True),
        ("Write(*)", "/work/a", False),
    ],
)
def test_conditions_about_files(condition: str, path: str, wanted: bool) -> None:
    assert meets(condition, {"patch_file", "Edit"}, {"file_path": path}, ROOT) is wanted
