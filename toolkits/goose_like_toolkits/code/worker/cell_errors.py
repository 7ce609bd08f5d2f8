"""An error of a cell in few words: the cell's own lines, what others did counted, and last what went wrong."""

import builtins
import linecache
import os
import re
import sysconfig
import traceback
from contextlib import suppress
from itertools import groupby

_STANDARD = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_GROUP = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.10, in which a kernel may run, has none
_FRAMES = 12
_CAUSES = 3


def told_error(error: BaseException) -> str:
    """The error as text. Frames of libraries are only counted, and of many frames the middle is left out."""
    lines = [*_frames(error), *_what(error)]
    shown = {id(error)}
    for _ in range(_CAUSES):
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None or id(cause) in shown:
            break
        shown.add(id(cause))
        link = "which led to:" if error.__cause__ else "and while that was handled:"
        lines = [*_frames(cause), *_what(cause), link, *lines]
        error = cause
    return "\n".join(lines)


def _frames(error: BaseException) -> list[str]:
    if isinstance(error, SyntaxError) and error.filename and is_cell(error.filename):
        return []
    found = [
        (_place(frame), frame.line or "")
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(os.path.dirname(__file__)) and "interactiveshell.py" not in frame.filename
    ]
    lines = []
    for place, group in groupby(found, lambda entry: entry[0]):
        same = list(group)
        if place.startswith("["):
            lines.append(f"  {place}" if len(same) == 1 else f"  {place[:-1]}, {len(same)} calls]")
        else:
            lines.append(f"  {place}{f' ({len(same)} times)' * (len(same) > 1)}")
            lines += [f"    {line}" for _, line in same[:1] if line]
    if len(lines) > 2 * _FRAMES:
        lines = [*lines[:_FRAMES], "  [... more calls ...]", *lines[-_FRAMES:]]
    return ["Traceback (most recent call last):", *lines] if lines else []


def _place(frame: traceback.FrameSummary) -> str:
    """Where a call was made; in brackets the library that it was made in."""
    within = "" if frame.name == "<module>" else f", in {frame.name}"
    if is_cell(frame.filename):
        return f"cell line {frame.lineno}{within}"
    path = os.path.realpath(frame.filename)
    if library := _library(path):
        return f"[in {library}]"
    name = frame.filename
    with suppress(OSError):  # the folder may be gone
        name = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else name
    return f"{name} line {frame.lineno}{within}"


def _library(path: str) -> str:
    """The package that a file belongs to, if it was installed or came with Python."""
    found = _INSTALLED.search(path)
    if found is None and not path.startswith(_STANDARD) and not os.path.basename(path).startswith("<"):
        return ""
    rest = path[found.end() :] if found else path.removeprefix(_STANDARD)
    return rest.lstrip(os.sep).split(os.sep)[0].removesuffix(".py")


def told_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning in one line."""
    where = f"cell line {lineno}" if is_cell(filename) else f"{filename}:{lineno}"
    return f"{where}: {category.__name__}: {message}\n"


def is_cell(filename: str) -> bool:
    """Whether this names a cell and no file."""
    return f"{os.sep}ipykernel_{os.getpid()}{os.sep}" in filename or filename.startswith("<ipython-input")


def _what(error: BaseException) -> list[str]:
    """Its name and words; the line for an error of syntax, and the members of a group."""
    if isinstance(error, SyntaxError) and error.filename and is_cell(error.filename):
        line = (error.text or linecache.getline(error.filename, error.lineno or 0)).rstrip()
        mark = " " * max((error.offset or 1) - 1, 0) + "^"
        return [f"  cell line {error.lineno}", f"    {line}", f"    {mark}", f"{type(error).__name__}: {error.msg}"]
    lines = "".join(traceback.format_exception_only(type(error), error)).rstrip().splitlines()
    if isinstance(error, _GROUP):
        lines += [f"  - {line}" for member in error.exceptions for line in _what(member)]
    return lines
