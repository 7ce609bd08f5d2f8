"""Dot folders that components make for themselves: their configuration names them, and nobody else had them before."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from goose_like.config.paths import replace_private_file

_FOREIGN = (".git", ".env")
"""Beginnings of names that are never a component's own."""


def find_own_dot_folders(root: Path, configs: Iterable[Mapping[str, object]], record: Path) -> list[str]:
    """Find the names of dot folders in configurations that components may use.

    A folder that is there already is a component's own if `record` has it from its first use. New ones are added.
    """
    known = set(_read_record(record))
    own = set()
    for config in configs:
        for text in _iterate_texts(config):
            folder = _find_dot_folder(text)
            if folder is None:
                continue
            is_new = not os.path.lexists(root / folder)
            if is_new or str(folder) in known:
                own.add(str(folder))
    if not own <= known:
        lines = "".join(f"{folder}\n" for folder in sorted(known | own))
        replace_private_file(record, lines)
    return sorted({PurePath(folder).name for folder in own})


def _read_record(record: Path) -> list[str]:
    try:
        return record.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _iterate_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from _iterate_texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _iterate_texts(entry)


def _find_dot_folder(text: str) -> PurePath | None:
    """Return the path to the first dot folder in a relative path: `web/.cache` of `web/.cache/pages`."""
    path = PurePath(text)
    if path.is_absolute() or ".." in path.parts or not text.isprintable():
        return None
    for count, name in enumerate(path.parts, 1):
        if name.startswith(_FOREIGN):
            return None
        if name.startswith("."):
            return PurePath(*path.parts[:count])
    return None
