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
    if name not in columns:
        names = [str(column) for column in columns]
        similar = get_close_matches(str(name), names, 3)
        hint = f"did you mean: {', '.join(similar)}?" if similar else f"its columns are: {', '.join(names)}"
        raise ValueError(f"the data frame has no column {str(name)!r}; {hint}")


def check_file(path: str) -> Path:
    """Return the path of an existing file.

    Raises:
        FileNotFoundError: There is no such file; the message names similar ones.
    """
    file = Path(path)
    if file.is_file():
        return file
    names = [each.name for each in file.parent.iterdir()] if file.parent.is_dir() else []
    similar = get_close_matches(file.name, names, 3)
    raise FileNotFoundError(f"no file {path!r}{'; similar: ' + ', '.join(similar) if similar else ''}")
