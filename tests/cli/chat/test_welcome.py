"""What a person's first session says about the model."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from goose_like.agent.profile_choice import ProfileChoice, choose_profile
from goose_like.cli.chat.welcome import describe_start
from goose_like.config.profile import ModelChoice
from goose_like.config.profile_loader import load_profile
from goose_like.config.secrets import is_secret_variable
from goose_like.providers.registry import find_provider_class
from tests import ROOT


@pytest.fixture(autouse=True)
def no_keys(home, monkeypatch):
    for name in filter(is_secret_variable, [*os.environ]):
        monkeypatch.delenv(name)
    (home / "config").mkdir(parents=True)


def write_key(home, variable="OPENAI_API_KEY"):
    file = home / "config/keys.yaml"
    file.write_text(f"{variable}: k\n")
    file.chmod(0o600)
    return file


def test_a_key_of_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert describe_start(choose_profile(None))[0].endswith(" (OPENAI_API_KEY from the environment)")


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"])
def test_a_key_of_the_file_is_named_with_the_file(home, variable):
    file = write_key(home, variable)
    assert describe_start(choose_profile(None))[0].endswith(f" ({variable} from {file})")


def test_a_key_of_the_environment_counts_before_the_file(home, monkeypatch):
    write_key(home)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "from the environment" in describe_start(choose_profile(None))[0]


@pytest.mark.skipif(find_spec("keyring") is None, reason="the extra `keyring` is not installed")
def test_a_key_of_the_keyring_is_named_with_it(tmp_path):
    program = (
        "import keyring; keyring.set_password('goose-like', 'OPENAI_API_KEY', 'k'); "
        "from goose_like.agent.profile_choice import choose_profile; "
        "from goose_like.cli.chat.welcome import describe_start; print(describe_start(choose_profile(None))[0])"
    )
    backend = {"PYTHON_KEYRING_BACKEND": "tests.keyring_file.Vault", "VAULT": str(tmp_path / "vault.json")}
    env = {**os.environ, **backend, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(" (OPENAI_API_KEY from the keyring)\n")


@pytest.mark.parametrize("name", ["default", "local"])
def test_without_a_key_the_embedded_model_points_to_setup(name):
    profile, source = load_profile(name)
    if missing := find_provider_class("local").find_setup_error(ModelChoice(model="local")):
        pytest.skip(str(missing))
    assert describe_start(ProfileChoice(profile, source))[0].endswith(" (small; no API key is set: goose-like setup)")


def test_a_model_by_option_or_profile_names_no_key(home):
    write_key(home)
    assert describe_start(choose_profile(None, "openai:x"))[0].endswith("openai:x (from --model)")
    (home / "config/profiles.yaml").write_text("default: {processor: openai:y}\n")
    assert describe_start(choose_profile(None))[0].endswith("openai:y (from the profile 'default')")
