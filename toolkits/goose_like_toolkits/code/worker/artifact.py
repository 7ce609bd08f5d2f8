"""Files that plugins save as artifacts."""

import os
import re
import shutil
from typing import Any, Literal, get_args

ArtifactType = Literal["chart", "image", "df", "file", "txt", "svg", "html"]

_PREVIEW_CHARS = 100


def check_file_name(name: str) -> str:
    """Return the name of a file unchanged. Raise ValueError if it contains a folder or is empty."""
    if name in ("", ".", "..") or re.search(r"[/\\\0]", name):
        raise ValueError(f"{name!r} is not a file name; give one without folders, such as 'result.csv'")
    return name


def write_artifact(path: str, kind: str, value: Any) -> None:
    """Write a value into a new file. Raise ValueError for an unknown kind, and TypeError if the value does not fit."""
    kinds = get_args(ArtifactType)
    if kind not in kinds:
        raise ValueError(f"no artifact is of type {kind!r}; the types are: {', '.join(kinds)}")
    if kind == "df":
        if not hasattr(value, "to_csv"):
            raise TypeError(f"an artifact of type 'df' is a data frame, and {type(value).__name__} has no to_csv")
        value.to_csv(path, index=False)
    elif kind == "image":
        _write_image(path, value)
    elif isinstance(value, (bytes, bytearray)):
        _write_bytes(path, value)
    elif isinstance(value, str):
        with open(path, "w", encoding="utf-8") as file:
            file.write(value)
    else:
        raise TypeError(f"an artifact of type {kind!r} is text or bytes, not {type(value).__name__}; convert it first")


def describe_artifact(kind: str, value: Any) -> str:
    """Return a description for an artifact without one."""
    if kind == "df":
        columns = map(str, getattr(value, "columns", []))
        return f"table of {len(value)} rows with columns {', '.join(columns)}"
    if kind in ("file", "txt") and isinstance(value, str):
        return value[:_PREVIEW_CHARS]
    return {"html": "web page", "svg": "drawing"}.get(kind, kind)


def _write_image(path: str, value: Any) -> None:
    extension = os.path.splitext(path)[1].lstrip(".").lower()
    # Recognize the objects of libraries by their methods, without importing the libraries.
    figure: Any = value if hasattr(value, "savefig") else getattr(value, "figure", None)
    if isinstance(value, (bytes, bytearray)):
        _write_bytes(path, value)
    elif isinstance(value, (str, os.PathLike)):
        shutil.copyfile(value, path)
    elif hasattr(figure, "savefig"):  # a matplotlib figure or its axes
        figure.savefig(path, format=extension or "png")
    elif hasattr(value, "save") and hasattr(value, "mode"):  # a Pillow image
        value.save(path, format=None if extension else "PNG")
    else:
        raise TypeError(
            f"an artifact of type 'image' is bytes, a path, a Pillow image or a matplotlib figure, "
            f"not {type(value).__name__}"
        )


def _write_bytes(path: str, value: bytes | bytearray) -> None:
    with open(path, "wb") as file:
        file.write(value)
