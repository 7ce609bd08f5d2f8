"""Skills of the project, the person and packages: which are found, and which wins."""

import os
import sys
from pathlib import Path

import agent_plugins
import pytest
from goose_like_toolkits.skills import cache
from goose_like_toolkits.skills.catalog import find_skills

from goose_like.config.trust import ProjectConfig, read_project_config
from tests.toolkits.skills.write_skill import install_plugin, write_skill


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    (tmp_path / "person").mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_the_nearest_owner_wins(root: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = tmp_path / "person"
    write_skill(root / ".claude/skills", "one", "Of the project.")
    write_skill(person / ".claude/skills", "one", "Of the person.")
    write_skill(person / ".agents/skills", "two", "Of the person, for all agents.")
    write_skill(home / "config/skills", "two", "Of the person, for us.")
    install_plugin(tmp_path / "site", "kit", "one", "two", "three")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    project = read_project_config(root)
    assert project
    catalog = find_skills(project)
    found = {skill.name: (skill.owner, skill.description) for skill in catalog.skills.values()}
    assert found == {
        "one": ("project", "Of the project."),
        "two": ("person", "Of the person, for us."),
        "three": ("package", "From kit."),
    }
    assert sorted(skill.description for skill in catalog.hidden) == [
        "From kit.",
        "From kit.",
        "Of the person, for all agents.",
        "Of the person.",
    ]
    assert catalog.problems == []
    assert {skill.owner for skill in find_skills(None).skills.values()} == {"person", "package"}


def test_nothing_of_a_project_is_read_that_is_not_trusted(root: Path) -> None:
    write_skill(root / ".claude/skills", "one")
    assert find_skills(ProjectConfig(root, {})).skills == {}
    project = read_project_config(root)
    assert project
    (root / ".claude/skills/one/SKILL.md").write_text("---\nname: one\ndescription: Another.\n---\n")
    assert find_skills(project).skills["one"].description == "Does it.", "the text that the person saw"


def test_packages_are_read_like_agent_plugins_does_without_importing_them(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install_plugin(site, "good", "alpha", "beta")
    install_plugin(site, "other", "gamma", schema="https://example.org/2.0")
    plugin = install_plugin(site, "linked", "delta")
    (plugin / "skills/delta").rename(tmp_path / "away")
    (plugin / "skills/delta").symlink_to(tmp_path / "away")
    strict = install_plugin(site, "strict", "epsilon")
    (strict / "skills/epsilon/SKILL.md").write_text("---\nname: zeta\ndescription: x\n---\nx")
    install_plugin(site, "agent_plugins", "ours")
    (site / "good.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(site))
    catalog = find_skills(None)
    assert [skill.name for skill in catalog.skills.values()] == ["alpha", "beta"]
    theirs = agent_plugins.locate("good")
    assert [skill.path for skill in theirs.skills] == [skill.path.parent for skill in catalog.skills.values()]
    problems = "\n".join(catalog.problems)
    for name in ("'other'", "'linked'", "epsilon"):
        assert name in problems
    assert "good" not in sys.modules


def test_skills_of_the_person_may_be_linked(root: Path, tmp_path: Path) -> None:
    person = tmp_path / "person"
    write_skill(tmp_path / "dotfiles", "linked")
    write_skill(person / ".agents/skills", "shared")
    (person / ".claude/skills").mkdir(parents=True)
    (person / ".claude/skills/linked").symlink_to(tmp_path / "dotfiles/linked")
    (person / ".claude/skills/shared").symlink_to("../../.agents/skills/shared")
    catalog = find_skills(None)
    assert sorted(catalog.skills) == ["linked", "shared"]
    assert catalog.hidden == [], "a link is no second skill"
    opened = {os.path.realpath(folder) for folder in catalog.opened}
    assert str(tmp_path / "dotfiles/linked") in opened
    assert str(tmp_path / "dotfiles") not in opened


def test_the_summaries_are_kept_until_the_file_changes(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_skill(tmp_path / "person/.claude/skills", "one", "First.")
    (tmp_path / "person/.claude/skills/bad").mkdir()
    (tmp_path / "person/.claude/skills/bad/SKILL.md").write_text("nothing")
    assert find_skills(None).skills["one"].description == "First."
    parsed: list[Path] = []
    parse = cache.parse_skill_file

    def note(path: Path, text: str) -> object:
        parsed.append(path)
        return parse(path, text)

    monkeypatch.setattr(cache, "parse_skill_file", note)
    assert len(find_skills(None).problems) == 1
    assert parsed == []
    file.write_text(file.read_text().replace("First", "Other"))
    assert find_skills(None).skills["one"].description == "Other."
    assert parsed == [file]
    file.unlink()
    assert find_skills(None).skills == {}
