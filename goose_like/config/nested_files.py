"""A bounded search for files of one name in nested folders, such as `SKILL.md`."""

import os
from collections import deque
from collections.abc import Iterator

MAX_DEPTH = 6
MAX_FOLDERS = 2_000
_SKIPPED = ("node_modules", "__pycache__")


def find_nested_files(top: str, name: str, *, follows_links: bool = False) -> Iterator[str]:
    """Yield the paths of the files of a name at most six folders below `top`, those of each folder sorted.

    Below a folder that has such a file, none is looked for. The search ends after 2,000 folders, and leaves out dot
    folders. Linked folders are entered only with `follows_links`; without it, their paths are yielded instead of files.
    """
    waiting = deque([(top, 0)])
    seen_links: set[str] = set()
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        folder, depth = waiting.popleft()
        file = f"{folder}/{name}"
        if os.path.lexists(file):
            yield file
            continue
        if depth == MAX_DEPTH:
            continue
        for below in _list_folders(folder):
            if not os.path.islink(below):
                waiting.append((below, depth + 1))
            elif not follows_links:
                yield below
            elif os.path.realpath(below) not in seen_links:
                seen_links.add(os.path.realpath(below))
                waiting.append((below, depth + 1))


def _list_folders(folder: str) -> list[str]:
    """List the folders in a folder, and the links to folders, sorted; none if it cannot be read."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_skipped = entry.name.startswith(".") or entry.name in _SKIPPED
                if not is_skipped and entry.is_dir():
                    found.append(entry.path)
    except OSError:
        return []
    return sorted(found)
