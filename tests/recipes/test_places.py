"""The places of recipes: names, layouts, links and git repositories."""

import subprocess

import pytest

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.recipes.places import fetch_repository, find_recipe, list_places, list_recipes


def write(file, text="title: T\n"):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def project(tmp_path, home):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    return root


def test_names_of_all_layouts(project, home):
    own, personal = list_places(project / "src")
    assert own == project / ".goose-like/recipes"
    for name in (
        "a.yaml",
        "b.yml",
        "c.json",
        "d.recipe.yaml",
        "e/recipe.yaml",
        "f/recipe.json",
        "g/other.yaml",
        "h.txt",
    ):
        write(own / name)
    assert list(list_recipes(own)) == ["a", "b", "c", "d", "e", "f"]
    write(personal / "a.yaml")
    write(personal / "z.yaml")
    places = [own, personal]
    assert find_recipe("a", project, places) == own / "a.yaml"
    assert find_recipe("z", project, places) == personal / "z.yaml"
    assert find_recipe("e", project, places) == own / "e/recipe.yaml"
    assert find_recipe("g/other.yaml", project, places) == own / "g/other.yaml"
    here = write(project / "a.yaml")
    assert find_recipe("a.yaml", project, places) == here
    assert find_recipe(str(here), home, places) == here
    with pytest.raises(UsageError, match="no recipe 'zz'; did you mean 'z'"):
        find_recipe("zz", project, places)
    with pytest.raises(UsageError, match="there is no recipe"):
        find_recipe("./zz", project, places)


def test_links_that_leave_a_place_do_not_count(project, tmp_path):
    own, _ = list_places(project)
    write(own / "a.yaml")
    write(tmp_path / "secret.yaml")
    (own / "b.yaml").symlink_to(tmp_path / "secret.yaml")
    (own / "c").symlink_to(tmp_path)
    write(tmp_path / "recipe.yaml")
    assert list(list_recipes(own)) == ["a"]
    with pytest.raises(UsageError):
        find_recipe("c/secret.yaml", project, [own])


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", *words], check=True)


def test_a_git_repository_is_fetched_as_it_is_now(tmp_path, home):
    source = tmp_path / "source"
    write(source / "recipes/a.yaml")
    git(tmp_path, "init", "-q", str(source))
    git(source, "add", "-A")
    git(source, "commit", "-qm", "one")
    places = fetch_repository(str(source))
    assert find_recipe("a", tmp_path, places).is_relative_to(home / "cache")
    write(source / "deep/b.yaml", "title: B\n")
    git(source, "add", "-A")
    git(source, "commit", "-qm", "two")
    file = find_recipe("deep/b.yaml", tmp_path, fetch_repository(str(source)))
    assert file.read_text() == "title: B\n"


def test_variables_of_git_lead_to_no_other_repository(tmp_path, home, monkeypatch):
    for name in ("source", "other"):
        git(tmp_path, "init", "-q", name)
        write(tmp_path / name / "recipes/a.yaml")
        git(tmp_path / name, "add", "-A")
        git(tmp_path / name, "commit", "-qm", "one")
    fetch_repository(str(tmp_path / "source"))
    write(tmp_path / "other/recipes/a.yaml", "work of the person")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other/.git/index"))
    fetch_repository(str(tmp_path / "source"))
    assert (tmp_path / "other/recipes/a.yaml").read_text() == "work of the person"


@pytest.mark.parametrize("address", ["--upload-pack=touch pwned", "ext::touch pwned", "/nowhere"])
def test_an_address_runs_no_program(tmp_path, home, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GooseLikeError, match="can't be fetched"):
        fetch_repository(address)
    assert not (tmp_path / "pwned").exists()
