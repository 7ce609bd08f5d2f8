"""The diagnosis of an installation."""

from goose_like.cli.commands.doctor import run_doctor


def test_the_doctor_names_the_next_step(home, capsys):
    run_doctor(None)
    out = capsys.readouterr().out
    assert out.splitlines()[-2].startswith("next: ")
    assert f"{home / 'config'}" in out


def test_the_doctor_says_what_is_wrong_with_a_profile(profiles, capsys):
    profiles("mine: {procesor: x}")
    assert run_doctor("mine") == 2
    assert "did you mean 'processor'" in capsys.readouterr().out.splitlines()[-1]
