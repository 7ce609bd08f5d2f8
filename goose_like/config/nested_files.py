"""A bounded search for files of one name in nested folders, such as `SKILL.md`."""

import os
from collections import deque
from collections.abc import Iterator
from operator import itemgetter

MAX_DEPTH = 6
MAX_FOLDERS = 2_000
_SKIPPED = ("node_modules", "__pycache__")


class NestedFile:
    """A file that was found, or a link to a folder that was not entered. A link has its own status.

    If the file `is_linked`, a link leads to it. A start finds hundreds of files: a NamedTuple would take three times as
    long.
    """

    __slots__ = ("is_file", "is_linked", "path", "status")

    def __init__(self, path: str, status: os.stat_result, *, is_linked: bool, is_file: bool) -> None:
        self.path = path
        self.status = status
        self.is_linked = is_linked
        self.is_file = is_file


def find_nested_files(top: str, name: str, *, follows_links: bool = False) -> Iterator[NestedFile]:
    """Yield the files of a name at most six folders below `top`, those of each folder sorted.

    Below a folder that has such a file, none is looked for. The search ends after 2,000 folders, and leaves out dot
    folders. Linked folders are entered only with `follows_links`; without it, the links are yielded.
    """
    waiting = deque([(top, False, 0)])
    seen_links: set[str] = set()
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        folder, is_linked, depth = waiting.popleft()
        file = f"{folder}/{name}"
        try:  # no function of its own: a start looks for hundreds of files
            status = os.lstat(file)
        except OSError:
            status = None
        if status:
            yield NestedFile(file, status, is_linked=is_linked, is_file=True)
            continue
        if depth == MAX_DEPTH:
            continue
        for path, is_link in _list_folders(folder):
            if is_link and not follows_links:
                yield from _describe_link(path)
                continue
            if is_link:
                target = os.path.realpath(path)
                if target in seen_links:
                    continue
                seen_links.add(target)
            waiting.append((path, is_linked or is_link, depth + 1))


def _describe_link(path: str) -> Iterator[NestedFile]:
    """Yield a link to a folder, unless it was removed after it was listed."""
    try:
        status = os.lstat(path)
    except OSError:
        return
    yield NestedFile(path, status, is_linked=True, is_file=False)


def _list_folders(folder: str) -> list[tuple[str, bool]]:
    """List the folders in a folder, and whether each is a link, sorted; none if the folder cannot be read."""
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                is_skipped = name[0] == "." or name in _SKIPPED
                if not is_skipped and entry.is_dir():
                    found.append((entry.path, entry.is_symlink()))
    except OSError:
        return []
    return sorted(found, key=itemgetter(0))
