"""The files that a project may bring for goose_like and for toolkits.

Packages declare the files of their toolkits in the entry-point group `goose_like.toolkit_files`, where each name is a
pattern. A pattern below the root of a project finds files that need the person's trust. A pattern that begins with
`~/` or `{config}/` finds the person's own files, and one that begins with `{packages}/` files in the metadata of
installed packages. `TOP/**/NAME` finds files in nested folders, each of which is trusted together with its folder. With
`#WORD` at its end, a pattern of a project finds only files that hold the word: a settings file of another agent that
does not concern us raises no question.
"""

import os
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from .entry_points import list_entry_points, list_package_files
from .nested_files import MAX_DEPTH, find_nested_files
from .paths import (
    AGENTS,
    COMMANDS,
    OTHER_AGENTS,
    OTHER_COMMANDS,
    PROFILES,
    PROJECT_FOLDER,
    config_folder,
    find_repository_root,
    home_folder,
    list_project_folders,
)

_PERSONAL = ("~/", "{config}/", "{packages}/")
_NESTED = "/**/"
_WILDCARDS = frozenset("*?[")
_KINDS: dict[str, tuple[str, ...]] = {
    "settings": (PROFILES,),
    "commands": (f"{COMMANDS}/", *OTHER_COMMANDS),
    "agents": (f"{AGENTS}/", *OTHER_AGENTS),
}
"""The beginnings of the names of files that belong to no toolkit."""
_MAX_BYTES = 256_000
"""The size of the largest file that is searched for a word. A larger one is found, and then refused for its size."""


def has_project_files(folder: Path) -> bool:
    """Return whether the repository around a folder may bring files for goose_like, which need trust."""
    root = find_repository_root(Path(os.path.realpath(folder)))
    names = (f"{PROJECT_FOLDER}/{PROFILES}", *list_project_folders(root))
    if any(os.path.lexists(root / name) for name in names):
        return True
    return any(True for _ in _find_toolkit_files(root))


def find_toolkit_files(root: Path) -> dict[str, os.stat_result]:
    """Find the files of a project that belong to a toolkit: the status of each by its path, sorted.

    In the home folder, only those in our folder count. Of a linked folder that a search in nested folders met, the
    status of the link stands there: its files may lie anywhere.
    """
    return dict(sorted(_find_toolkit_files(root)))


def _find_toolkit_files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    is_home = root == home_folder()
    for pattern in _list_project_patterns():
        if is_home and not pattern.startswith(f"{PROJECT_FOLDER}/"):
            continue
        if _NESTED in pattern:
            yield from _find_nested(root, pattern)
        else:
            path, _, word = pattern.partition("#")
            for file in root.glob(path):
                if _has_word(file, word):
                    yield str(file), file.lstat()


def _find_nested(root: Path, pattern: str) -> Iterator[tuple[str, os.stat_result]]:
    top, _, name = pattern.partition(_NESTED)
    folder = f"{root}/{top}"
    if os.path.realpath(folder) != folder:
        if os.path.isdir(folder) and not _leads_to_searched_folder(root, folder):
            yield folder, os.lstat(folder)
        return
    for found in find_nested_files(folder, name):
        if found.is_file or not _leads_to_searched_folder(root, found.path):
            yield found.path, found.status


def _leads_to_searched_folder(root: Path, link: str) -> bool:
    """Check for a link into another folder of the project that is searched anyway, as made for several agents."""
    real = os.path.realpath(link)
    for pattern in _list_project_patterns():
        top, nested, _ = pattern.partition(_NESTED)
        searched = f"{root}/{top}"
        if nested and (real == searched or real.startswith(f"{searched}/")):
            return True
    return False


def name_file_kinds(names: Iterable[str]) -> list[str]:
    """Name what the files of a project are that belong to no toolkit."""
    kinds: list[str] = []
    for kind, places in _KINDS.items():
        if any(name.startswith(places) for name in names):
            kinds.append(kind)
    return kinds


def list_folder_files(names: Collection[str]) -> list[str]:
    """List the names of `ProjectConfig.files` that stand for whole folders, as found by a pattern with `**`."""
    found: list[str] = []
    for pattern in _list_project_patterns():
        if _NESTED in pattern:
            found += _select(names, pattern.removeprefix(f"{PROJECT_FOLDER}/"))
    return found


def list_below(names: Iterable[str], folder: str) -> list[str]:
    """List the names that lie below a folder, sorted. Few comparisons find them among hundreds."""
    ordered = sorted(names)
    first = bisect_left(ordered, f"{folder}/")
    end = bisect_left(ordered, f"{folder}0")  # in the order of characters, 0 follows the slash
    return ordered[first:end]


def _has_word(file: Path, word: str) -> bool:
    """Check whether a file holds a word. A file that cannot be read counts too, so that the person is told of it."""
    if not word or file.is_symlink() or not file.is_file():
        return True
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError:
        return True
    return word.encode() in data or len(data) > _MAX_BYTES


def is_below_root(name: str) -> bool:
    """Check whether a name of `ProjectConfig.files` is that of a toolkit's file outside of `.goose-like`."""
    for pattern in _list_project_patterns():
        is_below_ours = pattern.startswith(f"{PROJECT_FOLDER}/")
        if not is_below_ours and any(_select([name], pattern)):
            return True
    return False


def find_toolkits_with_files(trusted: Collection[str]) -> list[str]:
    """Return the toolkits that have a file, among the names of trusted files or with the person's own. Import none."""
    return _find_toolkits(list_entry_points("goose_like.toolkit_files"), trusted)


def find_toolkits_of_project(names: Collection[str]) -> list[str]:
    """Return the toolkits that have a file among the names of a project's files. Import none."""
    return _find_toolkits(_list_project_patterns(), names)


def _find_toolkits(patterns: Iterable[str], names: Collection[str]) -> list[str]:
    points = list_entry_points("goose_like.toolkit_files")
    classes: set[str] = set()
    for pattern in sorted(patterns, key=_is_personal):  # names are compared faster than files are found
        value = points[pattern].value
        if value not in classes and _has_file(pattern, names):
            classes.add(value)
    if not classes:
        return []
    toolkits = list_entry_points("goose_like.toolkit")
    return [name for name, point in toolkits.items() if point.value in classes]


def _has_file(pattern: str, trusted: Collection[str]) -> bool:
    folder, _, rest = pattern.partition("/")
    if folder == "{packages}":
        return bool(list_package_files(rest))
    if folder == "~":
        return _has_match(home_folder(), rest)
    if folder == "{config}":
        return _has_match(config_folder(), rest)
    own_pattern = pattern.removeprefix(f"{PROJECT_FOLDER}/")
    return any(_select(trusted, own_pattern))


def _has_match(folder: Path, pattern: str) -> bool:
    top, nested, name = pattern.partition(_NESTED)
    if nested:
        found = find_nested_files(f"{folder}/{top}", name, follows_links=True)
        return any(True for _ in found)
    return any(folder.glob(pattern))


def _list_project_patterns() -> list[str]:
    patterns = list_entry_points("goose_like.toolkit_files")
    return [pattern for pattern in patterns if not _is_personal(pattern)]


def _is_personal(pattern: str) -> bool:
    return pattern.startswith(_PERSONAL)


def _select(names: Collection[str], pattern: str) -> Iterator[str]:
    """Yield the names that a pattern fits, folder by folder. The word of a pattern is in each file that it found."""
    top, nested, last = pattern.partition(_NESTED)
    if nested:
        for name in list_below(names, top):
            is_deep = name.count("/", len(top) + 1) > MAX_DEPTH
            if name.endswith(f"/{last}") and not is_deep:
                yield name
        return
    path, _, _ = pattern.partition("#")
    if not _WILDCARDS.intersection(path):
        if path in names:
            yield path
        return
    wanted = path.split("/")
    depth = path.count("/")
    for name in names:
        if name.count("/") == depth and all(map(fnmatchcase, name.split("/"), wanted)):
            yield name
