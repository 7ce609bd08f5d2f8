"""Providers of other packages that are broken: each one gets one sentence that names it, and nothing else suffers."""

import pytest

WORKING = """
from goose_like import provider


class Base(provider.Provider):
    info = provider.ProviderInfo("works", key_variable="FINE_KEY", processor="any-model-9")

    def __init__(self, choice):
        pass

    @staticmethod
    def find_setup_error(choice):
        return None if provider.find_key("FINE_KEY") else provider.CredentialError("set FINE_KEY")

    async def stream(self, request):
        yield provider.MessageCompleted(message=provider.Message.assistant("fine"))

    @staticmethod
    async def probe(choice, key=""):
        return {}["models"]

    async def close(self):
        pass


class Faulty(Base):
    info = provider.ProviderInfo("fails early")

    @staticmethod
    def find_setup_error(choice):
        return {}["key"]


class Streaming(Base):
    info = provider.ProviderInfo("fails late")

    async def stream(self, request):
        yield provider.TextDelta(text="so")
        raise KeyError("choices")


class Bare:
    pass
"""


@pytest.fixture
def path(tmp_path):
    """Install a package with a working provider and with broken ones, and return the variables for it."""
    info = tmp_path / "site/stranger-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    names = {"fine": "Base", "faulty": "Faulty", "streaming": "Streaming", "bare": "Bare"}
    points = [f"{name} = stranger:{class_name}" for name, class_name in names.items()]
    points.append("gone = stranger_gone:Gone")
    (info / "entry_points.txt").write_text("\n".join(["[goose_like.provider]", *points, ""]))
    (info.parent / "stranger.py").write_text(WORKING)
    (info.parent / "stranger_gone.py").write_text("raise OSError('no library')\n")
    return {"PYTHONPATH": str(info.parent), "COLUMNS": "1000"}


def test_each_broken_provider_gets_a_row(place, path):
    done = place.run("provider", "list", env=path)
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert "the provider 'gone' of the package 'stranger' can't be imported: OSError: no library" in text
    assert "the provider 'bare' cannot be used: the class Bare has no `info = ProviderInfo(...)`" in text
    assert "the provider stranger.Faulty failed in `find_setup_error`: KeyError: 'key'; at stranger:" in text
    assert "set FINE_KEY" in text


def test_the_doctor_names_them(place, path):
    done = place.run("doctor", env=path)
    text = " ".join(done.stdout.split())
    assert "Traceback" not in done.stderr
    assert "the provider 'gone' of the package 'stranger' can't be imported" in text
    assert "the provider 'bare' cannot be used" in text
    assert "next: " in text


def test_short_names_of_models_still_work(place, path):
    done = place.run("run", "-m", "any-model-9", "hello", env={**path, "FINE_KEY": "k"})
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_an_unknown_name_says_what_is_broken(place, path):
    done = place.run("run", "-m", "nothing", "hello", env=path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "unknown provider 'nothing'" in done.stderr
    assert "'gone' of the package 'stranger' can't be imported" in " ".join(done.stderr.split())


def test_a_check_without_a_key_names_the_key(place, path):
    done = place.run("provider", "check", "fine", env=path)
    assert (done.returncode, "set FINE_KEY" in done.stderr) == (76, True), done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("provider", "check", "fine"),
            "the provider stranger.Base failed in `probe`: KeyError: 'models'; at stranger:",
        ),
        (
            ("provider", "check", "faulty"),
            "stranger.Faulty failed in `find_setup_error`: KeyError: 'key'; at stranger:",
        ),
        (("run", "-m", "faulty:x", "hello"), "failed in `find_setup_error`: KeyError: 'key'; at stranger:"),
        (
            ("run", "-m", "streaming:x", "hello"),
            "stranger.Streaming failed in `stream`: KeyError: 'choices'; at stranger:",
        ),
        (("run", "-m", "bare:x", "hello"), "the provider 'bare' cannot be used: the class Bare has no `info"),
    ],
)
def test_a_fault_is_one_sentence(place, path, arguments, problem):
    done = place.run(*arguments, env={**path, "FINE_KEY": "k"})
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert problem in " ".join(done.stderr.split())
