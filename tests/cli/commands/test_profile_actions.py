"""The work of `profile list`, `profile show` and `profile check`."""

from textwrap import indent

import pytest

from goose_like.cli.commands.profile_actions import check_profile, print_profile, print_profiles
from goose_like.config.profile_loader import load_profile
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError
from goose_like.providers.local import LocalProvider
from tests.cli.commands.test_toolkit_actions import Hasty, Varied


def test_without_a_model_a_check_tells_of_the_toolkits_first(offer_toolkits, profiles, monkeypatch, capsys):
    monkeypatch.setattr(
        LocalProvider, "find_setup_error", staticmethod(lambda choice: ModelUnavailableError("not here"))
    )
    offer_toolkits(varied=Varied, hasty=Hasty)
    profiles("bad: {toolkits: [varied]}\nmisspelt: {toolkits: [hastie]}\nhasty: {toolkits: [hasty], sandbox: full}")
    for name, words in {"bad": "tool 'add'", "misspelt": "did you mean 'hasty'"}.items():
        with pytest.raises(GooseLikeError, match=words):
            check_profile(name)
    with pytest.raises(CredentialError, match="no model to work with"):
        check_profile("hasty")
    out = capsys.readouterr().out
    assert "warning: toolkit 'hasty': tool 'bare': it has no docstring" in out
    assert "ready" not in out


def test_tables_are_not_cut_in_a_pipe(profiles, capsys):
    name = "n" * 150
    profiles(f"{name}: {{processor: scripted:{'x' * 150}}}")
    print_profiles()
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(name))
    assert "x" * 150 in row
    assert row.endswith("profiles.yaml")


def test_a_profile_of_ones_own_hides_the_shipped_one(profiles, capsys):
    profiles("default: {extends: default, processor: 'openai:mine'}")
    print_profiles()
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("default")]
    assert [row[1] for row in rows] == ["openai:mine", "(overridden)"]


def test_only_what_is_broken_is_called_broken(profiles, capsys):
    profiles("mine: {procesor: x}\ngood: {processor: local}")
    print_profiles()
    broken = [line for line in capsys.readouterr().out.splitlines() if "broken:" in line]
    assert [line.split()[0] for line in broken] == ["mine"]
    assert "line 1" in broken[0]


def test_a_check_says_when_the_profile_is_used(home, capsys, tmp_path, monkeypatch, profiles):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "script.yaml"
    script.write_text("- hi")
    profiles(f"mine: {{processor: 'scripted:{script}', sandbox: full}}")
    assert check_profile("mine") == 0
    assert "with --profile mine; the default is 'local', because no API key is set" in capsys.readouterr().out
    profiles(f"default: {{processor: 'scripted:{script}', sandbox: full}}")
    assert check_profile() == 0
    assert "used     by default\n" in capsys.readouterr().out


def test_without_a_name_the_profile_that_run_uses_is_shown(monkeypatch, capsys):
    print_profile()
    assert capsys.readouterr().out.startswith("# local: ")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    print_profile()
    assert capsys.readouterr().out.startswith("# default: ")


def test_a_shown_profile_loads_as_the_same_profile(profiles, capsys):
    config = '{a: null, b: .inf, c: {1: [~]}, d: "\\x85"}'
    profiles(
        f"mine: {{resources: {{processes: null}}, toolkits: [{{name: x, config: {config}}}],"
        f" moderator: {{config: {config}}}}}"
    )
    profile, _ = load_profile("mine")
    print_profile("mine")
    _, _, text = capsys.readouterr().out.partition("\n")
    profiles(f"mine:\n{indent(text, '  ')}")
    assert load_profile("mine")[0] == profile


def test_an_unknown_profile_is_told():
    with pytest.raises(GooseLikeError, match="did you mean 'local'"):
        print_profile("locl")
