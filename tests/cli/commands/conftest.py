"""Fixtures: the person's profiles, and toolkits of an installed package."""

import importlib.metadata

import pytest

from goose_like.config import entry_points


@pytest.fixture
def profiles(home):
    """Writes the person's own profiles."""

    def write(text: str) -> None:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "profiles.yaml").write_text(text)

    return write


@pytest.fixture
def offer_toolkits(monkeypatch):
    """Makes these classes the toolkits of a package, beside what is installed."""

    def offer(**kinds: type) -> None:
        group, scan = "goose_like.toolkit", entry_points._scan_packages
        points = [
            importlib.metadata.EntryPoint(name, f"{kind.__module__}:{kind.__name__}", group)
            for name, kind in kinds.items()
        ]
        monkeypatch.setattr(
            entry_points, "_scan_packages", lambda path: (every := scan(path)) | {group: (*every[group], *points)}
        )

    return offer
