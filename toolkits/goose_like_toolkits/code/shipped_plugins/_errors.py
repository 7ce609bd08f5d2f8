"""Error messages that the shipped plugins share."""

from collections.abc import Collection
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any


def import_library(name: str, plugin: str) -> Any:
    """Import a library.

    Raises:
        RuntimeError: The library is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise RuntimeError(f"{plugin} needs {package}, which is not installed here: pip install {package}") from None


def check_column(name: object, columns: Collection[object]) -> None:
    """Check that a data frame has a column.

    Raises:
        ValueError: There is no such column; the message names similar ones.
    """
    if name in columns:
        return
    names = list(map(str, columns))
    hint = f"its columns are: {', '.join(names)}"
    similar = get_close_matches(str(name), names, 3)
    if similar:
        hint = f"did you mean: {', '.join(similar)}?"
    raise ValueError(f"the data frame has no column {str(name)!r}; {hint}")


def check_file(path: str) -> Path:
    """Return the path of an existing file.

    Raises:
        FileNotFoundError: There is no such file; the message names similar ones.
    """
    file = Path(path)
    if file.is_file():
        return file
    names = []
    if file.parent.is_dir():
        names = [each.name for each in file.parent.iterdir()]
    message = f"no file {path!r}"
    similar = get_close_matches(file.name, names, 3)
    if similar:
        message += f"; similar: {', '.join(similar)}"
    raise FileNotFoundError(message)
