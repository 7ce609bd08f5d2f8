"""A workspace below a home of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import create_confined


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "goose"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with create_confined(root)[0] as workspace:
        yield workspace
