"""The places of recipes: a project, the person's folder, and git repositories. A recipe has a name there."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from goose_like.config.paths import PROJECT_FOLDER, config_folder, expand_home, find_repository_root, shorten_home
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.workspace.repositories.remote import fetch_copy

RECIPES = "recipes"
"""The folder of recipes in `.goose-like` and in the configuration folder."""

_ENDINGS = (".yaml", ".yml", ".json")
_MAX_FILES = 2_000


def list_places(folder: Path) -> list[Path]:
    """List the folders of recipes: that of the project around a folder, and the person's."""
    return [find_repository_root(folder) / PROJECT_FOLDER / RECIPES, config_folder() / RECIPES]


def list_recipes(place: Path) -> dict[str, Path]:
    """List the recipes of a place by name: `NAME.yaml`, `NAME.recipe.yaml`, or `NAME/recipe.yaml`."""
    recipes: dict[str, Path] = {}
    for file in _iterate_files(place):
        if not _is_inside(file, place):
            continue
        name = file.stem.removesuffix(".recipe")
        is_alone = file.stem == "recipe" and file.parent != place
        if is_alone:
            name = file.parent.name
        recipes.setdefault(name, file)
    return recipes


def _is_inside(file: Path, place: Path) -> bool:
    """Return whether a file of a place lies there, also by its real path: a repository may have links."""
    return file.resolve().is_relative_to(place.resolve())


def _iterate_files(place: Path) -> Iterator[Path]:
    """Yield the files of a folder, then the recipe of each folder in it."""
    try:
        entries = sorted(place.iterdir())[:_MAX_FILES]
    except OSError:  # there is no such folder
        return
    for entry in entries:
        if entry.suffix in _ENDINGS and entry.is_file():
            yield entry
    for entry in entries:
        file = _find_in_folder(entry)
        if file:
            yield file


def describe_places(places: Sequence[Path]) -> str:
    """Return the paths of places for a message."""
    return ", ".join(map(shorten_home, map(str, places)))


def _find_in_folder(folder: Path) -> Path | None:
    for ending in _ENDINGS:
        file = folder / f"recipe{ending}"
        if file.is_file():
            return file
    return None


def find_recipe(word: str, folder: Path, places: Sequence[Path]) -> Path:
    """Find a recipe by its name in one of the places, or by its path from a folder.

    Raises:
        UsageError: there is none; the text names those that are near.
    """
    path = folder / expand_home(word)
    if path.is_dir():
        found = _find_in_folder(path)
        if found:
            return found
    is_path = os.sep in word or path.suffix in _ENDINGS
    if is_path:
        if path.is_file():
            return path
        for place in places:
            file = place / word
            if file.is_file() and _is_inside(file, place):
                return file
        raise UsageError(f"there is no recipe {word}")
    known: dict[str, Path] = {}
    for place in reversed(places):  # the first place wins
        known |= list_recipes(place)
    if word not in known:
        hint = did_you_mean(word, known)
        raise UsageError(f"no recipe {word!r}; {hint}; looked in {describe_places(places)}")
    return known[word]


def fetch_repository(address: str) -> list[Path]:
    """Fetch a git repository as it is now, and return its places of recipes. OWNER/NAME is one of GitHub.

    Raises:
        GooseLikeError: git fails.
    """
    if os.path.exists(address):
        address = os.path.abspath(address)
    copy = fetch_copy(address, RECIPES)
    return [copy / RECIPES, copy / PROJECT_FOLDER / RECIPES, copy]
