"""Components in folders: their config files, and the Python packages with their code."""

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goose_like.config.paths import lock_folder, replace_private_file, state_folder
from goose_like.core.errors import GooseLikeError, UsageError

from ..definition.config_file import Definition
from ..definition.coordinates import FORM, Coordinates, parse
from .repository import CONFIG_FILES

CONFIG_FOLDER = ".config"

_PACKAGES = "component-packages.json"
_FRAMEWORK = ("concopilot", "goose_like_worker")


def find_config_file(path: Path) -> Path | None:
    """Return the config file of the component at a path: the path itself, or the one in it or in its `.config`."""
    if os.path.isfile(path):
        return path
    for folder in (path / CONFIG_FOLDER, path):
        for name in CONFIG_FILES:
            if os.path.isfile(folder / name):
                return folder / name
    return None


def require_config_file(path: Path) -> Path:
    """Return the config file of the component at a path. Raise UsageError if there is none."""
    file = find_config_file(path)
    if file:
        return file
    more = ""
    below = next(_find_below(path), None)
    if below:
        more = f"; there is one in {below.parent}, give its folder"
    raise _no_component(path, more)


def list_config_files(path: Path, *, is_recursive: bool = True) -> list[Path]:
    """Return the config files at a path, or else below it. Raise UsageError if there are none.

    Skip folders in components, hidden folders, virtual environments, and links.
    """
    own = find_config_file(path)
    may_be_tree = own is None or own.parent == path  # config.yaml may be another's
    if is_recursive and path.is_dir() and may_be_tree:
        found = [require_config_file(folder) for folder in _find_below(path)]
        if found:
            return found
    if own is None:
        more = "" if is_recursive else "; --recursive looks in the folders below, too"
        raise _no_component(path, more)
    return [own]


def parse_component(text: str) -> Coordinates | Path:
    """Parse what a person writes for a component: coordinates, or a path to its folder or config file."""
    if not text.strip():
        raise UsageError(f"{text!r} names nothing; give a component's folder, or {FORM}")
    if ":" in text and os.sep not in text and not os.path.exists(text):
        return parse(text)
    return Path(text)


def _no_component(path: Path, more: str) -> UsageError:
    if not os.path.lexists(path):
        return UsageError(f"there is nothing at {path}; give a component's folder, or {FORM}")
    return UsageError(f"there is no component in {path}: one is a folder with {CONFIG_FOLDER}/config.yaml{more}")


def _find_below(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        if CONFIG_FOLDER in names:
            names.clear()
            yield Path(folder, CONFIG_FOLDER)
        elif "pyvenv.cfg" in files:
            names.clear()
        visible = [name for name in names if not name.startswith(".")]
        names[:] = sorted(set(visible) - {"__pycache__"})


# --- code


@dataclass(frozen=True, slots=True)
class CodePackage:
    """The topmost Python package with a component's code, and the folder in which its full name begins.

    Folders between the two are namespaces, which may also hold anything else.
    """

    folder: Path
    root: Path

    @property
    def name(self) -> str:
        """The first part of its name."""
        return self.folder.relative_to(self.root).parts[0]

    @property
    def parents(self) -> list[Path]:
        """The folders through which it is imported."""
        return [above for above in self.folder.parents if above.is_relative_to(self.root)]


def find_code(config_file: Path, package: str, roots: Iterable[Path] = ()) -> CodePackage | None:
    """Return the package that holds `setup.package`: around the component's folder, else in one of `roots`."""
    names = package.split(".")
    folder = config_file.absolute().parent.parent
    candidates = [root.absolute() for root in roots]
    if folder.parts[-len(names) :] == tuple(names):
        candidates.insert(0, folder.parents[len(names) - 1])
    for root in candidates:
        if package and root.joinpath(*names, "__init__.py").is_file():
            return CodePackage(_find_topmost_package(root, names), root)
    return None


def _find_topmost_package(root: Path, names: Sequence[str]) -> Path:
    """Find the first package on the way to a package. Folders above it are namespaces."""
    folder = root
    for name in names:
        folder = folder / name
        if (folder / "__init__.py").is_file():
            break
    return folder


def load_known_code() -> dict[str, CodePackage]:
    """Return the packages of components that were installed from folders, by their coordinates."""
    file = state_folder() / _PACKAGES
    try:
        known = {}
        for name, entry in json.loads(file.read_bytes()).items():
            known[str(name)] = CodePackage(Path(entry["folder"]), Path(entry["root"]))
        return known
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise GooseLikeError(f"{file} can't be read; remove it and install your components again") from error


def save_known_code(packages: Mapping[str, CodePackage | None]) -> None:
    """Save the packages of components by coordinates; None forgets one."""
    file = state_folder() / _PACKAGES
    try:
        with lock_folder(state_folder()):
            known = {**load_known_code(), **packages}
            data = {}
            for name, package in known.items():
                if package:
                    data[name] = {"folder": str(package.folder), "root": str(package.root)}
            replace_private_file(file, json.dumps(data, indent=1, sort_keys=True))
    except OSError as error:
        raise GooseLikeError(f"{file} can't be written: {error.strerror}; is the folder yours?") from error


def list_requirements(definition: Definition, code: CodePackage | None) -> list[tuple[str, ...]]:
    """Return the entries of `setup.pip` to install. ConCopilot is always there.

    If the code is in a folder, the requirements of its project replace the requirement that names the project.
    """
    from packaging.utils import canonicalize_name

    own = canonicalize_name(code.name) if code else ""
    project = _read_project(code) if code else {}
    names = {"concopilot", own, canonicalize_name(str(project.get("name", own)))}
    wanted: list[tuple[str, ...]] = []
    for words in definition.setup.pip:
        name = canonicalize_name(_remove_version(words[0]))
        if len(words) > 1 or name not in names:
            wanted.append(words)
    for dependency in map(str, project.get("dependencies", ())):
        if not canonicalize_name(dependency).startswith("concopilot"):
            wanted.append((dependency,))
    return list(dict.fromkeys(wanted))


def _remove_version(requirement: str) -> str:
    """Return what is before the extras, the version and the marker of a requirement."""
    before_marker = requirement.partition(";")[0]
    before_extras = before_marker.partition("[")[0]
    return before_extras.rstrip("0123456789.*<>=!~, ")


def _read_project(code: CodePackage) -> dict[str, Any]:
    for folder in dict.fromkeys((code.folder, code.root)):
        try:
            with open(folder / "pyproject.toml", "rb") as file:
                return dict(tomllib.load(file).get("project", {}))
        except (OSError, ValueError, TypeError):
            continue
    return {}
