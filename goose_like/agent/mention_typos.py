"""Typos in `@path`: find the file that was meant by a word that names none."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from mimetypes import guess_type
from pathlib import PurePath

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.workspace import Workspace

MAX_FOLDERS = 200
MAX_PATHS = 5_000
_MIN_NAME = 4
_MAX_NAME = 100
_MIN_LIKENESS = 0.8
_SKIPPED = re.compile(r"\.|__pycache__|node_modules|venv|target$|build$|dist$")
_DECORATOR_LINE = re.compile(r"\s*@\w[\w.]*\s*(\(.*)?")
"""A line of code, such as `@dataclass(frozen=True)`."""


def explain_unknown_mention(word: str, line: str, workspace: Workspace) -> str:
    """Return a sentence about an `@word` that is no file: the nearest one, if it may be a typo; else an empty text.

    `line` is the line of the message with the word. Decorators, names of people and packages are no typos.
    """
    if "://" in word:  # an address, which a toolkit may know
        return ""
    name = PurePath(word).name
    media_type, _ = guess_type(name)
    has_suffix = media_type is not None
    is_name = _MIN_NAME <= len(name) <= _MAX_NAME and not word.startswith("@")
    if not is_name:
        return ""
    if not has_suffix and _DECORATOR_LINE.fullmatch(line):
        return ""
    nearest = _find_nearest(word, name, workspace)
    if nearest:
        return f"@{word} is no file and was sent as a word; did you mean @{nearest}?"
    return f"@{word} is no file and was sent as a word" if has_suffix else ""


def _find_nearest(word: str, name: str, workspace: Workspace) -> str:
    """Find a path with the same name in another folder, or with a similar name."""
    paths: dict[str, str] = {}
    for path in islice(_list_paths(workspace), MAX_PATHS):
        # The first of equal names is the one nearest to the root.
        paths.setdefault(PurePath(path).name, path)
        if "." not in name:
            paths.setdefault(PurePath(path).stem, path)
    by_lower_name = {known.lower(): path for known, path in paths.items()}
    found = get_close_matches(name.lower(), by_lower_name, n=1, cutoff=_MIN_LIKENESS)
    return by_lower_name[found[0]] if found else ""


def _list_paths(workspace: Workspace) -> Iterator[str]:
    """Yield the paths of a part of the workspace, those near the root first."""
    waiting = deque([""])
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        folder = waiting.popleft()
        names: list[str] = []
        with suppress(GooseLikeError, OSError):
            names = workspace.list_folder(folder or ".")
        for name in names:
            yield folder + name
            if name.endswith("/") and not _SKIPPED.match(name.rstrip("/")):
                waiting.append(folder + name)
