"""Every test has a home of its own and no API keys."""

import os

import pytest
from hypothesis import settings

settings.register_profile("no_clock", deadline=None)
settings.load_profile("no_clock")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The folder that `GOOSE_LIKE_HOME` names."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(folder))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    return folder


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=6, help="moments at which tests/e2e/test_kill.py kills a run")
