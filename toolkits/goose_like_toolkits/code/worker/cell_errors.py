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
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        link = "which led to:" if error.__cause__ else "and while that was handled:"
        frames, text = _format_frames(cause), _format_exception(cause)
        if text != _format_exception(error) or any(not line.startswith("  [") for line in frames[1:]):
            lines = [*frames, *text, link, *lines]
        error = cause
    return "\n".join(lines)


def format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Format a warning as one line; the signature is that of `warnings.formatwarning`."""
    place = f"cell line {lineno}" if is_cell_file(filename) else f"{filename}:{lineno}"
    return f"{place}: {category.__name__}: {message}\n"


def is_cell_file(filename: str) -> bool:
    """Return whether a file name stands for a cell."""
    return f"{os.sep}ipykernel_{os.getpid()}{os.sep}" in filename or filename.startswith("<ipython-input")


def _format_frames(error: BaseException) -> list[str]:
    if _is_cell_syntax_error(error):
        return []
    frames = [
        (_format_place(frame), frame.line or "")
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(os.path.dirname(__file__)) and "interactiveshell.py" not in frame.filename
    ]
    lines = []
    for place, group in groupby(frames, lambda entry: entry[0]):
        same = list(group)
        if place.startswith("["):
            lines.append(f"  {place}" if len(same) == 1 else f"  {place[:-1]}, {len(same)} calls]")
        else:
            lines.append(f"  {place}{f' ({len(same)} times)' * (len(same) > 1)}")
            lines += [f"    {line}" for _, line in same[:1] if line]
    if len(lines) > 2 * _FRAMES:
        lines = [*lines[:_FRAMES], "  [... more calls ...]", *lines[-_FRAMES:]]
    return ["Traceback (most recent call last):", *lines] if lines else []


def _list_columns(error: BaseException) -> list[str]:
    """Return a line with the columns of the data frame that lacks a key."""
    is_name = isinstance(error, KeyError) and error.args and isinstance(error.args[0], str)
    for frame, _ in traceback.walk_tb(error.__traceback__) if is_name else ():
        value: Any = frame.f_locals.get("self", frame.f_locals.get("obj"))
        if type(value).__module__.startswith("pandas"):
            value = getattr(value, "__dict__", {}).get("obj", value)  # that of a group
            if type(value).__name__ == "DataFrame":
                columns = list(map(repr, value.columns[:_COLUMNS]))
                return [f"use one of these columns: {', '.join(columns)}{', ...' * (len(value.columns) > _COLUMNS)}"]
    return []


def _format_place(frame: traceback.FrameSummary) -> str:
    """Return the place of a call, or in brackets the library that contains it."""
    within = "" if frame.name == "<module>" else f", in {frame.name}"
    if is_cell_file(frame.filename):
        return f"cell line {frame.lineno}{within}"
    if frame.filename.endswith((".pyx", ".pxi")):  # of a compiled library
        return f"[in {frame.filename.split('/')[0]}]"
    path = os.path.realpath(frame.filename)
    if library := _find_library(path):
        return f"[in {library}]"
    name = frame.filename
    with suppress(OSError):  # the folder may not exist any more
        name = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else name
    return f"{name} line {frame.lineno}{within}"


def _find_library(path: str) -> str:
    """Return the installed or standard package that contains a file, or "" for the user's own files."""
    installed = _INSTALLED.search(path)
    if installed is None and not path.startswith(_STANDARD_LIBRARY) and not os.path.basename(path).startswith("<"):
        return ""
    rest = path[installed.end() :] if installed else path.removeprefix(_STANDARD_LIBRARY)
    return rest.lstrip(os.sep).split(os.sep)[0].removesuffix(".py")


def _is_cell_syntax_error(error: BaseException) -> bool:
    return isinstance(error, SyntaxError) and bool(error.filename) and is_cell_file(str(error.filename))


def _format_exception(error: BaseException) -> list[str]:
    """Return type and message, after the line of a syntax error, and before the members of a group."""
    if isinstance(error, SyntaxError) and _is_cell_syntax_error(error):
        line = (error.text or linecache.getline(str(error.filename), error.lineno or 0)).rstrip()
        mark = " " * max((error.offset or 1) - 1, 0) + "^"
        return [f"  cell line {error.lineno}", f"    {line}", f"    {mark}", f"{type(error).__name__}: {error.msg}"]
    lines = "".join(traceback.format_exception_only(type(error), error)).rstrip().splitlines()
    if isinstance(error, _GROUP):
        lines += [f"  - {line}" for member in error.exceptions for line in _format_exception(member)]
    return lines
