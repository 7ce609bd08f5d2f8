"""The toolkits of the harness as an installed package, and hooks for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goose_like.toolkit import (
    Toolkit,
)

from .harness import First, Second, Work
from .policy import Policy

KINDS = (Policy, Work, First, Second)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the toolkits as a package, and work in an empty folder."""
    info = tmp_path / "site" / "team-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team\nVersion: 1\n")
    lines = "\n".join(f"{kind.__name__.lower()} = {kind.__module__}:{kind.__name__}" for kind in KINDS)
    (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\n{lines}\n")
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.setattr(Policy, "told", [])
    monkeypatch.setattr(Work, "ran", [])
    monkeypatch.setattr(Work, "later", [])
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give hooks to the toolkit `first` or `second`: functions of the value alone."""

    def give(kind: type[Toolkit], **hooks: Callable[..., Any]) -> None:
        for name, hook in hooks.items():
            monkeypatch.setattr(kind, name, lambda self, *values, hook=hook: hook(*values))

    return give
