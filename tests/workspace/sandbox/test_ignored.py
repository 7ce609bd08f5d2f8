"""Ignored files: the patterns of .gitignore, and files that no tool and no command reads."""

import os
import subprocess
from pathlib import Path

import pytest

from goose_like.config.profile import PathChoice, WorkspaceSettings
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox.ignored import IgnoredFiles, IgnorePatterns
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import GIT, needs_sandbox, run_script

LINES = [
    *("# comment", "", "*.pem", "!public.pem", "/top.txt", "build/", "doc/*.txt", "a/**/z", "**/deep/x", "logs/**"),
    *(
        r"\#odd",
        r"\!odd",
        "space\\ ",
        "q?.c",
        "[a-c][!0-9].d",
        "cache*/",
        "name.*",
        "keep/*",
        "!keep/me",
        "trailing   ",
    ),
]
PATHS = [
    *(
        "x.pem",
        "sub/x.pem",
        "public.pem",
        "sub/public.pem",
        "top.txt",
        "sub/top.txt",
        "build/o",
        "sub/build/o",
        "other",
    ),
    *("doc/a.txt", "doc/sub/a.txt", "sub/doc/a.txt", "a/z", "a/b/c/z", "deep/x", "s/deep/x", "logs/1/2", "logs.txt"),
    *("#odd", "!odd", "space ", "space", "qx.c", "q/.c", "ax.d", "a1.d", "dx.d", "cache1/f", "cachefile", "name.py"),
    *("new\nline/x.pem", "new\n.pem", "a/new\nline/z", "q\n.c", "deep/\n/x", "name.\n/f"),
    *("keep/me", "keep/you", "keep/sub/me", "trailing", "PEM", "x.pem.txt", "sub/name.d/f", "b/a/z"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with all paths as files."""
    for name in PATHS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("TOPSECRET")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def test_patterns_mean_what_they_mean_in_git(place: Path) -> None:
    (place / ".gitignore").write_text("\n".join(LINES))
    line = ["git", "-C", place, "check-ignore", "-z", "--stdin"]
    said = subprocess.run(line, input="\0".join(PATHS), capture_output=True, text=True, check=False)
    patterns = IgnorePatterns(place, LINES)
    assert [name for name in PATHS if patterns.covers(place / name)] == said.stdout.split("\0")[:-1]


def test_the_survey_finds_what_the_patterns_cover(place: Path) -> None:
    (place / ".gooseignore").write_text("\n".join(LINES))
    ignored = IgnoredFiles((place,), ())
    found = ignored.find_paths()
    for name in PATHS:
        is_found = any((place / name).is_relative_to(path) for path in found)
        assert is_found == ignored.covers(place / name), name


@pytest.mark.parametrize("content", ["folder", "link", "pipe"])
def test_unreadable_patterns_are_an_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / ".gooseignore"
    {"folder": file.mkdir, "link": lambda: file.symlink_to("/etc/hosts"), "pipe": lambda: os.mkfifo(file)}[content]()
    with pytest.raises(GooseLikeError, match=r"can't read .*\.gooseignore"):
        IgnoredFiles((tmp_path,), ()).find_paths()


def test_too_many_paths_are_an_error(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number}.log").touch()
    with pytest.raises(GooseLikeError, match="hide whole folders"):
        IgnoredFiles((tmp_path,), ["*.log"]).find_paths()
    with pytest.raises(GooseLikeError, match="no pattern"):
        IgnoredFiles((tmp_path,), ["[z-a]"]).find_paths()


# --- in a workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in (".env", "sub/.env", "secrets/a/key", "secrets/tracked", "shared/real", "a.txt", "data.bin"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text({"a.txt": "visible", "secrets/tracked": "history"}.get(name, "TOPSECRET"))
    (root / "link").symlink_to(".env")
    (root / "link.bin").symlink_to("shared/real")
    os.link(root / ".env", root / "sub/hard")
    os.link(root / "secrets/a/key", root / "hard2")
    (root / ".gooseignore").write_text(".env\nsecrets/\n*.bin\n")
    (root / ".gitignore").write_text(".env\n*.bin\nhard*\nreal\n")
    git = [*GIT.split(), "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "a.txt", "secrets/tracked"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    return root


def create_workspace(root: Path, *hide: str) -> Workspace:
    settings = WorkspaceSettings(paths=PathChoice(hide=hide))
    return Workspace(root, mode="workspace", approval="auto", notifier=Recorder(), settings=settings)


HIDDEN = (".env", "sub/.env", "secrets/a/key", "data.bin", "link", "link.bin", "shared/real", "sub/hard", "hard2")


@needs_sandbox
@pytest.mark.parametrize(
    "script",
    [
        f"cat {' '.join(HIDDEN)}; cat a.txt",
        "grep -r . . ; cat a.txt",
        "rg -uuu --hidden --follow '' . --text; rg --no-ignore -z . ; cat a.txt",
        "find . -type f -exec cat {} +; cp -r . /tmp/copy; cat /tmp/copy/*; cat a.txt",
        "tar c . | cat; git hash-object -w .env | xargs git cat-file -p; git diff --no-index a.txt .env; cat a.txt",
        "git add -f .env secrets; git stash -u; git diff HEAD; git stash show -p; cat a.txt",
        "ln .env new; cat new; mv .env new2; cat new2; mv secrets s2; cat s2/*/*; mv sub s3; cat s3/.env; cat a.txt",
        "rm -f .gooseignore; echo > .gooseignore; chmod 777 .env; umount .env secrets; cat .env secrets/a/key a.txt",
        "cat /proc/self/root$PWD/.env /proc/$$/cwd/.env; python3 -c 'print(open(\".env\").read())'; cat a.txt",
    ],
)
async def test_no_command_reads_them(root: Path, script: str) -> None:
    async with create_workspace(root) as workspace:
        _, output = await run_script(workspace, f"({script}) 2>&1 | tr -cd '[:print:]'")
        assert "TOPSECRET" not in output
        assert "visible" in output
    assert (root / ".gooseignore").read_text().startswith(".env")


@needs_sandbox
async def test_no_tool_reads_or_writes_them(root: Path) -> None:
    async with create_workspace(root) as workspace:
        for name in (*HIDDEN, *HIDDEN):
            with pytest.raises(DeniedError, match="hidden from you"):
                workspace.read_bytes(workspace.resolve(name))  # before the first command, and after
            await run_script(workspace, "true")
        for name in ("new/.env", "secrets/new"):
            with pytest.raises(DeniedError, match="hidden from you"):
                await workspace.write_bytes(name, b"x")
        with pytest.raises(DeniedError, match="hidden from you"):
            workspace.list_folder("secrets")
        with pytest.raises(DeniedError, match="protected"):
            await workspace.write_bytes(".gooseignore", b"")
        (root / "later").mkdir()
        (root / "later/.env").write_text("TOPSECRET")
        with pytest.raises(DeniedError, match="hidden from you"):
            workspace.read_bytes("later/.env")


@needs_sandbox
async def test_git_works_beside_them(root: Path) -> None:
    async with create_workspace(root) as workspace:
        for number, stage in enumerate(("git add -A &&", "git add . &&", "git add -u &&", "git add f3;")):
            script = f"echo {number} | tee f{number} > a.txt; {stage} {GIT} commit -qam x"
            code, output = await run_script(workspace, script)
            assert code == 0, output
        assert (await run_script(workspace, "git status --short"))[0] == 0
        code, output = await run_script(workspace, "rg --files && find . -name .git -prune -o -type f && ls -R")
        assert code == 0, output
        _, output = await run_script(workspace, "git ls-files")
    assert output.split() == [".gitignore", ".gooseignore", "a.txt", "f0", "f1", "f3", "link", "secrets/tracked"]


@needs_sandbox
async def test_the_profile_and_the_repository_hide_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with create_workspace(root / "sub", "*.md") as workspace:
        (root / "sub/notes.md").write_text("TOPSECRET")
        _, output = await run_script(workspace, "cat notes.md .env ../.env ../secrets/a/key hard; cat ../a.txt")
        assert "TOPSECRET" not in output
        for name in ("notes.md", "../.env", ".env"):
            with pytest.raises(DeniedError, match="hidden from you"):
                workspace.read_bytes(name)


async def test_tools_obey_without_a_sandbox(root: Path) -> None:
    async with Workspace(root, mode="full", approval="auto", notifier=Recorder()) as workspace:
        with pytest.raises(DeniedError, match="hidden from you"):
            workspace.read_bytes("link")
