"""New recipes can be loaded and run, whatever the messages hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import UsageError
from goose_like.recipes.recipe import load_recipe
from goose_like.recipes.writing import write_recipe


def test_an_example_names_its_parameter(tmp_path, home):
    recipe = load_recipe(write_recipe(tmp_path / "new", "my-notes", []))
    assert recipe.outline.title == "My notes"
    assert "version 3" in recipe.fill({"version": "3"}).message


@given(st.text(min_size=1).filter(str.strip), st.text())
def test_any_message_is_kept(tmp_path_factory, message, check):
    monkeypatch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("r")
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(folder / "home"))
    try:
        file = write_recipe(folder, "a", [message], [check] if check else [])
    finally:
        monkeypatch.undo()
    filled = load_recipe(file).fill({})
    lines = [line.rstrip() for line in message.replace("\ue000", "").replace("\ue001", "").split("\n")]
    assert filled.message.split() == "\n".join(lines).split()
    if check:
        assert filled.content.retry.checks[0].command == check.replace("\ue000", "").replace("\ue001", "")


def test_later_messages_are_wishes(tmp_path, home):
    filled = load_recipe(write_recipe(tmp_path, "a", ["do {{ it }}", "and {% more"], ["pytest -q"])).fill({})
    assert filled.message == "do {{ it }}\n\nAlso:\n- and {% more"
    assert filled.content.retry is not None
    assert filled.content.retry.checks[0].command == "pytest -q"


@pytest.mark.parametrize("name", ["", "../a", "a b", "-a"])
def test_a_wrong_name_writes_nothing(tmp_path, home, name):
    with pytest.raises(UsageError):
        write_recipe(tmp_path / "new", name, [])
    assert not (tmp_path / "new").exists()


def test_a_recipe_is_never_replaced(tmp_path, home):
    write_recipe(tmp_path, "a", [])
    with pytest.raises(UsageError, match="already exists"):
        write_recipe(tmp_path, "a", [])


@pytest.mark.parametrize("link", [".goose-like", ".goose-like/recipes"])
def test_nothing_is_written_behind_a_link_of_a_repository(tmp_path, home, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    place = tmp_path / "project" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    with pytest.raises(UsageError, match=f"behind one, to {outside}"):
        write_recipe(tmp_path / "project/.goose-like/recipes", "a", [])
    assert list(outside.iterdir()) == []


def test_the_person_may_link_their_own_folder(tmp_path, home):
    home.mkdir()
    (tmp_path / "mine").mkdir()
    (home / "config").symlink_to(tmp_path / "mine")
    file = write_recipe(home / "config/recipes", "a", [])
    assert file == home / "config/recipes/a.yaml"
    assert (tmp_path / "mine/recipes/a.yaml").is_file()
