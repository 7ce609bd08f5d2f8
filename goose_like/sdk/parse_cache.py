"""Readings: what was read of files, kept from session to session by what these files hold."""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from goose_like import __version__

from .diagnostics import MAX_FILE_BYTES, ParseResult
from .store import ParseCache

R = TypeVar("R", bound=ParseResult[Any])


def parse_files(
    store: ParseCache, kind: type[R], files: Iterable[Path], read: Callable[[Path], R], *, is_placeless: bool = False
) -> Iterator[tuple[Path, R]]:
    """What is read of each file, from the store where a file of this content was read before.

    At another place it counts as another one, unless what `read` gives `is_placeless`: then its faults get the place of
    the file that is asked for, and nothing else in it may name one.
    """
    marks = {file: _mark(kind, file, is_placeless) for file in files}
    texts = store.get(filter(None, marks.values()))
    new: dict[str, str] = {}
    for file, mark in marks.items():
        reading = _parsed(kind, texts.get(mark, ""))
        if reading is None:
            reading = read(file)
            if mark and mark == _mark(kind, file, is_placeless):  # else it was written meanwhile
                placed = _moved(reading, Path()) if is_placeless else reading
                new[mark] = placed.model_dump_json(exclude_unset=True)
        elif is_placeless:
            reading = _moved(reading, file)
        yield file, reading
    store.put(new)


def _moved(reading: R, file: Path) -> R:
    """As if it were of another file."""
    if not reading.diagnostics:
        return reading
    faults = tuple(fault.model_copy(update={"file": file}) for fault in reading.diagnostics)
    return reading.model_copy(update={"faults": faults})


def _parsed(kind: type[R], text: str) -> R | None:
    try:
        return kind.model_validate_json(text) if text else None
    except ValidationError:  # of another version
        return None


def _mark(kind: type[R], file: Path, is_placeless: bool) -> str:
    """A name for what a file holds; empty where it can't be read, or is no file that people wrote."""
    place = "" if is_placeless else str(file)
    try:
        place.encode()
        if not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:
            return ""
        content = sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""
    return "\0".join((__version__, kind.__name__, place, content))
