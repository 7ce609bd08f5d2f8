"""Tests of API keys: the order of places, the private file and the keyring."""

import os
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from goose_like.config import secrets as keys
from goose_like.config.secrets import is_secret_variable
from goose_like.core import masking
from goose_like.core.errors import CredentialError, GooseLikeError
from goose_like.core.masking import mask_text
from tests import ROOT

KEY = "sk-planted-1234567890"
ringed = pytest.mark.skipif(find_spec("keyring") is None, reason="the extra `keyring` is not installed")


@pytest.fixture
def file(home: Path) -> Path:
    (home / "config").mkdir(parents=True)
    return home / "config" / "keys.yaml"


def write_keys(file: Path, text: str, mode: int = 0o600) -> None:
    file.write_text(text)
    file.chmod(mode)


def run_with_keyring(tmp_path: Path, backend: str, program: str) -> str:
    """Run a program with this keyring backend and return its output. A process loads a backend only once."""
    env = {**os.environ, "VAULT": str(tmp_path / "vault.json")}
    env["PYTHON_KEYRING_BACKEND"] = f"tests.keyring_file.{backend}"
    env["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-c", f"from goose_like.config import secrets as keys; {program}"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_no_key_anywhere(home):
    assert (keys.find_key("MY_API_KEY"), keys.find_key_location("MY_API_KEY"), keys.find_key(None)) == ("", "", "")
    assert keys.delete_key("MY_API_KEY") == []
    assert not home.exists()


def test_the_environment_comes_before_the_file(file, monkeypatch):
    write_keys(file, "MY_API_KEY: of-the-file\nOTHER_API_KEY: 12345\n")
    assert (keys.find_key("MY_API_KEY"), keys.find_key_location("MY_API_KEY")) == ("of-the-file", str(file))
    assert keys.find_key("OTHER_API_KEY") == "12345"
    monkeypatch.setenv("MY_API_KEY", " of-the-environment\n")
    assert (keys.find_key("MY_API_KEY"), keys.find_key_location("MY_API_KEY")) == (
        "of-the-environment",
        "the environment",
    )


def test_the_environment_needs_no_sound_file(file, monkeypatch):
    write_keys(file, f"MY_API_KEY: {KEY}", 0o644)
    monkeypatch.setenv("MY_API_KEY", "k")
    assert keys.find_key("MY_API_KEY") == "k"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(file, mode):
    write_keys(file, f"MY_API_KEY: {KEY}", mode)
    with pytest.raises(CredentialError, match=f"chmod 600 {file}") as caught:
        keys.find_key("MY_API_KEY")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("text", [f"- {KEY}", KEY, f"MY_API_KEY: [{KEY}", f"MY_API_KEY: '{KEY}", f"a: *{KEY}"])
def test_a_broken_file_is_told_without_what_is_in_it(file, text):
    write_keys(file, text)
    with pytest.raises(GooseLikeError, match=r"keys\.yaml") as caught:
        keys.find_key("MY_API_KEY")
    assert KEY not in str(caught.value)


def test_a_key_is_kept_for_its_owner_only_and_forgotten(file):
    before = os.umask(0)
    try:
        assert keys.store_key("MY_API_KEY", KEY) == str(file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    keys.store_key("OTHER_API_KEY", "0123")
    assert (keys.find_key("MY_API_KEY"), keys.find_key("OTHER_API_KEY")) == (KEY, "0123")
    assert keys.delete_key("MY_API_KEY") == [str(file)]
    assert (keys.find_key("MY_API_KEY"), keys.find_key("OTHER_API_KEY")) == ("", "0123")
    assert [path.name for path in file.parent.iterdir()] == ["keys.yaml"]


def test_a_linked_file_stays_a_link(file, tmp_path):
    write_keys(tmp_path / "dotfiles.yaml", "{}")
    file.symlink_to(tmp_path / "dotfiles.yaml")
    keys.store_key("MY_API_KEY", KEY)
    assert file.is_symlink()
    assert KEY in (tmp_path / "dotfiles.yaml").read_text()


def test_a_folder_that_cannot_be_written_is_told(home):
    home.write_text("a file where the folder belongs")
    with pytest.raises(CredentialError, match="set the variable instead"):
        keys.store_key("MY_API_KEY", KEY)


@ringed
def test_the_keyring_is_taken_where_there_is_one(file, tmp_path):
    assert run_with_keyring(tmp_path, "Vault", f"print(keys.store_key('MY_API_KEY', '{KEY}'))") == "the keyring"
    assert not file.exists()
    write_keys(file, "MY_API_KEY: of-the-file")
    report = run_with_keyring(
        tmp_path, "Vault", "print(keys.find_key('MY_API_KEY'), keys.find_key_location('MY_API_KEY'))"
    )
    assert report == f"{KEY} the keyring"
    assert run_with_keyring(tmp_path, "Vault", "print(keys.delete_key('MY_API_KEY'))") == f"['the keyring', '{file}']"
    assert run_with_keyring(tmp_path, "Vault", "print(keys.find_key('MY_API_KEY') == '')") == "True"


@ringed
def test_a_broken_keyring_is_none(file, tmp_path):
    assert run_with_keyring(tmp_path, "Broken", f"print(keys.store_key('MY_API_KEY', '{KEY}'))") == str(file)
    assert run_with_keyring(tmp_path, "Broken", "print(keys.find_key('MY_API_KEY'))") == KEY


@ringed
def test_a_keyring_that_keeps_nothing_is_none(file):
    assert keys.store_key("MY_API_KEY", KEY) == str(file)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(
            (name, True)
            for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "PGPASSWORD")
        ),
        *((name, True) for name in ("OPENAIKEY", "GH_PAT", "SESSION_JWT", "NPM_CONFIG__AUTH", "OP_SESSION_mine")),
        *((name, False) for name in ("KEYBOARD_LAYOUT", "MONKEYS", "TOKENIZERS_PARALLELISM", "PATH", "PWD", "HOME")),
    ],
)
def test_secret_names(name: str, expected: bool) -> None:
    assert is_secret_variable(name) is expected


def test_secret_variables_and_keys_of_the_file_are_masked(monkeypatch, file):
    monkeypatch.setattr(masking, "_known", {})
    write_keys(file, "MY_API_KEY: key-of-the-file-1\nOTHER_API_KEY: 'quoted-key-2'\n")
    names = ("DB_PWD", "SSHPASS", "GHPAT", "OPENAI_KEY1", "PASSWORD2", "BEARER", "MY_TOKEN", "MY_CONNECTION_STRING")
    for name in names:
        monkeypatch.setenv(name, f"value-of-{name}-1")
    monkeypatch.setenv("DATABASE_URL", "postgres://ann:swordfish-9@db.example/app")
    monkeypatch.setenv("HOOK_WEBHOOK_URL", "https://hooks.example/T0/B0")
    keys.register_keys()
    for name in names:
        assert mask_text(f"x value-of-{name}-1") == f"x [masked:{name}]"
    assert mask_text("key-of-the-file-1 quoted-key-2") == "[masked:MY_API_KEY] [masked:OTHER_API_KEY]"
    assert mask_text("postgres://ann:swordfish-9@db") == "postgres://ann:[masked:DATABASE_URL]@db"
    assert mask_text("https://hooks.example/T0/B0") == "[masked:HOOK_WEBHOOK_URL]"


def test_other_variables_are_not_masked(monkeypatch, file):
    monkeypatch.setattr(masking, "_known", {})
    monkeypatch.setenv("AUTH_URL", "https://login.example/oauth2")
    monkeypatch.setenv("EDITION", "community-edition-2")
    keys.register_keys()
    assert not {"https://login.example/oauth2", "community-edition-2"} & set(masking._known)
