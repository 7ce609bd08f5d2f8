"""The environment variables of commands."""

from pathlib import Path

import pytest

from goose_like.core.notifier import Recorder
from goose_like.workspace.environment import build_environment
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import GIT, needs_sandbox, run_script


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://me:pass@host/simple", "https://host/simple"),
        ("https://token@host/", "https://host/"),
        ("postgres://me:pass@db:5432/x", "postgres://db:5432/x"),
        ("ssh://git@host/repo", "ssh://git@host/repo"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_urls_lose_user_and_password(monkeypatch: pytest.MonkeyPatch, url: str, seen: str) -> None:
    monkeypatch.setenv("SOME_URL", url)
    assert build_environment(is_confined=True)["SOME_URL"] == seen


@needs_sandbox
@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_commands_see_no_secrets(root: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "TOPSECRET")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/TOPSECRET")
    monkeypatch.setenv("MONKEYS", "12")
    async with Workspace(root, mode=mode, approval="auto", notifier=Recorder()) as workspace:  # type: ignore[arg-type]
        _, output = await run_script(workspace, "env; cat /proc/$PPID/environ; rg --version", env={"MINE": "given"})
    assert "TOPSECRET" not in output
    assert "MONKEYS=12" in output
    assert "MINE=given" in output
    assert "ripgrep" in output


def test_rg_is_found_without_the_persons_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert build_environment(is_confined=True)["PATH"].startswith("/nowhere:")


@needs_sandbox
async def test_no_editor_and_no_prompt(workspace: Workspace) -> None:
    code, output = await run_script(workspace, f"git init -q . && {GIT} commit --allow-empty")
    assert code != 0
    assert "no editor here" in output
    assert (await run_script(workspace, "read -t 5 line < /dev/tty"))[0] != 0
