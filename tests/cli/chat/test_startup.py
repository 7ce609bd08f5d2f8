"""Start of a session: its command line, few imports, and a stop while it starts."""

import asyncio
import shlex
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from typer.testing import CliRunner

from goose_like.agent.slash_context import SwitchSession
from goose_like.cli.app import add_groups, app
from goose_like.cli.chat import loop as chat
from goose_like.cli.chat import startup
from goose_like.cli.options import ProfileOptions
from goose_like.config.profile import Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import ModeRestricted
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from tests.sessions.session_files import make_header


class StoppingIO:
    """Stops a session as soon as it starts."""

    waits_for_work, finished = True, ()

    def __init__(self):
        self.notifier, self.stopped = Notifier(), []

    def show_startup(self, stop):
        asyncio.get_running_loop().call_soon(lambda: self.stopped.append(stop()))


async def test_one_that_fails_when_it_is_stopped_leaves_nothing_of_the_stop(monkeypatch):
    @asynccontextmanager
    async def fails_instead(*_, **__):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise GooseLikeError("a toolkit's own words") from None
        yield

    monkeypatch.setattr(chat, "build_exchange", fails_instead)
    session = Session.temporary()
    talk = chat.ChatLoop(io := StoppingIO())
    for times in (1, 2):
        with pytest.raises(GooseLikeError, match="a toolkit's own words"):
            await talk.run(SwitchSession(Profile(toolkits=()), session), (), "")
        assert io.stopped == [True] * times
    assert asyncio.current_task().cancelling() == 0
    session.close()


async def test_a_session_that_is_stopped_when_it_starts_again_goes_on_as_before(monkeypatch):
    """The second of three starts is stopped. The loop returns to the exchange before, in the chosen mode."""
    starts, shown, read = [], [], []

    @asynccontextmanager
    async def starts_slowly_once(profile, *_, **__):
        starts.append(profile.name)
        if len(starts) == 2:
            await asyncio.sleep(60)
        yield

    async def read_lines(exchange, profile, plan):
        read.append((profile.name, profile.approval))
        session.history.apply(ModeRestricted(sandbox="", approval="plan"))
        return (SwitchSession(Profile(name="other", toolkits=()), session) if len(read) == 1 else None), ""

    class Input(StoppingIO):
        show = staticmethod(shown.append)

        def show_startup(self, stop):
            if len(starts) == 1:
                super().show_startup(stop)

    monkeypatch.setattr(chat, "build_exchange", starts_slowly_once)
    session = Session.temporary()
    session.history.apply(make_header("x").model_copy(update={"sandbox": "workspace", "approval": "auto"}))
    talk = chat.ChatLoop(Input())
    monkeypatch.setattr(talk, "_read_lines", read_lines)
    assert await talk.run(SwitchSession(Profile(name="first", toolkits=()), session), (), "") is session
    assert (starts, shown) == (["first", "other", "first"], ["the start was stopped"])
    assert read == [("first", "auto"), ("first", "plan")]
    assert asyncio.current_task().cancelling() == 0


DEFAULTS = {"session": None, "is_resumed": False, "is_forked": False, "picks": False, "first": "", "worktree": None}
KNOWN = [
    "",
    "-m scripted:a",
    "session start",
    "session start one",
    "session start --model scripted:a one",
    "session start --model=a=b -P local --trust",
    "session resume",
    "session resume one --profile local --fork",
    "'fix the tests' -m scripted:a",
    "-c",
    "--continue --fork 'go on'",
    "-r",
    "-r one",
    "--resume 'go on' --allowed-tools 'git push,tool:x' --allowed-tools=ls --add-dir /usr",
    "-r -m scripted:a",
    "--worktree",
    "-w one 'fix the tests'",
    "--worktree 'fix the tests'",
    "session start one --worktree two",
    "session start -w -m scripted:a",
]
OTHER = [
    "run x",
    "session",
    "session list",
    "session start one two",
    "session start --help",
    "session start --plan p.md",
    "session start --model",
    "session start --model --trust",
    "session start -mscripted:a",
    "session start -m=a",
    "session start --sandbox full",
    "session start -- one",
    "session resume --modell x",
    "-- session start",
    "one",
    "--fork",
    "-c -w",
    "session resume one -w",
    "-p 'say hello'",
    "-cr",
    "-r=one",
    "fix the tests",
]


add_groups()


@pytest.mark.parametrize("line", KNOWN)
def test_a_session_is_parsed_as_typer_does(line, monkeypatch):
    parsed = []

    def start_session(options, **arguments):
        parsed.append((options, DEFAULTS | arguments))

    monkeypatch.setattr(startup, "start_session", start_session)
    monkeypatch.setattr(startup, "has_prompt", lambda: True)
    CliRunner().invoke(app, shlex.split(line), catch_exceptions=False)
    arguments = startup.parse_session_command(shlex.split(line))
    assert arguments is not None
    assert [(ProfileOptions(**arguments.pop("options")), DEFAULTS | arguments)] == parsed


@pytest.mark.parametrize("line", OTHER)
def test_other_command_lines_are_left_to_typer(line):
    assert startup.parse_session_command(shlex.split(line)) is None


def test_help_imports_no_heavy_library():
    command = [sys.executable, "-X", "importtime", "-m", "goose_like", "--help"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in report.splitlines()}
    assert "typer" in imported
    assert not imported & {"asyncio", "email", "prompt_toolkit", "pydantic", "rich", "tempfile", "yaml"}
