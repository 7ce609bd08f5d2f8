"""An artifact's file: what a plugin made, written as its kind says, and a few words for who can't see it."""

import io
import os
import re
import shutil
from typing import Any, Literal, get_args

ArtifactType = Literal["chart", "image", "df", "file", "txt", "svg", "html"]

_PREVIEW_CHARS = 100


def file_name_of(name: str) -> str:
    """The name again, when it is a file's name and nothing else.

    Raises:
        ValueError: when it leads into another folder, or nowhere.
    """
    if name in ("", ".", "..") or re.search(r"[/\\\0]", name):
        raise ValueError(f"{name!r} is no file name; give one without folders, such as 'result.csv'")
    return name


def write(path: str, kind: str, value: Any) -> None:
    """Writes the value into a new file: a table as CSV without its index, an image as its bytes, all else as text.

    Raises:
        ValueError: when there is no such kind.
        TypeError: when the value can't be of that kind.
    """
    if kind not in (known := get_args(ArtifactType)):
        raise ValueError(f"no artifact is of type {kind!r}; the types are: {', '.join(known)}")
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


def preview(kind: str, value: Any) -> str:
    """What is said of an artifact that was given no description."""
    if kind == "df":
        return f"table of {len(value)} rows with columns {', '.join(map(str, getattr(value, 'columns', [])))}"
    if kind in ("file", "txt") and isinstance(value, str):
        return value[:_PREVIEW_CHARS]
    return {"html": "web page", "svg": "drawing"}.get(kind, kind)


def _write_image(path: str, value: Any) -> None:
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    # No library is imported to ask whether the value is its own: each is known by how it saves.
    figure: Any = value if hasattr(value, "savefig") else getattr(value, "figure", None)
    if isinstance(value, (bytes, bytearray)):
        _write_bytes(path, value)
    elif isinstance(value, io.BytesIO):
        _write_bytes(path, value.getvalue())
    elif isinstance(value, (str, os.PathLike)):
        shutil.copyfile(value, path)
    elif hasattr(figure, "savefig"):  # matplotlib's figure, or axes of one
        figure.savefig(path, format=ending or "png")
    elif hasattr(value, "save") and hasattr(value, "mode"):  # Pillow's
        value.save(path, format=None if ending else "PNG")
    elif (drawn := _drawn(value)) is not None:
        _write_bytes(path, drawn)
    else:
        raise TypeError(
            f"an artifact of type 'image' is bytes, a path, a Pillow image or a matplotlib figure, "
            f"not {type(value).__name__}"
        )


def _drawn(value: Any) -> bytes | None:
    """What IPython would show as a PNG."""
    drawn = value._repr_png_() if hasattr(value, "_repr_png_") else None
    if isinstance(drawn, tuple):  # with its metadata
        drawn = drawn[0]
    return drawn if isinstance(drawn, bytes) else None


def _write_bytes(path: str, value: bytes | bytearray) -> None:
    with open(path, "wb") as file:
        file.write(value)
