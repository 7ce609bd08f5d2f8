"""Short tracebacks: lines of the cell and of the user's files, counts for library calls, and the error at the end."""

import builtins
import linecache
import os
import re
import sysconfig
import traceback
from contextlib import suppress
from itertools import groupby
from typing import Any

_STANDARD_LIBRARY = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_GROUP = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.10, in which a kernel may run, has none
_FRAMES = 12
_CAUSES = 3
_COLUMNS = 40


def format_error(error: BaseException) -> str:
    """Format an error with its causes, without the middle of many frames."""
    lines = [*_format_frames(error), *_format_exception(error), *_list_columns(error)]
    seen = {id(error)}
    for _ in range(_CAUSES):
        cause = _find_cause(error)
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        frames = _format_frames(cause)
        text = _format_exception(cause)
        # A library that raises the same error again adds nothing.
        if text != _format_exception(error) or _has_own_frame(frames):
            link = "which led to:" if error.__cause__ else "and while that was handled:"
            lines = [*frames, *text, link, *lines]
        error = cause
    return "\n".join(lines)


def _find_cause(error: BaseException) -> BaseException | None:
    """Return the error that led to another one, or during whose handling it was raised."""
    if error.__cause__ or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _has_own_frame(lines: list[str]) -> bool:
    """Check whether a formatted traceback contains more than calls of libraries."""
    return any(not line.startswith("  [") for line in lines[1:])


def format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Format a warning as one line; the signature is that of `warnings.formatwarning`."""
    place = f"{filename}:{lineno}"
    if is_cell_file(filename):
        place = f"cell line {lineno}"
    return f"{place}: {category.__name__}: {message}\n"


def is_cell_file(filename: str) -> bool:
    """Return whether a file name stands for a cell."""
    if filename.startswith("<ipython-input"):
        return True
    folder = f"ipykernel_{os.getpid()}"
    return f"{os.sep}{folder}{os.sep}" in filename


def _format_frames(error: BaseException) -> list[str]:
    if _is_cell_syntax_error(error):
        return []
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_of_kernel(frame.filename)]
    lines = []
    for place, group in groupby(frames, _format_place):
        same = list(group)
        lines += _format_calls(place, len(same), same[0].line or "")
    if len(lines) > 2 * _FRAMES:
        lines[_FRAMES:-_FRAMES] = ["  [... more calls ...]"]
    if lines:
        lines.insert(0, "Traceback (most recent call last):")
    return lines


def _format_calls(place: str, count: int, source: str) -> list[str]:
    """Format calls from one place that follow each other: as one line for a library, else with the line of source."""
    if place.startswith("["):
        if count > 1:
            place = f"{place[:-1]}, {count} calls]"
        return [f"  {place}"]
    lines = [f"  {place}"]
    if count > 1:
        lines = [f"  {place} ({count} times)"]
    if source:
        lines.append(f"    {source}")
    return lines


def _is_of_kernel(filename: str) -> bool:
    return filename.startswith(os.path.dirname(__file__)) or "interactiveshell.py" in filename


def _list_columns(error: BaseException) -> list[str]:
    """Return a line with the columns of the data frame that lacks a key."""
    is_name = isinstance(error, KeyError) and error.args and isinstance(error.args[0], str)
    if not is_name:
        return []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        value: Any = frame.f_locals.get("self", frame.f_locals.get("obj"))
        if not type(value).__module__.startswith("pandas"):
            continue
        value = getattr(value, "__dict__", {}).get("obj", value)  # that of a group
        if type(value).__name__ == "DataFrame":
            names = list(map(repr, value.columns[:_COLUMNS]))
            if len(value.columns) > _COLUMNS:
                names.append("...")
            return [f"use one of these columns: {', '.join(names)}"]
    return []


def _format_place(frame: traceback.FrameSummary) -> str:
    """Return the place of a call, or in brackets the library that contains it."""
    within = "" if frame.name == "<module>" else f", in {frame.name}"
    if is_cell_file(frame.filename):
        return f"cell line {frame.lineno}{within}"
    if frame.filename.endswith((".pyx", ".pxi")):  # of a compiled library
        library, _, _ = frame.filename.partition("/")
        return f"[in {library}]"
    path = os.path.realpath(frame.filename)
    library = _find_library(path)
    if library:
        return f"[in {library}]"
    name = frame.filename
    with suppress(OSError):  # the folder may not exist any more
        if path.startswith(os.getcwd() + os.sep):
            name = os.path.relpath(path)
    return f"{name} line {frame.lineno}{within}"


def _find_library(path: str) -> str:
    """Return the installed or standard package that contains a file, or "" for the user's own files."""
    installed = _INSTALLED.search(path)
    if installed:
        rest = path[installed.end() :]
    elif path.startswith(_STANDARD_LIBRARY):
        rest = path.removeprefix(_STANDARD_LIBRARY)
    elif os.path.basename(path).startswith("<"):  # such as `<frozen importlib._bootstrap>`
        rest = path
    else:
        return ""
    top, _, _ = rest.lstrip(os.sep).partition(os.sep)
    return top.removesuffix(".py")


def _is_cell_syntax_error(error: BaseException) -> bool:
    if not isinstance(error, SyntaxError) or not error.filename:
        return False
    return is_cell_file(str(error.filename))


def _format_exception(error: BaseException) -> list[str]:
    """Return type and message, after the line of a syntax error, and before the members of a group."""
    if isinstance(error, SyntaxError) and _is_cell_syntax_error(error):
        source = error.text or linecache.getline(str(error.filename), error.lineno or 0)
        offset = error.offset or 1
        return [
            f"  cell line {error.lineno}",
            f"    {source.rstrip()}",
            "    " + " " * (offset - 1) + "^",
            f"{type(error).__name__}: {error.msg}",
        ]
    text = "".join(traceback.format_exception_only(type(error), error))
    lines = text.rstrip().splitlines()
    if isinstance(error, _GROUP):
        for member in error.exceptions:
            lines += [f"  - {line}" for line in _format_exception(member)]
    return lines
