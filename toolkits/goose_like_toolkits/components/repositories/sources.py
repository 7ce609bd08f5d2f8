"""Where components are written: folders with a `.config`, and where their packages are imported from."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from goose_like.config.paths import lock_folder, replace_private_file, state_folder
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like_toolkits.components.described.coordinates import FORM, Coordinates, parse

CONFIG_FOLDER = ".config"
CONFIG_FILES = ("config.yaml", "config.yml")
"""The first that there is counts."""

_PACKAGES = "component-packages.json"


def meant(component: str) -> Coordinates | Path:
    """What a person means who names a component: its coordinates, or its config file, by any path to it.

    Raises:
        UsageError: it is neither.
    """
    if os.sep in component or os.path.exists(component):
        return the_config_file(Path(component))
    if ":" not in component:
        _require_words(component)
        raise UsageError(f"there is nothing at {component}; give a component's folder, or {FORM}")
    return parse(component)


def parted(components: Iterable[str]) -> tuple[list[Path], list[Coordinates]]:
    """Of what a person names the paths, and the coordinates."""
    paths, named = list[Path](), list[Coordinates]()
    for each in components:
        _require_words(each)
        if ":" in each and os.sep not in each and not os.path.exists(each):
            named.append(parse(each))
        else:
            paths.append(Path(each))
    return paths, named


def config_file_at(path: Path) -> Path | None:
    """The config file of the component at this very path: itself, the one in its `.config`, or that of a copy of this.

    None where there is none.
    """
    places = [folder / name for folder in (path / CONFIG_FOLDER, path) for name in CONFIG_FILES]
    # Not Path's own: that raises for names which no file can have.
    return next((place for place in (path, *places) if os.path.isfile(place)), None)


def a_path(text: str) -> Path:
    """The path that a person names.

    Raises:
        UsageError: it is no name at all, as where a shell's variable is empty; it is not taken for the current folder.
    """
    _require_words(text)
    return Path(text)


def _require_words(text: str) -> None:
    if not text.strip():
        raise UsageError(f"{text!r} names nothing; give a component's folder, or {FORM}")


def the_config_file(path: Path) -> Path:
    """The config file of the one component at a path.

    Raises:
        UsageError: there is none.
    """
    if file := config_file_at(path):
        return file
    if not os.path.isdir(path):
        raise _nothing_at(path)
    below = next(_below(path), None)
    raise _no_component(path, f"; there is one in {below.parent}, give its folder" if below else "")


def config_files(path: Path, *, is_recursive: bool = True) -> list[Path]:
    """The config files of the components at a path, as `config_file_at`, else of those in the tree below it.

    Nothing is looked for below a component, in hidden folders, virtual environments and behind links.

    Raises:
        UsageError: there is nothing, or no component.
    """
    own = config_file_at(path)
    if own is None and not os.path.isdir(path):
        raise _nothing_at(path)
    is_tree = is_recursive and (own is None or own.parent == path)  # a config.yaml at its top may be of anything
    if found := [_config_in(folder) for folder in _below(path)] if is_tree else []:
        return found
    if own is None:
        raise _no_component(path, "" if is_recursive else "; --recursive looks in the folders below, too")
    return [own]


def _nothing_at(path: Path) -> UsageError:
    return UsageError(f"there is nothing at {path}; give a component's folder, or one with components in it")


def _no_component(path: str | Path, more: str = "") -> UsageError:
    return UsageError(f"there is no component in {path}: one is a folder with {CONFIG_FOLDER}/{CONFIG_FILES[0]}{more}")


def _config_in(folder: Path) -> Path:
    for name in CONFIG_FILES:
        if (folder / name).is_file():
            return folder / name
    raise UsageError(f"there is no {CONFIG_FILES[0]} in {folder}; write one, or remove the folder")


def _below(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        if CONFIG_FOLDER in names:
            names.clear()
            yield Path(folder, CONFIG_FOLDER)
        elif "pyvenv.cfg" in files:
            names.clear()
        names[:] = sorted(name for name in names if not name.startswith(".") and name != "__pycache__")


@dataclass(frozen=True, slots=True)
class Package:
    """The topmost package by which a component is imported, and the folder that its whole name begins in.

    Between the two are namespaces: folders without an `__init__.py`, in which a person may have anything else.
    """

    folder: Path
    root: Path

    @property
    def above(self) -> list[Path]:
        """The folders that are looked through to import it."""
        return [above for above in self.folder.parents if above.is_relative_to(self.root)]


def topmost_package(config_file: Path, package: str, roots: Iterable[Path] = ()) -> Package | None:
    """By what `setup.package` is imported: `root/a/b` for the package `a.b` gives `root/a`, or where that has no
    `__init__.py` `root/a/b`.

    None where the component's folder is not named as its package, or has no `__init__.py`, and none of `roots` has it.
    """
    names = package.split(".")
    folder = config_file.absolute().parent.parent
    own = [folder.parents[len(names) - 1]] if folder.parts[-len(names) :] == tuple(names) else []
    for root in (*own, *roots):
        if package and root.joinpath(*names, "__init__.py").is_file():
            way = accumulate(names, Path.joinpath, initial=root.absolute())
            found = next(each for each in way if each != root.absolute() and (each / "__init__.py").is_file())
            return Package(found, root.absolute())
    return None


def known_packages() -> dict[str, Package]:
    """The packages of components installed from folders, by coordinates as "group:artifact:version".

    Raises:
        GooseLikeError: the file that remembers them can't be read.
    """
    file = state_folder() / _PACKAGES
    try:
        packages = json.loads(file.read_bytes())
        return {str(name): Package(Path(one["folder"]), Path(one["root"])) for name, one in packages.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise GooseLikeError(f"{file} can't be read; remove it and install your components again") from error


def remember_packages(packages: Mapping[str, Package], forgotten: Iterable[str] = ()) -> None:
    """Keeps these packages by coordinates, and forgets those of others; another process waits meanwhile."""
    file = state_folder() / _PACKAGES
    try:
        with lock_folder(state_folder()):
            kept = {
                coordinates: {"folder": str(package.folder), "root": str(package.root)}
                for coordinates, package in {**known_packages(), **packages}.items()
            }
            for coordinates in forgotten:
                kept.pop(coordinates, None)
            replace_private_file(file, json.dumps(kept, indent=1, sort_keys=True))
    except OSError as error:
        raise GooseLikeError(f"{file} can't be written: {error.strerror}; is the folder yours?") from error
