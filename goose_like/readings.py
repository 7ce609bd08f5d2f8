"""Readings: what was read of files, kept from session to session while the files are as they were."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from . import __version__
from .fault import Reading
from .store import Store

R = TypeVar("R", bound=Reading[Any])

_TICK_NS = 50_000_000
"""What was written just now may be written again without looking different."""


def kept(store: Store, kind: type[R], files: Iterable[Path], read: Callable[[Path], R]) -> Iterator[tuple[Path, R]]:
    """What is read of each file, from the store where it has not changed since."""
    marks = {file: _mark(kind, file) for file in files}
    texts = store.get(filter(None, marks.values()))
    new: dict[str, str] = {}
    for file in marks:
        reading = _parsed(kind, texts.get(marks[file], ""))
        if reading is None:
            mark = _mark(kind, file)  # by now it may have settled
            reading = read(file)
            if mark:
                new[mark] = reading.model_dump_json(exclude_unset=True)
        yield file, reading
    store.put(new)


def _parsed(kind: type[R], text: str) -> R | None:
    try:
        return kind.model_validate_json(text) if text else None
    except ValidationError:  # of another version
        return None


def _mark(kind: type[R], file: Path) -> str:
    """A name for a file as it is; empty where it may soon be another under the same name, or is named in no UTF-8."""
    try:
        str(file).encode()
        found = file.stat()
    except (OSError, ValueError):
        return ""
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _TICK_NS:
        return ""
    return "\0".join(map(str, (__version__, kind.__name__, file, found.st_mtime_ns, found.st_ctime_ns, found.st_size)))
