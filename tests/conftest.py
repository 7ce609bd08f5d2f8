"""Every test has a home of its own, no API keys and no keyring."""

import os

import pytest
from hypothesis import settings

settings.register_profile("no_clock", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)  # for mutation tests
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "no_clock"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The folder that `GOOSE_LIKE_HOME` names."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(folder))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN"))]:
        monkeypatch.delenv(name)
    return folder


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=3, help="moments at which tests/e2e/test_*kill.py kill a process")
    parser.addoption("--kill-state", help="file that notes the moments that passed; the next run goes on after them")
    parser.addoption("--wire", type=int, default=61, help="tests/providers/test_wire.py breaks every n-th byte")
    parser.addoption("--soak", type=int, default=150, help="requests of tests/e2e/test_serve_soak.py")
