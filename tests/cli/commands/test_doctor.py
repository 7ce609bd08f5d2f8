"""The diagnosis of an installation."""

import platform

from goose_like.cli.commands.doctor import run_doctor


def test_the_doctor_names_the_next_step(home, capsys):
    run_doctor(None)
    out = capsys.readouterr().out
    _, next_step = out.split("\nnext: ")
    assert len(next_step.splitlines()) <= 2  # with a model that works, the second line names a stronger one
    assert f"{home / 'config'}" in out


def test_the_doctor_says_what_is_wrong_with_a_profile(profiles, capsys):
    profiles("mine: {procesor: x}")
    assert run_doctor("mine") == 2
    assert "did you mean 'processor'" in capsys.readouterr().out.splitlines()[-1]


def test_the_doctor_tells_how_a_profile_has_tools_called(profiles, capsys):
    profiles("served: {processor: {model: 'scripted:', tools: tags}}")
    run_doctor("served", is_report=True)
    assert "| tool calls | tags (from the profile) |" in capsys.readouterr().out


def test_a_report_has_no_secrets_and_no_names(profiles, tmp_path, monkeypatch, capsys):
    person = tmp_path / "ada_lovelace"
    person.mkdir()
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghij")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://ada:pa55word99@127.0.0.1:9/v1")
    monkeypatch.chdir(person)
    profiles("ada_lovelace: {extends: default, processor: openai:m}")
    run_doctor("ada_lovelace", is_report=True)
    report = capsys.readouterr().out
    assert report.startswith("| part | state |\n|---|---|\n| goose-like |")
    assert "| keys | OPENAI_API_KEY (the environment) |" in report
    assert "OPENAI_BASE_URL" in report
    assert "| profile | USER (" in report
    for private in ("0123456789", "pa55word99", "ada_lovelace", str(person), platform.node()):
        assert private not in report


def test_a_report_has_one_row_for_each_part(home, capsys):
    run_doctor(None, is_report=True)
    rows, _, next_step = capsys.readouterr().out.partition("\n\n")
    assert all(line.startswith("| ") and line.endswith(" |") for line in rows.splitlines()[2:])
    assert next_step.startswith("next: ")
