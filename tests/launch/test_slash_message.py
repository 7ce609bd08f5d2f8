"""Slash commands as the task of `run`."""

from contextlib import suppress

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.slash_command import command, make_command
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.events import Logged
from goose_like.core.notifier import Recorder
from goose_like.launch.slash_message import expand_command


@command(in_run=True)
def fail(words: str) -> str:
    """Fail as a package's command may."""
    raise ValueError(f"no {words}")


@command(in_run=True)
async def fail_later(words: str) -> str:
    """Fail after a while."""
    raise LookupError(f"nowhere {words}")


@pytest.fixture
async def expand(tmp_path, monkeypatch):
    """Expand a task with the commands of a trusted project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script").write_text("- text: done\n")
    profile = Profile(processor=ModelChoice(model=f"scripted:{tmp_path}/script"))
    files = {
        "commands/git/log.md": "Say what $1 did.",
        ".claude/commands/ask.md": "---\nmodel: haiku\ncolor: red\n---\nAsk.",
        "commands/empty.md": "",
        "commands/commit.md": "",
        "commands/sub/init.md": "",
    }
    async with build_exchange(profile, recorder := Recorder()) as exchange:
        exchange.hooks.commands.update({"fail": make_command(fail), "fail-later": make_command(fail_later)})

        async def expand(text: str) -> TurnRequest:
            return await expand_command(text, exchange, profile, ProjectConfig(tmp_path, files))

        expand.recorder = recorder
        yield expand


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


@pytest.mark.parametrize(
    ("text", "error"), [("/fail luck", "ValueError: no luck"), ("/fail-later x", "LookupError: nowhere x")]
)
async def test_a_command_that_fails_is_one_sentence(expand, text, error):
    with pytest.raises(GooseLikeError, match=error) as caught:
        await expand(text)
    assert str(caught.value).startswith("the command failed: ")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/ask", ["ask.md"]),
        ("/git:log x", []),
        ("/init", []),
        ("/commit", ["commit.md"]),
        ("/empty", ["empty.md"]),
        ("/nothing", []),
    ],
)
async def test_only_notes_about_the_file_of_the_command_are_shown(expand, text, named):
    with suppress(UsageError):
        await expand(text)
    logged = [event.text for event in expand.recorder.events if isinstance(event, Logged)]
    assert [
        name
        for note in logged
        for name in ("ask.md", "log.md", "empty.md", "commit.md", "init.md")
        if f"/{name}" in note
    ] == named
    assert len(logged) == len(named)
