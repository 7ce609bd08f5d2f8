"""The commands `goose-like skill ...`."""

from pathlib import Path

import pytest
from goose_like_toolkits.skills.commands import check_skills, list_skills, show_skill, write_skill_folder
from goose_like_toolkits.skills.listing import count_tokens
from skills_ref.validator import validate

from goose_like.config.trust import read_project_config, trust_project
from goose_like.core.errors import UsageError
from tests.toolkits.skills.write_skill import write_skill


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", ["pdf", "release-notes", "größe-2"])
@pytest.mark.parametrize("description", ["", 'Fills "forms": a # b, {c}'])
@pytest.mark.parametrize("is_of_project", [False, True])
def test_a_new_skill_passes_the_reference_implementation(
    root: Path, home: Path, name: str, description: str, is_of_project: bool
) -> None:
    said = write_skill_folder(root, name, description, is_of_project=is_of_project)
    top = root / ".agents/skills" if is_of_project else home / "config/skills"
    assert validate(top / name) == []
    assert f"goose-like skill check {top / name}" in said
    assert check_skills(root, [top / name]) == 0
    with pytest.raises(UsageError, match="choose another name"):
        write_skill_folder(root, name, description, is_of_project=is_of_project)


@pytest.mark.parametrize("name", ["My Skill", "a--b", "-a", "A", "a/b", "../a", "x" * 65, ""])
def test_names_that_the_specification_refuses_write_nothing(root: Path, home: Path, name: str) -> None:
    with pytest.raises(UsageError):
        write_skill_folder(root, name, "", is_of_project=False)
    assert not (home / "config").exists()


def test_the_list_shows_what_the_model_sees(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list_skills(root)
    assert capsys.readouterr().out == "there are no skills; write one: goose-like skill new NAME\n"
    person = tmp_path / "person/.agents/skills"
    write_skill(person, "pdf", "Fills forms.")
    write_skill(person, "bad").write_text("nothing")
    write_skill(root / ".claude/skills", "pdf", "Of the project.")
    list_skills(root)
    shown = capsys.readouterr()
    assert "not used before you trust the files of this project (goose-like trust add): 1 skill" in shown.err
    assert "Of the project" not in shown.out + shown.err
    assert "bad/SKILL.md: the front matter has no `description`" in shown.err
    listing = shown.out.partition("token")[2].partition(":\n\n")[2].rstrip("\n")
    assert listing.endswith("\n- pdf: Fills forms.")
    assert f"about {count_tokens(listing)} tokens" in shown.out
    project = read_project_config(root)
    assert project
    trust_project(project)
    list_skills(root)
    shown = capsys.readouterr()
    assert "- pdf: Of the project." in shown.out
    assert f"{person}/pdf/SKILL.md is not used: {root}/.claude/skills/pdf/SKILL.md has the same name" in shown.err


def test_a_skill_is_shown_as_the_model_reads_it(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_skill(tmp_path / "person/.agents/skills", "pdf", body="Do it.\x1b[2J")
    show_skill(root, "pdf")
    shown = capsys.readouterr()
    assert shown.out.startswith(f"[skill pdf, in {tmp_path}/person/.agents/skills/pdf]\n\nDo it.")
    assert "\x1b" not in shown.out
    assert "type /pdf" in shown.err
    with pytest.raises(UsageError, match="did you mean 'pdf'"):
        show_skill(root, "pdff")


def test_the_check_tells_errors_from_notes(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_skill(tmp_path / "all", "one", front="model: opus\n")
    assert check_skills(root, [tmp_path / "all"]) == 0
    assert "the key `model` is not in the specification" in capsys.readouterr().out
    write_skill(tmp_path / "all", "two").write_text("---\nname: two\n---\n")
    assert check_skills(root, [tmp_path / "all"]) == 1
    assert capsys.readouterr().out.endswith("2 skills, 1 error, 1 note\n")
    with pytest.raises(UsageError, match=r"there is no SKILL\.md"):
        check_skills(root, [root])
