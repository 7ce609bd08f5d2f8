"""Every test has a home of its own, no API keys and no keyring, and the same environment on each machine."""

import gc
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("sample", deadline=None, max_examples=20)
settings.register_profile("quick", deadline=None, max_examples=10)  # for mutation tests
settings.register_profile("long", deadline=None, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "sample"))

KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "HYPOTHESIS_PROFILE", "PERSON_CACHE_HOME")
KEPT_PREFIXES = ("PYTEST_", "PIP_", "MUTANT_", "COV_")
FIXED = {"LANG": "C.UTF-8", "TERM": "xterm", "TZ": "UTC", "SHELL": "/bin/bash"}
GIT_CONFIG = "[user]\nname = Ann\nemail = ann@example.org\n[init]\ndefaultBranch = main\n"

HOME = pytest.StashKey[Path]()


def pytest_configure(config):
    """Set up the same environment on each machine, for this process and all that it starts."""
    gc.disable()  # until all tests are collected: a million objects stay, and each worker would search them for garbage
    find_person_cache()
    for name in [name for name in os.environ if name not in KEPT and not name.startswith(KEPT_PREFIXES)]:
        del os.environ[name]
    tempfile.tempdir = None  # no longer TMPDIR: --basetemp moves the files of tests
    home = config.stash[HOME] = Path(tempfile.mkdtemp(prefix="home-of-tests-"))
    (home / ".gitconfig").write_text(GIT_CONFIG)
    link_weights(home / ".cache/goose-like")
    os.environ.update(FIXED, HOME=str(home), GIT_CONFIG_NOSYSTEM="1")
    time.tzset()
    os.umask(0o022)
    # Processes inherit ignored signals, for example from nohup, but not handlers.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_modifyitems(items):
    """Begin with the slow tests: one at the end would leave the other workers idle."""
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("slow", "local"))))


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config):
    shutil.rmtree(config.stash[HOME], ignore_errors=True)


def find_person_cache():
    """Keep the place of the person's cache in PERSON_CACHE_HOME: a model's weights are unpacked only once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    if os.access(cache, os.W_OK):
        os.environ.setdefault("PERSON_CACHE_HOME", str(cache))


def link_weights(cache):
    """Let a cache of tests have the weights of the person's cache."""
    if person_cache := os.environ.get("PERSON_CACHE_HOME"):
        folder = Path(person_cache) / "goose-like/weights"
        folder.mkdir(parents=True, exist_ok=True)
        cache.mkdir(parents=True)
        (cache / "weights").symlink_to(folder)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The folder that `GOOSE_LIKE_HOME` names."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(folder))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return folder


@pytest.fixture
def weights(home):
    """Use the weights of the embedded model in the person's cache, so that no gigabyte is unpacked for each test."""
    link_weights(home / "cache")


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=2, help="moments at which tests/e2e/test_*kill.py kill a process")
    parser.addoption("--kill-state", help="file that notes the moments that passed; the next run goes on after them")
    parser.addoption("--wire", type=int, default=61, help="tests/providers/test_wire.py breaks every n-th byte")
    parser.addoption("--npm", type=Path, help="folder for npm packages, which tests/toolkits/mcp/test_npm.py installs")
    parser.addoption("--harbor", help="the Python of an environment with harbor, for two test files")
    parser.addoption("--comply", help="the Python of an environment with llm-comply, for tests/serve/test_comply.py")
    parser.addoption("--local-answers", action="store_true", help="run the long tests of the embedded model")
    parser.addoption("--undo-files", type=int, default=0, help="files of a repository for tests/workspace/undo")
    parser.addoption("--turns", type=int, default=36, help="turns of tests/e2e/test_soak.py")
    parser.addoption("--wrong", type=int, default=1, help="wrong solutions per task for tests/bench/test_tasks.py")
    parser.addoption("--batch-kills", type=int, default=2, help="kills of tests/jobs/test_chaos.py, each ten inputs")
    parser.addoption("--soak", type=int, default=150, help="requests of tests/e2e/test_serve_soak.py")
