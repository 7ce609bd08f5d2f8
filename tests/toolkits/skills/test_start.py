"""What a start needs of skills is kept, and any change of their files is noticed."""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from goose_like_toolkits.skills.start import find_start
from pydantic import JsonValue

from goose_like.config import file_state
from goose_like.config.paths import kept_folder
from goose_like.config.trust import (
    ProjectConfig,
    load_trusted_project,
    load_unchanged_project,
    read_project_config,
    trust_project,
)
from tests.toolkits.skills.write_skill import install_plugin, write_skill

TICK_S = 0.02
"""More than the step of the clock that files get their times from."""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the person's skills."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "person/.claude/skills"


def mark_kept_listings() -> None:
    """Change the kept listings, so that it shows where one is used."""
    file = kept_folder() / "skill-listings.json"
    file.write_text(file.read_text().replace("Skills are instructions", "KEPT"))


def edit_in_place(file: Path) -> None:
    """Write another text of the same size, and set the old times again."""
    before = file.stat()
    text = file.read_text().replace("First", "Other")
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "equal size and time": (edit_in_place, "- one: Other."),
    "a new skill": (lambda file: write_skill(file.parents[1], "two", "Second."), "- two: Second."),
    "deleted": (Path.unlink, ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_the_persons_skills_are_noticed(mine: Path, name: str) -> None:
    file = write_skill(mine, "one", "First.")
    first = find_start(None)
    assert "- one: First." in first.listing
    assert first.opened == [mine]
    mark_kept_listings()
    known = find_start(None)
    assert known.listing.startswith("KEPT")
    assert known.opened == first.opened
    time.sleep(TICK_S)
    change, expected = CHANGES[name]
    change(file)
    changed = find_start(None)
    assert "KEPT" not in changed.listing
    assert expected in changed.listing
    assert bool(changed.listing) == bool(expected)


@pytest.mark.parametrize("damage", [None, [], {}, {"opened": None}, "text"])
def test_a_kept_value_of_another_layout_is_replaced(mine: Path, damage: JsonValue) -> None:
    write_skill(mine, "one", "First.")
    first = find_start(None)
    for name in ("skill-listings", "skills"):
        file = kept_folder() / f"{name}.json"
        kept = json.loads(file.read_text())
        for key, entry in kept["entries"].items():
            if isinstance(damage, dict) and isinstance(entry, dict):
                entry.update(damage)
            else:
                kept["entries"][key] = damage
        file.write_text(json.dumps(kept))
    assert find_start(None).opened == first.opened
    assert "- one: First." in find_start(None).listing


def test_what_cannot_be_used_is_told_at_each_start(mine: Path) -> None:
    write_skill(mine, "one", "First.")
    write_skill(mine, "two", "")
    for _ in range(2):
        start = find_start(None)
        assert "- one: First." in start.listing
        assert "description" in start.problems[0]


def test_a_package_may_be_removed_after_it_was_listed(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(mine, "one", "First.")
    plugin = install_plugin(tmp_path / "site", "kit", "two")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert "- two: From kit." in find_start(None).listing
    shutil.rmtree(plugin)
    shutil.rmtree(tmp_path / "site/kit-1.0.dist-info")
    start = find_start(None)
    assert "- one: First." in start.listing
    assert "- two" not in start.listing
    assert "the plugin of the package 'kit' is not used" in start.problems[0]


@pytest.fixture
def known(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectConfig:
    """A project with a trusted skill, after a start that kept its listing."""
    monkeypatch.setattr(file_state, "SETTLED_NS", 0)
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    write_skill(root / ".claude/skills", "one", "First.")
    project = read_project_config(root)
    assert project
    trust_project(project)
    time.sleep(TICK_S)
    project = load_trusted_project(root)
    assert project
    assert "- one: First." in find_start(project).listing
    mark_kept_listings()
    return project


def test_a_known_project_has_the_kept_listing(known: ProjectConfig) -> None:
    project = load_unchanged_project(known.root)
    assert project
    assert find_start(project).listing.startswith("KEPT")


def test_nothing_is_listed_of_a_project_without_trust(known: ProjectConfig) -> None:
    assert find_start(replace(known, files={}, folders={})).listing == "", "the person said no"
    assert find_start(None).listing == ""


def test_a_changed_project_has_a_listing_of_the_texts_that_were_trusted(known: ProjectConfig) -> None:
    time.sleep(TICK_S)
    edit_in_place(known.root / ".claude/skills/one/SKILL.md")
    assert load_trusted_project(known.root) is None
    changed = read_project_config(known.root)
    assert changed
    assert "- one: Other." in find_start(changed).listing, "with --trust, for this time"
    assert find_start(known).listing.count("- one: First.") == 1
