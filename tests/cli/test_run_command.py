"""Slash commands as the task of `run`."""

import pytest

from goose_like.agent.build import build_exchange
from goose_like.cli.run_command import expand_command
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import UsageError
from goose_like.core.notifier import Recorder


@pytest.fixture
async def expand(tmp_path, monkeypatch):
    """Expand a task with the commands of a trusted project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script").write_text("- text: done\n")
    profile = Profile(processor=ModelChoice(model=f"scripted:{tmp_path}/script"))
    files = {"commands/git/log.md": "Say what $1 did.", ".claude/commands/ask.md": "---\nmodel: haiku\n---\nAsk."}
    async with build_exchange(profile, Recorder()) as exchange:
        yield lambda text: expand_command(text, exchange, profile, ProjectConfig(tmp_path, files))


@pytest.mark.parametrize(
    ("text", "message", "model"),
    [
        ("/git:log Ann", "Say what Ann did.", ""),
        ("/ask", "Ask.", "haiku"),
        ("/tmp is full", "/tmp is full", ""),
        ("/etc/hosts: explain", "/etc/hosts: explain", ""),
        (" /ask", " /ask", ""),
    ],
)
async def test_a_command_becomes_its_message(expand, text, message, model):
    request = await expand(text)
    assert (request.text, request.model) == (message, model)


@pytest.mark.parametrize(
    ("text", "error"),
    [("/aks", "no command /aks .* did you mean 'ask'"), ("/clear", "/clear works in a session only")],
)
async def test_other_commands_are_usage_errors(expand, text, error):
    with pytest.raises(UsageError, match=error):
        await expand(text)
