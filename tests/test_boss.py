"""A boss at work: its rounds, its memory byte for byte, bosses within bosses, and every way in which it ends."""

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import boss_model
import pytest
from boss_model import Deciding
from fakes import Played, call, calls
from goose_like_toolkits.boss.boss import Boss, Run
from goose_like_toolkits.boss.outcome import Outcome
from goose_like_toolkits.boss.spec import BossSpec

from goose_like.events import Answer, Nested, ToolFinished
from goose_like.history import History
from goose_like.message import ToolResult
from goose_like.notifier import Recorder
from goose_like.profile import Profile
from goose_like.provider import Model, Models
from goose_like.session import Session


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


class Place:
    """A boss that works, and what came of it."""

    def __init__(self, run: Run, session: Session, recorder: Recorder, provider: Played) -> None:
        self.run, self.session, self.recorder, self.provider = run, session, recorder, provider


PROFILE = Profile(name="mine", toolkits=(), sandbox="full", approval="yolo")


@asynccontextmanager
async def at_work(
    spec: Mapping[str, Any],
    provider: Played,
    *,
    session: Session | None = None,
    answer: Answer = Answer(),
    profile: Profile = PROFILE,
    **how: Any,
) -> AsyncIterator[Place]:
    recorder, session = Recorder(answer), session or Session.create("here")
    model = Model(provider, "x", "scripted:x")
    boss = Boss(BossSpec.model_validate(spec), **how)
    try:
        async with boss.opened(profile, recorder, session=session, models=Models(model, model)) as run:
            yield Place(run, session, recorder, provider)
    finally:
        session.close()


async def test_three_levels(root):
    async with at_work(boss_model.config(), Deciding()) as place:
        outcome = await place.run.work(boss_model.GOAL)
    for file in sorted(root.iterdir()):
        print(f"=== {file.name}\n{file.read_text()}")
    print(outcome)
    assert 0
