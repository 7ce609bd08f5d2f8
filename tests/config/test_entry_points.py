"""Tests of entry points: the built-in table, installed packages, misspelt and broken names."""

import re
import sys

import pytest

from goose_like.config.entry_points import (
    BUILTIN_ENTRY_POINTS,
    GROUPS,
    EntryPoint,
    list_entry_points,
    list_names,
    list_overridden_entry_points,
    load_entry_point,
)
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.spelling import did_you_mean, find_nearest_name


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package `stranger` with these toolkits on the path."""

    def install(requires: str = "", **toolkits: str):
        info = tmp_path / "site" / "stranger-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n" + requires)
        points = "\n".join(f"{name} = {value}" for name, value in toolkits.items())
        (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\n{points}\n")
        (info.parent / "stranger_broken.py").write_text("raise OSError('no library')\n")
        (info.parent / "stranger_needy.py").write_text("import nosuch_one\n")
        monkeypatch.syspath_prepend(str(info.parent))

    return install


def test_a_package_added_to_the_path_is_found(package):
    assert "schedule" not in list_entry_points("goose_like.toolkit")
    package(schedule="json:JSONDecoder", another="json:JSONEncoder")
    names = list(list_entry_points("goose_like.toolkit"))
    assert names == sorted(names)
    assert {"another", "schedule"} <= set(names)
    import json

    assert load_entry_point("goose_like.toolkit", "schedule") is json.JSONDecoder


def test_what_packages_declare_is_read(tmp_path, monkeypatch):
    def install(info: str, name: str, points: str) -> None:
        folder = tmp_path / info
        folder.mkdir()
        (folder / ("PKG-INFO" if info.endswith(".egg-info") else "METADATA")).write_text(f"Name: {name}\n")
        (folder / "entry_points.txt").write_text(points)

    install("ours_a-1.dist-info", "ours-a", "[console_scripts]\nx = y:z\n[goose_like.toolkit]\nunits = json:A [more]\n")
    install("their.s-2.egg-info", "their.s", "[goose.toolkit]\n# note\nunits = old:B\nold = old : C\n")
    install("other-2.dist-info", "other", "[goose_unlike]\nunits = other:D\n")
    (tmp_path / "empty-1.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "missing"))
    monkeypatch.syspath_prepend(str(tmp_path))
    points = list_entry_points("goose_like.toolkit")
    assert points["units"] == EntryPoint("units", "json:A", "goose_like.toolkit", "ours-a")  # our group wins
    assert points["old"] == EntryPoint("old", "old:C", "goose.toolkit", "their.s")
    assert points["old"].module == "old"


def test_the_first_version_of_a_package_on_the_path_counts(package, tmp_path, monkeypatch):
    package(schedule="json:JSONDecoder")
    older = tmp_path / "older" / "Stranger-0.dist-info"
    older.mkdir(parents=True)
    (older / "METADATA").write_text("Name: stranger\n")
    (older / "entry_points.txt").write_text("[goose_like.toolkit]\ngone = json:JSONEncoder\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(older.parent)])
    assert {"schedule", "gone"} & {*list_names("goose_like.toolkit")} == {"schedule"}


def test_unknown_name(package):
    package(schedule="json:JSONDecoder")
    with pytest.raises(ProfileError, match=r"^unknown toolkit 'scedule'; did you mean 'schedule'\?$"):
        load_entry_point("goose_like.toolkit", "scedule")


def test_an_unknown_name_asks_for_its_package(package):
    package(schedule="json:JSONDecoder")
    place = re.escape(f"; is its package installed in this environment ({sys.executable})?")
    with pytest.raises(ProfileError, match=rf"^unknown toolkit 'zzz'; there are: .*{place}$"):
        load_entry_point("goose_like.toolkit", "zzz")


def test_a_built_in_part_wins_over_an_installed_one(package):
    package(schedule="json:JSONDecoder", developer="json:JSONDecoder")
    ((point, other),) = list_overridden_entry_points("goose_like.toolkit")
    assert {point.package, other.package} == {"stranger", "goose-like"}
    assert list_entry_points("goose_like.toolkit")["developer"] == other


@pytest.mark.parametrize("value", ["stranger_broken:X", "stranger_missing:X", "json:Missing"])
def test_a_broken_import(package, value):
    package(schedule=value)
    with pytest.raises(
        GooseLikeError, match=r"the toolkit 'schedule' of the package 'stranger' can't be imported: \w+:"
    ):
        load_entry_point("goose_like.toolkit", "schedule")


def test_the_place_of_a_broken_import(package):
    package(schedule="stranger_broken:X")
    with pytest.raises(GooseLikeError, match=r"OSError: no library; at stranger_broken:1 in <module>: raise OSError\("):
        load_entry_point("goose_like.toolkit", "schedule")


def test_all_groups_can_be_listed():
    assert {group: isinstance(list_entry_points(group), dict) for group in GROUPS} == dict.fromkeys(GROUPS, True)


def test_did_you_mean():
    assert did_you_mean("shel", ["shell", "read"]) == "did you mean 'shell'?"
    assert did_you_mean("zzz", ["shell", "read", "shell"]) == "there are: read, shell"
    assert did_you_mean("zzz", []) == "there are none"
    assert (find_nearest_name("shel", ["shell"]), find_nearest_name("zzz", ["shell"])) == ("shell", None)


@pytest.mark.parametrize(("group", "name"), [(group, name) for group in GROUPS for name in BUILTIN_ENTRY_POINTS[group]])
def test_each_built_in_part_loads(group, name):
    assert load_entry_point(group, name)
    assert list_entry_points(group)[name].value == BUILTIN_ENTRY_POINTS[group][name]


@pytest.mark.parametrize(
    ("requires", "advice"),
    [
        ("nosuch-one>=2\nnosuch.two\npydantic>=2\nnosuch-extra; extra == 'x'", "'nosuch-one>=2' nosuch.two"),
        ("Nosuch-One ; python_version > '3'\nnosuch-old; python_version < '3'", "Nosuch-One"),
        ("nosuch-distribution", "nosuch-distribution"),
    ],
)
def test_what_a_package_requires_is_named_if_it_is_not_installed(package, requires, advice):
    package(requires="".join(f"Requires-Dist: {line}\n" for line in requires.split("\n")), needy="stranger_needy:A")
    with pytest.raises(GooseLikeError, match="No module named 'nosuch_one'") as failed:
        load_entry_point("goose_like.toolkit", "needy")
    assert str(failed.value).endswith(f"'stranger' requires what is not installed; install it: pip install {advice}")


def test_a_module_that_no_requirement_brings_is_not_guessed(package):
    package(requires="Requires-Dist: pydantic\n", needy="stranger_needy:A")
    with pytest.raises(GooseLikeError, match="repair or uninstall 'stranger'"):
        load_entry_point("goose_like.toolkit", "needy")
