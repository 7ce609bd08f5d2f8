"""The environment variables of commands."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox.environment import build_environment
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
    monkeypatch.setenv("PIP_INDEX_URL", url)
    assert build_environment(is_confined=True)["PIP_INDEX_URL"] == seen


@pytest.mark.parametrize(
    "name",
    [
        *("DB_PWD", "DBPASS", "SSHPASS", "CONN_STR", "DB_CONNECTION_STRING", "SLACK_WEBHOOK_URL", "JDBC_URL"),
        *("OPENAI_KEY1", "GHPAT", "PASSWORD2", "CREDS", "BEARER", "COOKIE", "DATABASE_URL", "SESSION", "BASH_ENV"),
        *("CARGO_REGISTRY_TOKEN", "UV_INDEX_MINE_PASSWORD", "NODE_AUTH_TOKEN", "npm_config__auth", "PIP_KEYRING_AUTH"),
        *("TF_VAR_db", "SCCACHE_AZURE_CONNECTION_STRING", "npm_config_//host/:_authToken", "POETRY_PYPI_TOKEN_MINE"),
        *("BUNDLE_GITHUB__COM", "GIT_CONFIG_VALUE_0", "LD_PRELOAD", "DBUS_SESSION_BUS_ADDRESS", "BASH_FUNC_ls%%"),
    ],
)
def test_variables_outside_the_allow_list_are_not_passed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "TOPSECRET")
    for is_confined in (True, False):
        assert "TOPSECRET" not in build_environment(is_confined=is_confined).values()


def test_variables_of_toolchains_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("LC_ALL", "VIRTUAL_ENV", "CARGO_HOME", "GOFLAGS", "NODE_OPTIONS", "JAVA_HOME", "CFLAGS", "PYTEST_ADDOPTS")
    for name in names:
        monkeypatch.setenv(name, "given")
    variables = build_environment(is_confined=True)
    assert [variables[name] for name in names] == ["given"] * len(names)


def test_the_profile_passes_more_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:pass@db/x")
    monkeypatch.setenv("MY_FLAG", "1")
    monkeypatch.setenv("MY_TOKEN", "TOPSECRET")
    variables = build_environment(is_confined=True, allowed=["DATABASE_URL", "MY_*"])
    assert variables["DATABASE_URL"] == "postgres://me:pass@db/x"
    assert variables["MY_FLAG"] == "1"
    assert "MY_TOKEN" not in variables
    assert build_environment(is_confined=True, allowed=["MY_TOKEN"])["MY_TOKEN"] == "TOPSECRET"


@needs_sandbox
@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_commands_see_no_secrets(root: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "TOPSECRET")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/TOPSECRET")
    monkeypatch.setenv("PYTHONHASHSEED", "12")
    async with Workspace(root, mode=mode, approval="auto", notifier=Recorder()) as workspace:  # type: ignore[arg-type]
        _, output = await run_script(workspace, "env; cat /proc/$PPID/environ; rg --version", env={"MINE": "given"})
    assert "TOPSECRET" not in output
    assert "PYTHONHASHSEED=12" in output
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


@needs_sandbox
async def test_checks_find_a_cache_in_a_read_only_session(root: Path) -> None:
    """With `filterwarnings = error`, a cache that cannot be written fails tests that pass."""
    (root / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = -p no:asyncio -p no:xdist\n")
    (root / "test_one.py").write_text("def test_one(): pass\n")
    (root / "one.py").write_text("x: int = 1\n")
    python = shlex.quote(sys.executable)
    checks = ("pytest -q", "pytest -q -p no:cacheprovider", "py_compile one.py", "mypy one.py", "ruff check one.py")
    script = " && ".join(f"{python} -m {check}" for check in checks)
    async with Workspace(root, mode="read-only", approval="auto", notifier=Recorder()) as workspace:
        code, output = await run_script(workspace, script)
    assert code == 0, output
    assert sorted(os.listdir(root)) == ["one.py", "pytest.ini", "test_one.py"]


def test_caches_keep_the_options_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    assert build_environment(is_confined=True)["PYTEST_ADDOPTS"] == "-x"
    variables = build_environment(is_confined=True, is_read_only=True)
    assert variables["PYTEST_ADDOPTS"] == "-x -W ignore::pytest.PytestCacheWarning"
